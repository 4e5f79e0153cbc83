"""Checksums kept with what a file holds, so that damage is an error and never another answer.

    sum = crc32(row · what is said)

A record has one over its id, metadata and text and one over its embedding; each further vector, sparse vector
and blob has one, and so has each collection over its manifest and counts. CRC-32 finds every single flipped
bit and every damaged stretch of up to 32 bits, others but for one in 4 · 10⁹. It is no seal against people,
who can work it out anew. Files of format 1 carry none, those of format 2 none of collections: what has none
is read unchecked, and the first write makes room for the sums of what comes.
"""

import json
import sqlite3
from collections.abc import Iterable, Sequence
from typing import Any
from zlib import crc32

from dartboard.errors import StoreFormatError
from dartboard.stores.embedded.recovery import RESTORE
from dartboard.stores.embedded.schema import FORMAT_VERSION

_FIRST_WITH_SUMS = 2
_FIRST_WITH_ALL = 3
_COLUMNS = (
    ("contents", "sum"),
    ("contents", "vector_sum"),
    ("vectors", "sum"),
    ("sparse", "sum"),
    ("blobs", "sum"),
    ("collections", "sum"),
)

COLLECTION = "name, manifest, records, revision, floor"


def has_sums(connection: sqlite3.Connection) -> bool:
    """Whether the file, as the connection sees it, has room for checksums."""
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    return bool(version >= _FIRST_WITH_SUMS)


def make_room(connection: sqlite3.Connection) -> None:
    """Bring a file of an older format to this one, within a transaction that writes."""
    if has_collection_sums(connection):
        return
    for table, column in _COLUMNS:
        there = {name for _, name, *_ in connection.execute(f"PRAGMA table_info({table})")}
        if column not in there:
            connection.execute(f"ALTER TABLE {table} ADD COLUMN {column} INTEGER")
    connection.execute(f"PRAGMA user_version = {FORMAT_VERSION}")


def check_collections(connection: sqlite3.Connection) -> None:
    """Refuse to write where a collection is damaged: a new sum would hide it."""
    if has_collection_sums(connection):
        query = f"SELECT key, {COLLECTION}, sum FROM collections"  # noqa: S608 - our names
        for key, *said, stored in connection.execute(query).fetchall():
            check_collection(key, said, stored)


def sum_up_collections(connection: sqlite3.Connection) -> None:
    """Bring the checksums of collections up to date, at the end of a transaction that writes."""
    make_room(connection)
    query = f"SELECT key, {COLLECTION}, sum FROM collections"  # noqa: S608 - our names
    for key, *said, stored in connection.execute(query).fetchall():
        found = _sum_of_collection(key, said)
        if found != stored:
            connection.execute("UPDATE collections SET sum = ? WHERE key = ?", (found, key))


def check_collection(key: int, said: Sequence[Any], stored: int | None) -> None:
    """Refuse a collection of which the columns :data:`COLLECTION` are not those that were written."""
    name, manifest, *numbers = said
    sound = isinstance(name, str) and isinstance(manifest, str)
    sound = sound and all(isinstance(number, int) for number in numbers)
    if not sound or (stored is not None and _sum_of_collection(key, said) != stored):
        raise damaged(f"collection {name!r}: its counts or its manifest")


def _sum_of_collection(key: int, said: Iterable[Any]) -> int:
    return crc32(json.dumps([key, *said]).encode())


def has_collection_sums(connection: sqlite3.Connection) -> bool:
    """Whether the file has room for checksums of collections, too."""
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    return bool(version >= _FIRST_WITH_ALL)


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
    """Refuse a record whose words are missing, or not those that were written; no sum, no check of these."""
    if not (isinstance(id, str) and isinstance(metadata, str) and isinstance(text, str)):
        raise damaged(f"chunk {id!r}")
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
        f"it; {RESTORE}, or move it away and index again"
    )
