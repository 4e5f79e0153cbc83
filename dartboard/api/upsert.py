"""Documents into a collection, in small steps that are each kept when they return.

A document is split, its passages are encoded 64 at a time and kept; when all of them are there, what was
known of an earlier document of the same id goes. So a reader finds the old one or the new one, and an upload
that stops halfway has added whole batches and lost nothing.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import orjson
from pydantic import Field, ValidationError

from dartboard.api.error_messages import field_errors, plain
from dartboard.api.errors import ApiError
from dartboard.api.json_body import Line, loads
from dartboard.api.locks import lock_store, retry_locked
from dartboard.api.schemas import Id, Metadata, RequestModel, ResponseModel, Text
from dartboard.api.service import Service
from dartboard.engine.chunk_writer import BATCH, ChunkWriter, split, stored_chunking
from dartboard.errors import InvalidInputError
from dartboard.ingest import ChunkingConfig, Document, Piece, clean
from dartboard.ingest.documents import TooLargeError, check_metadata_size, digest
from dartboard.stores.filters import And, In, Not
from dartboard.stores.records import check_metadata

LISTED = 1000
_LONG_NUMBER = re.compile(rb"[0-9]{19}")
_OURS = frozenset(
    {"source", "position", "start", "end", "content_hash", "document_hash", "pieces", "read_as"}
)
"""Names in metadata that mean something to indexing; a document's own of that name gets an underscore."""


class DocumentLine(RequestModel):
    """One line of an upsert. A document of the same id is replaced."""

    id: Id | None = Field(
        None,
        description="Its id, the `source` of its passages; made from the text where it is left out.",
        examples=["handbook/leave.md"],
    )
    text: Text = Field(description="The text; long ones are split.", examples=["You earn two days a month."])
    metadata: Metadata = Field(
        {},
        description="What filters and results should know of it: JSON.",
        examples=[{"year": 2024, "lang": "en"}],
    )


@dataclass(slots=True, eq=False)
class _Pending:
    line: int
    id: str
    hash: str
    left: list[Piece]
    chunks: int


class LineError(ResponseModel):
    """A line that was not taken."""

    line: int = Field(description="Its number, from 1.", examples=[3])
    message: str = Field(description="What is wrong with it.", examples=["text: is required"])


class DocumentLineResult(ResponseModel):
    """A document that was taken."""

    line: int = Field(description="Its line, from 1.", examples=[1])
    id: str = Field(description="Its id.", examples=["handbook/leave.md"])
    chunks: int = Field(description="Passages that it was split into.", examples=[3])


class UpsertResponse(ResponseModel):
    """What became of the lines. What is counted as accepted is kept."""

    accepted: int = Field(description="Documents that were taken.", examples=[2])
    chunks: int = Field(description="Passages that they were split into.", examples=[5])
    failed: int = Field(description="Lines that were not taken.", examples=[1])
    errors: list[LineError] = Field(
        description="Why, by line; the first thousand.",
    )
    documents: list[DocumentLineResult] = Field(
        description="The documents that were taken; the first thousand.",
    )

    def refuse(self, line: int, message: str) -> None:
        """A line that is not taken."""
        self.failed += 1
        if len(self.errors) < LISTED:
            self.errors.append(LineError(line=line, message=message))

    def accept(self, line: int, document: str, chunks: int) -> None:
        """A document that is kept now."""
        self.accepted += 1
        self.chunks += chunks
        if len(self.documents) < LISTED:
            self.documents.append(DocumentLineResult(line=line, id=document, chunks=chunks))


class Upsert:
    """One upload; its methods are called one after another, by workers."""

    def __init__(self, service: Service, name: str) -> None:
        self._service = service
        self._engine = service.engines.writable(name)
        self._engine.check_fields()
        self._chunking = stored_chunking(self._engine.collection) or ChunkingConfig()
        self._longest = service.settings.line_bytes
        self._pending: list[_Pending] = []
        self.outcome = UpsertResponse(accepted=0, chunks=0, failed=0, errors=[], documents=[])
        # A store that another process writes to says so before anything is sent.
        with service.write_lock.held():
            lock_store(self._engine)

    @property
    def waiting(self) -> int:
        """Passages that are split and not yet kept."""
        return sum(len(one.left) for one in self._pending)

    def add(self, lines: Sequence[Line]) -> None:
        """Read and split documents; a bad line is noted and the others go on."""
        for line in lines:
            try:
                self._add(line)
            except ApiError as error:
                self.outcome.refuse(line.number, error.message)
            except (InvalidInputError, TooLargeError) as error:
                self.outcome.refuse(line.number, plain(str(error)))

    def keep(self) -> None:
        """Encode and keep one batch; documents whose last passage was in it are accepted."""
        batch: list[Piece] = []
        finished: list[_Pending] = []
        for one in self._pending:
            taken = one.left[: BATCH - len(batch)]
            batch += taken
            if len(taken) < len(one.left):
                break
            finished.append(one)
            if len(batch) == BATCH:
                break
        with self._service.write_lock.held():
            self._write(batch, finished)
        for one in finished:
            self.outcome.accept(one.line, one.id, one.chunks)
        self._pending = self._pending[len(finished) :]
        if self._pending and (rest := len(batch) - sum(len(one.left) for one in finished)):
            self._pending[0].left = self._pending[0].left[rest:]

    def finish(self) -> None:
        """Leave indexes that make the next search quick."""
        with self._service.write_lock.held():
            retry_locked(self._engine.collection.prepare)

    def _add(self, line: Line) -> None:
        if line.data is None:
            raise InvalidInputError(f"the line is longer than {self._longest} bytes: split the document")
        document = _read(line.data)
        check_metadata(document.metadata, "the document")
        check_metadata_size(document.metadata)
        text = clean(document.text)
        if not text.strip():
            raise InvalidInputError("text: holds nothing but space")
        name = document.id or f"doc-{digest(document.text.encode())[:16]}"
        stamp = digest(orjson.dumps([name, text, document.metadata], option=orjson.OPT_SORT_KEYS))
        while any(one.id == name for one in self._pending):
            self.keep()  # the same id again replaces what stands above
        pieces = self._pieces(name, text, stamp, document.metadata)
        self._pending.append(_Pending(line.number, name, stamp, pieces, len(pieces)))

    def _pieces(self, name: str, text: str, stamp: str, metadata: dict[str, Any]) -> list[Piece]:
        title = metadata.get("title")
        document = Document(
            source=name,
            text=text,
            kind="text",
            title=title if isinstance(title, str) else name,
            document_hash=stamp,
        )
        pieces = split(document, self._chunking, self._engine.model)
        own = {f"{key}_" if key in _OURS else key: value for key, value in metadata.items()}
        for piece in pieces:
            piece.metadata.update(own)
        return pieces

    def _write(self, batch: Sequence[Piece], finished: Sequence[_Pending]) -> None:
        """Encode and keep the batch, then drop what earlier documents of the finished ids have beyond it."""
        collection = self._engine.collection
        # Another process may hold the store for a moment: what was encoded is not encoded again for that.
        writer = ChunkWriter(
            self._engine,
            collection,
            upsert=lambda records: retry_locked(lambda: collection.upsert(records)),
        )
        for piece in batch:
            writer.add(piece)
        writer.finish()
        if finished:
            ids, hashes = tuple(one.id for one in finished), tuple(one.hash for one in finished)
            collection.delete(where=And((In("source", ids), Not(In("document_hash", hashes)))))


def _read(data: bytes) -> DocumentLine:
    value = loads(data, one_line=True)
    if _LONG_NUMBER.search(data):  # kept as they are, to be refused: orjson would round them
        try:
            value = json.loads(data)
        except ValueError:
            raise InvalidInputError("metadata: a number has too many digits; keep it as text") from None
    try:
        return DocumentLine.model_validate(value)
    except ValidationError as error:
        listed = field_errors(error.errors(include_input=False, include_url=False))
        raise InvalidInputError(
            "; ".join(f"{_named(one['field'])}{one['message']}" for one in listed[:3])
        ) from None


def _named(field: str) -> str:
    return "the line " if field == "body" else f"{field}: "
