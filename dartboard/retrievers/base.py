"""The base class of retrievers: a query in, candidates with scores out. Dartboard selects from any of them.

A retriever ranks ids (:meth:`Retriever.rank`). Vectors are fetched once, also for a fusion of several
retrievers; texts are fetched only when needed. For writing, :meth:`Retriever.fields` names the fields that a
collection must have for it, and :meth:`Retriever.index` fills them in records that already have their
embedding. Retrievers that need only the embedding and the text fill nothing.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dartboard.deadline import check
from dartboard.errors import InvalidInputError, StoreFormatError
from dartboard.retrievers.candidates import Candidates, Ranked
from dartboard.retrievers.query import Query
from dartboard.stores import Collection, Filter, Record, VectorField
from dartboard.types import FloatArray


@dataclass(frozen=True, slots=True, kw_only=True)
class Fields:
    """Fields of a collection besides embedding and text."""

    vectors: Mapping[str, VectorField] = field(default_factory=dict)
    sparse: tuple[str, ...] = ()
    blobs: tuple[str, ...] = ()


class Retriever:
    """Finds candidates in a collection.

    A subclass has a ``name`` and :meth:`rank`, or :meth:`retrieve` where it finds whole chunks elsewhere.

    Args:
        name: Short and stable: ``dense``, ``bm25``, ``colbert`` …; the key of its shares in a fusion.
        model: The collection's embedding model, for the query's vector.
    """

    ranks_by_distance = False
    """Whether it ranks by distance between vectors and query, which selection can compute itself."""

    name: str
    _model: Any = None

    def __init__(self, name: str, model: Any = None) -> None:
        if not isinstance(name, str) or not name:
            raise InvalidInputError("a retriever needs a name")
        self.name = name
        self._model = model

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

    def rank(self, view: Collection, query: Query, k: int, *, where: Filter | None = None) -> Ranked:
        """The ``k`` best ids of a collection for a query; by default those of its own :meth:`retrieve`."""
        found = self._retrieved(view, query, k, where)
        return Ranked(found.ids, found.scores, float(found.scores.min()) if len(found) else 0.0)

    def scores(
        self, view: Collection, query: Query, ids: Sequence[str], vectors: FloatArray
    ) -> FloatArray | None:
        """The exact scores of any chunks, ``(n,)``, or None if only a search can compute them."""
        return None

    def query_vector(self, query: Query) -> FloatArray | None:
        """The query's embedding, if there is a model for it."""
        return None if self._model is None else query.vector(self._model)

    def retrieve(
        self, collection: Collection, query: str, k: int, *, where: Filter | None = None
    ) -> Candidates:
        """The ``k`` best candidates of a collection for a query, with vectors and texts."""
        with collection.read_snapshot() as view:
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
        if type(self).rank is Retriever.rank:
            found = self._retrieved(view, query, k, where)
            ranked_at = time.perf_counter()
        else:
            ranked = self.rank(view, query, k, where=where)
            check()
            ranked_at = time.perf_counter()
            found = Candidates.fetched(view, ranked.first(k), self.name)
        found.query_vector = vector if found.query_vector is None else found.query_vector
        found.seconds = {
            "encode": query.seconds,
            "search": ranked_at - started - (query.seconds - encoded_before),
            "fetch": time.perf_counter() - ranked_at,
        }
        return found

    def _retrieved(self, view: Collection, query: Query, k: int, where: Filter | None) -> Candidates:
        """What a ``retrieve`` of its own returns, checked, and no more than ``k``."""
        if self.retrieve == Retriever.retrieve.__get__(self):
            raise NotImplementedError(f"{type(self).__name__} needs rank or retrieve")
        found = self.retrieve(view, query.text, k, where=where)
        if not isinstance(found, Candidates):
            raise InvalidInputError(
                f"retriever {self.name!r} must return Candidates, got {type(found).__name__}: see "
                "Candidates.from_chunks"
            )
        if len(set(found.ids)) < len(found):
            raise InvalidInputError(f"retriever {self.name!r} returned a chunk twice: ids must be unique")
        found = found if len(found) <= k else found.take(range(k))
        if not found.rankings:
            found.rankings = (Ranked(found.ids, found.scores),)
        found.name = self.name
        return found

    def explain(self, collection: Collection, query: str, chunk_id: str) -> Mapping[str, Any]:
        """Why a chunk gets its score for a query: JSON, specific to the retriever."""
        return {}

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


def best(ids: Sequence[str], scores: FloatArray, k: int, floor: float | None = None) -> Ranked:
    """The ``k`` best, ties by id; the floor is by default the lowest score of these."""
    values = np.asarray(scores, dtype=np.float64)
    order = np.lexsort((np.asarray(ids, dtype=object), -values))[:k].tolist() if len(ids) else []
    kept = values[order]
    lowest = float(kept.min()) if kept.size else 0.0
    return Ranked([ids[at] for at in order], kept, lowest if floor is None else floor)


def cosines(query: FloatArray, vectors: FloatArray) -> FloatArray:
    """``(n,)`` cosines of a query, ``(d,)``, with rows, ``(n, d)``."""
    rows = vectors.astype(np.float64, copy=False)
    lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows)) * np.linalg.norm(query.astype(np.float64))
    found: FloatArray = (rows @ query.astype(np.float64)) / lengths
    return found
