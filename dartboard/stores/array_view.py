"""Searches of a collection whose records one process can read: shared by the stores in memory and in a file.

An :class:`ArrayView` is one state of a collection. A store says how its records are read (the first methods);
the arrays that answer searches are made from that, kept in an :class:`ArrayCache` that all views of a
collection share, and moved on from state to state.
"""

import json
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from pathlib import Path
from threading import RLock
from typing import Any, NoReturn, TypeVar

import numpy as np

from dartboard.errors import StoreFormatError
from dartboard.lexical import Analyzer, BM25Index, InvertedIndex
from dartboard.lexical.term_table import TermTable
from dartboard.stores.arrays import (
    BLOCK,
    Rows,
    SparseArray,
    TextArray,
    VectorArray,
    longest_of,
    positions_of,
    unfit_arrays,
)
from dartboard.stores.base import BaseCollection
from dartboard.stores.checks import check_k, check_query_vector, check_sparse_field, only_readable
from dartboard.stores.filters import Filter, check_filter, filter_to_json
from dartboard.stores.manifest import Manifest, lexical_settings
from dartboard.stores.records import Record, SparseVector
from dartboard.stores.snapshot_file import write_snapshot_file
from dartboard.types import FloatArray, Hit
from dartboard.utils import unit_rows

_Made = TypeVar("_Made")
_FILTERS_KEPT = 16
_GONE_WRITES, _GONE_ROWS = 100, 1000
_IDS_KEPT = 200_000


class ArrayCache:
    """Arrays by kind, each with the revision that it belongs to; rows of filters; ids of rows."""

    def __init__(self) -> None:
        self.arrays: dict[Hashable, tuple[int, Any]] = {}
        self.filters: OrderedDict[tuple[int, str], Rows] = OrderedDict()
        self.ids: dict[int, str] = {}
        self.lock = RLock()
        self._gone: dict[int, Rows] = {}

    def note_gone(self, revision: int, rows: Sequence[int]) -> None:
        """Remember which rows a write of this process has deleted, if they are few."""
        if len(rows) <= _GONE_ROWS:
            self._gone[revision] = np.array(sorted(rows), np.int64)
        if len(self._gone) > _GONE_WRITES:
            del self._gone[next(iter(self._gone))]

    def without_gone(self, rows: Rows, before: int, after: int) -> Rows:
        """The rows without those that the writes after one revision have deleted, as far as is known."""
        for revision in range(max(before, after - _GONE_WRITES) + 1, after + 1):
            rows = np.delete(rows, positions_of(rows, self._gone.get(revision, rows[:0])))
        return rows

    def describe(self) -> dict[str, Any]:
        """The vectors in memory, for statistics."""
        made = [(key, array) for key, (_, array) in list(self.arrays.items())]
        return {
            "embedding" if key[1] is None else str(key[1]): array.describe()
            for key, array in made
            if isinstance(key, tuple) and isinstance(array, VectorArray)
        }


class ArrayView(BaseCollection, ABC):
    """One state of a collection, for reading only.

    Args:
        name: The collection's name.
        manifest: Its manifest in this state.
        revision: Grows with every write of records.
        cache: What the views of the collection share.
        known: The cache's arrays from before the state was taken, so that none is newer.
    """

    def __init__(
        self,
        name: str,
        manifest: Manifest,
        revision: int,
        cache: ArrayCache,
        known: dict[Hashable, tuple[int, Any]],
    ) -> None:
        self.name = name
        self.manifest = manifest
        self.revision = revision
        self.cache = cache
        self._known = known
        self._row_of: dict[str, int] = {}

    derived = ""
    """The name of the arrays that the store has saved for this state or an earlier one."""

    # What a store gives

    @abstractmethod
    def size(self) -> int:
        """How many records there are."""

    @abstractmethod
    def rows_after(self, row: int) -> Rows:
        """The rows above this one, sorted."""

    @abstractmethod
    def rows_matching(self, where: Filter) -> Rows:
        """The rows whose records match, sorted."""

    @abstractmethod
    def rows_of(self, ids: Sequence[str]) -> dict[str, int]:
        """The row of each id that exists."""

    @abstractmethod
    def ids_of(self, rows: Sequence[int]) -> dict[int, str]:
        """The id of each row."""

    @abstractmethod
    def vectors_after(self, row: int, field: str | None) -> tuple[Rows, FloatArray]:
        """The rows above this one that have the vector, sorted, and their vectors.

        The matrix is ``(m, d)`` float32, and the caller may change it.
        """

    @abstractmethod
    def texts_after(self, row: int) -> tuple[Rows, Iterable[str]]:
        """The rows above this one, sorted, and their texts, to be read once."""

    @abstractmethod
    def sparse_after(self, row: int, field: str) -> tuple[Rows, list[tuple[Any, Any]]]:
        """The rows above this one that have the sparse vector, sorted, and its terms and weights."""

    @abstractmethod
    def iterate(self, *, where: Filter | None = None, batch_size: int = 1000) -> Iterator[list[Record]]:
        """All matching records, complete, sorted by id."""

    def saved(self, key: Hashable) -> Any:
        """An array that the store has saved, of this state or an earlier one; None if there is none."""
        return None

    # What is made of it

    def count(self, where: Filter | None = None) -> int:
        """How many records match; without a filter, all."""
        allowed = self._allowed(where)
        return self.size() if allowed is None else allowed.size

    def unit_vectors(self, ids: Sequence[str]) -> tuple[list[str], FloatArray]:
        """The ids that exist, in the order of ``ids``, and their unit vectors ``(n, d)``."""
        known = self._rows_of(ids)
        there = [id for id in ids if id in known]
        rows = np.fromiter((known[id] for id in there), np.int64, len(there))
        return there, self.vector_array(None).take(rows)

    def search_vector(
        self,
        query: FloatArray,
        k: int,
        *,
        where: Filter | None = None,
        field: str | None = None,
        exact: bool = False,
    ) -> list[Hit]:
        """Nearest by cosine or dot product."""
        check_k(k)
        asked, metric = check_query_vector(self.manifest, query, field)
        allowed = self._allowed(where)
        rows, scores = self.vector_array(field).best(asked, k, allowed, exact=exact)
        return self._hits(rows, np.clip(scores, -1.0, 1.0) if metric == "cosine" else scores, k)

    def search_sparse(
        self, query: SparseVector, k: int, *, field: str, where: Filter | None = None
    ) -> list[Hit]:
        """Best by dot product, through inverted indexes."""
        check_k(k)
        check_sparse_field(self.manifest, field, self.name)
        array = self.sparse_array(field)
        return self._hits(*array.best(query.terms, query.weights, k, self._allowed(where)), k)

    def search_text(self, query: str, k: int, *, where: Filter | None = None) -> list[Hit]:
        """Best by BM25."""
        check_k(k)
        return self._hits(*self.text_array().best(query, k, self._allowed(where)), k)

    def explain_text(self, query: str, chunk_id: str) -> list[dict[str, Any]]:
        """The contribution of each query term to a record's BM25 score; empty for an unknown id."""
        known = self._rows_of([chunk_id])
        if not known:
            return []
        array = self.text_array()
        at = int(np.searchsorted(array.rows, known[chunk_id]))
        return [dict(term) for term in array.index.explain(query, at)]

    def snapshot(self, path: str | Path) -> None:
        """Write the collection to one file."""
        write_snapshot_file(path, self.name, self.manifest, self.iterate())

    def _refuse(self, *_: object, **__: object) -> NoReturn:
        """Reject writes and statistics, which a snapshot does not support."""
        raise only_readable(self.name)

    configure = upsert = delete = stats = _refuse

    # Arrays

    def row_list(self) -> Rows:
        """The rows of all records; read anew only if another process has deleted or replaced some."""

        def moved(rows: Rows) -> Rows:
            size, joined = self.size(), np.concatenate([rows, self.rows_after(_last(rows))])
            if joined.size != size and "rows" in self._known:
                joined = self.cache.without_gone(joined, self._known["rows"][0], self.revision)
            return joined if joined.size == size else self.rows_after(0)

        return self._at("rows", lambda: self.rows_after(0), moved)

    def vector_array(self, field: str | None) -> VectorArray:
        """The vectors of a field; None is the embedding."""

        def read(after: int) -> tuple[Rows, FloatArray, float]:
            rows, matrix = self.vectors_after(after, field)
            cosine = self.manifest.vector_field(field).metric == "cosine"
            longest = 1.0 if cosine else 0.0
            for start in range(0, len(matrix), BLOCK):  # a copy in float64 would take twice the memory
                part = matrix[start : start + BLOCK]
                if not np.isfinite(part).all():
                    raise StoreFormatError(f"a vector of collection {self.name!r} is damaged: index again")
                if cosine:
                    part[:] = unit_rows(part)
                else:
                    longest = max(longest, longest_of(part))
            return rows, matrix, longest

        def moved(array: VectorArray) -> VectorArray:
            rows, matrix, longest = read(_last(array.rows))
            return array.followed_by(rows, matrix, self.row_list(), longest)

        return self._at(("vectors", field), lambda: VectorArray.of(*read(0)), moved)

    def text_array(self) -> TextArray:
        """The words of all texts."""

        def built() -> TextArray:
            rows, texts = self.texts_after(0)
            index = text_index([], self.manifest)
            return TextArray(rows=rows, index=index.followed_by(texts, None))

        def moved(array: TextArray) -> TextArray:
            return array.followed_by(*self.texts_after(_last(array.rows)), self.row_list())

        return self._at(self.text_key(), built, moved)

    def text_key(self) -> tuple[str, str]:
        """Words belong to the settings that they were made with."""
        return "text", json.dumps(lexical_settings(self.manifest), sort_keys=True)

    def sparse_array(self, field: str) -> SparseArray:
        """The sparse vectors of a field."""

        def moved(array: SparseArray) -> SparseArray:
            array = array.followed_by(*self.sparse_after(_last(array.rows), field), self.row_list())
            return self.built_sparse_array(field) if array.too_much_changed else array

        return self._at(("sparse", field), lambda: self.built_sparse_array(field), moved)

    def built_sparse_array(self, field: str) -> SparseArray:
        """The sparse vectors of a field in one part."""
        rows, vectors = self.sparse_after(0, field)
        return SparseArray(rows=rows, parts=(InvertedIndex.build(vectors),))

    def _at(self, key: Hashable, build: Callable[[], _Made], move: Callable[[_Made], _Made]) -> _Made:
        """The array of this state: from the cache, moved on from an earlier one, loaded, or built."""
        known = self._known.get(key)
        if known is None or known[0] != self.revision:
            shared = self.cache.arrays.get(key)
            if shared is None or shared[0] != self.revision:
                shared = self._made(key, known, build, move)
            known = self._known[key] = shared
        made: _Made = known[1]
        return made

    def _made(
        self,
        key: Hashable,
        known: tuple[int, Any] | None,
        build: Callable[[], _Made],
        move: Callable[[_Made], _Made],
    ) -> tuple[int, _Made]:
        """Make the array of this state; other threads that want it wait, and take it from the cache."""
        with self.cache.lock:
            shared = self.cache.arrays.get(key)
            if shared is not None and shared[0] == self.revision:
                return shared
            if known is None and (saved := self.saved(key)) is not None:
                known = 0, saved
            made = self.revision, build() if known is None else move(known[1])
            if shared is None or shared[0] < self.revision:
                self.cache.arrays[key] = made
            return made

    def _allowed(self, where: Filter | None) -> Rows | None:
        """The matching rows; a hybrid search asks for the same twice, and users ask again."""
        if where is None:
            return None
        check_filter(where)
        key = self.revision, json.dumps(filter_to_json(where))
        known = self.cache.filters.get(key)
        if known is None:
            known = self.cache.filters[key] = self.rows_matching(where)
            if len(self.cache.filters) > _FILTERS_KEPT:
                self.cache.filters.popitem(last=False)
        return known

    def _rows_of(self, ids: Sequence[str]) -> dict[str, int]:
        """The rows of the ids that exist; ids that a search just returned need no lookup."""
        if unknown := [id for id in ids if id not in self._row_of]:
            self._row_of |= self.rows_of(unknown)
        return {id: self._row_of[id] for id in ids if id in self._row_of}

    def _hits(self, rows: Rows, scores: FloatArray, k: int) -> list[Hit]:
        """The ``k`` best with their ids, ties by id. A row never changes its id, so each is read once."""
        numbers, known = rows.tolist(), self.cache.ids
        if unknown := [row for row in numbers if row not in known]:
            if len(known) > _IDS_KEPT:
                self.cache.ids, known, unknown = {}, {}, numbers
            known.update(self.ids_of(unknown))
        try:
            ids = [known[row] for row in numbers]
        except KeyError:
            raise unfit_arrays() from None
        self._row_of.update(zip(ids, numbers, strict=True))
        pairs = sorted(zip((-scores).tolist(), ids, strict=True))
        return [Hit(id, -score) for score, id in pairs[:k]]


def text_index(tables: Sequence[TermTable], manifest: Manifest) -> BM25Index:
    """A BM25 index with the manifest's lexical settings."""
    given = lexical_settings(manifest)
    numbers = {name: given.pop(name) for name in ("k1", "b") if name in given}
    return BM25Index(tables, analyzer=Analyzer(**given), **numbers)


def _last(rows: Rows) -> int:
    return int(rows[-1]) if rows.size else 0
