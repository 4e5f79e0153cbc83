"""The default store: one file with many reading processes and one writer."""

import logging
import sqlite3
from pathlib import Path
from typing import Self

from dartboard.errors import ConfigError, DartboardError
from dartboard.stores.base import DEFAULT_COLLECTION
from dartboard.stores.checks import check_name, exists_already, missing
from dartboard.stores.embedded.collection import EmbeddedCollection
from dartboard.stores.embedded.connections import Connections
from dartboard.stores.embedded.derived_index import DerivedFiles, Tuning
from dartboard.stores.embedded.record_reader import Checked, check_file
from dartboard.stores.embedded.store_file import prepare, unfinished
from dartboard.stores.embedded.tables import ROW_TABLES, manifest_text, write_records
from dartboard.stores.files import leftovers, remove_leftovers
from dartboard.stores.manifest import Manifest
from dartboard.stores.snapshot_file import PART, read_snapshot_file

logger = logging.getLogger(__name__)


class EmbeddedStore:
    """Collections in one SQLite file, with their indexes in ``<file>.derived/``.

    A missing file is created. The store takes the writer lock with its first write and releases it when it is
    closed. Closing also saves indexes for the next process, unless the ``with`` block ended with an error.

    Args:
        path: The file.
        read_only: Never write; raise if the file does not exist.
        tuning: When indexes are saved, approximate and rebuilt.

    Raises:
        StoreError: the file cannot be read or created.
        StoreFormatError: the file is damaged or not a dartboard store.

    Example:
        with EmbeddedStore("index.dartboard") as store:
            collection = store.create("default", Manifest(model="minilm-1", dimension=384))
            collection.upsert(records)
    """

    def __init__(self, path: str | Path, *, read_only: bool = False, tuning: Tuning | None = None) -> None:
        if not str(path).strip() or "\x00" in str(path):
            raise ConfigError("a store needs the path of a file")
        self._url = str(path)
        self._path = Path(path).expanduser().resolve()
        self._tuning = tuning or Tuning()
        prepare(self._path, read_only=read_only)
        self._connections = Connections(self._path, read_only=read_only)
        self._derived = DerivedFiles(self._connections)
        self._connections.tidy = self._tidy
        self._open: dict[int, EmbeddedCollection] = {}
        self._closed = False

    @property
    def url(self) -> str:
        """The path as given."""
        return self._url

    def collections(self) -> list[str]:
        """The names of the collections, sorted."""
        with self._connections.reading() as connection:
            return sorted(name for (name,) in connection.execute("SELECT name FROM collections"))

    def create(self, name: str, manifest: Manifest) -> EmbeddedCollection:
        """A new empty collection."""
        with self._connections.writing() as connection:
            key = _create(connection, name, manifest)
        return self._collection(key, name)

    def open(self, name: str = DEFAULT_COLLECTION) -> EmbeddedCollection:
        """A collection that exists."""
        with self._connections.reading() as connection:
            found = connection.execute("SELECT key FROM collections WHERE name = ?", (name,)).fetchone()
        if found is None:
            raise missing(name, self.collections())
        return self._collection(found[0], name)

    def drop(self, name: str) -> None:
        """Delete a collection with all its records."""
        key = self.open(name).key
        with self._connections.writing() as connection:
            for table in reversed(ROW_TABLES):
                connection.execute(
                    f"DELETE FROM {table} WHERE row IN "  # noqa: S608 - our names
                    "(SELECT row FROM records WHERE collection = ?)",
                    (key,),
                )
            for table in ("gone", "derived"):
                connection.execute(f"DELETE FROM {table} WHERE collection = ?", (key,))  # noqa: S608
            connection.execute("DELETE FROM collections WHERE key = ?", (key,))
        self._open.pop(key, None)
        self._derived.sweep()

    def restore(self, path: str | Path, name: str | None = None) -> EmbeddedCollection:
        """A new collection from a snapshot, all or none of it."""
        stored_name, manifest, batches = read_snapshot_file(path)
        name = name or stored_name
        with self._connections.writing() as connection:
            key = _create(connection, name, manifest)
            for batch in batches:
                manifest.check(batch)
                write_records(connection, key, batch)
        return self._collection(key, name)

    def check(self) -> Checked:
        """Verify the whole file; damage raises :class:`~dartboard.errors.StoreFormatError`."""
        with self._connections.reading() as connection:
            return check_file(connection)

    def leftovers(self) -> list[Path]:
        """Leftovers of killed processes: drafts of indexes and stores, and snapshots in the folder.

        The next write removes them. Files that a living process may own are not listed.
        """
        folder = self._path.parent
        return [
            *leftovers(folder, unfinished(self._path)),
            *leftovers(folder, PART, marked=True),
            *self._derived.leftovers(),
        ]

    def let_others_write(self) -> None:
        """Release the writer lock until the next write; for long-running processes."""
        self._connections.unlock()

    def close(self) -> None:
        """Save indexes of what was written, and close the file."""
        if self._closed:
            return
        try:
            for collection in self._open.values():
                if collection.written:
                    collection.prepare()
        except DartboardError as error:
            logger.warning("%s: indexes were not saved, the next search builds them: %s", self._path, error)
        finally:
            self._let_go()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.close()
        else:
            self._let_go()

    def _tidy(self) -> None:
        remove_leftovers(self._path.parent, unfinished(self._path))
        remove_leftovers(self._path.parent, PART, marked=True)
        self._derived.sweep()

    def _let_go(self) -> None:
        self._closed = True
        self._connections.close()
        self._open.clear()

    def _collection(self, key: int, name: str) -> EmbeddedCollection:
        if key not in self._open:
            self._open[key] = EmbeddedCollection(key, name, self._connections, self._derived, self._tuning)
        return self._open[key]


def _create(connection: sqlite3.Connection, name: str, manifest: Manifest) -> int:
    if connection.execute("SELECT 1 FROM collections WHERE name = ?", (check_name(name),)).fetchone():
        raise exists_already(name)
    cursor = connection.execute(
        "INSERT INTO collections (name, manifest, records, revision, floor) VALUES (?, ?, 0, 0, 0)",
        (name, manifest_text(manifest)),
    )
    return int(cursor.lastrowid or 0)
