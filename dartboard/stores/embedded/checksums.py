"""Checksums of everything in the file, so that damage raises an error instead of a wrong answer.

    checksum = crc32(row · stored data)

A record has one checksum over id, metadata and text, and one over its embedding. Each further vector, sparse
vector and blob has one, and each collection has one over its manifest and counts. CRC-32 detects every single
flipped bit and every burst of up to 32 bits; it misses other damage once in 4 · 10⁹ cases. It does not
protect against deliberate changes, because anybody can compute it. Files of format 1 have no checksums, and
files of format 2 have none for collections; data without a checksum is not checked. (SQLite's page checksums,
``cksumvfs``, need a loadable extension.)

Checksums detect a changed record. They do not detect a record that cannot be reached because pages were
swapped or lost: a lookup then finds nothing, as if nothing had been written. SQLite's ``integrity_check``
detects that and takes 2 ms per MB. So files up to :data:`SMALL_BYTES` are checked on first use. Larger files
are checked whenever a whole table is read: for an index, a list of all records, a snapshot or ``dartboard
doctor``.
"""

import json
import sqlite3
from collections.abc import Iterable
from functools import lru_cache
from typing import Any
from zlib import crc32

from dartboard.errors import StoreFormatError

SMALL_BYTES = 16 * 1024 * 1024

RESTORE = (
    "restore it from a snapshot or a backup (before a backup is copied over the file, remove the old log: "
    "the files of the same name with -wal and -shm at the end)"
)
"""What to do about a damaged file; part of error messages."""


def damaged(what: str) -> StoreFormatError:
    """The error for a damaged part of the file."""
    return StoreFormatError(
        f"{what} is damaged: the file does not hold what was written to it. dartboard doctor checks the "
        f"whole file; {RESTORE}, or move it away and index again"
    )


def text_checksum(row: int, id: str, metadata: str, text: str) -> int:
    """Checksum of a record's id, metadata and text."""
    return crc32(f"{row}\x00{id}\x00{metadata}\x00{text}".encode())


def bytes_checksum(row: int, *parts: bytes) -> int:
    """Checksum of an embedding, or of a further field's name and parts."""
    checksum = crc32(b"%d" % row)
    for part in parts:
        checksum = crc32(part, checksum)
    return checksum


def collection_checksum(key: int, columns: Iterable[Any]) -> int:
    """Checksum of a collection's name, manifest, records, revision and floor."""
    return crc32(json.dumps([key, *columns]).encode())


def check_text(row: int, id: str, metadata: str, text: str, stored: int | None) -> None:
    """Raise if a record's content is missing or does not match its checksum; ``stored`` may be None."""
    sound = isinstance(id, str) and isinstance(metadata, str) and isinstance(text, str)
    if not sound or (stored is not None and text_checksum(row, id, metadata, text) != stored):
        raise damaged(f"chunk {id!r}")


def bytes_match(stored: int | None, row: int, *parts: Any) -> bool:
    """Whether an embedding, or a further field's name and parts, match their checksum."""
    try:
        return stored is None or bytes_checksum(row, *parts) == stored
    except TypeError:  # a flipped bit can change the stored type from bytes to a number or text
        return False


@lru_cache(maxsize=64, typed=True)
def check_collection(key: int, stored: int | None, *columns: Any) -> None:
    """Raise if a collection's name, manifest, records, revision or floor do not match their checksum.

    Every search calls this, mostly with values that were checked before: hence the cache.
    """
    sound = [type(column) for column in columns] == [str, str, int, int, int]
    if not sound or (stored is not None and collection_checksum(key, columns) != stored):
        raise damaged(f"collection {columns[0]!r}: its counts or its manifest")


def check_structure(connection: sqlite3.Connection) -> None:
    """Raise if SQLite's integrity check finds that the pages are inconsistent."""
    (said,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
    if said != "ok":
        raise StoreFormatError(
            f"the file is damaged ({' '.join(str(said).split())}): {RESTORE}, or move it away and index again"
        )


def is_small(connection: sqlite3.Connection) -> bool:
    """Whether the whole file can be checked without a noticeable delay."""
    (pages,) = connection.execute("PRAGMA page_count").fetchone()
    (page_bytes,) = connection.execute("PRAGMA page_size").fetchone()
    return bool(pages * page_bytes <= SMALL_BYTES)
