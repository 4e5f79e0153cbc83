"""The default store: one file with many readers, and writers one after another."""

import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self

from dartboard.errors import ConfigError, StoreError, StoreFormatError
from dartboard.stores.base import DEFAULT_COLLECTION
from dartboard.stores.checks import check_name, exists_already, missing
from dartboard.stores.derived import DerivedArrays
from dartboard.stores.manifest import Manifest
from dartboard.stores.snapshot_file import read_snapshot_file
from dartboard.stores.sqlite.collection import SqliteCollection, manifest_text, write_records
from dartboard.stores.sqlite.connection import RESTORE, open_file, translated_errors


class SqliteStore:
    """Collections in one SQLite file, with arrays for searching in ``<file>.derived/``.

    A missing file is created. A write waits up to ten seconds for another process that writes.

    Args:
        path: The file.
        read_only: Never write; raise if the file does not exist.

    Raises:
        StoreError: the file cannot be read or created.
        StoreFormatError: the file is not a dartboard store of this format, or somebody changed its tables.

    Example:
        with SqliteStore("index.dartboard") as store:
            collection = store.create("default", Manifest(model="minilm-1", dimension=384))
            collection.upsert(records)
    """

    def __init__(self, path: str | Path, *, read_only: bool = False) -> None:
        if not str(path).strip() or "\x00" in str(path):
            raise ConfigError("a store needs the path of a file")
        self.url = str(path)
        self.path = Path(path).expanduser().resolve()
        self.read_only = read_only
        self.derived = DerivedArrays(self.path)
        self._idle = [open_file(self.path, read_only=read_only)]
        self._writing = threading.Lock()
        self._process = os.getpid()
        self._closed = False
        self._open: dict[int, SqliteCollection] = {}

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """A connection in a transaction, which sees one state of the store."""
        with self._transaction("BEGIN") as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """A write transaction: all of it is on disk when it ends, or none of it."""
        self._renew_after_fork()
        if self.read_only:
            raise StoreError(f"{self.path} was opened with read_only=True: open it without to change it")
        with self._writing, self._transaction("BEGIN IMMEDIATE") as connection:
            yield connection

    def collections(self) -> list[str]:
        """The names of the collections, sorted."""
        with self.reading() as connection:
            return sorted(name for (name,) in connection.execute("SELECT name FROM collections"))

    def create(self, name: str, manifest: Manifest) -> SqliteCollection:
        """A new empty collection."""
        with self.writing() as connection:
            key = _create(connection, name, manifest)
        return self._collection(key, name)

    def open(self, name: str = DEFAULT_COLLECTION) -> SqliteCollection:
        """A collection that exists."""
        with self.reading() as connection:
            found = connection.execute("SELECT key FROM collections WHERE name = ?", (name,)).fetchone()
        if found is None:
            raise missing(name, self.collections())
        return self._collection(found[0], name)

    def drop(self, name: str) -> None:
        """Delete a collection with all its records."""
        key = self.open(name).key
        with self.writing() as connection:
            connection.execute("DELETE FROM collections WHERE key = ?", (key,))
            self.derived.sweep(connection)
        self._open.pop(key, None)

    def restore(self, path: str | Path, name: str | None = None) -> SqliteCollection:
        """A new collection from a snapshot, all or none of it."""
        stored_name, manifest, batches = read_snapshot_file(path)
        name = name or stored_name
        with self.writing() as connection:
            key = _create(connection, name, manifest)
            for batch in batches:
                manifest.check(batch)
                write_records(connection, key, batch)
        return self._collection(key, name)

    def check(self) -> int:
        """Have SQLite check the whole file; returns the number of records.

        Raises:
            StoreFormatError: the file is damaged.
        """
        with self.reading() as connection:
            found = [problem for (problem,) in connection.execute("PRAGMA integrity_check(3)")]
            if found != ["ok"]:
                raise StoreFormatError(f"{self.path} is damaged ({'; '.join(found)}): {RESTORE}")
            (count,) = connection.execute("SELECT count(*) FROM records").fetchone()
            return int(count)

    def close(self) -> None:
        """Close the file; closing twice does nothing."""
        self._closed = True
        while self._idle:
            self._idle.pop().close()
        self._open.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[sqlite3.Connection]:
        self._renew_after_fork()
        if self._closed:
            raise StoreError(f"{self.path} was closed: open it again")
        try:
            connection = self._idle.pop()
        except IndexError:
            connection = open_file(self.path, read_only=self.read_only)
        try:
            with translated_errors(self.path):
                connection.execute(begin)
                yield connection
                connection.execute("COMMIT")
        except BaseException:
            connection.close()  # ends the transaction and statements that were not read to their end
            raise
        if self._closed:
            connection.close()
        else:
            self._idle.append(connection)

    def _renew_after_fork(self) -> None:
        """SQLite's connections must not cross a fork, nor locks that another thread may have held."""
        if self._process != os.getpid():
            self._process = os.getpid()
            self._idle, self._writing = [], threading.Lock()
            for collection in self._open.values():
                collection.renew()

    def _collection(self, key: int, name: str) -> SqliteCollection:
        return self._open.setdefault(key, SqliteCollection(self, key, name))


def _create(connection: sqlite3.Connection, name: str, manifest: Manifest) -> int:
    if connection.execute("SELECT 1 FROM collections WHERE name = ?", (check_name(name),)).fetchone():
        raise exists_already(name)
    cursor = connection.execute(
        "INSERT INTO collections (name, manifest, revision, derived) VALUES (?, ?, 0, '')",
        (name, manifest_text(manifest)),
    )
    return int(cursor.lastrowid or 0)
