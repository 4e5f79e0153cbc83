"""What dartboard's own retrievers share: rank ids first, fetch the passages once, explain by name.

A ranking is ids with scores. Only :meth:`RankingRetriever.retrieve` makes candidates of it, so a fusion of
several retrievers encodes the query once and fetches each passage once.
"""

import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dartboard.errors import InvalidInputError, StoreFormatError
from dartboard.retrievers.asking import Question
from dartboard.retrievers.base import Candidate, Candidates, Fields, Retriever, Share
from dartboard.stores import Collection, Filter, Record
from dartboard.types import Chunk, FloatArray, Hit


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Ranking:
    """Hits, best first, equal scores by id.

    ``chunks`` are those that were fetched on the way. ``floor`` is what a passage that is not among the hits
    scores at most. ``shares`` are those of the members, by id, where a retriever has members.
    """

    hits: list[Hit]
    chunks: Mapping[str, Chunk] = field(default_factory=dict)
    floor: float = 0.0
    shares: Mapping[str, Mapping[str, Share]] = field(default_factory=dict)


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

    def scores(
        self, collection: Collection, question: Question, chunks: Sequence[Chunk]
    ) -> FloatArray | None:
        """The exact scores of any chunks, ``(n,)``, or None where only a search can tell."""
        return None

    def query_vector(self, question: Question) -> FloatArray | None:
        """The query as the embeddings know it, where a model for that is there."""
        return None if self._model is None else question.vector(self._model)

    def retrieve(
        self, collection: Collection, query: str, k: int, *, where: Filter | None = None
    ) -> Candidates:
        """The ``k`` best candidates of a collection for a query, with vectors."""
        started = time.perf_counter()
        question = Question(query)
        self.check(collection)
        vector = self.query_vector(question)
        ranking = self.rank(collection, question, k, where=where)
        ranked = time.perf_counter()
        chunks = fetch(collection, [hit.id for hit in ranking.hits], ranking.chunks)
        found = [
            Candidate(
                chunk=chunks[hit.id],
                score=hit.score,
                shares={self.name: Share(rank=rank, score=hit.score), **ranking.shares.get(hit.id, {})},
            )
            for rank, hit in enumerate(ranking.hits, start=1)
            if hit.id in chunks
        ]
        seconds = {
            "encode": question.seconds,
            "search": ranked - started - question.seconds,
            "fetch": time.perf_counter() - ranked,
        }
        return Candidates(query=query, found=found, query_vector=vector, seconds=seconds)

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


def fetch(collection: Collection, ids: Sequence[str], known: Mapping[str, Chunk]) -> dict[str, Chunk]:
    """The chunks of these ids; those that are gone by now are left out."""
    missing = [id for id in ids if id not in known]
    fetched = {record.id: record.chunk for record in collection.get(missing)} if missing else {}
    return {**known, **fetched}


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
    lengths = np.linalg.norm(rows, axis=1) * np.linalg.norm(query.astype(np.float64))
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
            chunks={candidate.chunk.id: candidate.chunk for candidate in found},
            floor=min((candidate.score for candidate in found), default=0.0),
        )

    def explain(self, collection: Collection, query: str, chunk_id: str) -> Mapping[str, Any]:
        """In the retriever's own terms."""
        return self._retriever.explain(collection, query, chunk_id)


def ranking_of(retriever: Retriever) -> RankingRetriever:
    """The retriever itself, or one that stands for it."""
    return retriever if isinstance(retriever, RankingRetriever) else Adapted(retriever)
