"""The base class of dartboard's retrievers, and an adapter for custom ones.

A subclass ranks ids (:meth:`RankingRetriever.rank`). Vectors are fetched once, also for a fusion of several
retrievers; texts are fetched only when needed.
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
    """The result of :meth:`RankingRetriever.rank`: ids with scores, best first.

    Args:
        hits: Best first, ties by id.
        floor: The maximum score of a chunk that is not among the hits; a fusion needs it.
    """
    return Candidates.from_hits(hits, floor=floor)


class RankingRetriever(ABC):
    """A retriever that ranks ids; fetching and explaining are shared."""

    def __init__(self, name: str, model: Any = None) -> None:
        if not isinstance(name, str) or not name:
            raise InvalidInputError("a retriever needs a name")
        self._name = name
        self._model = model

    ranks_by_distance = False
    """Whether it ranks by distance between vectors and query, which selection can compute itself."""

    @property
    def name(self) -> str:
        """The key of its shares."""
        return self._name

    @property
    def settings(self) -> Mapping[str, Any]:
        """JSON settings that indexed records depend on: stored in the manifest, compared before a search."""
        return {}

    def index_settings(self) -> dict[str, dict[str, Any]]:
        """The settings by retriever name, for ``manifest.settings["retrievers"]``."""
        return {self.name: dict(self.settings)} if self.settings else {}

    def fields(self) -> Fields:
        """The fields that records must have for this retriever."""
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
        """The exact scores of any candidates, ``(n,)``, or None if only a search can compute them."""
        return None

    def query_vector(self, query: Query) -> FloatArray | None:
        """The query's embedding, if there is a model for it."""
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
        """Like :meth:`retrieve`, without reading texts; ``view`` is a read snapshot of the collection."""
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
        """Why a chunk gets its score for a query."""

    def check(self, collection: Collection) -> None:
        """Check that the collection has this retriever's fields, made with the same settings."""
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
    """An existing record, or an error."""
    records = collection.get([chunk_id], blobs=blobs)
    if not records:
        raise InvalidInputError(f"no chunk {chunk_id!r} in collection {collection.name!r}")
    return records[0]


def best(hits: Sequence[Hit], k: int) -> list[Hit]:
    """The ``k`` best, ties by id."""
    return sorted(hits, key=lambda hit: (-hit.score, hit.id))[:k]


def cosines(query: FloatArray, vectors: FloatArray) -> FloatArray:
    """``(n,)`` cosines of a query, ``(d,)``, with rows, ``(n, d)``."""
    rows = vectors.astype(np.float64, copy=False)
    lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows)) * np.linalg.norm(query.astype(np.float64))
    found: FloatArray = (rows @ query.astype(np.float64)) / lengths
    return found


class Adapted(RankingRetriever):
    """Adapts any other retriever to :class:`RankingRetriever`."""

    def __init__(self, retriever: Retriever) -> None:
        super().__init__(retriever.name)
        self._retriever = retriever

    def fields(self) -> Fields:
        """The wrapped retriever's."""
        return self._retriever.fields()

    def index_settings(self) -> dict[str, dict[str, Any]]:
        """The wrapped retriever's."""
        return {name: dict(kept) for name, kept in self._retriever.index_settings().items()}

    def index(self, records: Sequence[Record]) -> list[Record]:
        """Index with the wrapped retriever."""
        return self._retriever.index(records)

    def rank(
        self, collection: Collection, query: Query, k: int, *, where: Filter | None = None
    ) -> Candidates:
        """The wrapped retriever's results; other passages score at most as much as the last of them."""
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
        """The same with vectors; times are those of the wrapped retriever."""
        found = self.rank(view, query, k, where=where)
        if not hasattr(found, "vectors"):
            found = found.fetch(view)
        found.query, found.name = query.text, self.name
        return found

    def explain(self, collection: Collection, query: str, chunk_id: str) -> Mapping[str, Any]:
        """The wrapped retriever's explanation."""
        return self._retriever.explain(collection, query, chunk_id)


def ranking_of(retriever: Retriever) -> RankingRetriever:
    """The retriever itself, or an adapter for it."""
    return retriever if isinstance(retriever, RankingRetriever) else Adapted(retriever)
