"""Passages on their way to a selection: ids and vectors at once, texts and metadata when they are asked for.

A search looks at a hundred candidates and hands over five, and selection compares vectors. Where a store has
these at hand (``directions``, see :mod:`dartboard.stores.states`), the other ninety-five passages are never
read. Other stores answer with whole records, in one request.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import numpy as np

from dartboard.errors import StoreError
from dartboard.near_duplicates import VERSION, fingerprint
from dartboard.stores import Collection, Record
from dartboard.stores.records import FINGERPRINT
from dartboard.types import Chunk, FloatArray

_NONE: Mapping[str, Chunk] = MappingProxyType({})


class Passages:
    """``ids``, and ``vectors``, ``(n, d)``, whose directions are the embeddings'; chunks by position."""

    def __init__(
        self,
        ids: list[str],
        vectors: FloatArray,
        chunks: Sequence[Chunk | None],
        collection: Collection | None = None,
        fingerprints: Sequence[bytes | None] | None = None,
    ) -> None:
        self.ids = ids
        self.vectors = vectors
        self._chunks = list(chunks)
        self._collection = collection
        self._fingerprints: list[bytes | None] = list(fingerprints or [None] * len(ids))

    @classmethod
    def of(cls, chunks: Sequence[Chunk], fingerprints: Sequence[bytes | None] | None = None) -> "Passages":
        """Chunks that are here already."""
        vectors = np.stack([chunk.embedding for chunk in chunks]) if chunks else np.zeros((0, 0), np.float32)
        return cls([chunk.id for chunk in chunks], vectors, chunks, fingerprints=fingerprints)

    @classmethod
    def of_records(cls, records: Sequence[Record]) -> "Passages":
        """Records that were read, with the bytes of the fingerprint or without."""
        return cls.of(
            [record.chunk for record in records], [record.blobs.get(FINGERPRINT) for record in records]
        )

    @classmethod
    def find(
        cls, collection: Collection, ids: Sequence[str], known: Mapping[str, Chunk] = _NONE
    ) -> "Passages":
        """Those of the ids that the collection has, in this order; ``known`` need not be read again."""
        directions = getattr(collection, "directions", None)
        if directions is not None and not known:
            there, vectors = directions(ids)
            return cls(there, vectors, [None] * len(there), collection)
        missing = [id for id in ids if id not in known]
        fetched = collection.get(missing, blobs=(FINGERPRINT,)) if missing else []
        chunks = {**known, **{record.id: record.chunk for record in fetched}}
        stored = {record.id: record.blobs.get(FINGERPRINT) for record in fetched}
        there = [id for id in ids if id in chunks]
        return cls.of([chunks[id] for id in there], [stored.get(id) for id in there])

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def known(self) -> dict[str, Chunk]:
        """The chunks that were read so far, by id."""
        return {chunk.id: chunk for chunk in self._chunks if chunk is not None}

    def chunks(self, positions: Sequence[int] | None = None) -> list[Chunk]:
        """The chunks at these positions, or all; those that were not read yet are read now."""
        wanted = range(len(self)) if positions is None else positions
        self._read(wanted)
        found = [chunk for at in wanted if (chunk := self._chunks[at]) is not None]
        if len(found) < len(wanted):
            raise StoreError(
                "a passage was found and cannot be read: it was deleted meanwhile, or the store is damaged; "
                "search again, and if it stays so, let dartboard doctor look at all of the store"
            )
        return found

    def texts(self, positions: Sequence[int]) -> list[str]:
        """The texts at these positions; of a passage that was deleted meanwhile, none."""
        self._read(positions)
        return ["" if (chunk := self._chunks[at]) is None else chunk.text for at in positions]

    def fingerprints(self, positions: Sequence[int]) -> list[bytes]:
        """The fingerprints of texts, for :func:`dartboard.near_duplicates.candidate_groups`.

        They are read from the store without the passages, where it can do that. What is not stored, or in
        the format of another version, is made from the text.
        """
        missing = [at for at in positions if self._fingerprints[at] is None]
        read = getattr(self._collection, "read_blobs", None)
        if read is not None and missing:
            stored = read([self.ids[at] for at in missing], FINGERPRINT)
            for at in missing:
                self._fingerprints[at] = stored.get(self.ids[at])
        found = [self._fingerprints[at] or b"" for at in positions]
        unknown = [i for i, one in enumerate(found) if not one.startswith(VERSION)]
        for i, text in zip(unknown, self.texts([positions[i] for i in unknown]), strict=True):
            found[i] = self._fingerprints[positions[i]] = fingerprint(text)
        return found

    def _read(self, positions: Sequence[int]) -> None:
        """Read what was not read yet."""
        missing = [at for at in positions if self._chunks[at] is None]
        if missing and self._collection is not None:
            read = {
                record.id: record.chunk for record in self._collection.get([self.ids[at] for at in missing])
            }
            for at in missing:
                self._chunks[at] = read.get(self.ids[at])

    def at(self, positions: Sequence[int]) -> "Passages":
        """Some of them, in this order."""
        ids, chunks = [self.ids[at] for at in positions], [self._chunks[at] for at in positions]
        vectors = self.vectors[np.asarray(positions, dtype=np.intp)]
        fingerprints = [self._fingerprints[at] for at in positions]
        return Passages(ids, vectors, chunks, self._collection, fingerprints)

    def followed_by(self, other: "Passages") -> "Passages":
        """These and then the others, of the same collection."""
        if not len(self) or not len(other):
            return self if len(self) else other
        return Passages(
            [*self.ids, *other.ids],
            np.concatenate([self.vectors, other.vectors]),
            [*self._chunks, *other._chunks],
            self._collection or other._collection,
            [*self._fingerprints, *other._fingerprints],
        )
