"""A read snapshot: a collection as one transaction sees it, unaffected by later writes."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from dartboard.errors import StoreError
from dartboard.stores.checks import check_k, check_query_vector, check_sparse_field, only_readable
from dartboard.stores.embedded.cache import CollectionCache
from dartboard.stores.embedded.checksums import damaged
from dartboard.stores.embedded.derived_index import DamagedFileError, DerivedIndex, State
from dartboard.stores.embedded.record_reader import RecordReader, Rows
from dartboard.stores.embedded.vector_index import VectorIndex
from dartboard.stores.embedded.vector_search import VectorState
from dartboard.stores.filters import Filter
from dartboard.stores.manifest import Manifest
from dartboard.stores.records import Record, SparseVector
from dartboard.stores.snapshot_file import write_snapshot_file
from dartboard.types import FloatArray, Hit


class ReadSnapshot:
    """A read-only view of a collection; made by :meth:`EmbeddedCollection.read_snapshot`.

    It belongs to one thread and ends with its transaction.

    Args:
        name: The collection's name.
        reader: Reads the tables in the transaction.
        states: The index states in memory from before the transaction began. So none is newer than the
            snapshot; each is updated to the snapshot's revision when it is first searched.
        cache: Shared by all snapshots of the collection.
    """

    def __init__(
        self,
        name: str,
        reader: RecordReader,
        states: dict[DerivedIndex[Any], Any],
        cache: CollectionCache,
    ) -> None:
        self.name = name
        self._reader = reader
        self._states = states
        self._cache = cache
        self._rows: dict[str, int] = {}

    @property
    def manifest(self) -> Manifest:
        """The collection's manifest."""
        return self._reader.manifest

    def get(self, ids: Sequence[str], *, blobs: Sequence[str] = ()) -> list[Record]:
        """The records that exist, in the order of ``ids``, with the named blobs."""
        found = self._reader.get(list(ids), blobs)
        return [found[id] for id in ids if id in found]

    def unit_vectors(self, ids: Sequence[str]) -> tuple[list[str], FloatArray]:
        """The ids that exist, in the order of ``ids``, and their unit vectors ``(n, d)``.

        A search compares these vectors; no passage is read for them.
        """
        known = self._rows_of(ids)
        there = [id for id in ids if id in known]
        rows = np.array([known[id] for id in there], dtype=np.int64)
        index = self._cache.vectors(self._reader.manifest, None)
        state = self._state(index)
        try:
            return there, state.take(rows)
        except DamagedFileError as damage:
            return there, self._rebuilt(index, state, damage).take(rows)

    def read_blobs(self, ids: Sequence[str], name: str) -> dict[str, bytes]:
        """The blobs of this name, by id; nothing else is read."""
        known = self._rows_of(ids)
        found = self._cache.blobs(list(known.values()), name, self._reader.blobs)
        return {id: found[row] for id, row in known.items() if row in found}

    def count(self, where: Filter | None = None) -> int:
        """How many records match; without a filter, all."""
        return self._reader.records if where is None else int(self._matching(where).size)

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
        asked, metric = check_query_vector(self._reader.manifest, query, field)
        allowed = None if where is None else self._matching(where)
        index = self._cache.vectors(self._reader.manifest, field)
        state = self._state(index)
        tuning = self._cache.tuning
        try:
            rows, scores = state.search(asked, k, allowed, exact=exact, tuning=tuning)
        except DamagedFileError as damage:
            state = self._rebuilt(index, state, damage)
            rows, scores = state.search(asked, k, allowed, exact=exact, tuning=tuning)
        if metric == "cosine":
            scores = np.clip(scores, -1.0, 1.0)
        return self._hits(rows, scores, k, state)

    def search_sparse(
        self, query: SparseVector, k: int, *, field: str, where: Filter | None = None
    ) -> list[Hit]:
        """Best by dot product, through an inverted index."""
        check_k(k)
        check_sparse_field(self._reader.manifest, field, self.name)
        state = self._state(self._cache.sparse(field))
        mask = None if where is None else state.mask(self._matching(where))
        found, scores = state.index.top(query.terms, query.weights, k, mask)
        return self._hits(state.rows[found], scores, k)

    def search_text(self, query: str, k: int, *, where: Filter | None = None) -> list[Hit]:
        """Best by BM25."""
        check_k(k)
        state = self._state(self._cache.text(self._reader.manifest))
        mask = None if where is None else state.mask(self._matching(where))
        found, scores = state.index.top(query, k, mask)
        return self._hits(state.rows[found], scores, k)

    def explain_text(self, query: str, chunk_id: str) -> list[dict[str, Any]]:
        """The contribution of each query term to a record's BM25 score; empty for an unknown id."""
        known = self._reader.rows_of([chunk_id])
        if not known:
            return []
        state = self._state(self._cache.text(self._reader.manifest))
        found = np.flatnonzero(state.rows == known[chunk_id])
        if found.size != 1:
            raise damaged(f"the text of chunk {chunk_id!r}, which the index does not know,")
        return [dict(term) for term in state.index.explain(query, int(found[0]))]

    def iterate(self, *, where: Filter | None = None, batch_size: int = 1000) -> Iterator[list[Record]]:
        """All matching records, complete, sorted by id."""
        check_k(batch_size, "batch_size")
        return self._reader.batches(where, batch_size)

    def snapshot(self, path: str | Path) -> None:
        """Write the collection to one file."""
        write_snapshot_file(path, self.name, self._reader.manifest, self.iterate())

    def prepare(self) -> None:
        """Update and save the indexes."""
        self._cache.save(self._reader)

    def _refuse(self, *_: object, **__: object) -> NoReturn:
        """Reject writes and statistics, which a snapshot does not support."""
        raise only_readable(self.name)

    configure = upsert = delete = stats = _refuse

    def end(self) -> None:
        """Reject all later calls: the transaction is over."""
        self._reader = _Ended(self.name)  # type: ignore[assignment]

    def _state(self, index: DerivedIndex[State]) -> State:
        """The index at the revision of this snapshot."""
        state: State | None = self._states.get(index)
        if state is None or state.revision != self._reader.revision:
            state = self._states[index] = index.at(self._reader, state)
        return state

    def _rebuilt(self, index: VectorIndex, harmed: VectorState, damage: DamagedFileError) -> VectorState:
        state = self._states[index] = index.rebuilt(self._reader, harmed, damage)
        return state

    def _matching(self, where: Filter) -> Rows:
        return self._cache.matching(self._reader, where)

    def _rows_of(self, ids: Sequence[str]) -> dict[str, int]:
        """The rows of the ids that exist; ids that a search just returned need no lookup."""
        if unknown := [id for id in ids if id not in self._rows]:
            self._rows |= self._reader.rows_of(unknown)
        return {id: self._rows[id] for id in ids if id in self._rows}

    def _hits(
        self, rows: Rows, scores: npt.NDArray[Any], k: int, state: VectorState | None = None
    ) -> list[Hit]:
        """The ``k`` best with their ids, ties by id."""
        numbers = rows.tolist()
        ids = self._cache.ids(numbers, self._reader, state)
        self._rows.update(zip(ids, numbers, strict=True))
        pairs = sorted(zip((-scores).tolist(), ids, strict=True))
        return [Hit(id, -score) for score, id in pairs[:k]]


class _Ended:
    """Replaces the reader when the transaction is over."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, asked: str) -> NoReturn:
        raise StoreError(f"the read snapshot of collection {self._name!r} has ended: read inside its block")
