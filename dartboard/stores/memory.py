"""A store in memory: exact, with NumPy, and lost when the process ends. The reference for other stores."""

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn, Self, TypeVar

import numpy as np
import numpy.typing as npt

from dartboard.deadline import check
from dartboard.lexical.bm25 import BM25Index
from dartboard.lexical.inverted import InvertedIndex
from dartboard.stores.ann import near_the_best
from dartboard.stores.base import DEFAULT_COLLECTION, CollectionStats
from dartboard.stores.checks import (
    check_deletion,
    check_k,
    check_name,
    check_query_vector,
    check_sparse_field,
    exists_already,
    missing,
    only_readable,
)
from dartboard.stores.filters import Filter, check_filter
from dartboard.stores.manifest import Manifest, build_bm25
from dartboard.stores.records import Record, SparseVector, check_metadata
from dartboard.stores.snapshot_file import read_snapshot_file, write_snapshot_file
from dartboard.types import FloatArray, Hit
from dartboard.utils import unit_rows

_Made = TypeVar("_Made")
_CHECK_EVERY = 16
"""Records processed between two checks of the deadline."""


class MemoryCollection:
    """Records by id; vectors are stacked when a search first needs them."""

    def __init__(self, name: str, manifest: Manifest) -> None:
        self.name = name
        self.manifest = manifest
        self._records: dict[str, Record] = {}
        self._snapshot: _Snapshot | None = None
        self._lock = threading.RLock()

    def configure(self, settings: Mapping[str, Any]) -> None:
        """Replace the manifest's settings."""
        check_metadata(dict(settings), f"settings of {self.name}")
        with self._lock:
            self.manifest = replace(self.manifest, settings=dict(settings))
            self._snapshot = None

    def upsert(self, records: Sequence[Record]) -> None:
        """Write the records, all or none."""
        listed = list(records)
        self.manifest.check(listed)
        with self._lock:
            self._records |= {record.id: record for record in listed}
            self._snapshot = None

    def delete(self, ids: Sequence[str] | None = None, *, where: Filter | None = None) -> int:
        """Delete by ids or by filter."""
        check_deletion(ids, where)
        with self._lock:
            doomed = set(_matching(self._records, where) if ids is None else self._records.keys() & set(ids))
            self._records = {id: record for id, record in self._records.items() if id not in doomed}
            self._snapshot = None
        return len(doomed)

    def read_snapshot(self) -> AbstractContextManager["MemoryCollection"]:
        """A view of the records as they are now, for several reads."""
        with self._lock:
            return nullcontext(_View(self.name, self.manifest, self._current()))

    def get(self, ids: Sequence[str], *, blobs: Sequence[str] = ()) -> list[Record]:
        """The records that exist, in the order of ``ids``."""
        found = [copy(self._records[id]) for id in ids if id in self._records]
        for record in found:
            record.vectors, record.sparse = {}, {}
            record.blobs = {name: record.blobs[name] for name in blobs if name in record.blobs}
        return found

    def unit_vectors(self, ids: Sequence[str]) -> tuple[list[str], FloatArray]:
        """The ids that exist, in the order of ``ids``, and their unit vectors ``(n, d)``."""
        view = self._current()
        there = [id for id in ids if id in view.rows]
        return there, view.matrix(None)[1][[view.rows[id] for id in there]]

    def read_blobs(self, ids: Sequence[str], name: str) -> dict[str, bytes]:
        """The blobs of this name, by id."""
        records = self._records
        return {id: records[id].blobs[name] for id in ids if id in records and name in records[id].blobs}

    def count(self, where: Filter | None = None) -> int:
        """How many records match; without a filter, all."""
        return sum(1 for _ in _matching(self._records, where))

    def search_vector(
        self,
        query: FloatArray,
        k: int,
        *,
        where: Filter | None = None,
        field: str | None = None,
        exact: bool = False,
    ) -> list[Hit]:
        """The nearest records; always exact."""
        asked, _ = check_query_vector(self.manifest, query, field)
        check_k(k)
        view = self._current()
        ids, matrix = view.matrix(field)
        return _best(ids, matrix @ asked, view.mask(ids, where), k)

    def search_sparse(
        self, query: SparseVector, k: int, *, field: str, where: Filter | None = None
    ) -> list[Hit]:
        """Best by dot product, through an inverted index."""
        check_k(k)
        check_sparse_field(self.manifest, field, self.name)
        view = self._current()
        ids, index = view.sparse(field)
        rows, scores = index.top(query.terms, query.weights, k, view.mask(ids, where))
        return [Hit(ids[row], float(score)) for row, score in zip(rows, scores, strict=True)]

    def search_text(self, query: str, k: int, *, where: Filter | None = None) -> list[Hit]:
        """Best by BM25."""
        check_k(k)
        view = self._current()
        rows, scores = view.bm25.top(query, k, view.mask(view.ids, where))
        return [Hit(view.ids[row], float(score)) for row, score in zip(rows, scores, strict=True)]

    def explain_text(self, query: str, chunk_id: str) -> Sequence[Mapping[str, Any]]:
        """The contribution of each query term to a record's BM25 score."""
        view = self._current()
        if chunk_id not in self._records:
            return []
        return view.bm25.explain(query, view.ids.index(chunk_id))

    def iterate(self, *, where: Filter | None = None, batch_size: int = 1000) -> Iterator[list[Record]]:
        """All matching records sorted by id, as they were at the start."""
        check_k(batch_size, "batch_size")
        records = self._records
        ids = sorted(_matching(records, where))
        for start in range(0, len(ids), batch_size):
            yield [records[id] for id in ids[start : start + batch_size]]

    def prepare(self) -> None:
        """Stack the vectors and index the words."""
        view = self._current()
        view.matrix(None)
        view.bm25  # noqa: B018 - made when first asked for

    def snapshot(self, path: str | Path) -> None:
        """Write the collection to one file."""
        write_snapshot_file(path, self.name, self.manifest, self.iterate())

    def stats(self) -> CollectionStats:
        """Size in memory; counts texts and vectors only."""
        size = sum(
            record.embedding.nbytes
            + len(record.text.encode("utf-8", "replace"))
            + sum(vector.nbytes for vector in record.vectors.values())
            + sum(len(data) for data in record.blobs.values())
            for record in self._records.values()
        )
        return CollectionStats(
            name=self.name, records=len(self._records), bytes=size, details={"index": "exact"}
        )

    def _current(self) -> "_Snapshot":
        with self._lock:
            if self._snapshot is None:
                ordered = dict(sorted(self._records.items()))
                self._snapshot = _Snapshot(ordered, self.manifest)
            return self._snapshot


class _Snapshot:
    """The records at one time, sorted by id, with search indexes that are built on first use."""

    def __init__(self, records: dict[str, Record], manifest: Manifest) -> None:
        self.records = records
        self._manifest = manifest
        self.ids = list(records)
        self.rows = {id: row for row, id in enumerate(self.ids)}
        self._made: dict[Any, Any] = {}
        self._lock = threading.RLock()

    def matrix(self, field: str | None) -> tuple[list[str], FloatArray]:
        """The ids that have the vector, and their rows ``(n, d)`` float32, unit length for cosines."""
        return self._cached(("matrix", field), lambda: self._stack(field))

    def sparse(self, field: str) -> tuple[list[str], InvertedIndex]:
        """The ids that have the sparse vector, and an index over them."""
        return self._cached(("sparse", field), lambda: self._invert(field))

    @property
    def bm25(self) -> BM25Index:
        """The lexical index over all texts."""
        texts = (record.text for record in self.records.values())
        return self._cached("bm25", lambda: build_bm25(texts, self._manifest))

    def mask(self, ids: list[str], where: Filter | None) -> npt.NDArray[np.bool_] | None:
        """Which of the ids match; None if all do."""
        if where is None:
            return None
        found = set(_matching(self.records, where))
        return np.array([id in found for id in ids], dtype=bool)

    def _cached(self, key: Any, make: Callable[[], _Made]) -> _Made:
        with self._lock:
            if key not in self._made:
                self._made[key] = make()
            made: _Made = self._made[key]
            return made

    def _stack(self, field: str | None) -> tuple[list[str], FloatArray]:
        if field is None:
            found = {id: record.embedding for id, record in self.records.items()}
        else:
            found = {
                id: record.vectors[field] for id, record in self.records.items() if field in record.vectors
            }
        described = self._manifest.vector_field(field)
        rows = list(found.values())
        matrix: FloatArray = np.stack(rows) if rows else np.empty((0, described.dimension), np.float32)
        return list(found), unit_rows(matrix) if described.metric == "cosine" else matrix

    def _invert(self, field: str) -> tuple[list[str], InvertedIndex]:
        ids = [id for id, record in self.records.items() if field in record.sparse]
        vectors = (self.records[id].sparse[field] for id in ids)
        return ids, InvertedIndex.build((vector.terms, vector.weights) for vector in vectors)


class _View(MemoryCollection):
    """A collection at one time, which can only be read."""

    def __init__(self, name: str, manifest: Manifest, snapshot: _Snapshot) -> None:
        super().__init__(name, manifest)
        self._records, self._snapshot = snapshot.records, snapshot

    def read_snapshot(self) -> AbstractContextManager[MemoryCollection]:
        """This view."""
        return nullcontext(self)

    def _refuse(self, *_: object, **__: object) -> NoReturn:
        """Reject writes and statistics, as the embedded store does."""
        raise only_readable(self.name)

    configure = upsert = delete = stats = _refuse


class MemoryStore:
    """Collections in this process."""

    url = "memory://"

    def __init__(self) -> None:
        self._collections: dict[str, MemoryCollection] = {}

    def collections(self) -> list[str]:
        """The names of the collections, sorted."""
        return sorted(self._collections)

    def create(self, name: str, manifest: Manifest) -> MemoryCollection:
        """A new empty collection."""
        check_name(name)
        if name in self._collections:
            raise exists_already(name)
        self._collections[name] = MemoryCollection(name, manifest)
        return self._collections[name]

    def open(self, name: str = DEFAULT_COLLECTION) -> MemoryCollection:
        """A collection that exists."""
        if name not in self._collections:
            raise missing(name, self.collections())
        return self._collections[name]

    def drop(self, name: str) -> None:
        """Delete a collection with all its records."""
        self.open(name)
        del self._collections[name]

    def restore(self, path: str | Path, name: str | None = None) -> MemoryCollection:
        """A new collection from a snapshot."""
        stored_name, manifest, batches = read_snapshot_file(path)
        collection = self.create(name or stored_name, manifest)
        for batch in batches:
            collection.upsert(batch)
        return collection

    def close(self) -> None:
        """Does nothing: there are no resources to release."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _matching(records: Mapping[str, Record], where: Filter | None) -> Iterator[str]:
    """The ids of the matching records; stops at the current deadline."""
    if where is None:
        yield from records
        return
    check_filter(where)
    for number, (id, record) in enumerate(records.items()):
        if number % _CHECK_EVERY == 0:
            check()
        if where.matches(record.metadata, id):
            yield id


def _best(ids: list[str], scores: FloatArray, mask: npt.NDArray[np.bool_] | None, k: int) -> list[Hit]:
    """The ``k`` best, ties by id: rows are sorted by id, so a stable sort keeps that order."""
    rows = np.arange(len(ids)) if mask is None else np.flatnonzero(mask)
    rows = rows[near_the_best(scores[rows], k, 0.0)]
    best = rows[np.argsort(-scores[rows], kind="stable")[:k]]
    return [Hit(ids[row], float(scores[row])) for row in best]
