"""``/collections/{name}/documents``: a list of them, a stream of them in, one out, some away."""

import asyncio
from collections.abc import AsyncIterator
from typing import Annotated, Any, Self

import orjson
from fastapi import APIRouter, Path, Query, Request
from pydantic import BaseModel, Field, model_validator
from starlette.requests import ClientDisconnect
from starlette.responses import Response

from dartboard.api.authentication import READ, WRITE_INDEX
from dartboard.api.endpoints.collections import Deleted, Name
from dartboard.api.errors import ClientGone, Invalid, NotFound, Stopping, TimedOut, TooLarge, UnsupportedType
from dartboard.api.schemas import Id, Listed, Passage, RequestModel, Text, condition, json_body, parse_json
from dartboard.api.service import Service, ServiceDep, in_thread, in_write_thread
from dartboard.api.upsert import Line, Upsert, UpsertResponse, lines_of
from dartboard.engine.chunk_writer import BATCH
from dartboard.errors import DeadlineError, StoreLockedError
from dartboard.stores import Collection, Record
from dartboard.stores.filters import Equal


class DocumentEntry(BaseModel):
    """A document of a collection."""

    id: str
    passages: int
    title: str | None
    uploaded: bool = Field(description="Whether it came through the service.")


class DocumentList(BaseModel):
    """Documents by id, a page of them."""

    documents: list[DocumentEntry]
    total: int


class DocumentResponse(BaseModel):
    """A document as it is kept: its passages in order."""

    id: str
    passages: list[Passage]
    truncated: bool = Field(description="Whether there are more than are shown.")


class DeleteRequest(RequestModel):
    """What to delete: one of the two."""

    ids: Annotated[Listed[Id], Field(min_length=1, max_length=10_000)] | None = Field(
        None, description="Ids of documents or of passages."
    )
    filter: Text | dict[str, Any] | None = Field(None, description="A filter on metadata, as in `/retrieve`.")

    @model_validator(mode="after")
    def _one(self) -> Self:
        if (self.ids is None) == (self.filter is None):
            raise ValueError("give ids or a filter: one of the two")
        return self


router = APIRouter(prefix="/api/dartboard", tags=["documents"])
NDJSON = "application/x-ndjson"
_LINES = (
    NDJSON,
    "application/ndjson",
    "application/jsonl",
    "application/json-lines",
    "application/jsonlines",
)
_GATHERED = 256 * 1024
_LISTED = 1000
DocumentId = Annotated[
    str,
    Path(
        description="The id of a document (its `source`) or of a passage; may hold slashes.",
        min_length=1,
        max_length=1000,
    ),
]
_DOCUMENT = {
    "type": "object",
    "required": ["text"],
    "properties": {"id": {"type": "string"}, "text": {"type": "string"}, "metadata": {"type": "object"}},
}
_BODY = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {"schema": {"anyOf": [_DOCUMENT, {"type": "array", "items": _DOCUMENT}]}},
            NDJSON: {
                "schema": {"type": "string", "description": "One JSON object a line: text, id, metadata."},
                "example": '{"id": "leave.md", "text": "You earn two days a month."}\n',
            },
        },
    }
}


@router.get("/collections/{name}/documents", operation_id="list_documents", dependencies=READ)
@in_thread
def documents(
    name: Name,
    service: ServiceDep,
    offset: Annotated[int, Query(ge=0, le=10_000_000, description="Leave out so many.")] = 0,
    limit: Annotated[int, Query(ge=1, le=_LISTED, description="How many at most.")] = 100,
) -> DocumentList:
    """List the documents of a collection, by id."""
    found: dict[str, DocumentEntry] = {}
    for metadata in service.engines.get(name).collection.iterate_metadata():
        source = metadata.get("source")
        if not isinstance(source, str):
            continue
        entry = found.get(source)
        if entry is None:
            title = metadata.get("title")
            found[source] = entry = DocumentEntry(
                id=source,
                passages=0,
                title=title if isinstance(title, str) else None,
                uploaded=metadata.get("uploaded") is True,
            )
        entry.passages += 1
    return DocumentList(
        documents=[found[id] for id in sorted(found)[offset : offset + limit]], total=len(found)
    )


@router.post(
    "/collections/{name}/documents",
    operation_id="upsert_documents",
    response_model=UpsertResponse,
    openapi_extra=_BODY,
    dependencies=WRITE_INDEX,
)
async def upsert(name: Name, request: Request, service: ServiceDep) -> Any:
    """Add or replace documents: `text`, and if you like `id` and `metadata`.

    The body is one JSON object a line (`application/x-ndjson`), or JSON: an object or a list of them. Lines
    are read as they arrive, split into passages, encoded and kept in batches. A bad line is reported by its
    number and does not spoil the others. With `Accept: application/x-ndjson` the answer has a line for each
    line that was sent.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind in _LINES:
        lines = lines_of(request.stream(), service.settings.line_bytes)
    elif kind == "application/json":
        lines = _lines_of_json(request, service)
    else:
        raise UnsupportedType(f"send JSON, or one JSON object a line: Content-Type: {NDJSON}")
    with service.writes.admitted():
        run = await service.writes.run(lambda: Upsert(service, name), step=True)
        try:
            count = await _take_all(service, run, lines)
            await _finish(service, run)
        except ClientDisconnect:
            raise ClientGone from None
        except (Stopping, asyncio.CancelledError):  # the server stops
            raise _cut_off(run) from None
    outcome = run.outcome
    if count > service.settings.documents:
        raise TooLarge(
            f"a request takes {service.settings.documents} lines: those were taken "
            f"({outcome.accepted} kept, {outcome.failed} refused), the rest was not read"
        )
    if NDJSON not in request.headers.get("accept", ""):
        return outcome
    rows = [line.model_dump() for line in (*outcome.documents, *outcome.errors)]
    rows.sort(key=lambda row: int(row["line"]))
    rows.append(outcome.model_dump(include={"accepted", "chunks", "failed"}))
    return Response(b"".join(orjson.dumps(row) + b"\n" for row in rows), media_type=NDJSON)


@router.get("/collections/{name}/documents/{id:path}", operation_id="get_document", dependencies=READ)
@in_thread
def get(name: Name, id: DocumentId, service: ServiceDep) -> DocumentResponse:
    """The passages of a document as they are kept, or one passage by its own id."""
    records = _passages(service.engines.get(name).collection, id)
    if not records:
        raise NotFound("there is no such document")
    records.sort(key=lambda record: (_position(record), record.id))
    passages: list[Passage] = []
    left = service.settings.answer_bytes
    for one in records[:_LISTED]:
        left -= len(one.text.encode()) + len(orjson.dumps(one.metadata, default=str))
        if left < 0:
            break
        passages.append(Passage(chunk_id=one.id, text=one.text, metadata=dict(one.metadata)))
    return DocumentResponse(id=id, passages=passages, truncated=len(passages) < len(records))


@router.delete(
    "/collections/{name}/documents/{id:path}", operation_id="delete_document", dependencies=WRITE_INDEX
)
@in_write_thread
def delete(name: Name, id: DocumentId, service: ServiceDep) -> Deleted:
    """Delete a document with all its passages, or one passage by its own id."""
    collection = service.engines.writable(name).collection
    count = collection.delete(where=Equal("source", id)) or collection.delete([id])
    if not count:
        raise NotFound("there is no such document")
    return Deleted(deleted=count)


@router.post(
    "/collections/{name}/documents/delete", operation_id="delete_documents", dependencies=WRITE_INDEX
)
@in_write_thread
def delete_many(
    name: Name, service: ServiceDep, body: Annotated[DeleteRequest, json_body(DeleteRequest, line="writes")]
) -> Deleted:
    """Delete documents by their ids, or all passages that match a filter."""
    where = condition(body.filter, body.ids)
    engine = service.engines.writable(name)
    return Deleted(deleted=engine.delete(where=where))


async def _lines_of_json(request: Request, service: Service) -> AsyncIterator[Line]:
    """Each document of a JSON body as a line; the body is in memory, so it is held to their limit."""
    data = bytearray()
    async for part in request.stream():
        data += part
        if len(data) > service.settings.body_bytes:
            raise TooLarge(f"JSON is limited to {service.settings.body_bytes} bytes here: send {NDJSON}")
    given = parse_json(None, bytes(data))
    if not isinstance(given, dict | list):
        raise Invalid("send an object with a text, or a list of them", field="body")
    for number, one in enumerate(given if isinstance(given, list) else [given], start=1):
        line = orjson.dumps(one)
        yield Line(number, line if len(line) <= service.settings.line_bytes else None)


async def _take_all(service: Service, run: Upsert, lines: AsyncIterator[Line]) -> int:
    """Keep the documents of a body as they come in; how many lines there were, one too many included."""
    gathered: list[Line] = []
    size = count = 0
    async for line in lines:
        count += 1
        if count > service.settings.documents:
            break
        gathered.append(line)
        size += len(line.data or b"")
        if len(gathered) == BATCH or size >= _GATHERED:
            await _take(service, run, gathered)
            gathered, size = [], 0
    await _take(service, run, gathered)
    while run.waiting:
        await service.writes.run(run.keep, step=True)
    return count


async def _take(service: Service, run: Upsert, lines: list[Line]) -> None:
    if lines:
        await service.writes.run(run.add, lines, step=True)
    while run.waiting >= BATCH:
        await service.writes.run(run.keep, step=True)


async def _finish(service: Service, run: Upsert) -> None:
    """Indexes now, if there is time: what was sent is kept all the same."""
    if not run.outcome.accepted:
        return
    try:
        await service.writes.run(run.finish, step=True)
    except (TimedOut, DeadlineError, StoreLockedError):
        return


def _cut_off(run: Upsert) -> Stopping:
    """What an upload is told that the service has no more time for; a batch may be on its way yet."""
    return Stopping(
        "the service is shutting down in the middle of the upload: at least "
        f"{run.outcome.accepted} documents of it are kept; send all of it again later, which replaces them"
    )


def _passages(collection: Collection, id: str) -> list[Record]:
    found: list[Record] = []
    for batch in collection.iterate(where=Equal("source", id)):
        found += batch
        if len(found) > _LISTED:
            break
    return found or collection.get([id])


def _position(record: Record) -> int:
    position = record.metadata.get("position")
    return position if isinstance(position, int) else 0
