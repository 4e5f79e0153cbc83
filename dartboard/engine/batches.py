"""Batches of pieces on their way into a collection: begun in one order, and kept in the same.

As many are under way as the encoder has room for. What else a file asks of the collection waits for the
batches begun before it, so that the collection sees the same changes in the same order, whoever encodes.
"""

from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property

from dartboard.engine.encoding import Encoder, Encoding, Here
from dartboard.engine.engine import Engine
from dartboard.errors import DartboardError
from dartboard.ingest import Piece
from dartboard.stores import Collection, Record
from dartboard.stores.records import with_fingerprints
from dartboard.types import FloatArray

Batch = list[tuple[Piece, float]]
"""Pieces, each with its share of the bytes of its file."""


@dataclass(slots=True, kw_only=True)
class Begun:
    """A batch on its way: vectors that are known, ids whose text is being encoded, and what comes after."""

    batch: Batch
    known: dict[str, FloatArray]
    missing: list[str]
    encoding: Encoding | None
    then: list[Callable[[], object]] = field(default_factory=list)

    def ready(self) -> bool:
        """Whether it can be kept without waiting."""
        return self.encoding is None or self.encoding.ready()

    def records(self) -> list[Record]:
        """The pieces with their vectors, once these are there."""
        vectors = self.known
        if self.encoding is not None:
            vectors = vectors | dict(zip(self.missing, self.encoding.vectors(), strict=True))
        return [Record(piece.id, piece.text, vectors[piece.id], piece.metadata) for piece, _ in self.batch]


class Batches:
    """``kept`` hears of every batch that is in the collection, ``encoder`` of None is the engine's model."""

    def __init__(
        self, engine: Engine, collection: Collection, encoder: Encoder | None, kept: Callable[[Begun], None]
    ) -> None:
        self._engine = engine
        self._collection = collection
        self._given = encoder
        self._kept = kept
        self._begun: deque[Begun] = deque()

    def begin(self, batch: Batch) -> None:
        """Have a batch encoded; keep older ones where the encoder has no room for more.

        An id holds the hash of its text, so what is known under it has the same vector.
        """
        pieces = [piece for piece, _ in batch]
        known = {record.id: record.embedding for record in self._collection.get([p.id for p in pieces])}
        missing = {piece.id: piece.text for piece in pieces if piece.id not in known}
        encoding = self._encoder.begin(list(missing.values())) if missing else None
        self._begun.append(Begun(batch=batch, known=known, missing=list(missing), encoding=encoding))
        self._keep_all_but(self._encoder.room - 1)

    def then(self, step: Callable[[], object]) -> None:
        """Change the collection once all batches begun so far are kept."""
        if self._begun:
            self._begun[-1].then.append(step)
        else:
            step()

    def finish(self) -> None:
        """Keep all that is under way."""
        self._keep_all_but(0)

    def rescue(self) -> None:
        """Where a run ends early: keep what is encoded already, also behind a batch that is not.

        What was to follow is left to the next run, which does the files again that are not whole.
        """
        for begun in self._begun:
            with suppress(DartboardError):
                if begun.ready():
                    self._keep(begun)

    @cached_property
    def _encoder(self) -> Encoder:
        return self._given or Here(self._engine.model)

    def _keep_all_but(self, count: int) -> None:
        """Keep the oldest until so many are under way, and whatever is ready at the front."""
        while self._begun and (len(self._begun) > count or self._begun[0].ready()):
            self._keep(self._begun[0])
            for step in self._begun.popleft().then:
                step()

    def _keep(self, begun: Begun) -> None:
        self._collection.upsert(with_fingerprints(self._engine.retriever.index(begun.records())))
        self._kept(begun)
