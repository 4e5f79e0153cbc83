"""A collection in a store's file."""

import json
import sqlite3
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from threading import Lock
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from dartboard.errors import InvalidInputError
from dartboard.stores.base import CollectionStats
from dartboard.stores.checks import check_k, check_query_vector
from dartboard.stores.embedded.connections import Connections
from dartboard.stores.embedded.derived import Damaged, DerivedFiles
from dartboard.stores.embedded.indexes import Indexes
from dartboard.stores.embedded.revisions import (
    Outdated,
    Revision,
    fresh_manifest,
    manifest_text,
    revision_of,
)
from dartboard.stores.embedded.rows import (
    Rows,
    ids_of_rows,
    raise_revision,
    read_batches,
    read_records,
    remove_rows,
    rows_of_ids,
    rows_that_match,
    write_records,
)
from dartboard.stores.embedded.tuning import Tuning
from dartboard.stores.filters import Filter, filter_to_json
from dartboard.stores.records import Manifest, Record, SparseVector, check_metadata
from dartboard.stores.snapshots import write_snapshot
from dartboard.types import FloatArray, Hit

_FILTERS_KEPT = 32
_IDS_KEPT = 200_000
_ATTEMPTS = 5

_Found = TypeVar("_Found")


class EmbeddedCollection:
    """Records of one model in a file; made by :class:`EmbeddedStore`."""

    def __init__(
        self, key: int, name: str, connections: Connections, derived: DerivedFiles, tuning: Tuning
    ) -> None:
        self.name = name
        self.key = key
        self.written = False
        self._connections = connections
        self._derived = derived
        self._tuning = tuning
        self._indexes = Indexes(key, derived, tuning)
        self._filters: OrderedDict[tuple[int, str], Rows] = OrderedDict()
        self._ids: dict[int, str] = {}
        self._lock = Lock()

    @property
    def manifest(self) -> Manifest:
        """What the collection was made with, as the file says now."""
        with self._connections.reading() as connection:
            return fresh_manifest(revision_of(connection, self.key, self.name).manifest_text)

    def configure(self, settings: Mapping[str, Any]) -> None:
        """Replace the manifest's settings."""
        check_metadata(dict(settings), f"settings of {self.name}")
        with self._connections.writing() as connection:
            manifest = revision_of(connection, self.key, self.name).manifest
            manifest = replace(manifest, settings=dict(settings))
            connection.execute(
                "UPDATE collections SET manifest = ? WHERE key = ?", (manifest_text(manifest), self.key)
            )

    def upsert(self, records: Sequence[Record]) -> None:
        """Keep the records, all or none; when this returns they are on disk."""
        listed = list(records)
        with self._connections.reading() as connection:
            revision_of(connection, self.key, self.name).manifest.check(listed)
        if not listed:
            return
        with self._connections.writing() as connection:
            revision_of(connection, self.key, self.name)
            write_records(connection, self.key, listed)
            self.written = True

    def delete(self, ids: Sequence[str] | None = None, *, where: Filter | None = None) -> int:
        """Remove by ids or by filter."""
        if (ids is None) == (where is None):
            raise InvalidInputError("delete takes ids or a filter: give one of the two")
        with self._connections.writing() as connection:
            revision_of(connection, self.key, self.name)
            if where is not None:
                rows = rows_that_match(connection, self.key, where).tolist()
            else:
                rows = rows_of_ids(connection, self.key, list(ids or ()))
            if rows:
                revision = raise_revision(connection, self.key, -len(rows))
                remove_rows(connection, self.key, revision, rows)
                self.written = True
            return len(rows)

    def get(self, ids: Sequence[str], *, blobs: Sequence[str] = ()) -> list[Record]:
        """The records that exist, in the order asked."""
        with self._connections.reading() as connection:
            revision_of(connection, self.key, self.name)
            found = read_records(connection, self.key, list(ids), list(blobs))
        return [found[id] for id in ids if id in found]

    def count(self, where: Filter | None = None) -> int:
        """How many records there are, or match."""
        with self._connections.reading() as connection:
            revision = revision_of(connection, self.key, self.name)
            if where is None:
                return revision.records
            return int(self._matching(connection, revision, where).size)

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

        def search(connection: sqlite3.Connection, revision: Revision) -> list[Hit]:
            manifest = revision.manifest
            asked, metric = check_query_vector(manifest, query, field)
            upkeep = self._indexes.vectors(manifest, field)
            allowed = None if where is None else self._matching(connection, revision, where)
            try:
                state = upkeep.current(connection, revision)
                rows, scores = state.search(asked, k, allowed, exact=exact, tuning=self._tuning)
            except Damaged as damage:
                upkeep.distrust(damage)
                raise
            if metric == "cosine":
                scores = np.clip(scores, -1.0, 1.0)
            return self._hits(connection, rows, scores, k, state.names(rows))

        return self._on_one_state(search)

    def search_sparse(
        self, query: SparseVector, k: int, *, field: str, where: Filter | None = None
    ) -> list[Hit]:
        """Best by dot product, through an inverted index."""
        check_k(k)

        def search(connection: sqlite3.Connection, revision: Revision) -> list[Hit]:
            manifest = revision.manifest
            if field not in manifest.sparse:
                raise InvalidInputError(
                    f"no sparse vector {field!r} in collection {self.name!r}: it has {list(manifest.sparse)}"
                )
            state = self._indexes.sparse(field).current(connection, revision)
            allowed = None if where is None else self._matching(connection, revision, where)
            found, scores = state.index.top(query.terms, query.weights, k, state.mask(allowed))
            return self._hits(connection, state.rows[found], scores, k)

        return self._on_one_state(search)

    def search_text(self, query: str, k: int, *, where: Filter | None = None) -> list[Hit]:
        """Best by BM25."""
        check_k(k)

        def search(connection: sqlite3.Connection, revision: Revision) -> list[Hit]:
            state = self._indexes.text(revision.manifest).current(connection, revision)
            allowed = None if where is None else self._matching(connection, revision, where)
            found, scores = state.index.top(query, k, state.mask(allowed))
            return self._hits(connection, state.rows[found], scores, k)

        return self._on_one_state(search)

    def explain_text(self, query: str, chunk_id: str) -> list[dict[str, Any]]:
        """What each term of the query adds to a record's BM25 score; empty for a record that is not there."""

        def explain(connection: sqlite3.Connection, revision: Revision) -> list[dict[str, Any]]:
            rows = rows_of_ids(connection, self.key, [chunk_id])
            if not rows:
                return []
            state = self._indexes.text(revision.manifest).current(connection, revision)
            (position,) = np.flatnonzero(state.rows == rows[0])
            return [dict(term) for term in state.index.explain(query, int(position))]

        return self._on_one_state(explain)

    def iterate(self, *, where: Filter | None = None, batch_size: int = 1000) -> Iterator[list[Record]]:
        """All records that match, whole, by rising id, as they were when the first was taken."""
        check_k(batch_size, "batch_size")
        with self._connections.reading() as connection:
            revision_of(connection, self.key, self.name)
            yield from read_batches(connection, self.key, where, batch_size)

    def snapshot(self, path: str | Path) -> None:
        """Write the collection to one file."""
        with self._connections.reading() as connection:
            manifest = revision_of(connection, self.key, self.name).manifest
            write_snapshot(path, self.name, manifest, read_batches(connection, self.key, None, 1000))

    def stats(self) -> CollectionStats:
        """Records, bytes on disk with what is derived, and the state of the indexes."""
        with self._connections.reading() as connection:
            revision = revision_of(connection, self.key, self.name)
            own = bytes_of_records(connection, self._connections.path, revision.records)
            derived = self._derived.bytes_of(connection, self.key)
            files = {
                kind: "fresh" if stored == revision.number else f"{revision.number - stored} writes behind"
                for kind, stored in connection.execute(
                    "SELECT kind, revision FROM derived WHERE collection = ? ORDER BY kind", (self.key,)
                )
            }
        details = {
            "records_bytes": own,
            "derived_bytes": derived,
            "revision": revision.number,
            "files": files,
            "indexes": self._indexes.describe(),
        }
        return CollectionStats(name=self.name, records=revision.records, bytes=own + derived, details=details)

    def prepare(self) -> None:
        """Bring the indexes up to date and leave files of them, so that the next search need not."""

        def save(connection: sqlite3.Connection, revision: Revision) -> None:
            self._indexes.save(connection, revision, revision.manifest)

        self._on_one_state(save)
        self.written = False

    def _on_one_state(self, work: Callable[[sqlite3.Connection, Revision], _Found]) -> _Found:
        """Work on one state of the collection; anew where a file proves damaged or the state outdated."""
        for attempt in range(_ATTEMPTS):
            with self._connections.reading() as connection:
                revision = revision_of(connection, self.key, self.name)
                try:
                    return work(connection, revision)
                except (Damaged, Outdated):
                    if attempt + 1 == _ATTEMPTS:
                        raise
        raise AssertionError("the last attempt returns or raises")

    def _matching(self, connection: sqlite3.Connection, revision: Revision, where: Filter) -> Rows:
        """The rows that match; the last few filters are remembered until the next write."""
        key = (revision.number, json.dumps(filter_to_json(where)))
        with self._lock:
            if key in self._filters:
                self._filters.move_to_end(key)
                return self._filters[key]
        rows = rows_that_match(connection, self.key, where)
        with self._lock:
            for old in [old for old in self._filters if old[0] < revision.number]:
                del self._filters[old]
            self._filters[key] = rows
            while len(self._filters) > _FILTERS_KEPT:
                self._filters.popitem(last=False)
        return rows

    def _hits(
        self,
        connection: sqlite3.Connection,
        rows: Rows,
        scores: npt.NDArray[Any],
        k: int,
        names: dict[int, str] | None = None,
    ) -> list[Hit]:
        """The ``k`` best with their ids, equal scores by id."""
        numbers = rows.tolist()
        known = names or {}
        if len(known) < len(numbers):
            known |= self._look_up(connection, [row for row in numbers if row not in known])
        pairs = sorted((-score, known[row]) for row, score in zip(numbers, scores.tolist(), strict=True))
        return [Hit(id, -score) for score, id in pairs[:k]]

    def _look_up(self, connection: sqlite3.Connection, rows: list[int]) -> dict[int, str]:
        """The ids of rows; a row never changes its id, so they are remembered."""
        known = self._ids
        if unknown := [row for row in rows if row not in known]:
            if len(known) > _IDS_KEPT:
                known = self._ids = {}
                unknown = rows
            known.update(ids_of_rows(connection, unknown))
        return {row: known[row] for row in rows}


def bytes_of_records(connection: sqlite3.Connection, path: Path, records: int) -> int:
    """The collection's part of the file: by its number of records, since pages are shared."""
    (total,) = connection.execute("SELECT sum(records) FROM collections").fetchone()
    log = path.with_name(f"{path.name}-wal")
    size = path.stat().st_size + (log.stat().st_size if log.exists() else 0)
    return size * records // total if total else 0
