"""Documents into a collection, in small steps that are each kept when they return.

A document is split, its passages are encoded 64 at a time and kept; when all of them are there, what was
known of an earlier document of the same id goes. So a reader finds the old one or the new one, and an upload
that stops halfway has added whole batches and lost nothing. The store is locked for a batch at a time, after
it was read, split and encoded.
"""

import json
import re
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import orjson
from pydantic import BaseModel, Field

from dartboard.api.errors import ApiError, Invalid
from dartboard.api.schemas import Id, RequestModel, Text, parse_json
from dartboard.api.service import Service
from dartboard.engine.chunk_writer import BATCH, ChunkWriter, split, stored_chunking
from dartboard.errors import DartboardError, StoreError
from dartboard.ingest import ChunkingConfig, Document, Piece, clean
from dartboard.ingest.documents import check_metadata_size, digest
from dartboard.stores.filters import And, In, Not
from dartboard.stores.records import check_metadata

LISTED = 1000
_LONG_NUMBER = re.compile(rb"[0-9]{19}")
_OURS = frozenset(
    {"source", "position", "start", "end", "content_hash", "document_hash", "pieces", "read_as"}
)
"""Names in metadata that mean something to indexing; a document's own of that name gets an underscore."""


class Line(NamedTuple):
    """A line with its number from 1; ``data`` is None where it was too long to be kept."""

    number: int
    data: bytes | None


class DocumentLine(RequestModel):
    """One document of an upsert. One of the same id is replaced."""

    id: Id | None = Field(None, description="The `source` of its passages; made from the text by default.")
    text: Text = Field(description="The text; long ones are split.")
    metadata: dict[str, Any] = Field({}, description="What filters and results should know of it.")


class LineError(BaseModel):
    """A line that was not taken, and what is wrong with it."""

    line: int
    message: str


class DocumentLineResult(BaseModel):
    """A document that was taken, and the passages that it was split into."""

    line: int
    id: str
    chunks: int


class UpsertResponse(BaseModel):
    """What became of the lines. What is counted as accepted is kept."""

    accepted: int = 0
    chunks: int = 0
    failed: int = 0
    errors: list[LineError] = Field(default=[], description="By line; the first thousand.")
    documents: list[DocumentLineResult] = Field(default=[], description="The first thousand that were taken.")

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


@dataclass(slots=True, eq=False)
class _Pending:
    line: int
    id: str
    hash: str
    left: list[Piece]
    chunks: int


class Upsert:
    """One upload; its methods are called one after another, in threads."""

    def __init__(self, service: Service, name: str) -> None:
        self._engine = service.engines.writable(name)
        self._engine.check_fields()
        self._chunking = stored_chunking(self._engine.collection) or ChunkingConfig()
        self._longest = service.settings.line_bytes
        self._pending: list[_Pending] = []
        self.outcome = UpsertResponse()

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
            except StoreError:
                raise
            except DartboardError as error:
                self.outcome.refuse(line.number, str(error))

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
        self._write(batch, finished)
        for one in finished:
            self.outcome.accept(one.line, one.id, one.chunks)
        self._pending = self._pending[len(finished) :]
        if self._pending and (rest := len(batch) - sum(len(one.left) for one in finished)):
            self._pending[0].left = self._pending[0].left[rest:]

    def finish(self) -> None:
        """Leave indexes that make the next search quick."""
        self._engine.collection.prepare()

    def _add(self, line: Line) -> None:
        if line.data is None:
            raise Invalid(f"the line is longer than {self._longest} bytes: split the document")
        document: DocumentLine = parse_json(DocumentLine, line.data)
        if _LONG_NUMBER.search(line.data):  # kept as they are, to be refused: orjson would round them
            try:
                document.metadata = json.loads(line.data)["metadata"]
            except (ValueError, KeyError):
                raise Invalid("metadata: a number has too many digits; keep it as text") from None
        check_metadata(document.metadata, "the document")
        check_metadata_size(document.metadata)
        text = clean(document.text)
        if not text.strip():
            raise Invalid("text: holds nothing but space")
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
        writer = ChunkWriter(self._engine, collection)
        for piece in batch:
            writer.add(piece)
        writer.finish()
        if finished:
            ids, hashes = tuple(one.id for one in finished), tuple(one.hash for one in finished)
            collection.delete(where=And((In("source", ids), Not(In("document_hash", hashes)))))


async def lines_of(body: AsyncIterator[bytes], longest: int) -> AsyncIterator[Line]:
    """Every line of a body as it arrives that holds more than space, however the client cuts it into parts.

    At most ``longest`` bytes of one are in memory.
    """
    number, kept, too_long = 1, bytearray(), False
    async for part in body:
        if part.isspace() and not kept:
            number += part.count(b"\n")
            continue
        start = 0
        while (end := part.find(b"\n", start)) >= 0:
            too_long = _add(kept, part[start:end], longest) or too_long
            if too_long or kept.strip():
                yield Line(number, None if too_long else bytes(kept))
            kept, too_long, number, start = bytearray(), False, number + 1, end + 1
        too_long = _add(kept, part[start:], longest) or too_long
    if too_long or kept.strip():
        yield Line(number, None if too_long else bytes(kept))


def _add(kept: bytearray, more: bytes, longest: int) -> bool:
    """Keep what fits; whether something did not."""
    kept += more[: longest + 1 - len(kept)]
    return len(kept) > longest
