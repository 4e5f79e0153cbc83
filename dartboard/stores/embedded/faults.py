"""SQLite's errors in the words of the rest of dartboard."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dartboard.errors import InvalidInputError, StoreError, StoreFormatError
from dartboard.stores.embedded.locking import locked
from dartboard.stores.embedded.recovery import RESTORE

DAMAGE = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
_FULL = frozenset({sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_WRITE, sqlite3.SQLITE_IOERR_FSYNC})

_IMPOSSIBLE = frozenset(
    {sqlite3.SQLITE_CONSTRAINT, sqlite3.SQLITE_MISMATCH, sqlite3.SQLITE_FORMAT, sqlite3.SQLITE_RANGE}
)
"""Our own statements cannot cause these in a file that is sound."""


@contextmanager
def in_our_words(path: Path) -> Iterator[None]:
    """Turn what SQLite raises into errors that say what to do."""
    try:
        yield
    except sqlite3.Error as error:
        raise translated(error, path) from error
    except UnicodeDecodeError as error:  # SQLite quotes a damaged name
        raise _damaged(path, error) from error
    except UnicodeEncodeError as error:
        raise InvalidInputError(
            f"text that is no valid Unicode (half of a surrogate pair) cannot be kept: {error}"
        ) from error


def code_of(error: sqlite3.Error) -> int:
    """SQLite's extended code, 0 where Python raised the error itself."""
    return getattr(error, "sqlite_errorcode", 0)


def translated(error: sqlite3.Error, path: Path) -> StoreError:
    """The error to raise instead."""
    code = code_of(error)
    primary = code & 0xFF
    if primary in DAMAGE or str(error).startswith("Could not decode to UTF-8"):
        return _damaged(path, error)
    if primary == sqlite3.SQLITE_FULL or code in _FULL:
        return StoreError(
            f"{path}: the disk is full or a limit on file sizes is reached ({error}). Nothing of this write "
            "was kept, what was there before still answers: make room and write again"
        )
    if primary in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return locked(path)
    if primary == sqlite3.SQLITE_READONLY:
        return StoreError(f"{path} cannot be written ({error}): open it with read_only=True")
    if primary in _IMPOSSIBLE:
        return _damaged(path, error)
    return StoreError(f"{path}: {error}")


def _damaged(path: Path, error: Exception) -> StoreFormatError:
    return StoreFormatError(f"{path} is damaged ({error}): {RESTORE}, or move it away and index again")
