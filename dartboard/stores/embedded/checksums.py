"""Checksums kept with what a file holds, so that damage is an error and never another answer.

    checksum = crc32(row · what is stored)

A record has one over its id, metadata and text and one over its embedding; each further vector, sparse vector
and blob has one, and so has each collection over its manifest and counts. CRC-32 finds every single flipped
bit and every damaged stretch of up to 32 bits, others but for one in 4 · 10⁹. It is no seal against people,
who can compute it anew. Files of format 1 carry none, those of format 2 none of collections: what has none
is read unchecked. (SQLite's own checksums of pages, ``cksumvfs``, are an extension that has to be loaded.)

Checksums find a record that was changed. They do not find one that is out of reach because pages were
exchanged or lost: a lookup then finds nothing, as if nothing had been written. SQLite's ``integrity_check``
does, and takes 2 ms for each MB. So files up to :data:`SMALL_BYTES` are checked when they are first used,
larger ones whenever all of a table is read: for an index, a list of all records, a snapshot, ``dartboard
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
"""What to do about a damaged file, for error messages."""


def damaged(what: str) -> StoreFormatError:
    """The error for a part of the file that is not as it was written."""
    return StoreFormatError(
        f"{what} is damaged: the file does not hold what was written to it. dartboard doctor looks at all of "
        f"it; {RESTORE}, or move it away and index again"
    )


def text_checksum(row: int, id: str, metadata: str, text: str) -> int:
    """Of a record's id, metadata and text."""
    return crc32(f"{row}\x00{id}\x00{metadata}\x00{text}".encode())


def bytes_checksum(row: int, *parts: bytes) -> int:
    """Of an embedding, or of a further field's name and its parts."""
    checksum = crc32(b"%d" % row)
    for part in parts:
        checksum = crc32(part, checksum)
    return checksum


def collection_checksum(key: int, columns: Iterable[Any]) -> int:
    """Of a collection's name, manifest, records, revision and floor."""
    return crc32(json.dumps([key, *columns]).encode())


def check_text(row: int, id: str, metadata: str, text: str, stored: int | None) -> None:
    """Refuse a record whose words are missing or not those that were written; ``stored`` may be missing."""
    sound = isinstance(id, str) and isinstance(metadata, str) and isinstance(text, str)
    if not sound or (stored is not None and text_checksum(row, id, metadata, text) != stored):
        raise damaged(f"chunk {id!r}")


def bytes_match(stored: int | None, row: int, *parts: Any) -> bool:
    """Whether an embedding, or a further field's name and parts, are those that were written."""
    try:
        return stored is None or bytes_checksum(row, *parts) == stored
    except TypeError:  # a flipped bit can make numbers or text of bytes
        return False


@lru_cache(maxsize=64, typed=True)
def check_collection(key: int, stored: int | None, *columns: Any) -> None:
    """The same of a collection's name, manifest, records, revision and floor.

    Every search asks, mostly about values that were checked before: hence the cache.
    """
    sound = [type(column) for column in columns] == [str, str, int, int, int]
    if not sound or (stored is not None and collection_checksum(key, columns) != stored):
        raise damaged(f"collection {columns[0]!r}: its counts or its manifest")


def check_structure(connection: sqlite3.Connection) -> None:
    """Refuse a file whose pages do not fit together, as the connection sees it."""
    (said,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
    if said != "ok":
        raise StoreFormatError(
            f"the file is damaged ({' '.join(str(said).split())}): {RESTORE}, or move it away and index again"
        )


def is_small(connection: sqlite3.Connection) -> bool:
    """Whether all of the file can be checked without anybody having to wait for it."""
    (pages,) = connection.execute("PRAGMA page_count").fetchone()
    (page_bytes,) = connection.execute("PRAGMA page_size").fetchone()
    return bool(pages * page_bytes <= SMALL_BYTES)
