"""What a retriever found: ids and scores immediately, vectors with them, texts when needed.

A search looks at a hundred candidates and returns five, and selection compares vectors. So the texts of the
other 95 are never read.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
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


class Ranked(NamedTuple):
    """The result of :meth:`Retriever.rank`: ids with their scores, best first, ties by id.

    ``floor`` is the maximum score of a chunk that is not among them; a fusion needs it. A fusion adds the
    lists of its ``members`` by name, and the unit ``vectors`` where it has read them, ``(n, d)``.
    """

    ids: list[str]
    scores: FloatArray
    floor: float = 0.0
    members: Mapping[str, "Ranked"] = {}
    vectors: FloatArray | None = None

    @classmethod
    def of(cls, hits: Sequence[Hit], floor: float = 0.0) -> Self:
        """The hits of a store, best first."""
        return cls([hit.id for hit in hits], np.array([hit.score for hit in hits], np.float64), floor)

    def first(self, k: int) -> "Ranked":
        """No more than the ``k`` best."""
        if len(self.ids) <= k:
            return self
        vectors = None if self.vectors is None else self.vectors[:k]
        return self._replace(ids=self.ids[:k], scores=self.scores[:k], vectors=vectors)

    def share(self, id: str) -> Share | None:
        """Rank and score of a chunk; None if it was not found."""
        if id not in self.ids:
            return None
        at = self.ids.index(id)
        return Share(at + 1, float(self.scores[at]))

    def member_shares(self, id: str, before: str = "") -> dict[str, Share]:
        """The same for the members that found it; the key of a nested one is ``member/inner``."""
        found = {}
        for name, member in self.members.items():
            if (own := member.share(id)) is not None:
                found[before + name] = own
                found |= member.member_shares(id, f"{before}{name}/")
        return found


class Candidate(NamedTuple):
    """A chunk with its score (higher is better), and ``shares`` by the name of the members that found it."""

    chunk: Chunk
    score: float
    shares: Mapping[str, Share]


@dataclass(eq=False, kw_only=True)
class Candidates:
    """The chunks that a retriever found, best first, ties by id.

    Attributes:
        ids, scores: One per candidate.
        vectors: ``(n, d)``, in the direction of the embeddings.
        rankings: The retriever's own list for each question, by which shares are told.
        by_question: For several questions, ``(m, n)``: the scores for each; what one did not find has its
            lowest.
        query_vector: The query's embedding, if known.
        seconds: Time per step: ``encode``, ``search``, ``fetch``.
    """

    ids: list[str]
    scores: FloatArray
    vectors: FloatArray
    name: str = ""
    rankings: tuple[Ranked, ...] = ()
    by_question: FloatArray | None = None
    query_vector: FloatArray | None = None
    seconds: Mapping[str, float] = field(default_factory=dict)
    _collection: Collection | None = None
    _chunks: dict[str, Chunk] = field(default_factory=dict)
    _fingerprints: dict[str, bytes] = field(default_factory=dict)

    @classmethod
    def fetched(cls, view: Collection, ranked: Ranked, name: str = "") -> Self:
        """The ranked chunks with their vectors, without those that the collection no longer has."""
        ids, scores, vectors = ranked.ids, ranked.scores, ranked.vectors
        if vectors is None:
            ids, vectors = view.unit_vectors(ranked.ids)
            if len(ids) < len(ranked.ids):
                there = set(ids)
                scores = scores[[id in there for id in ranked.ids]]
        return cls(
            ids=list(ids), scores=scores, vectors=vectors, name=name, rankings=(ranked,), _collection=view
        )

    @classmethod
    def from_chunks(cls, chunks: Sequence[Chunk], scores: Sequence[float] | FloatArray | None = None) -> Self:
        """Candidates whose chunks have been read; without ``scores``, each has 0."""
        ids = [chunk.id for chunk in chunks]
        values = np.zeros(len(ids)) if scores is None else np.array(scores, np.float64)
        vectors = np.stack([chunk.embedding for chunk in chunks]) if ids else np.zeros((0, 0), np.float32)
        known = dict(zip(ids, chunks, strict=True))
        return cls(ids=ids, scores=values, vectors=vectors, _chunks=known)

    @classmethod
    def from_records(cls, records: Sequence[Record], scores: Sequence[float]) -> Self:
        """Candidates whose records have been read."""
        made = cls.from_chunks([record.chunk for record in records], scores)
        made._fingerprints = {
            record.id: record.blobs[FINGERPRINT] for record in records if FINGERPRINT in record.blobs
        }
        return made

    @classmethod
    def union(cls, parts: Sequence["Candidates"]) -> "Candidates":
        """The candidates of several questions, each chunk once, with the scores for each question."""
        made = parts[0]
        for part in parts[1:]:
            known = set(made.ids)
            made = made.followed_by(part.take([at for at, id in enumerate(part.ids) if id not in known]))
        made.rankings = tuple(ranked for part in parts for ranked in part.rankings)
        made.by_question = np.array([part._scores_of(made.ids) for part in parts])
        return made

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def found(self) -> list[Candidate]:
        """The candidates with their chunks; missing chunks are read now."""
        return [
            Candidate(chunk, score, self.shares(chunk.id))
            for chunk, score in zip(self.chunks(), self.scores.tolist(), strict=True)
        ]

    def chunks(self, positions: Sequence[int] | None = None) -> list[Chunk]:
        """The chunks at these positions, or all; missing ones are read now.

        Raises:
            StoreError: a chunk cannot be read any more.
        """
        wanted = self.ids if positions is None else [self.ids[at] for at in positions]
        self._read(wanted)
        if any(id not in self._chunks for id in wanted):
            raise StoreError(
                "a passage was found but cannot be read: it was deleted since, or the store is damaged; "
                "search again, and if the error stays, check the store with dartboard doctor"
            )
        return [self._chunks[id] for id in wanted]

    def read_all(self) -> None:
        """Read all chunks now, so that the collection's read snapshot can end."""
        self.chunks()
        self._collection = None

    def fingerprints(self, positions: Sequence[int]) -> list[bytes]:
        """Fingerprints of the texts, for :func:`dartboard.near_duplicates.candidate_groups`.

        They are read without the texts. A missing fingerprint, or one of another version, is computed from
        the text.
        """
        wanted = [self.ids[at] for at in positions]
        missing = [id for id in wanted if id not in self._fingerprints]
        if missing and self._collection is not None:
            self._fingerprints |= self._collection.read_blobs(missing, FINGERPRINT)
        unknown = [id for id in wanted if not self._fingerprints.get(id, b"").startswith(VERSION)]
        self._read(unknown)
        for id in unknown:  # without a chunk if it was deleted in the meantime
            self._fingerprints[id] = fingerprint(self._chunks[id].text if id in self._chunks else "")
        return [self._fingerprints[id] for id in wanted]

    def _read(self, ids: Sequence[str]) -> None:
        missing = [id for id in ids if id not in self._chunks]
        if missing and self._collection is not None:
            self._chunks |= {record.id: record.chunk for record in self._collection.get(missing)}

    def take(self, positions: Sequence[int]) -> Self:
        """The candidates at these positions, in this order."""
        at = list(positions)
        return replace(
            self,
            ids=[self.ids[i] for i in at],
            scores=self.scores[at],
            vectors=self.vectors[at],
            by_question=None if self.by_question is None else self.by_question[:, at],
        )

    def followed_by(self, others: "Candidates") -> Self:
        """These candidates followed by others of the same collection, which each question scores lowest."""
        by_question = self.by_question
        if by_question is not None:
            lowest = np.repeat(by_question.min(axis=1, keepdims=True), len(others), axis=1)
            by_question = np.concatenate([by_question, lowest], axis=1)
        vectors = [part.vectors for part in (self, others) if len(part)] or [self.vectors]
        return replace(
            self,
            ids=[*self.ids, *others.ids],
            scores=np.concatenate([self.scores, others.scores]),
            vectors=np.concatenate(vectors),
            by_question=by_question,
            _collection=self._collection or others._collection,
            _chunks=self._chunks | others._chunks,
            _fingerprints=self._fingerprints | others._fingerprints,
        )

    def shares(self, id: str) -> Mapping[str, Share]:
        """Rank and score of a chunk in the retriever's list and in the lists of its members.

        Of several questions, the one that ranks it highest counts. Empty for a chunk that was not found.
        """
        best = self._best(id)
        return {} if best is None else {self.name: best[0], **best[1].member_shares(id)}

    def score(self, id: str) -> float | None:
        """The retriever's score of a chunk; None if it was not found."""
        best = self._best(id)
        return None if best is None else best[0].score

    def _best(self, id: str) -> tuple[Share, Ranked] | None:
        ranked = [(own, each) for each in self.rankings if (own := each.share(id)) is not None]
        return min(ranked, key=lambda pair: pair[0].rank, default=None)

    def _scores_of(self, ids: Sequence[str]) -> list[float]:
        known = dict(zip(self.ids, self.scores.tolist(), strict=True))
        lowest = min(known.values(), default=0.0)
        return [known.get(id, lowest) for id in ids]
