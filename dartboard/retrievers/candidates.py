"""The chunks that a retriever found: ids and scores at once, vectors and texts when they are needed.

A search looks at a hundred candidates and returns five, and selection compares vectors. So the texts of the
other ninety-five are never read from a store that can give vectors without them.
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
    """What one member of a retriever said of a candidate: its rank from 1 and its own score."""

    rank: int
    score: float


class Candidate(NamedTuple):
    """A chunk with its score (higher is better), and who found it: ``shares`` by the member's name."""

    chunk: Chunk
    score: float
    shares: Mapping[str, Share] = MappingProxyType({})


class Candidates:
    """Chunks that a retriever found, best first, equal scores by id.

    A retriever of your own makes them of whole chunks, ``Candidates(query=…, found=[Candidate(…), …])``, or
    of ids and scores, :meth:`from_hits`.

    Attributes:
        ids, scores: one a candidate.
        vectors: ``(n, d)``, in the direction of the embeddings; there after :meth:`fetch`.
        floor: what a chunk that is not among them scores at most.
        members: for a fusion, what each of its retrievers found, by name.
        query_vector: the query as the embeddings know it, where known.
        seconds: where the time went: ``encode``, ``search``, ``fetch``.
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
    """Of several questions, what each of them found."""
    _ranking: "Candidates | None"
    """The retriever's own list, where some of it were left out here, or others added."""

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
        """Chunks that are read already."""
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
        """Candidates of which only ids and scores are known so far."""
        made = cls.__new__(cls)
        made._set([hit.id for hit in hits], [hit.score for hit in hits])
        made.floor, made.members = floor, members
        return made

    @classmethod
    def from_chunks(cls, chunks: Sequence[Chunk], scores: Sequence[float] | None = None) -> Self:
        """Candidates that are read already; without ``scores``, each has 0."""
        made = cls.__new__(cls)
        made._hold(chunks, [0.0] * len(chunks) if scores is None else scores)
        return made

    @classmethod
    def from_records(cls, records: Sequence[Record], hits: Sequence[Hit]) -> Self:
        """The hits' records, which were read with the bytes of their fingerprints or without."""
        by_id = {record.id: record for record in records}
        wanted = [by_id[hit.id] for hit in hits]
        made = cls.from_chunks([record.chunk for record in wanted], [hit.score for hit in hits])
        made._fingerprints = [record.blobs.get(FINGERPRINT) for record in wanted]
        return made

    @classmethod
    def union(cls, parts: Sequence["Candidates"]) -> "Candidates":
        """What several questions found, each chunk once, all of it fetched from one collection.

        Of a chunk that several found, rank and score are those of the question that ranks it highest.
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
        """The candidates with their chunks, which are read now where they were not yet."""
        return [
            Candidate(chunk, score, self.shares(chunk.id))
            for chunk, score in zip(self.chunks(), self.scores, strict=True)
        ]

    def fetch(self, collection: Collection) -> Self:
        """The candidates with their vectors; those that the collection does not have are left out.

        Args:
            collection: where their texts are read too, later: a read snapshot, best of all.
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
        """The chunks that were read on the way, by this retriever or its members."""
        known = {chunk.id: chunk for chunk in self._chunks if chunk is not None}
        for member in self.members.values():
            known |= member._known()
        return known

    def chunks(self, positions: Sequence[int] | None = None) -> list[Chunk]:
        """The chunks at these positions, or all; those that were not read yet are read now.

        Raises:
            StoreError: one cannot be read any more.
        """
        wanted = range(len(self)) if positions is None else positions
        self._read(wanted)
        found = [chunk for at in wanted if (chunk := self._chunks[at]) is not None]
        if len(found) < len(wanted):
            raise StoreError(
                "a passage was found and cannot be read: it was deleted meanwhile, or the store is damaged; "
                "search again, and if it stays so, let dartboard doctor look at all of the store"
            )
        return found

    def read_all(self) -> None:
        """Read all chunks now, so that the collection's read snapshot may end."""
        self.chunks()
        self._collection = None

    def fingerprints(self, positions: Sequence[int]) -> list[bytes]:
        """The fingerprints of texts, for :func:`dartboard.near_duplicates.candidate_groups`.

        They are read without the texts where the store can do that. What is not stored, or is of another
        version, is made from the text.
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
            chunk = self._chunks[at]  # None where it was deleted meanwhile
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
        """The candidates at these positions with other scores; this is now the retriever's list."""
        made = self.take(positions)
        made.scores, made.floor, made._ranking = list(scores), floor, None
        return made

    def followed_by(self, others: "Candidates") -> Self:
        """These and then the others, both fetched from one collection."""
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
        """Rank and score of a chunk in the retriever's list, and in those of its members.

        A member of a member is ``member/inner``. Nothing for a chunk that was not found.
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
        """The scores of these chunks; of those that were not found, the lowest."""
        known, lowest = dict(zip(self.ids, self.scores, strict=True)), min(self.scores, default=0.0)
        return [known.get(id, lowest) for id in ids]

    def score(self, id: str) -> float | None:
        """What the retriever gave a chunk; None for one that it did not find."""
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
