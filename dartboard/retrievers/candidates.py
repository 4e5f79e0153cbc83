"""The candidates of a retriever: ids and scores immediately, vectors and texts when needed.

A search looks at a hundred candidates and returns five, and selection compares vectors. So the texts of the
other 95 are never read from a store that can return vectors without them.
"""

from collections.abc import Mapping, Sequence
from copy import copy
from functools import cached_property
from types import MappingProxyType
from typing import NamedTuple, Self

import numpy as np

from dartboard.errors import StoreError
from dartboard.near_duplicates import VERSION, fingerprint
from dartboard.stores import Collection, Record
from dartboard.stores.records import FINGERPRINT
from dartboard.types import Chunk, FloatArray, Hit


class Share(NamedTuple):
    """A candidate's rank (from 1) and score in one member of a retriever."""

    rank: int
    score: float


class Candidate(NamedTuple):
    """A chunk with its score (higher is better), and ``shares`` by the name of the members that found it."""

    chunk: Chunk
    score: float
    shares: Mapping[str, Share] = MappingProxyType({})


class Candidates:
    """The chunks that a retriever found, best first, ties by id.

    A custom retriever makes them from whole chunks, ``Candidates(query=…, found=[Candidate(…), …])``, or from
    ids and scores, :meth:`from_hits`.

    Attributes:
        ids, scores: One per candidate.
        vectors: ``(n, d)``, in the direction of the embeddings; available after :meth:`fetch`.
        floor: The maximum score of a chunk that is not among them.
        members: For a fusion, the candidates of each retriever, by name.
        query_vector: The query's embedding, if known.
        seconds: Time per step: ``encode``, ``search``, ``fetch``.
    """

    ids: list[str]
    scores: list[float]
    vectors: FloatArray
    floor: float
    name: str
    members: Mapping[str, "Candidates"]
    query: str
    query_vector: FloatArray | None
    seconds: Mapping[str, float]
    _chunks: list[Chunk | None]
    _fingerprints: list[bytes | None]
    _collection: Collection | None
    _given_shares: Mapping[str, Mapping[str, Share]] | None
    parts: Sequence["Candidates"]
    """For several questions: the candidates of each."""
    _ranking: "Candidates | None"
    """The retriever's own list, if candidates were removed from this one or added."""

    def __init__(
        self,
        *,
        query: str = "",
        found: Sequence[Candidate] = (),
        query_vector: FloatArray | None = None,
        seconds: Mapping[str, float] = MappingProxyType({}),
    ) -> None:
        self._hold([each.chunk for each in found], [each.score for each in found])
        self.query, self.query_vector, self.seconds = query, query_vector, seconds
        self._given_shares = {each.chunk.id: each.shares for each in found}

    def _hold(self, chunks: Sequence[Chunk], scores: Sequence[float]) -> None:
        """Use chunks that have been read."""
        self._set([chunk.id for chunk in chunks], scores)
        self.floor = min(self.scores, default=0.0)
        self.vectors = _stacked(chunks)
        self._chunks = list(chunks)

    def _set(self, ids: Sequence[str], scores: Sequence[float]) -> None:
        self.ids, self.scores = list(ids), list(scores)
        self.query, self.query_vector, self.seconds = "", None, {}
        self.name, self.floor, self.members = "", 0.0, {}
        self._chunks, self._fingerprints = [None] * len(self.ids), [None] * len(self.ids)
        self._collection = self._given_shares = self._ranking = None
        self.parts = ()

    @classmethod
    def from_hits(
        cls,
        hits: Sequence[Hit],
        *,
        floor: float = 0.0,
        members: Mapping[str, "Candidates"] = MappingProxyType({}),
    ) -> Self:
        """Candidates with ids and scores only."""
        made = cls.__new__(cls)
        made._set([hit.id for hit in hits], [hit.score for hit in hits])
        made.floor, made.members = floor, members
        return made

    @classmethod
    def from_chunks(
        cls,
        chunks: Sequence[Chunk],
        scores: Sequence[float] | None = None,
        *,
        compared: Sequence[str] | None = None,
    ) -> Self:
        """Candidates whose chunks have been read; without ``scores``, each has 0.

        Near-duplicates are found by ``compared``, one text per chunk, where that is not the chunk's own.
        """
        made = cls.__new__(cls)
        made._hold(chunks, [0.0] * len(chunks) if scores is None else scores)
        if compared is not None:
            made._fingerprints = [fingerprint(text) for text in compared]
        return made

    @classmethod
    def from_records(cls, records: Sequence[Record], hits: Sequence[Hit]) -> Self:
        """The hits' records, read with or without the blobs of their fingerprints."""
        by_id = {record.id: record for record in records}
        wanted = [by_id[hit.id] for hit in hits]
        made = cls.from_chunks([record.chunk for record in wanted], [hit.score for hit in hits])
        made._fingerprints = [record.blobs.get(FINGERPRINT) for record in wanted]
        return made

    @classmethod
    def union(cls, parts: Sequence["Candidates"]) -> "Candidates":
        """The candidates of several questions, each chunk once, all fetched from one collection.

        A chunk found by several questions gets rank and score from the question that ranks it highest.
        """
        made, known = parts[0], set(parts[0].ids)
        for part in parts[1:]:
            made = made.followed_by(part.take([at for at, id in enumerate(part.ids) if id not in known]))
            known.update(part.ids)
        made.parts = tuple(parts)
        return made

    def __len__(self) -> int:
        return len(self.ids)

    @cached_property
    def found(self) -> list[Candidate]:
        """The candidates with their chunks; missing chunks are read now."""
        return [
            Candidate(chunk, score, self.shares(chunk.id))
            for chunk, score in zip(self.chunks(), self.scores, strict=True)
        ]

    def fetch(self, collection: Collection) -> Self:
        """The candidates with their vectors; chunks that the collection no longer has are dropped.

        Args:
            collection: Where texts are read later too; preferably a read snapshot.
        """
        known = self._known()
        unit_vectors = getattr(collection, "unit_vectors", None)
        if unit_vectors is not None and not known:
            there, vectors = unit_vectors(self.ids)
            made = self if len(there) == len(self) else self.take([self._rank_of[id] for id in there])
            made.vectors, made._collection = vectors, collection
            return made
        missing = [id for id in self.ids if id not in known]
        records = {record.id: record for record in collection.get(missing, blobs=(FINGERPRINT,))}
        chunks = known | {id: record.chunk for id, record in records.items()}
        made = self.take([at for at, id in enumerate(self.ids) if id in chunks])
        made._chunks = [chunks[id] for id in made.ids]
        made.vectors, made._collection = _stacked([chunks[id] for id in made.ids]), collection
        stored = {id: record.blobs.get(FINGERPRINT) for id, record in records.items()}
        made._fingerprints = [stored.get(id) for id in made.ids]
        return made

    def _known(self) -> dict[str, Chunk]:
        """The chunks that this retriever or its members have read."""
        known = {chunk.id: chunk for chunk in self._chunks if chunk is not None}
        for member in self.members.values():
            known |= member._known()
        return known

    def chunks(self, positions: Sequence[int] | None = None) -> list[Chunk]:
        """The chunks at these positions, or all; missing ones are read now.

        Raises:
            StoreError: a chunk cannot be read any more.
        """
        wanted = range(len(self)) if positions is None else positions
        self._read(wanted)
        found = [chunk for at in wanted if (chunk := self._chunks[at]) is not None]
        if len(found) < len(wanted):
            raise StoreError(
                "a passage was found but cannot be read: it was deleted since, or the store is damaged; "
                "search again, and if the error stays, check the store with dartboard doctor"
            )
        return found

    def read_all(self) -> None:
        """Read all chunks now, so that the collection's read snapshot can end."""
        self.chunks()
        self._collection = None

    def fingerprints(self, positions: Sequence[int]) -> list[bytes]:
        """Fingerprints of the texts, for :func:`dartboard.near_duplicates.candidate_groups`.

        They are read without the texts if the store supports it. A missing fingerprint, or one of another
        version, is computed from the text.
        """
        missing = [at for at in positions if self._fingerprints[at] is None]
        read_blobs = getattr(self._collection, "read_blobs", None)
        if read_blobs is not None and missing:
            stored = read_blobs([self.ids[at] for at in missing], FINGERPRINT)
            for at in missing:
                self._fingerprints[at] = stored.get(self.ids[at])
        unknown = [at for at in positions if not (self._fingerprints[at] or b"").startswith(VERSION)]
        self._read(unknown)
        for at in unknown:
            chunk = self._chunks[at]  # None if it was deleted in the meantime
            self._fingerprints[at] = fingerprint("" if chunk is None else chunk.text)
        return [self._fingerprints[at] or b"" for at in positions]

    def _read(self, positions: Sequence[int]) -> None:
        missing = [at for at in positions if self._chunks[at] is None]
        if missing and self._collection is not None:
            records = self._collection.get([self.ids[at] for at in missing])
            read = {record.id: record.chunk for record in records}
            for at in missing:
                self._chunks[at] = read.get(self.ids[at])

    def take(self, positions: Sequence[int]) -> Self:
        """The candidates at these positions, in this order."""
        made = self._copy()
        made.ids = [self.ids[at] for at in positions]
        made.scores = [self.scores[at] for at in positions]
        made._chunks = [self._chunks[at] for at in positions]
        made._fingerprints = [self._fingerprints[at] for at in positions]
        if "vectors" in self.__dict__:
            made.vectors = self.vectors[list(positions)]
        return made

    def reranked(self, positions: Sequence[int], scores: Sequence[float], floor: float) -> Self:
        """The candidates at these positions with other scores; this becomes the retriever's list."""
        made = self.take(positions)
        made.scores, made.floor, made._ranking = list(scores), floor, None
        return made

    def followed_by(self, others: "Candidates") -> Self:
        """These candidates followed by others, both fetched from one collection."""
        made = self._copy()
        made.ids = [*self.ids, *others.ids]
        made.scores = [*self.scores, *others.scores]
        made._chunks = [*self._chunks, *others._chunks]
        made._fingerprints = [*self._fingerprints, *others._fingerprints]
        parts = [part.vectors for part in (self, others) if len(part)]
        made.vectors = np.concatenate(parts) if parts else self.vectors
        made._collection = self._collection or others._collection
        return made

    def _copy(self) -> Self:
        made = copy(self)
        for cached in ("found", "_rank_of"):
            made.__dict__.pop(cached, None)
        made._ranking = self if self._ranking is None else self._ranking
        return made

    def shares(self, id: str) -> Mapping[str, Share]:
        """Rank and score of a chunk in the retriever's list and in the lists of its members.

        The key of a nested member is ``member/inner``. Empty for a chunk that was not found.
        """
        if self.parts:
            ranked = [
                (own.rank, at) for at, part in enumerate(self.parts) if (own := part._share(id)) is not None
            ]
            return self.parts[min(ranked)[1]].shares(id) if ranked else {}
        if self._given_shares is not None:
            return self._given_shares.get(id, {})
        found = {} if (own := self._share(id)) is None else {self.name: own}
        for name, member in self.members.items():
            if (own := member._share(id)) is not None:
                found[name] = own
                inner = member.shares(id)
                found |= {f"{name}/{label}": inner[label] for label in inner if label != member.name}
        return found

    def scores_of(self, ids: Sequence[str]) -> list[float]:
        """The scores of these chunks; the lowest score for those that were not found."""
        known, lowest = dict(zip(self.ids, self.scores, strict=True)), min(self.scores, default=0.0)
        return [known.get(id, lowest) for id in ids]

    def score(self, id: str) -> float | None:
        """The retriever's score of a chunk; None if it was not found."""
        share = self._share(id)
        return None if share is None else share.score

    def _share(self, id: str) -> Share | None:
        if self.parts:
            return min((own for part in self.parts if (own := part._share(id)) is not None), default=None)
        ranking = self if self._ranking is None else self._ranking
        at = ranking._rank_of.get(id)
        return None if at is None else Share(at + 1, ranking.scores[at])

    @cached_property
    def _rank_of(self) -> dict[str, int]:
        return {id: at for at, id in enumerate(self.ids)}


def _stacked(chunks: Sequence[Chunk]) -> FloatArray:
    return np.stack([chunk.embedding for chunk in chunks]) if chunks else np.zeros((0, 0), np.float32)
