"""Find out what a file is before anything in it is changed, and make new stores whole or not at all."""

import os
import secrets
import sqlite3
from contextlib import closing, suppress
from pathlib import Path

from dartboard.errors import StoreError, StoreFormatError
from dartboard.stores.embedded.connections import connect_for_checking, has_log
from dartboard.stores.embedded.derived import flush_to_disk
from dartboard.stores.embedded.faults import DAMAGE, code_of, translated
from dartboard.stores.embedded.schema import APPLICATION_ID, FORMAT_VERSION, PAGE_BYTES, TABLES


def prepare(path: Path, *, read_only: bool) -> None:
    """See that there is a store of our format at ``path``, making it where that is allowed."""
    try:
        there = path.exists()
        empty = there and path.is_file() and path.stat().st_size == 0
    except OSError as error:
        raise StoreError(f"{path} cannot be looked at: {error.strerror or error}") from error
    if there and not path.is_file():
        raise StoreFormatError(f"{path} is no file: give the path of a file, e.g. {path / 'index.dartboard'}")
    if there and not empty:
        return _check(path)
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
    """Refuse what is no store, or not one that this version reads; nothing is written."""
    try:
        with closing(connect_for_checking(path)) as connection:
            stamp = connection.execute("PRAGMA application_id").fetchone()[0]
            version = connection.execute("PRAGMA user_version").fetchone()[0]
            pages = connection.execute("PRAGMA page_count").fetchone()[0]
            page_bytes = connection.execute("PRAGMA page_size").fetchone()[0]
    except (sqlite3.Error, UnicodeDecodeError) as error:
        if isinstance(error, UnicodeDecodeError) or code_of(error) & 0xFF in DAMAGE:
            raise StoreFormatError(
                f"{path} is no dartboard store, or is damaged ({error}): give another path, or restore it"
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
            f"{path} is cut off: {path.stat().st_size} of {pages * page_bytes} bytes are there. "
            "Restore it from a snapshot or a backup, or index again"
        )


def _create(path: Path) -> None:
    """A new store appears under its name only when it is whole; one that appeared meanwhile is left."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f"{path.name}.new-{secrets.token_hex(6)}")
    try:
        with closing(sqlite3.connect(draft, isolation_level=None)) as connection:
            connection.execute(f"PRAGMA page_size = {PAGE_BYTES}")
            connection.executescript(
                f"BEGIN; {TABLES} PRAGMA application_id = {APPLICATION_ID}; "
                f"PRAGMA user_version = {FORMAT_VERSION}; COMMIT;"
            )
            connection.execute("PRAGMA journal_mode = WAL")
        if path.exists():  # empty, as a temporary file is
            draft.replace(path)
            return
        with suppress(FileExistsError):
            _publish(draft, path)
    finally:
        for suffix in ("", "-wal", "-shm", "-journal"):
            draft.with_name(draft.name + suffix).unlink(missing_ok=True)


def _publish(draft: Path, path: Path) -> None:
    """Give the file its name unless that is taken; where files cannot have two names, it is moved."""
    try:
        os.link(draft, path)
    except FileExistsError:
        raise
    except OSError:
        draft.rename(path)
    flush_to_disk(path.parent)
