"""The base class of dartboard's own retrievers, and helpers for those of others.

A subclass ranks ids (:meth:`RankingRetriever.rank`). Vectors are fetched once for all, also where several
retrievers are fused; texts only where somebody asks for them.
"""

import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dartboard.deadline import check
from dartboard.errors import InvalidInputError, StoreFormatError
from dartboard.retrievers.base import Fields, Retriever
from dartboard.retrievers.candidates import Candidates
from dartboard.retrievers.query import Query
from dartboard.stores import Collection, Filter, Record
from dartboard.stores.base import read_snapshot
from dartboard.types import FloatArray, Hit


def Ranking(*, hits: Sequence[Hit], floor: float = 0.0) -> Candidates:
    """What :meth:`RankingRetriever.rank` returns: ids with scores, best first.

    Args:
        hits: best first, equal scores by id.
        floor: what a chunk that is not among the hits scores at most; a fusion needs it.
    """
    return Candidates.from_hits(hits, floor=floor)


class RankingRetriever(ABC):
    """A retriever that ranks ids; fetching and explaining are the same for all."""

    def __init__(self, name: str, model: Any = None) -> None:
        if not isinstance(name, str) or not name:
            raise InvalidInputError("a retriever needs a name")
        self._name = name
        self._model = model

    ranks_by_distance = False
    """Whether its order is that of the vectors' distances to the query, which selection knows by itself."""

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
        self, collection: Collection, query: Query, k: int, *, where: Filter | None = None
    ) -> Candidates:
        """The ``k`` best ids of a collection for a query."""

    def scores(self, collection: Collection, query: Query, candidates: Candidates) -> FloatArray | None:
        """The exact scores of any candidates, ``(n,)``, or None where only a search can tell."""
        return None

    def query_vector(self, query: Query) -> FloatArray | None:
        """The query as the embeddings know it, where a model for that is there."""
        return None if self._model is None else query.vector(self._model)

    def retrieve(
        self, collection: Collection, query: str, k: int, *, where: Filter | None = None
    ) -> Candidates:
        """The ``k`` best candidates of a collection for a query, with vectors and texts."""
        with read_snapshot(collection) as view:
            found = self.find(view, Query(query), k, where=where)
            started = time.perf_counter()
            found.read_all()
        reading = time.perf_counter() - started
        found.seconds = {**found.seconds, "fetch": found.seconds.get("fetch", 0.0) + reading}
        return found

    def find(self, view: Collection, query: Query, k: int, *, where: Filter | None = None) -> Candidates:
        """The same with texts left in the store; ``view`` is a read snapshot of the collection."""
        started, encoded_before = time.perf_counter(), query.seconds
        self.check(view)
        vector = self.query_vector(query)
        found = self.rank(view, query, k, where=where)
        check()
        ranked = time.perf_counter()
        if not hasattr(found, "vectors"):
            found = found.fetch(view)
        found.query, found.name, found.query_vector = query.text, self.name, vector
        found.seconds = {
            "encode": query.seconds,
            "search": ranked - started - (query.seconds - encoded_before),
            "fetch": time.perf_counter() - ranked,
        }
        return found

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

    def index_settings(self) -> dict[str, dict[str, Any]]:
        """The retriever's own."""
        return {name: dict(kept) for name, kept in self._retriever.index_settings().items()}

    def index(self, records: Sequence[Record]) -> list[Record]:
        """By the retriever's own."""
        return self._retriever.index(records)

    def rank(
        self, collection: Collection, query: Query, k: int, *, where: Filter | None = None
    ) -> Candidates:
        """What the retriever finds; a passage that it does not find scores at most its last."""
        found = self._retriever.retrieve(collection, query.text, k, where=where)
        if not isinstance(found, Candidates):
            raise InvalidInputError(
                f"retriever {self.name!r} must return Candidates, got {type(found).__name__}: see "
                "Candidates.from_hits"
            )
        if len(set(found.ids)) < len(found):
            raise InvalidInputError(f"retriever {self.name!r} returned a chunk twice: ids must be unique")
        return found if len(found) <= k else found.take(range(k))

    def find(self, view: Collection, query: Query, k: int, *, where: Filter | None = None) -> Candidates:
        """The same with vectors; times are the retriever's own."""
        found = self.rank(view, query, k, where=where)
        if not hasattr(found, "vectors"):
            found = found.fetch(view)
        found.query, found.name = query.text, self.name
        return found

    def explain(self, collection: Collection, query: str, chunk_id: str) -> Mapping[str, Any]:
        """In the retriever's own terms."""
        return self._retriever.explain(collection, query, chunk_id)


def ranking_of(retriever: Retriever) -> RankingRetriever:
    """The retriever itself, or one that stands for it."""
    return retriever if isinstance(retriever, RankingRetriever) else Adapted(retriever)
