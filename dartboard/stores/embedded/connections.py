"""Connections to a store's file: as many for reading as are in use at once, and one for writing."""

import os
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from dartboard.errors import DartboardError, StoreError
from dartboard.stores.embedded.checking import check_file
from dartboard.stores.embedded.faults import in_our_words
from dartboard.stores.embedded.filter_sql import install_functions
from dartboard.stores.embedded.locking import WriterLock
from dartboard.stores.embedded.structure import check_structure, is_small
from dartboard.stores.embedded.sums import check_collections, damaged, sum_up_collections
from dartboard.stores.embedded.write_count import check_nothing_lost, raise_count
from dartboard.stores.files import NotRegularFileError, check_regular

_BUSY_SECONDS = 10
_CACHE_KIB = 64 * 1024
_READER_CACHE_KIB = 4 * 1024
"""Each thread that reads has a connection of its own; the operating system keeps the file's pages anyway."""
_CHECKPOINT_PAGES = 2000
_NO_READING_ALONE = frozenset(
    {sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_PERM}
)

UNEXPECTED = (LookupError, TypeError, ValueError, ArithmeticError, AttributeError, AssertionError)
"""What reading raises where a file says something impossible: then the file is checked as a whole."""


def connect(path: Path, mode: str) -> sqlite3.Connection:
    """A connection with ``mode`` ro or rw; transactions begin and end where the code says so."""
    _check_beside(path)
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


def _check_beside(path: Path) -> None:
    """Refuse links and pipes in the place of SQLite's files: it would write through them, or wait."""
    for suffix in ("-wal", "-shm", "-journal"):
        try:
            check_regular(path.with_name(path.name + suffix))
        except NotRegularFileError as error:
            raise StoreError(
                f"{error}: dartboard did not make it. Remove it, and open the index again"
            ) from error


def connect_for_reading(path: Path) -> sqlite3.Connection:
    """A connection that changes nothing; on read-only media the file is taken as it lies there."""
    try:
        return connect(path, "ro")
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode & 0xFF in _NO_READING_ALONE and not has_log(path):
            return connect(path, "ro&immutable=1")
        raise


def connect_for_checking(path: Path) -> sqlite3.Connection:
    """A connection that makes no files beside a database that nobody is writing to."""
    if not has_log(path):
        try:
            return connect(path, "ro&immutable=1")
        except sqlite3.Error:
            if not has_log(path):
                raise
    return connect_for_reading(path)


def has_log(path: Path) -> bool:
    """Whether something stands in the log that is not in the file yet."""
    log = path.with_name(f"{path.name}-wal")
    try:
        return log.stat().st_size > 0
    except OSError:
        return False


class Connections:
    """What a store reads and writes through; usable from several threads, and after a fork."""

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
        """Called once, by the first that writes."""

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """A connection that sees one state of the store, whatever is written meanwhile."""
        with in_our_words(self.path):
            connection = self._borrow()
            try:
                connection.execute("BEGIN")
                self._check_small(connection)
                yield connection
            except BaseException as error:
                if isinstance(error, UNEXPECTED):
                    self._suspect(connection, error)
                connection.close()  # a statement that was not read to its end would go on seeing this state
                raise
            self._give_back(connection)

    @contextmanager
    def writing(self, *, counted: bool = True) -> Iterator[sqlite3.Connection]:
        """A transaction: what is done in it is kept when it ends, on disk, or not at all.

        A write that only concerns derived files is not ``counted``: nobody misses it.
        """
        if self.read_only:
            raise StoreError(f"{self.path} was opened with read_only=True: open it without to change it")
        with self._writing, in_our_words(self.path):
            self._take_lock()
            connection = self._writer_connection()
            connection.execute("BEGIN IMMEDIATE")
            try:
                check_collections(connection)
                before, count = connection.total_changes, None
                yield connection
                if counted and connection.total_changes > before:
                    sum_up_collections(connection)
                    count = raise_count(connection)
                connection.execute("COMMIT")
            except BaseException as error:
                with suppress(sqlite3.Error):
                    connection.execute("ROLLBACK")
                if isinstance(error, UNEXPECTED):
                    self._suspect(connection, error)
                connection.close()
                self._writer = None
                raise
            if count is not None:
                self.lock.acknowledge(count)

    @contextmanager
    def may_write(self) -> Iterator[bool]:
        """Whether derived files may be written now; the lock is held meanwhile, and no longer than before."""
        with self._writing:
            held = self.lock.held
            try:
                if self.read_only:
                    yield False
                    return
                try:
                    self._take_lock()
                except StoreError:
                    yield False
                    return
                yield True
            finally:
                if not held:
                    self.lock.release()

    def unlock(self) -> None:
        """Let other processes write, until this one writes again."""
        with self._writing:
            self.lock.release()

    def close(self) -> None:
        """Close all; the last one to close moves the log into the file, and then no write can be lost."""
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
        """Where the log is empty, all that was acknowledged is in the file: an older copy may replace it."""
        if self.lock.note is None or has_log(self.path):
            return
        self.lock.take()
        if not has_log(self.path):  # nobody else has written meanwhile
            with closing(connect_for_checking(self.path)) as connection:
                check_nothing_lost(connection, self.path, self.lock.note)
            self.lock.acknowledge(None)

    def _take_lock(self) -> None:
        """Become the writer, unless the file has lost writes."""
        if self.lock.held:
            return
        connection = self._writer_connection()
        self.lock.take()
        try:
            self._check_small(connection)
            check_nothing_lost(connection, self.path, self.lock.note)
        except BaseException:
            self.lock.release()
            raise
        if not self._tidied:
            self._tidied = True
            self.tidy()

    def _check_small(self, connection: sqlite3.Connection) -> None:
        """Check how the pages of a small file fit together, once, before anything is made of them."""
        if not self._checked:
            if is_small(connection):
                check_structure(connection)
            self._checked = True

    def _suspect(self, connection: sqlite3.Connection, error: Exception) -> None:
        """Where something failed that should not, look whether the file is damaged, and say that instead.

        A file that was found to be sound once is not read again: then the error is of another kind.
        """
        if isinstance(error, (DartboardError, UnicodeError)) or self._sound:
            return
        try:
            check_file(connection)
        except (StoreError, *UNEXPECTED) as damage:
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
        """Where writing is allowed, SQLite may tidy up its log after the last reader; no more than that."""
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
