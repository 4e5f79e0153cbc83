"""A store in memory: lost when the process ends. Its searches are those of the store in a file."""

import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from copy import copy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import numpy as np

from dartboard.deadline import check
from dartboard.stores.array_view import ArrayCache, ArrayView
from dartboard.stores.arrays import Rows
from dartboard.stores.base import DEFAULT_COLLECTION, BaseCollection, CollectionStats, through_snapshot
from dartboard.stores.checks import check_deletion, check_k, check_name, exists_already, missing
from dartboard.stores.filters import Filter, check_filter
from dartboard.stores.manifest import Manifest, with_changes
from dartboard.stores.records import Record, SparseVector
from dartboard.stores.snapshot_file import read_snapshot_file
from dartboard.types import FloatArray

_CHECK_EVERY = 16
"""Records between two looks at the deadline."""


@dataclass(frozen=True, slots=True)
class _State:
    """The records at one time, by id and in the order of their rows. Never changed, only replaced."""

    manifest: Manifest
    revision: int
    records: dict[str, tuple[int, Record]]


class _View(ArrayView):
    """A collection as it was at one time."""

    def __init__(self, name: str, state: _State, cache: ArrayCache) -> None:
        super().__init__(name, state.manifest, state.revision, cache, dict(cache.arrays))
        self._records = state.records

    def read_snapshot(self) -> AbstractContextManager["_View"]:
        """This view."""
        return nullcontext(self)

    def get(self, ids: Sequence[str], *, blobs: Sequence[str] = ()) -> list[Record]:
        """The records that exist, in the order of ``ids``."""
        found = [self._records[id][1] for id in ids if id in self._records]
        return [
            _copied(record, blobs={name: record.blobs[name] for name in blobs if name in record.blobs})
            for record in found
        ]

    def read_blobs(self, ids: Sequence[str], name: str) -> dict[str, bytes]:
        """The blobs of this name, by id."""
        found = ((id, self._records[id][1].blobs) for id in ids if id in self._records)
        return {id: blobs[name] for id, blobs in found if name in blobs}

    def iterate(self, *, where: Filter | None = None, batch_size: int = 1000) -> Iterator[list[Record]]:
        """All matching records sorted by id."""
        check_k(batch_size, "batch_size")
        ids = sorted(record.id for _, record in self._matching(where))
        for start in range(0, len(ids), batch_size):
            yield [_whole(self._records[id][1]) for id in ids[start : start + batch_size]]

    def iterate_metadata(self, *, where: Filter | None = None) -> Iterator[Mapping[str, Any]]:
        """The metadata of the matching records, sorted by id."""
        for _, record in sorted(self._matching(where), key=lambda pair: pair[1].id):
            yield _json_copy(record.metadata)

    def size(self) -> int:
        """How many records there are."""
        return len(self._records)

    def rows_after(self, row: int) -> Rows:
        """The rows above this one."""
        return _as_rows([number for number, _ in self._after(row)])

    def rows_matching(self, where: Filter) -> Rows:
        """The rows whose records match."""
        return _as_rows([row for row, _ in self._matching(where)])

    def rows_of(self, ids: Sequence[str]) -> dict[str, int]:
        """The row of each id that exists."""
        return {id: self._records[id][0] for id in ids if id in self._records}

    def ids_of(self, rows: Sequence[int]) -> dict[int, str]:
        """The id of each row."""
        wanted = set(rows)
        return {row: record.id for row, record in self._records.values() if row in wanted}

    def vectors_after(self, row: int, field: str | None) -> tuple[Rows, FloatArray]:
        """The rows above this one that have the vector, and their vectors."""
        found = [
            (number, record.embedding if field is None else record.vectors[field])
            for number, record in self._after(row)
            if field is None or field in record.vectors
        ]
        dimension = self.manifest.vector_field(field).dimension
        matrix = np.array([vector for _, vector in found], np.float32).reshape(len(found), dimension)
        return _as_rows([number for number, _ in found]), matrix

    def texts_after(self, row: int) -> tuple[Rows, list[str]]:
        """The rows above this one, and their texts."""
        found = self._after(row)
        return _as_rows([number for number, _ in found]), [record.text for _, record in found]

    def sparse_after(self, row: int, field: str) -> tuple[Rows, list[tuple[Any, Any]]]:
        """The rows above this one that have the sparse vector, and its terms and weights."""
        found = [
            (number, record.sparse[field]) for number, record in self._after(row) if field in record.sparse
        ]
        return _as_rows([number for number, _ in found]), [(each.terms, each.weights) for _, each in found]

    def _after(self, row: int) -> list[tuple[int, Record]]:
        """The newest records; they are the last ones."""
        found = []
        for pair in reversed(self._records.values()):
            if pair[0] <= row:
                break
            found.append(pair)
        return found[::-1]

    def _matching(self, where: Filter | None) -> Iterator[tuple[int, Record]]:
        """The matching records with their rows; stops at the deadline."""
        if where is not None:
            check_filter(where)
        for number, (row, record) in enumerate(self._records.values()):
            if number % _CHECK_EVERY == 0:
                check()
            if where is None or where.matches(record.metadata, record.id):
                yield row, record


class MemoryCollection(BaseCollection):
    """Records of one model in memory; made by :class:`MemoryStore`."""

    def __init__(self, name: str, manifest: Manifest) -> None:
        self.name = name
        self._state = _State(manifest, 0, {})
        self._last_row = 0
        self._cache = ArrayCache()
        self._lock = threading.Lock()

    @property
    def manifest(self) -> Manifest:
        """The collection's manifest."""
        return self._state.manifest

    def read_snapshot(self) -> AbstractContextManager[_View]:
        """A view of the records as they are now, for several reads."""
        return nullcontext(_View(self.name, self._state, self._cache))

    get = through_snapshot(_View.get)
    unit_vectors = through_snapshot(_View.unit_vectors)
    read_blobs = through_snapshot(_View.read_blobs)
    read_places = through_snapshot(_View.read_places)
    count = through_snapshot(_View.count)
    search_vector = through_snapshot(_View.search_vector)
    search_sparse = through_snapshot(_View.search_sparse)
    search_text = through_snapshot(_View.search_text)
    explain_text = through_snapshot(_View.explain_text)
    iterate = through_snapshot(_View.iterate)
    iterate_metadata = through_snapshot(_View.iterate_metadata)
    snapshot = through_snapshot(_View.snapshot)

    def configure(self, changes: Mapping[str, Any]) -> None:
        """Change these settings and keep the others; None removes one."""
        with self._lock:
            self._state = replace(self._state, manifest=with_changes(self.manifest, changes, self.name))

    def upsert(self, records: Sequence[Record]) -> None:
        """Write copies of the records, all or none."""
        new = {record.id: _whole(record) for record in records}
        self.manifest.check(list(new.values()))
        with self._lock:
            kept = {id: pair for id, pair in self._state.records.items() if id not in new}
            rows = range(self._last_row + 1, self._last_row + 1 + len(new))
            added = dict(zip(new, zip(rows, new.values(), strict=True), strict=True))
            self._last_row += len(new)
            self._cache.ids.update(zip(rows, new, strict=True))
            self._replace({**kept, **added})

    def delete(self, ids: Sequence[str] | None = None, *, where: Filter | None = None) -> int:
        """Delete by ids or by filter."""
        check_deletion(ids, where)
        with self._lock:
            view = _View(self.name, self._state, self._cache)
            gone = set(ids or ()) if where is None else {record.id for _, record in view._matching(where)}
            kept = {id: pair for id, pair in self._state.records.items() if id not in gone}
            deleted = len(self._state.records) - len(kept)
            self._replace(kept)
        return deleted

    def prepare(self) -> None:
        """Stack the vectors and index the words."""
        with self.read_snapshot() as view:
            view.vector_array(None).prepare()
            view.text_array()

    def stats(self) -> CollectionStats:
        """Size in memory; counts texts, vectors and blobs only."""
        records = [record for _, record in self._state.records.values()]
        size = sum(
            record.embedding.nbytes
            + len(record.text.encode("utf-8", "replace"))
            + sum(vector.nbytes for vector in record.vectors.values())
            + sum(len(data) for data in record.blobs.values())
            for record in records
        )
        details = {"indexes": self._cache.describe()}
        return CollectionStats(name=self.name, records=len(records), bytes=size, details=details)

    def _replace(self, records: dict[str, tuple[int, Record]]) -> None:
        if len(self._cache.ids) > 2 * len(records) + 1000:  # mostly of rows that are gone
            self._cache.ids = {row: id for id, (row, _) in records.items()}
        self._state = _State(self.manifest, self._state.revision + 1, records)


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
        """A new collection from a snapshot, all or none of it."""
        stored_name, manifest, batches = read_snapshot_file(path)
        name = name or stored_name
        collection = self.create(name, manifest)
        try:
            collection.upsert([record for batch in batches for record in batch])
        except BaseException:
            self.drop(name)
            raise
        return collection

    def close(self) -> None:
        """Does nothing: there are no resources to release."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _copied(record: Record, *, blobs: Mapping[str, bytes]) -> Record:
    """A copy that shares nothing that can be changed; without further vectors."""
    made = copy(record)
    made.embedding, made.metadata = record.embedding.copy(), _json_copy(record.metadata)
    made.vectors, made.sparse, made.blobs = {}, {}, dict(blobs)
    return made


def _whole(record: Record) -> Record:
    """A copy with all fields."""
    made = _copied(record, blobs=record.blobs)
    made.vectors = {name: vector.copy() for name, vector in record.vectors.items()}
    made.sparse = {
        name: SparseVector(vector.terms.copy(), vector.weights.copy())
        for name, vector in record.sparse.items()
    }
    return made


def _json_copy(metadata: dict[str, Any]) -> dict[str, Any]:
    """Values of most records are plain; lists and objects inside are copied too."""
    if any(isinstance(value, (list, dict)) for value in metadata.values()):
        made: dict[str, Any] = json.loads(json.dumps(metadata))
        return made
    return dict(metadata)


def _as_rows(rows: list[int]) -> Rows:
    return np.array(rows, np.int64)
