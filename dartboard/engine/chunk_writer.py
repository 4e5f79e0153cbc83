"""Write documents to a collection: split, encode in batches, upsert in order.

A piece's id contains the hash of its text, so a vector that the collection has under the same id is reused,
and only the other pieces are encoded. As many batches are in progress as the encoder has room for. Other
changes of the collection (:meth:`ChunkWriter.then`) wait for the pieces before them, so that the collection
gets the same changes in the same order with any encoder.
"""

from collections import Counter, deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Protocol

from dartboard.deadline import check
from dartboard.embeddings.base import EmbeddingModel
from dartboard.embeddings.texts import count_tokens
from dartboard.embeddings.vectors import Vectors
from dartboard.engine.engine import Engine
from dartboard.errors import ConfigError, DartboardError
from dartboard.ingest import ChunkingConfig, Document, Piece, chunk
from dartboard.stores import Collection, Record
from dartboard.stores.filters import Compare
from dartboard.stores.records import with_fingerprints
from dartboard.types import FloatArray

BATCH = 64
"""Chunks that are encoded and written at once: an interruption loses at most this much work."""


def split(document: Document, chunking: ChunkingConfig, model: EmbeddingModel) -> list[Piece]:
    """The pieces of a document, with sizes in tokens of the model."""

    def size(text: str) -> int:
        return count_tokens(model, [text], most=chunking.size)[0] if text.strip() else 0

    return chunk(document, chunking, count_tokens=size)


def stored_chunking(collection: Collection) -> ChunkingConfig | None:
    """The chunking settings of a collection; None if its manifest has none."""
    stored = collection.manifest.settings.get("chunking")
    return ChunkingConfig.from_json(stored) if stored else None


def chunking_for(model: EmbeddingModel, asked: ChunkingConfig | None = None) -> ChunkingConfig:
    """The chunking that was asked for, or the default for a model: no chunk is longer than it reads.

    Raises:
        ConfigError: the size asked for is above the model's limit; the end of a chunk would have no vector.
    """
    most = model.max_tokens
    if asked is None:
        size = min(ChunkingConfig().size, most or ChunkingConfig().size)
        return ChunkingConfig(size=size, overlap=min(ChunkingConfig().overlap, size // 8))
    if most is not None and asked.size > most:
        raise ConfigError(
            f"chunks of {asked.size} tokens are longer than the {most} that {model.name} reads: the end of "
            f"each would not be found. Use a size of at most {most}, or a model that reads more",
            field="chunk_size",
        )
    return asked


def known_documents(collection: Collection, read_as: str = "") -> tuple[dict[str, str], set[str]]:
    """The hash of every source that is complete and was read with the same fields; otherwise "".

    The last chunk of a source carries the number of its chunks (``pieces``), all others carry 0. Also the
    uploaded sources: nobody can tell whether those were deleted.
    """
    hashes: dict[str, str] = {}
    left: Counter[str] = Counter()  # chunks of a source that were not seen, once the last one was
    uploaded: set[str] = set()
    for metadata in collection.iterate_metadata(where=Compare("pieces", ">=", 0)):
        source, hashed = metadata.get("source"), metadata.get("document_hash")
        if not isinstance(source, str) or not isinstance(hashed, str):
            continue
        if metadata.get("uploaded") is True:
            uploaded.add(source)
        if read_as and metadata.get("kind") == "rows" and metadata.get("read_as") != read_as:
            hashed = ""
        if hashes.setdefault(source, hashed) != hashed:
            hashes[source] = ""  # chunks of two versions: a run was interrupted while replacing the file
        left[source] += int(metadata["pieces"]) - 1
    return {source: "" if left[source] else hashed for source, hashed in hashes.items()}, uploaded


class Encoder(Protocol):
    """Makes the vectors of passages: the model in this process, or other machines."""

    @property
    def room(self) -> int:
        """How many lists may be in progress; at least one."""

    def begin(self, texts: list[str]) -> "Future[Vectors]":
        """Start encoding a list: ``(n, d)``, in the order of the texts. ``done`` and ``result`` are used."""


@dataclass(slots=True)
class Batch:
    """Pieces in progress: known vectors, ids whose text is being encoded, and the steps that follow."""

    pieces: list[Piece] = field(default_factory=list)
    known: dict[str, FloatArray] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)
    encoding: "Future[Vectors] | None" = None
    then: list[Callable[[], object]] = field(default_factory=list)

    def ready(self) -> bool:
        """Whether it can be written without waiting."""
        return self.encoding is None or self.encoding.done()

    def records(self) -> list[Record]:
        """The pieces with their vectors; waits for them."""
        vectors = self.known
        if self.encoding is not None:
            vectors = vectors | dict(zip(self.missing, self.encoding.result(), strict=True))
        return [Record(piece.id, piece.text, vectors[piece.id], piece.metadata) for piece in self.pieces]


class ChunkWriter:
    """Writes pieces to a collection in batches.

    Args:
        engine: Its model encodes, and its retriever adds fields to the records.
        collection: The target.
        encoder: Encodes; None is the engine's model in this process.
        batch_size: Pieces per batch.
        upsert: Stores the records of a batch; None is ``collection.upsert``.
        written: Called after every batch that was written.
    """

    def __init__(
        self,
        engine: Engine,
        collection: Collection,
        *,
        encoder: Encoder | None = None,
        batch_size: int = BATCH,
        upsert: Callable[[Sequence[Record]], None] | None = None,
        written: Callable[[Batch], None] = lambda batch: None,
    ) -> None:
        self._engine = engine
        self._collection = collection
        self._encoder = encoder
        self._room = encoder.room if encoder is not None else 1
        self._batch_size = batch_size
        self._upsert = upsert or collection.upsert
        self._written = written
        self._filling = Batch()
        self._under_way: deque[Batch] = deque()

    def add(self, piece: Piece) -> None:
        """Add a piece; a full batch is encoded, and written when the encoder has no room."""
        self._filling.pieces.append(piece)
        if len(self._filling.pieces) >= self._batch_size:
            self._begin()

    def then(self, step: Callable[[], object]) -> None:
        """Run a change of the collection once all pieces so far are written."""
        if self._filling.pieces:
            self._filling.then.append(step)
        elif self._under_way:
            self._under_way[-1].then.append(step)
        else:
            step()

    def finish(self) -> None:
        """Write everything that is left."""
        if self._filling.pieces:
            self._begin()
        self._write_all_but(0)

    def rescue(self) -> None:
        """After an early end: write all encoded batches, also those behind an unfinished one.

        Later steps are left to the next run, which repeats incomplete files.
        """
        for batch in self._under_way:
            with suppress(DartboardError):
                if batch.ready():
                    self._write(batch)

    def _begin(self) -> None:
        """Start encoding the pieces whose vectors the collection does not have."""
        check()
        batch, self._filling = self._filling, Batch()
        stored = self._collection.get([piece.id for piece in batch.pieces])
        batch.known = {record.id: record.embedding for record in stored}
        missing = {piece.id: piece.text for piece in batch.pieces if piece.id not in batch.known}
        batch.missing = list(missing)
        if missing:
            batch.encoding = self._encoded(list(missing.values()))
        self._under_way.append(batch)
        self._write_all_but(self._room - 1)

    def _encoded(self, texts: list[str]) -> "Future[Vectors]":
        if self._encoder is not None:
            return self._encoder.begin(texts)
        done: Future[Vectors] = Future()
        done.set_result(self._engine.model.encode_documents(texts))
        return done

    def _write_all_but(self, count: int) -> None:
        """Write the oldest batches until ``count`` are in progress, and all that are ready at the front."""
        while self._under_way and (len(self._under_way) > count or self._under_way[0].ready()):
            self._write(self._under_way[0])
            for step in self._under_way.popleft().then:
                step()

    def _write(self, batch: Batch) -> None:
        self._upsert(with_fingerprints(self._engine.retriever.index(batch.records())))
        self._written(batch)
