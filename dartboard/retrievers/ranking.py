"""What dartboard's own retrievers share: rank ids first, fetch the passages once, explain by name.

A ranking is ids with scores. :meth:`RankingRetriever.retrieve` makes candidates of it, so a fusion of
several retrievers encodes the query once and fetches each passage once. :meth:`RankingRetriever.find` leaves
even that to whoever needs the texts. Either way everything comes from one state of the collection.
"""

import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dartboard.deadline import check
from dartboard.errors import InvalidInputError, StoreFormatError
from dartboard.retrievers.asking import Question
from dartboard.retrievers.base import Candidate, Candidates, Fields, Retriever
from dartboard.retrievers.passages import Passages
from dartboard.retrievers.shares import OwnShares, Shares
from dartboard.stores import Collection, Filter, Record
from dartboard.stores.states import on_one_state
from dartboard.types import Chunk, FloatArray, Hit


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Ranking:
    """Hits, best first, equal scores by id.

    ``passages`` are those that were met on the way, at least the hits' where there are any. ``floor`` is what
    a passage that is not among the hits scores at most. ``shares`` are those of the members, by id, where a
    retriever has members.
    """

    hits: list[Hit]
    passages: Passages | None = None
    floor: float = 0.0
    shares: Shares = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Found:
    """Candidates, best first, equal scores by id, whose texts may still be in the store.

    ``scores`` are one a passage; ``shares`` by id say who found it; ``seconds`` as in :class:`Candidates`.
    """

    passages: Passages
    scores: list[float]
    shares: Shares = field(default_factory=dict)
    query_vector: FloatArray | None = None
    seconds: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def of(cls, candidates: Candidates) -> "Found":
        """The candidates of any retriever."""
        return cls(
            passages=Passages.of([each.chunk for each in candidates.found]),
            scores=[each.score for each in candidates.found],
            shares={each.chunk.id: each.shares for each in candidates.found},
            query_vector=candidates.query_vector,
            seconds=candidates.seconds,
        )


class RankingRetriever(ABC):
    """A retriever that ranks ids; fetching and explaining are the same for all."""

    def __init__(self, name: str, model: Any = None) -> None:
        if not isinstance(name, str) or not name:
            raise InvalidInputError("a retriever needs a name")
        self._name = name
        self._model = model

    @property
    def name(self) -> str:
        """It labels shares."""
        return self._name

    @property
    def settings(self) -> Mapping[str, Any]:
        """What indexed records depend on, JSON: kept in the manifest, and compared before a search."""
        return {}

    def index_settings(self) -> dict[str, dict[str, Any]]:
        """The settings by retriever's name, for ``manifest.settings["retrievers"]``."""
        return {self.name: dict(self.settings)} if self.settings else {}

    def fields(self) -> Fields:
        """What records must carry for this retriever."""
        return Fields()

    def index(self, records: Sequence[Record]) -> list[Record]:
        """The records with those fields filled in."""
        return list(records)

    @abstractmethod
    def rank(
        self, collection: Collection, question: Question, k: int, *, where: Filter | None = None
    ) -> Ranking:
        """The ``k`` best ids of a collection for a query."""

    def scores(self, collection: Collection, question: Question, passages: Passages) -> FloatArray | None:
        """The exact scores of any passages, ``(n,)``, or None where only a search can tell."""
        return None

    def query_vector(self, question: Question) -> FloatArray | None:
        """The query as the embeddings know it, where a model for that is there."""
        return None if self._model is None else question.vector(self._model)

    def retrieve(
        self, collection: Collection, query: str, k: int, *, where: Filter | None = None
    ) -> Candidates:
        """The ``k`` best candidates of a collection for a query, with vectors."""
        question = Question(query)

        def read(held: Collection) -> tuple[Found, list[Chunk], float]:
            found = self.find(held, question, k, where=where)
            started = time.perf_counter()
            return found, found.passages.chunks(), time.perf_counter() - started

        found, chunks, reading = on_one_state(collection, read)
        return Candidates(
            query=query,
            found=[
                Candidate(chunk=chunk, score=score, shares=dict(found.shares[chunk.id]))
                for chunk, score in zip(chunks, found.scores, strict=True)
            ],
            query_vector=found.query_vector,
            seconds={**found.seconds, "fetch": found.seconds["fetch"] + reading},
        )

    def find(
        self, collection: Collection, question: Question, k: int, *, where: Filter | None = None
    ) -> Found:
        """The same, with texts left in the store; on a collection that others may write to, use
        :func:`dartboard.stores.states.on_one_state`.
        """
        started, encoding = time.perf_counter(), question.seconds
        self.check(collection)
        vector = self.query_vector(question)
        ranking = self.rank(collection, question, k, where=where)
        check()
        ranked = time.perf_counter()
        passages = _those_of(ranking, collection)
        scores = {hit.id: hit.score for hit in ranking.hits}
        return Found(
            passages=passages,
            scores=[scores[id] for id in passages.ids],
            shares=OwnShares(self.name, ranking.hits, ranking.shares),
            query_vector=vector,
            seconds={
                "encode": question.seconds,
                "search": ranked - started - (question.seconds - encoding),
                "fetch": time.perf_counter() - ranked,
            },
        )

    @abstractmethod
    def explain(self, collection: Collection, query: str, chunk_id: str) -> Mapping[str, Any]:
        """Why a chunk scores as it does for a query."""

    def check(self, collection: Collection) -> None:
        """The collection carries what this retriever needs, made as this retriever would make it."""
        need = self.fields()
        manifest = collection.manifest
        if lacking := sorted(
            (need.vectors.keys() - manifest.vectors.keys()) | set(need.sparse) - set(manifest.sparse)
        ):
            raise StoreFormatError(
                f"collection {collection.name!r} has no field {lacking[0]!r}, which {self.name!r} needs: "
                f"index the documents again with this retriever"
            )
        for field_name, described in need.vectors.items():
            if manifest.vectors[field_name] != described:
                raise StoreFormatError(
                    f"collection {collection.name!r} has {manifest.vectors[field_name]} as {field_name!r}; "
                    f"{self.name!r} makes {described}: index again, or use the settings it was made with"
                )
        kept = manifest.settings.get("retrievers", {}).get(self.name)
        if kept is not None and self.settings and dict(kept) != dict(self.settings):
            differing = sorted(
                key for key in {*kept, *self.settings} if kept.get(key) != self.settings.get(key)
            )
            raise StoreFormatError(
                f"collection {collection.name!r} was indexed for {self.name!r} with other settings "
                f"({', '.join(differing)} differ): index again, or use the settings it was made with"
            )


def _those_of(ranking: Ranking, collection: Collection) -> Passages:
    """The passages of the hits, in their order; those that are gone by now are left out."""
    ids = [hit.id for hit in ranking.hits]
    if ranking.passages is None:
        return Passages.find(collection, ids)
    if ranking.passages.ids == ids:
        return ranking.passages
    place = {id: at for at, id in enumerate(ranking.passages.ids)}
    return ranking.passages.at([place[id] for id in ids if id in place])


def one_record(collection: Collection, chunk_id: str, *, blobs: Sequence[str] = ()) -> Record:
    """A record that is there, or a clear error."""
    records = collection.get([chunk_id], blobs=blobs)
    if not records:
        raise InvalidInputError(f"no chunk {chunk_id!r} in collection {collection.name!r}")
    return records[0]


def best(hits: Sequence[Hit], k: int) -> list[Hit]:
    """The ``k`` best, equal scores by id."""
    return sorted(hits, key=lambda hit: (-hit.score, hit.id))[:k]


def cosines(query: FloatArray, vectors: FloatArray) -> FloatArray:
    """``(n,)`` cosines of a query, ``(d,)``, with rows, ``(n, d)``."""
    rows = vectors.astype(np.float64, copy=False)
    lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows)) * np.linalg.norm(query.astype(np.float64))
    found: FloatArray = (rows @ query.astype(np.float64)) / lengths
    return found


class Adapted(RankingRetriever):
    """Any other retriever as one that ranks."""

    def __init__(self, retriever: Retriever) -> None:
        super().__init__(retriever.name)
        self._retriever = retriever

    def fields(self) -> Fields:
        """The retriever's own."""
        return self._retriever.fields()

    def index(self, records: Sequence[Record]) -> list[Record]:
        """By the retriever's own."""
        return self._retriever.index(records)

    def rank(
        self, collection: Collection, question: Question, k: int, *, where: Filter | None = None
    ) -> Ranking:
        """What the retriever finds; a passage that it does not find scores at most its last."""
        found = self._retriever.retrieve(collection, question.text, k, where=where).found
        return Ranking(
            hits=[Hit(candidate.chunk.id, candidate.score) for candidate in found],
            passages=Passages.of([candidate.chunk for candidate in found]),
            floor=min((candidate.score for candidate in found), default=0.0),
        )

    def explain(self, collection: Collection, query: str, chunk_id: str) -> Mapping[str, Any]:
        """In the retriever's own terms."""
        return self._retriever.explain(collection, query, chunk_id)


def ranking_of(retriever: Retriever) -> RankingRetriever:
    """The retriever itself, or one that stands for it."""
    return retriever if isinstance(retriever, RankingRetriever) else Adapted(retriever)
