"""``/collections/{name}/documents``: a stream of them in, one out, some away."""

import asyncio
from typing import Annotated

import orjson
from fastapi import APIRouter, Depends, Path, Request
from starlette.requests import ClientDisconnect
from starlette.responses import Response

from dartboard.api.auth import reader, writer
from dartboard.api.collections import Name
from dartboard.api.errors import NotFound, Stopping, TimedOut, TooLarge, UnsupportedType
from dartboard.api.json_body import JsonRoute, answer, dumps
from dartboard.api.lines import Line, lines_of
from dartboard.api.narrowing import of_corpus, read_filter
from dartboard.api.schemas.documents import Deleted, DeleteRequest, DocumentResponse, UpsertResponse
from dartboard.api.service import Service, service_of
from dartboard.api.upsert import Upsert
from dartboard.api.workers import ClientGone
from dartboard.api.writing import our_turn, when_free, writable
from dartboard.engine.chunk_writer import BATCH
from dartboard.errors import DeadlineError, StoreLockedError
from dartboard.stores import Collection, Filter, Record
from dartboard.stores.filters import Equal

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
    dependencies=[Depends(writer)],
)
async def upsert(name: Name, request: Request, service: Annotated[Service, Depends(service_of)]) -> Response:
    """Add or replace documents, one JSON object a line: `text`, and if you like `id` and `metadata`.

    Lines are read as they arrive, split into passages, encoded and kept in batches. A bad line is reported by
    its number and does not spoil the others. With `Accept: application/x-ndjson` the answer has a line for
    each line that was sent.
    """
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() not in _TYPES:
        raise UnsupportedType(f"send one JSON object a line: Content-Type: {NDJSON}")
    with service.writes.admitted():
        run = await service.writes.step(Upsert, service, name)
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
    dependencies=[Depends(reader)],
)
async def get(name: Name, id: DocumentId, service: Annotated[Service, Depends(service_of)]) -> Response:
    """The passages of a document as they are kept, or one passage by its own id."""
    return await service.run(_get, service, name, id)


@router.delete(
    "/collections/{name}/documents/{id:path}",
    operation_id="delete_document",
    response_model=Deleted,
    dependencies=[Depends(writer)],
)
async def delete(name: Name, id: DocumentId, service: Annotated[Service, Depends(service_of)]) -> Response:
    """Delete a document with all its passages, or one passage by its own id."""
    return await service.writes.run(_delete_one, service, name, id)


@router.post(
    "/collections/{name}/documents/delete",
    operation_id="delete_documents",
    response_model=Deleted,
    dependencies=[Depends(writer)],
)
async def delete_many(
    name: Name, body: DeleteRequest, service: Annotated[Service, Depends(service_of)]
) -> Response:
    """Delete documents by their ids, or all passages that match a filter."""
    return await service.writes.run(_delete_many, service, name, body)


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
        await service.writes.step(run.keep)
    return count


async def _take(service: Service, run: Upsert, lines: list[Line]) -> None:
    if lines:
        await service.writes.step(run.add, lines)
    while run.waiting >= BATCH:
        await service.writes.step(run.keep)


async def _finish(service: Service, run: Upsert) -> None:
    """Indexes now, if there is time: what was sent is kept all the same."""
    if not run.outcome.accepted:
        return
    try:
        await service.writes.step(run.finish)
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
        return answer(outcome.as_dict())
    lines = sorted([*outcome.documents, *outcome.errors], key=lambda one: one["line"])
    summary = {"accepted": outcome.accepted, "chunks": outcome.chunks, "failed": outcome.failed}
    body = b"".join(orjson.dumps(line) + b"\n" for line in (*lines, summary))
    return Response(body, media_type=NDJSON)


def _get(service: Service, name: str, id: str) -> Response:
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
    return answer({"id": id, "passages": passages, "truncated": len(passages) < len(records)})


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


def _delete_one(service: Service, name: str, id: str) -> Response:
    engine = writable(service, name)
    with our_turn(service):
        count = when_free(lambda: engine.collection.delete(where=Equal("source", id)))
        count = count or engine.collection.delete([id])
    if not count:
        raise NotFound("there is no such document")
    return answer({"deleted": count})


def _delete_many(service: Service, name: str, body: DeleteRequest) -> Response:
    where: Filter = of_corpus(body.ids) if body.ids is not None else read_filter(body.filter or "")
    engine = writable(service, name)
    with our_turn(service):
        return answer({"deleted": when_free(lambda: engine.delete(where=where))})
