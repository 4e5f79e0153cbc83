"""Identify a file before it is changed, and create new stores atomically."""

import os
import re
import secrets
import sqlite3
from contextlib import closing, suppress
from pathlib import Path

from dartboard.errors import StoreError, StoreFormatError
from dartboard.stores.embedded.checksums import RESTORE
from dartboard.stores.embedded.connections import (
    connect,
    connect_for_checking,
    connect_for_reading,
    has_log,
    is_no_database,
    translated,
    translated_errors,
)
from dartboard.stores.embedded.derived_index import flush_to_disk
from dartboard.stores.embedded.tables import APPLICATION_ID, FORMAT_VERSION, PAGE_BYTES, TABLES
from dartboard.stores.embedded.writer_lock import (
    WRITES_TABLE,
    WriteCount,
    WriterLock,
    check_nothing_lost,
    lost_writes,
    stored_count,
)
from dartboard.stores.files import owned


def prepare(path: Path, *, read_only: bool) -> None:
    """Check that ``path`` is a store of a known format; create it if allowed."""
    orphan = has_log(path)  # checked first: a process that makes a store creates the file before its log
    try:
        there = path.exists()
        empty = there and path.is_file() and path.stat().st_size == 0
    except OSError as error:
        raise StoreError(f"{path} cannot be looked at: {error.strerror or error}") from error
    if there and not path.is_file():
        raise StoreFormatError(
            f"{path} is not a file: give the path of a file, e.g. {path / 'index.dartboard'}"
        )
    if there and not empty:
        return _check(path)
    if orphan:
        raise StoreError(
            f"{path} {'is empty' if there else 'is gone'}, and its log {path.name}-wal is still there: "
            "put the file back, or remove the log to start again or to put a backup in its place"
        )
    if there and not read_only and WriterLock(path).path.exists():
        raise StoreFormatError(
            f"{path} is empty, though a store was written there: {RESTORE}, or remove it to start again"
        )
    if read_only:
        raise StoreError(
            f"{path} {'is empty' if there else 'does not exist'}: index something first, or check the path"
        )
    try:
        _create(path)
    except OSError as error:
        raise StoreError(f"no store can be made at {path}: {error.strerror or error}") from error
    except sqlite3.Error as error:
        raise translated(error, path) from error
    return _check(path)


def _check(path: Path) -> None:
    """Raise if the file is not a store, has an unknown format or has lost writes; nothing is written."""
    noted = WriterLock(path).note
    try:
        with closing(connect_for_checking(path)) as connection:
            names = ("application_id", "user_version", "page_count", "page_size")
            values = [connection.execute(f"PRAGMA {name}").fetchone()[0] for name in names]
            stamp, version, pages, page_bytes = values
    except (sqlite3.Error, UnicodeDecodeError) as error:
        if is_no_database(error):
            raise StoreFormatError(
                f"{path} is not a dartboard store, or is damaged ({error}): give another path, or {RESTORE}"
            ) from error
        raise translated(error, path) from error
    if stamp != APPLICATION_ID:
        raise StoreFormatError(f"{path} is a database of another program: give the store a path of its own")
    if version > FORMAT_VERSION:
        raise StoreFormatError(
            f"{path} was made by a newer dartboard (format {version}, this one reads {FORMAT_VERSION}): "
            "upgrade dartboard"
        )
    if version < 1:
        raise StoreFormatError(f"{path} has the unknown format {version}")
    if not has_log(path) and path.stat().st_size < pages * page_bytes:
        raise StoreFormatError(
            f"{path} is cut off: {path.stat().st_size} of {pages * page_bytes} bytes are there: "
            f"{RESTORE}, or move it away and index again"
        )
    _check_same_store(path)
    _check_log(path, noted)


def _check_same_store(path: Path) -> None:
    """Reject a file beside the log of another store: SQLite would mix both and keep the result."""
    if not has_log(path):
        return
    try:
        with closing(connect(path, "ro&immutable=1")) as connection:  # reads the file without its log
            alone = stored_count(connection).store
        with closing(connect_for_reading(path)) as connection:
            together = stored_count(connection).store
    except (sqlite3.Error, StoreFormatError):
        return  # a checkpoint is running, or the file is damaged, which reading detects
    if alone and together and alone != together:
        raise StoreFormatError(
            f"{path} and its log {path.name}-wal are of two stores: a backup or another index was put in the "
            f"place of a file that was not closed. Remove {path.name}-wal and {path.name}-shm to continue "
            "with this file, or put the former file back"
        )


def _check_log(path: Path, noted: WriteCount | None) -> None:
    """Reject a file whose log has lost writes. Checking leaves the log unchanged."""
    if noted is None:
        return
    with translated_errors(path):
        with closing(connect_for_checking(path)) as connection:
            if not lost_writes(connection, noted):
                return
        with closing(connect_for_reading(path)) as connection:  # a log that was just started does no harm
            check_nothing_lost(connection, path, noted)


def accept_loss(path: Path) -> int:
    """Continue with a file that has lost writes together with its log.

    Args:
        path: The store's file.

    Returns:
        How many acknowledged writes are given up; 0 if none are lost.

    Raises:
        StoreLockedError: another process is writing to the store.
    """
    lock = WriterLock(path)
    lock.take()
    try:
        _check_same_store(path)
        with translated_errors(path), closing(connect(path, "rw")) as connection:
            lost = lost_writes(connection, lock.note)
        if lost:
            lock.acknowledge(None)
        return lost
    finally:
        lock.release()


def _create(path: Path) -> None:
    """Create a store that gets its name only when it is complete; an existing one is kept."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f"{path.name}.new-{secrets.token_hex(6)}")
    with owned(draft):
        with closing(sqlite3.connect(draft, isolation_level=None)) as connection:
            connection.execute(f"PRAGMA page_size = {PAGE_BYTES}")
            connection.executescript(
                f"BEGIN; {TABLES} {WRITES_TABLE} PRAGMA application_id = {APPLICATION_ID}; "
                f"PRAGMA user_version = {FORMAT_VERSION}; COMMIT;"
            )
            connection.execute("PRAGMA journal_mode = WAL")
        if path.exists():  # an empty file, such as a temporary file
            draft.replace(path)
            return
        with suppress(FileExistsError):
            _publish(draft, path)


def unfinished(path: Path) -> re.Pattern[str]:
    """Pattern of the temporary names of a new store at ``path``."""
    return re.compile(re.escape(path.name) + r"\.new-[0-9a-f]{12}")


def _publish(draft: Path, path: Path) -> None:
    """Link the file under its name unless that exists; move it on file systems without hard links."""
    try:
        os.link(draft, path)
    except FileExistsError:
        raise
    except OSError:
        draft.rename(path)
    flush_to_disk(path.parent)
