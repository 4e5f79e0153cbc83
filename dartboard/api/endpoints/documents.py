"""``/collections/{name}/documents``: a stream of them in, one out, some away."""

import asyncio
from typing import Annotated, Any, Self

import orjson
from fastapi import APIRouter, Path, Request
from pydantic import Field, model_validator
from starlette.requests import ClientDisconnect
from starlette.responses import Response

from dartboard.api.endpoints.collections import Deleted, Name
from dartboard.api.errors import ClientGone, NotFound, Stopping, TimedOut, TooLarge, UnsupportedType
from dartboard.api.guards.authentication import READ, WRITE
from dartboard.api.json_body import JsonRoute, Line, dumps, json_response, lines_of
from dartboard.api.locks import retry_locked
from dartboard.api.schemas import Id, Listed, Passage, RequestModel, ResponseModel, Text
from dartboard.api.search_request import condition
from dartboard.api.service import Service, ServiceDep, in_worker, in_write_queue
from dartboard.api.upsert import Upsert, UpsertResponse
from dartboard.engine.chunk_writer import BATCH
from dartboard.errors import DeadlineError, StoreLockedError
from dartboard.stores import Collection, Record
from dartboard.stores.filters import Equal


class DocumentResponse(ResponseModel):
    """A document as it is kept: its passages in order."""

    id: str = Field(description="The document's id, or the passage's.", examples=["handbook/leave.md"])
    passages: list[Passage] = Field(description="Its passages.")
    truncated: bool = Field(description="Whether there are more than a thousand.", examples=[False])


class DeleteRequest(RequestModel):
    """What to delete: one of the two."""

    ids: Annotated[Listed[Id], Field(min_length=1, max_length=10_000)] | None = Field(
        None, description="Ids of documents or of passages.", examples=[["handbook/leave.md"]]
    )
    filter: Text | dict[str, Any] | None = Field(
        None, description="A filter on metadata, as in `/retrieve`.", examples=["year < 2020"]
    )

    @model_validator(mode="after")
    def _one(self) -> Self:
        if (self.ids is None) == (self.filter is None):
            raise ValueError("give ids or a filter: one of the two")
        return self


router = APIRouter(prefix="/api/dartboard", tags=["documents"], route_class=JsonRoute)

NDJSON = "application/x-ndjson"
_TYPES = (
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
        examples=["handbook/leave.md"],
        min_length=1,
        max_length=1000,
    ),
]

_BODY = {
    "requestBody": {
        "required": True,
        "content": {
            NDJSON: {
                "schema": {"type": "string", "description": "One JSON object a line: text, id, metadata."},
                "example": '{"id": "leave.md", "text": "You earn two days a month."}\n',
            }
        },
    }
}


@router.post(
    "/collections/{name}/documents",
    operation_id="upsert_documents",
    response_model=UpsertResponse,
    openapi_extra=_BODY,
    dependencies=WRITE,
)
async def upsert(name: Name, request: Request, service: ServiceDep) -> Response:
    """Add or replace documents, one JSON object a line: `text`, and if you like `id` and `metadata`.

    Lines are read as they arrive, split into passages, encoded and kept in batches. A bad line is reported by
    its number and does not spoil the others. With `Accept: application/x-ndjson` the answer has a line for
    each line that was sent.
    """
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() not in _TYPES:
        raise UnsupportedType(f"send one JSON object a line: Content-Type: {NDJSON}")
    with service.writes.admitted():
        run = await service.writes.run(Upsert, service, name)
        try:
            count = await _take_all(service, run, request)
            await _finish(service, run)
        except ClientDisconnect:
            raise ClientGone from None
        except Stopping:
            raise _cut_off(run) from None
        except asyncio.CancelledError:
            if not service.stopping:
                raise
            raise _cut_off(run) from None
    if count > service.settings.documents:
        raise TooLarge(
            f"a request takes {service.settings.documents} lines: those were taken "
            f"({run.outcome.accepted} kept, {run.outcome.failed} refused), the rest was not read"
        )
    return _answer(run, request)


@router.get(
    "/collections/{name}/documents/{id:path}",
    operation_id="get_document",
    response_model=DocumentResponse,
    dependencies=READ,
)
@in_worker
def get(name: Name, id: DocumentId, service: ServiceDep) -> Response:
    """The passages of a document as they are kept, or one passage by its own id."""
    collection = service.engines.get(name).collection
    records = _passages(collection, id)
    if not records:
        raise NotFound("there is no such document")
    records.sort(key=lambda record: (_position(record), record.id))
    passages: list[orjson.Fragment] = []
    left = service.settings.answer_bytes
    for one in records[:_LISTED]:
        encoded = dumps({"chunk_id": one.id, "text": one.text, "metadata": one.metadata})
        left -= len(encoded)
        if left < 0:
            break
        passages.append(orjson.Fragment(encoded))
    return json_response({"id": id, "passages": passages, "truncated": len(passages) < len(records)})


@router.delete(
    "/collections/{name}/documents/{id:path}",
    operation_id="delete_document",
    response_model=Deleted,
    dependencies=WRITE,
)
@in_write_queue
def delete(name: Name, id: DocumentId, service: ServiceDep) -> Response:
    """Delete a document with all its passages, or one passage by its own id."""
    engine = service.engines.writable(name)
    with service.write_lock.held():
        count = retry_locked(lambda: engine.collection.delete(where=Equal("source", id)))
        count = count or engine.collection.delete([id])
    if not count:
        raise NotFound("there is no such document")
    return json_response({"deleted": count})


@router.post(
    "/collections/{name}/documents/delete",
    operation_id="delete_documents",
    response_model=Deleted,
    dependencies=WRITE,
)
@in_write_queue
def delete_many(name: Name, body: DeleteRequest, service: ServiceDep) -> Response:
    """Delete documents by their ids, or all passages that match a filter."""
    where = condition(body.filter, body.ids)
    engine = service.engines.writable(name)
    with service.write_lock.held():
        return json_response({"deleted": retry_locked(lambda: engine.delete(where=where))})


async def _take_all(service: Service, run: Upsert, request: Request) -> int:
    """Keep the documents of a body as they come in; how many lines there were, one too many included."""
    gathered: list[Line] = []
    size = count = 0
    async for line in lines_of(request.stream(), service.settings.line_bytes):
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
        await service.writes.run(run.keep)
    return count


async def _take(service: Service, run: Upsert, lines: list[Line]) -> None:
    if lines:
        await service.writes.run(run.add, lines)
    while run.waiting >= BATCH:
        await service.writes.run(run.keep)


async def _finish(service: Service, run: Upsert) -> None:
    """Indexes now, if there is time: what was sent is kept all the same."""
    if not run.outcome.accepted:
        return
    try:
        await service.writes.run(run.finish)
    except (TimedOut, DeadlineError, StoreLockedError):
        return


def _cut_off(run: Upsert) -> Stopping:
    """What an upload is told that the service has no more time for; a batch may be on its way yet."""
    return Stopping(
        "the service is shutting down in the middle of the upload: at least "
        f"{run.outcome.accepted} documents of it are kept; send all of it again later, which replaces them"
    )


def _answer(run: Upsert, request: Request) -> Response:
    outcome = run.outcome
    if NDJSON not in request.headers.get("accept", ""):
        return json_response(outcome.model_dump())
    rows = [line.model_dump() for line in (*outcome.documents, *outcome.errors)]
    rows.sort(key=lambda row: int(row["line"]))
    rows.append(outcome.model_dump(include={"accepted", "chunks", "failed"}))
    return Response(b"".join(orjson.dumps(row) + b"\n" for row in rows), media_type=NDJSON)


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
