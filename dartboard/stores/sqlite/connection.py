"""Connections to a store's file. The file must have exactly our tables; SQLite keeps what was written.

Tables: ``collections``; ``records`` with what a filter reads; ``contents`` with what a result shows;
``fields`` with further vectors, sparse vectors and blobs. A replaced record gets a new row; rows are never
used again, so that arrays made from them only grow at the end.

A file may come from a stranger. A view over an endless query, a trigger that deletes, or a virtual table
would run as soon as a table is read. So the schema is compared with ours word for word before that.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from dartboard.errors import InvalidInputError, StoreError, StoreFormatError, StoreLockedError
from dartboard.stores.files import NotRegularFileError, check_regular

APPLICATION_ID = 0x44425354  # "DBST"
FORMAT_VERSION = 4
TABLES = (
    """CREATE TABLE collections (
    key INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL UNIQUE,
    manifest TEXT NOT NULL,
    revision INTEGER NOT NULL,
    derived TEXT NOT NULL
)""",
    """CREATE TABLE records (
    row INTEGER PRIMARY KEY AUTOINCREMENT,
    collection INTEGER NOT NULL REFERENCES collections ON DELETE CASCADE,
    id TEXT NOT NULL,
    metadata TEXT NOT NULL,
    UNIQUE (collection, id)
)""",
    "CREATE INDEX records_source ON records (collection, json_extract(metadata, '$.source'))",
    """CREATE TABLE contents (
    row INTEGER PRIMARY KEY REFERENCES records ON DELETE CASCADE,
    text TEXT NOT NULL,
    embedding BLOB NOT NULL
)""",
    """CREATE TABLE fields (
    row INTEGER NOT NULL REFERENCES records ON DELETE CASCADE,
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    data BLOB NOT NULL,
    PRIMARY KEY (row, kind, name)
) WITHOUT ROWID""",
)
_SCHEMA = "SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY 1, 2, 3"
_PAGE_BYTES = 16384
_BUSY_SECONDS = 10
_CACHE_KIB = 16 * 1024
_DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
_BUSY = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
_NO_LOCKS = (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_PERM)
_FULL = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_WRITE, sqlite3.SQLITE_IOERR_FSYNC)
RESTORE = "restore a backup or a snapshot, or move the file away and index again"


def open_file(path: Path, *, read_only: bool) -> sqlite3.Connection:
    """A connection to a store that is checked, and made where there is none.

    Raises:
        StoreError: the file cannot be read or created.
        StoreFormatError: it is not a store of this format.
    """
    _check_beside(path)
    try:
        empty = not path.exists() or (path.is_file() and path.stat().st_size == 0)
        if not empty and not path.is_file():
            raise StoreFormatError(
                f"{path} is not a file: give the path of a file, e.g. {path / 'index.dartboard'}"
            )
        if empty and read_only:
            raise StoreError(
                f"{path} {'is empty' if path.exists() else 'does not exist'}: index something first, "
                "or check the path"
            )
        if not read_only:
            path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(f"no store can be made at {path}: {error.strerror or error}") from error
    with translated_errors(path):
        connection = _connect(path, read_only)
        try:
            if not read_only and not _names(connection):
                _create(connection)
            check_ours(connection, path)
        except BaseException:
            connection.close()
            raise
    return connection


def check_ours(connection: sqlite3.Connection, path: Path) -> None:
    """Compare the schema with ours, word for word, before anything else is read."""
    with closing(sqlite3.connect(":memory:")) as fresh:
        for statement in TABLES:
            fresh.execute(statement)
        ours = fresh.execute(_SCHEMA).fetchall()
    (stamp,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if stamp != APPLICATION_ID:
        raise StoreFormatError(f"{path} is a database of another program: give the store a path of its own")
    if version > FORMAT_VERSION:
        raise StoreFormatError(
            f"{path} was made by a newer dartboard (format {version}, this one reads {FORMAT_VERSION}): "
            "upgrade dartboard"
        )
    if version < FORMAT_VERSION:
        raise StoreFormatError(
            f"{path} was made by an older dartboard (format {version}, this one reads {FORMAT_VERSION}): "
            "move it away and index again, or take a snapshot with the older one and restore that"
        )
    if connection.execute(_SCHEMA).fetchall() != ours:
        raise StoreFormatError(
            f"{path} has other tables than dartboard makes, so somebody has changed it: {RESTORE}"
        )


@contextmanager
def translated_errors(path: Path) -> Iterator[None]:
    """SQLite's errors as dartboard's, with what to do."""
    try:
        yield
    except UnicodeEncodeError as error:
        raise InvalidInputError(f"text that is not valid Unicode cannot be stored: {error}") from error
    except UnicodeDecodeError as error:
        raise StoreFormatError(f"{path} is damaged ({error}): {RESTORE}") from error
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", 0)
        if code & 0xFF in _DAMAGED or isinstance(error, sqlite3.DataError):
            raise StoreFormatError(
                f"{path} is not a dartboard store, or is damaged ({error}): {RESTORE}"
            ) from error
        if code & 0xFF in _BUSY:
            raise StoreLockedError(
                f"{path} is being written by another process: try again when it is done. "
                "Reading is possible meanwhile"
            ) from error
        if code in _FULL:
            raise StoreError(
                f"{path} cannot be written, the disk is full ({error}): make room and try again. "
                "What was written before is kept and still answers"
            ) from error
        raise StoreError(f"{path} cannot be used: {error}") from error


def _connect(path: Path, read_only: bool) -> sqlite3.Connection:
    """Open the file; on read-only media without SQLite's locks, if there is no log to be read.

    A reader too opens it for writing if it may, so that SQLite removes its log at the end.
    """
    try:
        connection = _opened(path, "rw" if read_only else "rwc")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute(f"PRAGMA query_only = {int(read_only)}")
        return connection
    except sqlite3.OperationalError as error:
        if not path.exists() or error.sqlite_errorcode & 0xFF not in _NO_LOCKS:
            raise
    try:
        return _opened(path, "ro")
    except sqlite3.OperationalError as error:
        log = path.with_name(f"{path.name}-wal")
        if error.sqlite_errorcode & 0xFF in _NO_LOCKS and not (log.exists() and log.stat().st_size):
            return _opened(path, "ro&immutable=1")
        raise


def _opened(path: Path, mode: str) -> sqlite3.Connection:
    connection = sqlite3.connect(
        f"{path.absolute().as_uri()}?mode={mode}",
        uri=True,
        timeout=_BUSY_SECONDS,
        isolation_level=None,
        check_same_thread=False,
        cached_statements=256,
    )
    try:
        connection.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except BaseException:
        connection.close()
        raise
    return connection


def _names(connection: sqlite3.Connection) -> int:
    """How many tables there are; none in a new file, or after a process was killed while it made one."""
    (count,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    return int(count)


def _create(connection: sqlite3.Connection) -> None:
    """Make the tables, unless another process was first."""
    connection.execute(f"PRAGMA page_size = {_PAGE_BYTES}")
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("BEGIN IMMEDIATE")
    try:
        if not connection.execute(_SCHEMA).fetchone():
            for statement in TABLES:
                connection.execute(statement)
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version = {FORMAT_VERSION}")
        connection.execute("COMMIT")
    except BaseException:
        connection.execute("ROLLBACK")
        raise


def _check_beside(path: Path) -> None:
    """SQLite would write through a link in the place of its own files, and wait at a pipe."""
    for suffix in ("-wal", "-shm", "-journal"):
        try:
            check_regular(path.with_name(path.name + suffix))
        except NotRegularFileError as error:
            raise StoreError(
                f"{error}: dartboard did not make it. Remove it, and open the index again"
            ) from error
