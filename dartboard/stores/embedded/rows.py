"""Records to rows of the tables and back."""

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from dartboard.errors import StoreFormatError
from dartboard.stores.embedded.filter_sql import filter_sql
from dartboard.stores.embedded.schema import ROW_TABLES
from dartboard.stores.embedded.sums import (
    check_bytes,
    check_words,
    damaged,
    has_sums,
    make_room,
    sum_of_bytes,
    sum_of_words,
)
from dartboard.stores.filters import Filter
from dartboard.stores.records import Record, SparseVector
from dartboard.types import FloatArray

Rows = npt.NDArray[np.int64]
_GONE_KEPT = 10_000
_JOINED = "FROM records JOIN contents USING (row)"
_LISTED = "(SELECT value FROM json_each(:listed))"


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
        connection.execute(f"DELETE FROM {table} WHERE row IN {_LISTED}", listed)  # noqa: S608 - our names
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
            f"SELECT id, row FROM records WHERE collection = :collection AND id IN {_LISTED}",  # noqa: S608
            {"collection": collection, "listed": json.dumps(ids)},
        )
    )


def rows_that_match(connection: sqlite3.Connection, collection: int, where: Filter) -> Rows:
    """The rows whose metadata match, rising."""
    condition, parameters = filter_sql(where)
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
            f"SELECT row, id FROM records WHERE row IN {_LISTED}",  # noqa: S608
            {"listed": json.dumps(rows)},
        )
    )


def read_records(
    connection: sqlite3.Connection, collection: int, ids: Sequence[str], blobs: Sequence[str]
) -> dict[str, Record]:
    """The records that exist, without further vectors, and with the bytes that are named."""
    found = _checked(
        connection,
        f"{_JOINED} WHERE collection = :collection AND id IN {_LISTED}",
        {"collection": collection, "listed": json.dumps(ids)},
    )
    data = _further(connection, "blobs", [row for row, *_ in found], blobs) if blobs else {}
    embeddings = _matrix([embedding for *_, embedding in found])
    return {
        id: _trusted(id, text, vector, _parsed(id, metadata), blobs=dict(data.get(row, ())))
        for (row, id, metadata, text, _), vector in zip(found, embeddings, strict=True)
    }


def read_batches(
    connection: sqlite3.Connection, collection: int, where: Filter | None, size: int
) -> Iterator[list[Record]]:
    """Whole records by rising id, in batches."""
    condition, parameters = ("1", {}) if where is None else filter_sql(where)
    query = (
        f"{_JOINED} WHERE collection = :collection AND id > :after AND {condition} ORDER BY id LIMIT :size"
    )
    after = ""
    while found := _checked(
        connection, query, {"collection": collection, "after": after, "size": size, **parameters}
    ):
        yield _whole(connection, found)
        if found[-1][1] <= after:
            raise damaged("the order of ids")
        after = found[-1][1]


def _checked(connection: sqlite3.Connection, rest: str, parameters: Mapping[str, Any]) -> list[Any]:
    """Row, id, metadata, text and embedding of records that are as they were written."""
    sums = "sum, vector_sum" if has_sums(connection) else "NULL, NULL"
    query = f"SELECT row, id, metadata, text, embedding, {sums} {rest}"
    found = connection.execute(query, parameters).fetchall()
    for row, id, metadata, text, embedding, words, vector in found:
        check_words(row, id, metadata, text, words)
        check_bytes(f"the embedding of chunk {id!r}", row, (embedding,), vector)
    return [fields[:5] for fields in found]


def _whole(connection: sqlite3.Connection, found: list[Any]) -> list[Record]:
    rows = [row for row, *_ in found]
    vectors, sparse, blobs = (_further(connection, table, rows) for table in ("vectors", "sparse", "blobs"))
    embeddings = _matrix([embedding for *_, embedding in found])
    return [
        _trusted(
            id,
            text,
            vector,
            _parsed(id, metadata),
            vectors={name: _floats(data) for name, data in vectors.get(row, ())},
            sparse={
                name: SparseVector(np.frombuffer(terms, "<i4"), _floats(weights))
                for name, terms, weights in sparse.get(row, ())
            },
            blobs=dict(blobs.get(row, ())),
        )
        for (row, id, metadata, text, _), vector in zip(found, embeddings, strict=True)
    ]


def _further(
    connection: sqlite3.Connection, table: str, rows: Sequence[int], names: Sequence[str] | None = None
) -> dict[int, list[Any]]:
    """What a table of named fields holds for the rows: of each row its tuples without the row."""
    condition, parameters = "1", {"listed": json.dumps(rows)}
    if names is not None:
        condition = "name IN (SELECT value FROM json_each(:names))"
        parameters["names"] = json.dumps(list(names))
    found: dict[int, list[Any]] = {}
    query = f"SELECT * FROM {table} WHERE row IN {_LISTED} AND {condition}"  # noqa: S608 - our names
    summed = has_sums(connection)
    for row, *fields in connection.execute(query, parameters):
        if summed:
            _check_further(row, *fields)
            fields.pop()
        found.setdefault(row, []).append(fields)
    return found


def _check_further(row: int, name: str, *parts: Any) -> None:
    check_bytes(f"field {name!r}", row, (str(name).encode(), *parts[:-1]), parts[-1])


def stream_vectors(
    connection: sqlite3.Connection,
    collection: int,
    field: str | None,
    dimension: int,
    *,
    after: int = 0,
    block: int = 4096,
) -> Iterator[tuple[Rows, FloatArray]]:
    """Rows beyond ``after``, rising, and their vectors, ``(m, d)`` float32, block by block."""
    own = field is None
    stored = ("vector_sum" if own else "sum") if has_sums(connection) else "NULL"
    cursor = connection.execute(
        f"SELECT row, {'embedding' if own else 'data'}, {stored} "  # noqa: S608 - our names
        f"FROM records JOIN {'contents' if own else 'vectors'} USING (row) "
        f"WHERE collection = :collection AND row > :after {'' if own else 'AND field = :field '}ORDER BY row",
        {"collection": collection, "after": after, "field": field},
    )
    before = () if field is None else (field.encode(),)
    while found := cursor.fetchmany(block):
        for row, data, kept in found:
            check_bytes("a vector", row, (*before, data), kept)
        joined = b"".join(data for _, data, _ in found)
        if len(joined) != 4 * dimension * len(found):
            raise StoreFormatError(
                f"vectors of a length other than {dimension} are stored: the file is damaged"
            )
        matrix = np.frombuffer(joined, "<f4").reshape(len(found), dimension)
        yield np.fromiter((row for row, *_ in found), np.int64, len(found)), matrix


def stream_ids(connection: sqlite3.Connection, collection: int) -> Iterator[str]:
    """The ids by rising row."""
    for (id,) in connection.execute(
        "SELECT id FROM records WHERE collection = ? ORDER BY row", (collection,)
    ):
        yield id


def stream_texts(connection: sqlite3.Connection, collection: int) -> Iterator[tuple[int, str]]:
    """Rows and texts by rising id."""
    stored = "sum" if has_sums(connection) else "NULL"
    found = connection.execute(
        f"SELECT row, id, metadata, text, {stored} {_JOINED} WHERE collection = ? ORDER BY id",
        (collection,),
    )
    for row, id, metadata, text, words in found:
        check_words(row, id, metadata, text, words)
        yield row, text


def stream_sparse(
    connection: sqlite3.Connection, collection: int, field: str
) -> Iterator[tuple[int, npt.NDArray[np.int32], npt.NDArray[np.float32]]]:
    """Rows, terms and weights by rising id."""
    stored = "sum" if has_sums(connection) else "NULL"
    found = connection.execute(
        f"SELECT row, terms, weights, {stored} FROM records JOIN sparse USING (row) "  # noqa: S608
        "WHERE collection = ? AND field = ? ORDER BY id",
        (collection, field),
    )
    for row, terms, weights, kept in found:
        _check_further(row, field, terms, weights, kept)
        yield row, np.frombuffer(terms, "<i4"), np.frombuffer(weights, "<f4")


def _parsed(id: str, metadata: str) -> dict[str, Any]:
    try:
        parsed: dict[str, Any] = json.loads(metadata)
    except (TypeError, ValueError) as error:  # where no checksum told before
        raise damaged(f"what is known of chunk {id!r}") from error
    return parsed


def _matrix(packed: list[bytes]) -> FloatArray:
    """Vectors one below the other; those of a damaged file are refused."""
    lengths = set(map(len, packed))
    if not lengths:
        return np.zeros((0, 0), np.float32)
    if len(lengths) == 1 and lengths.pop() % 4 == 0:
        joined = np.frombuffer(b"".join(packed), "<f4").astype(np.float32)
        if np.isfinite(joined).all():
            return joined.reshape(len(packed), -1)
    raise StoreFormatError("a stored vector is damaged: restore the file from a snapshot or a backup")


def _trusted(
    id: str,
    text: str,
    embedding: FloatArray,
    metadata: dict[str, Any],
    *,
    vectors: Mapping[str, FloatArray] | None = None,
    sparse: Mapping[str, SparseVector] | None = None,
    blobs: Mapping[str, bytes] | None = None,
) -> Record:
    """A record that was checked when it came in; checking it again would take most of the reading time."""
    record = Record.__new__(Record)
    record.id, record.text, record.embedding, record.metadata = id, text, embedding, metadata
    record.vectors, record.sparse, record.blobs = vectors or {}, sparse or {}, blobs or {}
    return record


def _packed(values: FloatArray) -> bytes:
    return values.astype("<f4", copy=False).tobytes()


def _floats(data: bytes) -> FloatArray:
    return np.frombuffer(data, "<f4").astype(np.float32)


def _json(metadata: dict[str, Any]) -> str:
    return json.dumps(metadata, ensure_ascii=False, separators=(",", ":"))
