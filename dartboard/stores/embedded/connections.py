"""Connections to a store's file: a pool for reading and one for writing."""

import os
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from dartboard.errors import DartboardError, InvalidInputError, StoreError, StoreFormatError
from dartboard.stores.embedded.checksums import RESTORE, check_structure, damaged, is_small
from dartboard.stores.embedded.filter_sql import install_functions
from dartboard.stores.embedded.record_reader import check_file
from dartboard.stores.embedded.tables import check_collections, update_collection_checksums
from dartboard.stores.embedded.writer_lock import WriterLock, check_nothing_lost, locked, raise_count
from dartboard.stores.files import NotRegularFileError, check_regular

_BUSY_SECONDS = 10
_CACHE_KIB = 64 * 1024
_READER_CACHE_KIB = 4 * 1024
"""Per reading thread. It can be small because the operating system caches the file's pages."""
_CHECKPOINT_PAGES = 2000
_NO_READING_ALONE = frozenset(
    {sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_PERM}
)
_NO_DATABASE = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
_FULL = frozenset({sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_WRITE, sqlite3.SQLITE_IOERR_FSYNC})
_IMPOSSIBLE = frozenset(
    {sqlite3.SQLITE_CONSTRAINT, sqlite3.SQLITE_MISMATCH, sqlite3.SQLITE_FORMAT, sqlite3.SQLITE_RANGE}
)
"""Errors that our own statements cannot cause in an undamaged file."""
_TRANSLATED = (sqlite3.Error, UnicodeDecodeError, UnicodeEncodeError)
_UNEXPECTED = (LookupError, TypeError, ValueError, ArithmeticError, AttributeError, AssertionError)
"""Errors that impossible content causes when it is read; the whole file is checked then."""


def connect(path: Path, mode: str) -> sqlite3.Connection:
    """A connection with ``mode`` ro or rw; transactions are explicit."""
    for suffix in ("-wal", "-shm", "-journal"):  # SQLite would follow links and block on pipes
        try:
            check_regular(path.with_name(path.name + suffix))
        except NotRegularFileError as error:
            raise StoreError(
                f"{error}: dartboard did not make it. Remove it, and open the index again"
            ) from error
    connection = sqlite3.connect(
        f"{path.absolute().as_uri()}?mode={mode}",
        uri=True,
        timeout=_BUSY_SECONDS,
        isolation_level=None,
        check_same_thread=False,
        cached_statements=256,
    )
    try:
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except BaseException:
        connection.close()
        raise
    return connection


def connect_for_reading(path: Path) -> sqlite3.Connection:
    """A connection that changes nothing; on read-only media, SQLite's locks and log are not used."""
    try:
        return connect(path, "ro")
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode & 0xFF in _NO_READING_ALONE and not has_log(path):
            return connect(path, "ro&immutable=1")
        raise


def connect_for_checking(path: Path) -> sqlite3.Connection:
    """A connection that creates no files beside a database without writers."""
    if not has_log(path):
        try:
            return connect(path, "ro&immutable=1")
        except sqlite3.Error:
            if not has_log(path):
                raise
    return connect_for_reading(path)


def has_log(path: Path) -> bool:
    """Whether the log holds writes that are not in the file yet."""
    try:
        return path.with_name(f"{path.name}-wal").stat().st_size > 0
    except OSError:
        return False


@contextmanager
def translated_errors(path: Path) -> Iterator[None]:
    """Translate SQLite's errors into dartboard's, which say what to do."""
    try:
        yield
    except _TRANSLATED as error:
        raise translated(error, path) from error


def translated(error: sqlite3.Error | UnicodeError, path: Path) -> DartboardError:
    """The dartboard error for one of SQLite."""
    if isinstance(error, UnicodeEncodeError):
        return InvalidInputError(
            f"text that is not valid Unicode (half of a surrogate pair) cannot be stored: {error}"
        )
    code: int = getattr(error, "sqlite_errorcode", 0)  # 0 if Python raised the error itself
    primary = code & 0xFF
    if is_no_database(error) or primary in _IMPOSSIBLE or str(error).startswith("Could not decode to UTF-8"):
        return StoreFormatError(f"{path} is damaged ({error}): {RESTORE}, or move it away and index again")
    if primary == sqlite3.SQLITE_FULL or code in _FULL:
        return StoreError(
            f"{path}: the disk is full or a limit on file sizes is reached ({error}). Nothing of this write "
            "was kept, what was there before still answers: make room and write again"
        )
    if primary in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return locked(path)
    if primary == sqlite3.SQLITE_READONLY:
        return StoreError(f"{path} cannot be written ({error}): open it with read_only=True")
    return StoreError(f"{path}: {error}")


def is_no_database(error: sqlite3.Error | UnicodeError) -> bool:
    """Whether the file is not a SQLite database, or damaged; SQLite quotes damaged names undecoded."""
    code: int = getattr(error, "sqlite_errorcode", 0)
    return isinstance(error, UnicodeDecodeError) or code & 0xFF in _NO_DATABASE


class Connections:
    """Connections of one store for reading and writing; safe across threads and after a fork."""

    def __init__(self, path: Path, *, read_only: bool) -> None:
        self.path = path
        self.read_only = read_only
        self.lock = WriterLock(path)
        self._idle: list[sqlite3.Connection] = []
        self._writer: sqlite3.Connection | None = None
        self._guard = threading.Lock()
        self._writing = threading.RLock()
        self._process = os.getpid()
        self._closed = False
        self._checked = self._sound = self._tidied = False
        self.tidy: Callable[[], None] = lambda: None
        """Called once, before the first write."""

    def bytes_on_disk(self) -> int:
        """Size of the file and its log."""
        log = self.path.with_name(f"{self.path.name}-wal")
        return self.path.stat().st_size + (log.stat().st_size if log.exists() else 0)

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """A connection that sees one state of the store, unaffected by later writes."""
        try:
            connection = self._borrow()
            try:
                connection.execute("BEGIN")
                if not self._checked:
                    self._check_small(connection)
                yield connection
            except BaseException as error:
                self._suspect(connection, error)
                connection.close()  # an unfinished statement would keep this connection at an old state
                raise
            self._give_back(connection)
        except _TRANSLATED as error:
            raise translated(error, self.path) from error

    @contextmanager
    def writing(self, *, counted: bool = True) -> Iterator[sqlite3.Connection]:
        """A write transaction: all of it is on disk when it ends, or none of it.

        Writes of derived files are not ``counted``: losing one does no harm.
        """
        if self.read_only:
            raise StoreError(f"{self.path} was opened with read_only=True: open it without to change it")
        with self._writing, translated_errors(self.path):
            self._take_lock()
            connection = self._writer_connection()
            connection.execute("BEGIN IMMEDIATE")
            try:
                check_collections(connection)
                before, count = connection.total_changes, None
                yield connection
                if counted and connection.total_changes > before:
                    update_collection_checksums(connection)
                    count = raise_count(connection)
                connection.execute("COMMIT")
            except BaseException as error:
                with suppress(sqlite3.Error):
                    connection.execute("ROLLBACK")
                self._suspect(connection, error)
                connection.close()
                self._writer = None
                raise
            if count is not None:
                self.lock.acknowledge(count)

    @contextmanager
    def may_write(self) -> Iterator[bool]:
        """Whether derived files may be written now. Holds the lock during the block only, if it was free."""
        with self._writing:
            held = self.lock.held
            allowed = not self.read_only
            try:
                if allowed:
                    try:
                        self._take_lock()
                    except StoreError:
                        allowed = False
                yield allowed
            finally:
                if not held:
                    self.lock.release()

    def unlock(self) -> None:
        """Release the writer lock until this process writes again."""
        with self._writing:
            self.lock.release()

    def close(self) -> None:
        """Close all connections; the last one moves the log into the file, and then no write can be lost."""
        with self._writing, self._guard:
            self._closed = True
            for connection in (*self._idle, *([self._writer] if self._writer else [])):
                connection.close()
            self._idle, self._writer = [], None
            if not self.read_only:
                with suppress(StoreError, sqlite3.Error):
                    self._remove_note()
            self.lock.release()

    def _remove_note(self) -> None:
        """Remove the note if the log is empty: all writes are in the file; an older copy may replace it."""
        if self.lock.note is None or has_log(self.path):
            return
        self.lock.take()
        if not has_log(self.path):  # no other process has written since
            with closing(connect_for_checking(self.path)) as connection:
                check_nothing_lost(connection, self.path, self.lock.note)
            self.lock.acknowledge(None)

    def _take_lock(self) -> None:
        """Take the writer lock, unless the file has lost writes."""
        if self.lock.held:
            return
        connection = self._writer_connection()
        self.lock.take()
        try:
            if not self._checked:
                self._check_small(connection)
            check_nothing_lost(connection, self.path, self.lock.note)
        except BaseException:
            self.lock.release()
            raise
        if not self._tidied:
            self._tidied = True
            self.tidy()

    def _check_small(self, connection: sqlite3.Connection) -> None:
        """Check the page structure of a small file once, before it is used."""
        if is_small(connection):
            check_structure(connection)
        self._checked = True

    def _suspect(self, connection: sqlite3.Connection, error: BaseException) -> None:
        """After an unexpected error, check whether the file is damaged, and raise that instead.

        A file is checked only once: if it was sound, the error has another cause.
        """
        if not isinstance(error, _UNEXPECTED) or isinstance(error, (DartboardError, UnicodeError)):
            return
        if self._sound:
            return
        try:
            check_file(connection)
        except (StoreError, *_UNEXPECTED) as damage:
            raise damaged(f"{self.path} ({damage})") from error
        self._sound = True

    def _borrow(self) -> sqlite3.Connection:
        with self._guard:
            self._check_open()
            if self._idle:
                return self._idle.pop()
        connection = self._reader()
        connection.execute(f"PRAGMA cache_size = -{_READER_CACHE_KIB}")
        install_functions(connection)
        return connection

    def _reader(self) -> sqlite3.Connection:
        """A reader; if allowed, with mode rw, so that SQLite can move its log into the file at the end."""
        if self.read_only:
            return connect_for_reading(self.path)
        try:
            connection = connect(self.path, "rw")
        except sqlite3.OperationalError:
            return connect_for_reading(self.path)
        connection.execute("PRAGMA query_only = ON")
        return connection

    def _give_back(self, connection: sqlite3.Connection) -> None:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        with self._guard:
            if self._closed or self._process != os.getpid():
                connection.close()
            else:
                self._idle.append(connection)

    def _writer_connection(self) -> sqlite3.Connection:
        with self._guard:
            self._check_open()
            if self._writer is None:
                self._writer = connect(self.path, "rw")
                self._writer.execute("PRAGMA synchronous = FULL")
                self._writer.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
                self._writer.execute(f"PRAGMA wal_autocheckpoint = {_CHECKPOINT_PAGES}")
                install_functions(self._writer)
            return self._writer

    def _check_open(self) -> None:
        if self._process != os.getpid():  # SQLite connections must not cross a fork
            self._idle, self._writer, self._process = [], None, os.getpid()
        if self._closed:
            raise StoreError(f"{self.path} was closed: open it again")
