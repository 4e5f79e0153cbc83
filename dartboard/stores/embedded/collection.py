"""A collection in the file store."""

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Concatenate, ParamSpec, TypeVar

from dartboard.stores.base import CollectionStats
from dartboard.stores.checks import check_deletion, check_k
from dartboard.stores.embedded.cache import CollectionCache
from dartboard.stores.embedded.connections import Connections
from dartboard.stores.embedded.derived_index import DerivedFiles, Tuning
from dartboard.stores.embedded.read_snapshot import ReadSnapshot
from dartboard.stores.embedded.record_reader import RecordReader
from dartboard.stores.embedded.tables import manifest_text, raise_revision, remove_rows, write_records
from dartboard.stores.filters import Filter
from dartboard.stores.manifest import Manifest
from dartboard.stores.records import Record, check_metadata

_Given = ParamSpec("_Given")
_Made = TypeVar("_Made")


def _of_a_snapshot(
    read: Callable[Concatenate[ReadSnapshot, _Given], _Made],
) -> Callable[Concatenate["EmbeddedCollection", _Given], _Made]:
    """Wrap a method of :class:`ReadSnapshot` for a collection: each call opens its own snapshot."""

    @functools.wraps(read)
    def method(self: "EmbeddedCollection", /, *args: _Given.args, **options: _Given.kwargs) -> _Made:
        with self.read_snapshot() as view:
            return read(view, *args, **options)

    return method


class EmbeddedCollection:
    """Records of one model in a file; made by :class:`EmbeddedStore`.

    Each reading method uses the newest state. For several reads of one state, use :meth:`read_snapshot`.
    """

    def __init__(
        self, key: int, name: str, connections: Connections, files: DerivedFiles, tuning: Tuning
    ) -> None:
        self.name = name
        self.key = key
        self.written = False
        self._connections = connections
        self._files = files
        self._cache = CollectionCache(key, files, tuning)

    @contextmanager
    def read_snapshot(self) -> Iterator[ReadSnapshot]:
        """A consistent view of the collection as it is now; later writes do not change it.

        Example:
            with collection.read_snapshot() as view:
                hits = view.search_text("tea", 10)
                records = view.get([hit.id for hit in hits])
        """
        # Before the transaction begins: then no state is newer than what the transaction sees.
        states = self._cache.states()
        with self._connections.reading() as connection:
            reader = RecordReader(connection, self.key, self.name)
            view = ReadSnapshot(self.name, reader, states, self._cache)
            try:
                yield view
            finally:
                view.end()

    get = _of_a_snapshot(ReadSnapshot.get)
    unit_vectors = _of_a_snapshot(ReadSnapshot.unit_vectors)
    read_blobs = _of_a_snapshot(ReadSnapshot.read_blobs)
    count = _of_a_snapshot(ReadSnapshot.count)
    search_vector = _of_a_snapshot(ReadSnapshot.search_vector)
    search_sparse = _of_a_snapshot(ReadSnapshot.search_sparse)
    search_text = _of_a_snapshot(ReadSnapshot.search_text)
    explain_text = _of_a_snapshot(ReadSnapshot.explain_text)
    snapshot = _of_a_snapshot(ReadSnapshot.snapshot)

    @property
    def manifest(self) -> Manifest:
        """The collection's manifest, as currently stored."""
        with self.read_snapshot() as view:
            return view.manifest

    def iterate(self, *, where: Filter | None = None, batch_size: int = 1000) -> Iterator[list[Record]]:
        """All matching records, complete, sorted by id, as they were when the first was read."""
        check_k(batch_size, "batch_size")
        with self.read_snapshot() as view:
            yield from view.iterate(where=where, batch_size=batch_size)

    def iterate_metadata(self, *, where: Filter | None = None) -> Iterator[Mapping[str, Any]]:
        """The metadata of the matching records, sorted by id; neither texts nor vectors are read."""
        with self._connections.reading() as connection:
            yield from RecordReader(connection, self.key, self.name).metadata(where)

    def prepare(self) -> None:
        """Update and save the indexes, so that the next search does not have to."""
        with self.read_snapshot() as view:
            view.prepare()
        self.written = False

    def configure(self, settings: Mapping[str, Any]) -> None:
        """Replace the manifest's settings."""
        check_metadata(dict(settings), f"settings of {self.name}")
        with self._connections.writing() as connection:
            manifest = RecordReader(connection, self.key, self.name).manifest
            changed = manifest_text(replace(manifest, settings=dict(settings)))
            connection.execute("UPDATE collections SET manifest = ? WHERE key = ?", (changed, self.key))

    def upsert(self, records: Sequence[Record]) -> None:
        """Write the records, all or none; they are on disk when this returns."""
        listed = list(records)
        self.manifest.check(listed)
        if not listed:
            return
        with self._connections.writing() as connection:
            RecordReader(connection, self.key, self.name)  # raises if the collection was dropped
            write_records(connection, self.key, listed)
            self.written = True

    def delete(self, ids: Sequence[str] | None = None, *, where: Filter | None = None) -> int:
        """Delete by ids or by filter."""
        check_deletion(ids, where)
        with self._connections.writing() as connection:
            reader = RecordReader(connection, self.key, self.name)
            if where is not None:
                self._cache.check_metadata(reader)
                rows = reader.matching(where).tolist()
            else:
                rows = list(reader.rows_of(list(ids or ())).values())
            if rows:
                revision = raise_revision(connection, self.key, -len(rows))
                remove_rows(connection, self.key, revision, rows)
                self.written = True
            return len(rows)

    def stats(self) -> CollectionStats:
        """Records, bytes on disk including derived files, and the state of the indexes."""
        with self._connections.reading() as connection:
            reader = RecordReader(connection, self.key, self.name)
            (total,) = connection.execute("SELECT sum(records) FROM collections").fetchone()
            derived = self._files.bytes_of(connection, self.key)
            files = {
                kind: "fresh" if stored == reader.revision else f"{reader.revision - stored} writes behind"
                for kind, stored in connection.execute(
                    "SELECT kind, revision FROM derived WHERE collection = ? ORDER BY kind", (self.key,)
                )
            }
        # Collections share pages, so the file's size is divided by the number of records.
        own = self._connections.bytes_on_disk() * reader.records // total if total else 0
        details = {
            "records_bytes": own,
            "derived_bytes": derived,
            "revision": reader.revision,
            "files": files,
            "indexes": self._cache.describe(),
        }
        return CollectionStats(name=self.name, records=reader.records, bytes=own + derived, details=details)
