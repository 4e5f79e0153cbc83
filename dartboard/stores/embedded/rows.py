"""Records to rows of the tables, and which rows there are."""

import json
import sqlite3
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from dartboard.stores.embedded.filter_sql import ending_in_time, filter_sql
from dartboard.stores.embedded.schema import ROW_TABLES
from dartboard.stores.embedded.sums import make_room, sum_of_bytes, sum_of_words
from dartboard.stores.filters import Filter
from dartboard.stores.records import Record
from dartboard.types import FloatArray

Rows = npt.NDArray[np.int64]
_GONE_KEPT = 10_000
LISTED = "(SELECT value FROM json_each(:listed))"
"""What a parameter lists in JSON."""


def write_records(connection: sqlite3.Connection, collection: int, records: Iterable[Record]) -> None:
    """Replace or add the records; of equal ids the last one counts."""
    last = {record.id: record for record in records}
    if not last:
        return
    make_room(connection)
    replaced = list(rows_of_ids(connection, collection, list(last)).values())
    revision = raise_revision(connection, collection, len(last) - len(replaced))
    if replaced:
        remove_rows(connection, collection, revision, replaced)
    (first,) = connection.execute("SELECT next_row FROM counters").fetchone()
    connection.execute("UPDATE counters SET next_row = ?", (first + len(last),))
    numbered = [
        (row, record, _json(record.metadata)) for row, record in enumerate(last.values(), start=first)
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
                sum_of_words(row, record.id, metadata, record.text),
                sum_of_bytes(row, packed),
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
    return (row, name, *parts, sum_of_bytes(row, name.encode(), *parts))


def raise_revision(connection: sqlite3.Connection, collection: int, more: int) -> int:
    """Note that the collection changes, and by how many records; the new revision."""
    (revision,) = connection.execute(
        "UPDATE collections SET revision = revision + 1, records = records + ? WHERE key = ? "
        "RETURNING revision",
        (more, collection),
    ).fetchone()
    return int(revision)


def remove_rows(connection: sqlite3.Connection, collection: int, revision: int, rows: Sequence[int]) -> None:
    """Delete the rows everywhere, and note them as gone for the indexes; an old log is cut off."""
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


def rows_that_match(connection: sqlite3.Connection, collection: int, where: Filter) -> Rows:
    """The rows whose metadata match, rising."""
    condition, parameters = filter_sql(where)
    with ending_in_time(connection):
        found = connection.execute(
            f"SELECT row FROM records WHERE collection = :collection AND {condition} ORDER BY row",  # noqa: S608
            {"collection": collection, **parameters},
        )
        return np.fromiter((row for (row,) in found), dtype=np.int64)


def gone_since(connection: sqlite3.Connection, collection: int, revision: int) -> Rows:
    """The rows that were deleted or replaced after a revision, rising."""
    found = connection.execute(
        "SELECT row FROM gone WHERE collection = ? AND revision > ? ORDER BY row", (collection, revision)
    )
    return np.fromiter((row for (row,) in found), dtype=np.int64)


def ids_of_rows(connection: sqlite3.Connection, rows: Sequence[int]) -> dict[int, str]:
    """The id of each row that exists."""
    return dict(
        connection.execute(
            f"SELECT row, id FROM records WHERE row IN {LISTED}",  # noqa: S608
            {"listed": json.dumps(rows)},
        )
    )


def _packed(values: FloatArray) -> bytes:
    return values.astype("<f4", copy=False).tobytes()


def _json(metadata: dict[str, Any]) -> str:
    return json.dumps(metadata, ensure_ascii=False, separators=(",", ":"))
