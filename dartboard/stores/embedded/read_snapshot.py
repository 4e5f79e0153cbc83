"""A collection as one transaction sees it: all that it answers belongs together, whoever writes meanwhile."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from dartboard.errors import StoreError
from dartboard.stores.checks import check_k, check_query_vector, check_sparse_field
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
    """What :meth:`EmbeddedCollection.read_snapshot` gives: a collection that can only be read.

    It belongs to one thread and ends with the transaction.

    Args:
        name: of the collection.
        reader: reads the tables, in a transaction.
        states: of the indexes that were in memory before the transaction began. So none of them is newer
            than the snapshot, and each is brought to the snapshot's revision when it is first searched.
        cache: shared with all other snapshots of the collection.
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
        """What the collection was made with."""
        return self._reader.manifest

    def get(self, ids: Sequence[str], *, blobs: Sequence[str] = ()) -> list[Record]:
        """The records that exist, in the order asked, with the bytes that are named."""
        found = self._reader.get(list(ids), blobs)
        return [found[id] for id in ids if id in found]

    def unit_vectors(self, ids: Sequence[str]) -> tuple[list[str], FloatArray]:
        """The ids that exist, in the order asked, and their embeddings scaled to length 1, ``(n, d)``.

        These are the vectors that a search compares: no passage is read for them.
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
        """The bytes of this name that the records have, by id; nothing else is read."""
        known = self._rows_of(ids)
        found = self._reader.blobs(list(known.values()), name)
        return {id: found[row] for id, row in known.items() if row in found}

    def count(self, where: Filter | None = None) -> int:
        """How many records there are, or match."""
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
        """What each term of the query adds to a record's BM25 score; empty for a record that is not there."""
        known = self._reader.rows_of([chunk_id])
        if not known:
            return []
        state = self._state(self._cache.text(self._reader.manifest))
        found = np.flatnonzero(state.rows == known[chunk_id])
        if found.size != 1:
            raise damaged(f"the text of chunk {chunk_id!r}, which the index does not know,")
        return [dict(term) for term in state.index.explain(query, int(found[0]))]

    def iterate(self, *, where: Filter | None = None, batch_size: int = 1000) -> Iterator[list[Record]]:
        """All records that match, whole, by rising id."""
        check_k(batch_size, "batch_size")
        return self._reader.batches(where, batch_size)

    def snapshot(self, path: str | Path) -> None:
        """Write the collection to one file."""
        write_snapshot_file(path, self.name, self._reader.manifest, self.iterate())

    def prepare(self) -> None:
        """Bring the indexes up to date and leave files of them."""
        self._cache.save(self._reader)

    def _refuse(self, *_: object, **__: object) -> NoReturn:
        """Whatever changes the collection, or describes it as a whole."""
        raise StoreError(
            f"collection {self.name!r} is being held still for a search: change it, and ask for its "
            "statistics, outside"
        )

    configure = upsert = delete = stats = _refuse

    def end(self) -> None:
        """Refuse what is asked from now on: the transaction is over."""
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
        """The rows of the ids that exist; those that a search found need not be looked up."""
        if unknown := [id for id in ids if id not in self._rows]:
            self._rows |= self._reader.rows_of(unknown)
        return {id: self._rows[id] for id in ids if id in self._rows}

    def _hits(
        self, rows: Rows, scores: npt.NDArray[Any], k: int, state: VectorState | None = None
    ) -> list[Hit]:
        """The ``k`` best with their ids, equal scores by id."""
        numbers = rows.tolist()
        ids = self._cache.ids(numbers, self._reader, state)
        self._rows.update(zip(ids, numbers, strict=True))
        pairs = sorted(zip((-scores).tolist(), ids, strict=True))
        return [Hit(id, -score) for score, id in pairs[:k]]


class _Ended:
    """In the place of the reader, once the transaction is over."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, asked: str) -> NoReturn:
        raise StoreError(f"the read snapshot of collection {self._name!r} has ended: read inside its block")
