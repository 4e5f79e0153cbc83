"""Checksums kept with what a file holds, so that damage is an error and never another answer.

    sum = crc32(row · what is said)

A record has one over its id, metadata and text and one over its embedding; each further vector, sparse vector
and blob has one. CRC-32 finds every single flipped bit and every damaged stretch of up to 32 bits, others but
for one in 4 · 10⁹. It is no seal against people, who can work it out anew. Files of format 1 carry none: what
they hold is read unchecked, and the first write makes room for the sums of what comes.
"""

import sqlite3
from collections.abc import Iterable
from typing import Any
from zlib import crc32

from dartboard.errors import StoreFormatError
from dartboard.stores.embedded.schema import FORMAT_VERSION

_FIRST_WITH_SUMS = 2
_ADDED = (
    "ALTER TABLE contents ADD COLUMN sum INTEGER",
    "ALTER TABLE contents ADD COLUMN vector_sum INTEGER",
    "ALTER TABLE vectors ADD COLUMN sum INTEGER",
    "ALTER TABLE sparse ADD COLUMN sum INTEGER",
    "ALTER TABLE blobs ADD COLUMN sum INTEGER",
)


def has_sums(connection: sqlite3.Connection) -> bool:
    """Whether the file, as the connection sees it, has room for checksums."""
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    return bool(version >= _FIRST_WITH_SUMS)


def make_room(connection: sqlite3.Connection) -> None:
    """Bring a file of an older format to this one, within a transaction that writes."""
    if not has_sums(connection):
        for statement in _ADDED:
            connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {FORMAT_VERSION}")


def sum_of_words(row: int, id: str, metadata: str, text: str) -> int:
    """Of a record's id, metadata and text."""
    return crc32(f"{row}\x00{id}\x00{metadata}\x00{text}".encode())


def sum_of_bytes(row: int, *parts: bytes) -> int:
    """Of an embedding, or of the parts of a further field after its name."""
    found = crc32(b"%d" % row)
    for part in parts:
        found = crc32(part, found)
    return found


def check_words(row: int, id: str, metadata: str, text: str, stored: int | None) -> None:
    """Refuse a record whose words are not those that were written; no sum, no check."""
    if stored is not None and sum_of_words(row, id, metadata, text) != stored:
        raise damaged(f"chunk {id!r}")


def check_bytes(what: str, row: int, parts: Iterable[Any], stored: int | None) -> None:
    """The same of an embedding or a further field."""
    if stored is None:
        return
    try:
        same = sum_of_bytes(row, *parts) == stored
    except TypeError:  # a flipped bit can make numbers or text of bytes
        same = False
    if not same:
        raise damaged(f"{what} in row {row}")


def damaged(what: str) -> StoreFormatError:
    """The error for a part of the file that is not as it was written."""
    return StoreFormatError(
        f"{what} is damaged: the file does not hold what was written to it. dartboard doctor looks at all of "
        "it; restore the file from a snapshot or a backup, or move it away and index again"
    )
