"""The tables of a store's file, and how records are written.

A record's ``row`` number is never reused: replacing a record gives it a new row. So the rows that an index
has not seen yet are those after its last one. Rows to remove from it are listed in ``gone`` with a
``revision``, which every write to a collection increases. ``gone`` is complete since the revision ``floor``;
older indexes are rebuilt. ``derived`` lists the valid files beside the store with their checksums. ``writes``
counts the acknowledged writes (:mod:`dartboard.stores.embedded.writer_lock`); files of earlier releases get
it with their next write.

Metadata are stored apart from texts and vectors, so that a filter reads little. The columns ``sum`` hold
checksums (:mod:`dartboard.stores.embedded.checksums`). Files of format 1 have none, and files of format 2
have none for collections. The first write to an older file adds the columns.
"""

import json
import sqlite3
from collections.abc import Iterable, Sequence
from typing import Any

from dartboard.stores.embedded.checksums import (
    bytes_checksum,
    check_collection,
    collection_checksum,
    text_checksum,
)
from dartboard.stores.manifest import Manifest, manifest_to_json
from dartboard.stores.records import Record
from dartboard.types import FloatArray

APPLICATION_ID = 0x44425354  # "DBST"
FORMAT_VERSION = 3
_RECORDS_SUMMED_FROM = 2
"""The first format with checksums of records."""
_GONE_KEPT = 10_000
PAGE_BYTES = 16384

TABLES = """
CREATE TABLE counters (next_row INTEGER NOT NULL);
INSERT INTO counters VALUES (1);
CREATE TABLE collections (
    key INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL UNIQUE,
    manifest TEXT NOT NULL,
    records INTEGER NOT NULL,
    revision INTEGER NOT NULL,
    floor INTEGER NOT NULL,
    sum INTEGER
);
CREATE TABLE records (
    row INTEGER PRIMARY KEY,
    collection INTEGER NOT NULL,
    id TEXT NOT NULL,
    metadata TEXT NOT NULL,
    UNIQUE (collection, id)
);
CREATE INDEX records_of_collection ON records (collection);
CREATE TABLE contents (
    row INTEGER PRIMARY KEY, embedding BLOB NOT NULL, text TEXT NOT NULL, sum INTEGER, vector_sum INTEGER
);
CREATE TABLE vectors (
    row INTEGER, field TEXT, data BLOB NOT NULL, sum INTEGER, PRIMARY KEY (row, field)
) WITHOUT ROWID;
CREATE TABLE sparse (
    row INTEGER, field TEXT, terms BLOB NOT NULL, weights BLOB NOT NULL, sum INTEGER, PRIMARY KEY (row, field)
) WITHOUT ROWID;
CREATE TABLE blobs (
    row INTEGER, name TEXT, data BLOB NOT NULL, sum INTEGER, PRIMARY KEY (row, name)
) WITHOUT ROWID;
CREATE TABLE gone (
    collection INTEGER, revision INTEGER, row INTEGER, PRIMARY KEY (collection, revision, row)
) WITHOUT ROWID;
CREATE TABLE derived (
    collection INTEGER, kind TEXT, folder TEXT NOT NULL, revision INTEGER NOT NULL, stamp TEXT NOT NULL,
    PRIMARY KEY (collection, kind)
) WITHOUT ROWID;
"""
ROW_TABLES = ("records", "contents", "vectors", "sparse", "blobs")
LISTED = "(SELECT value FROM json_each(:listed))"
"""The values of the parameter ``listed``, a JSON list."""
_SUMMED = ("vectors", "sparse", "blobs", "collections")
_COLLECTIONS = "SELECT key, name, manifest, records, revision, floor, sum FROM collections"


def checksum_columns(connection: sqlite3.Connection) -> tuple[bool, bool]:
    """Whether the file has checksums of records, and of collections."""
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    return version >= _RECORDS_SUMMED_FROM, version >= FORMAT_VERSION


def upgrade(connection: sqlite3.Connection) -> None:
    """Upgrade a file of an older format, within a write transaction."""
    if all(checksum_columns(connection)):
        return
    added = ("contents", "sum"), ("contents", "vector_sum"), *((table, "sum") for table in _SUMMED)
    for table, column in added:
        there = {name for _, name, *_ in connection.execute(f"PRAGMA table_info({table})")}
        if column not in there:
            connection.execute(f"ALTER TABLE {table} ADD COLUMN {column} INTEGER")
    connection.execute(f"PRAGMA user_version = {FORMAT_VERSION}")


def check_collections(connection: sqlite3.Connection) -> None:
    """Raise if a collection is damaged: a new checksum would hide the damage."""
    if all(checksum_columns(connection)):
        for key, *columns, stored in connection.execute(_COLLECTIONS).fetchall():
            check_collection(key, stored, *columns)


def update_collection_checksums(connection: sqlite3.Connection) -> None:
    """Call this at the end of a write transaction."""
    upgrade(connection)
    for key, *columns, stored in connection.execute(_COLLECTIONS).fetchall():
        checksum = collection_checksum(key, columns)
        if checksum != stored:
            connection.execute("UPDATE collections SET sum = ? WHERE key = ?", (checksum, key))


def write_records(connection: sqlite3.Connection, collection: int, records: Iterable[Record]) -> None:
    """Add or replace the records; the last of several records with one id wins."""
    last = {record.id: record for record in records}
    if not last:
        return
    upgrade(connection)
    replaced = list(rows_of_ids(connection, collection, list(last)).values())
    revision = raise_revision(connection, collection, len(last) - len(replaced))
    if replaced:
        remove_rows(connection, collection, revision, replaced)
    (first,) = connection.execute("SELECT next_row FROM counters").fetchone()
    connection.execute("UPDATE counters SET next_row = ?", (first + len(last),))
    numbered = [
        (row, record, json.dumps(record.metadata, ensure_ascii=False, separators=(",", ":")))
        for row, record in enumerate(last.values(), start=first)
    ]
    connection.executemany(
        "INSERT INTO records VALUES (?, ?, ?, ?)",
        ((row, collection, record.id, metadata) for row, record, metadata in numbered),
    )
    connection.executemany(
        "INSERT INTO contents (row, embedding, text, sum, vector_sum) VALUES (?, ?, ?, ?, ?)",
        (
            (
                row,
                packed := _packed(record.embedding),
                record.text,
                text_checksum(row, record.id, metadata, record.text),
                bytes_checksum(row, packed),
            )
            for row, record, metadata in numbered
        ),
    )
    connection.executemany(
        "INSERT INTO vectors (row, field, data, sum) VALUES (?, ?, ?, ?)",
        (
            _summed(row, name, _packed(vector))
            for row, record, _ in numbered
            for name, vector in record.vectors.items()
        ),
    )
    connection.executemany(
        "INSERT INTO sparse (row, field, terms, weights, sum) VALUES (?, ?, ?, ?, ?)",
        (
            _summed(row, name, vector.terms.astype("<i4").tobytes(), _packed(vector.weights))
            for row, record, _ in numbered
            for name, vector in record.sparse.items()
        ),
    )
    connection.executemany(
        "INSERT INTO blobs (row, name, data, sum) VALUES (?, ?, ?, ?)",
        (
            _summed(row, name, bytes(data))
            for row, record, _ in numbered
            for name, data in record.blobs.items()
        ),
    )


def _summed(row: int, name: str, *parts: bytes) -> tuple[Any, ...]:
    return (row, name, *parts, bytes_checksum(row, name.encode(), *parts))


def raise_revision(connection: sqlite3.Connection, collection: int, more: int) -> int:
    """Increase the collection's revision, and its record count by ``more``; returns the new revision."""
    (revision,) = connection.execute(
        "UPDATE collections SET revision = revision + 1, records = records + ? WHERE key = ? "
        "RETURNING revision",
        (more, collection),
    ).fetchone()
    return int(revision)


def remove_rows(connection: sqlite3.Connection, collection: int, revision: int, rows: Sequence[int]) -> None:
    """Delete the rows from all tables, and record them for the indexes; a long record is truncated."""
    listed = {"listed": json.dumps(list(rows))}
    for table in ROW_TABLES:
        connection.execute(f"DELETE FROM {table} WHERE row IN {LISTED}", listed)  # noqa: S608 - our names
    connection.executemany("INSERT INTO gone VALUES (?, ?, ?)", ((collection, revision, row) for row in rows))
    (noted,) = connection.execute("SELECT count(*) FROM gone WHERE collection = ?", (collection,)).fetchone()
    (left,) = connection.execute("SELECT records FROM collections WHERE key = ?", (collection,)).fetchone()
    if noted > max(_GONE_KEPT, left):
        connection.execute("DELETE FROM gone WHERE collection = ?", (collection,))
        connection.execute("UPDATE collections SET floor = revision WHERE key = ?", (collection,))


def rows_of_ids(connection: sqlite3.Connection, collection: int, ids: Sequence[str]) -> dict[str, int]:
    """The row of each id that exists."""
    return dict(
        connection.execute(
            f"SELECT id, row FROM records WHERE collection = :collection AND id IN {LISTED}",  # noqa: S608
            {"collection": collection, "listed": json.dumps(ids)},
        )
    )


def manifest_text(manifest: Manifest) -> str:
    """A manifest as stored JSON text."""
    return json.dumps(manifest_to_json(manifest), ensure_ascii=False)


def _packed(values: FloatArray) -> bytes:
    return values.astype("<f4", copy=False).tobytes()
