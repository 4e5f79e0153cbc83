"""Rows of the tables to records, each checked against its checksums."""

import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from dartboard.stores.embedded.filter_sql import ending_in_time, filter_sql
from dartboard.stores.embedded.rows import LISTED, Rows
from dartboard.stores.embedded.structure import check_structure
from dartboard.stores.embedded.sums import check_bytes, check_words, damaged, has_sums
from dartboard.stores.filters import Filter
from dartboard.stores.records import Record, SparseVector
from dartboard.types import FloatArray

_JOINED = "FROM records LEFT JOIN contents USING (row)"
"""Where a record has lost its contents, that is damage, and not a record fewer."""


def read_records(
    connection: sqlite3.Connection, collection: int, ids: Sequence[str], blobs: Sequence[str]
) -> dict[str, Record]:
    """The records that exist, without further vectors, and with the bytes that are named."""
    found = _checked(
        connection,
        f"{_JOINED} WHERE collection = :collection AND id IN {LISTED}",
        {"collection": collection, "listed": json.dumps(ids)},
    )
    data = _further(connection, "blobs", [row for row, *_ in found], blobs) if blobs else {}
    embeddings = _matrix([embedding for *_, embedding in found])
    return {
        id: _trusted(id, text, vector, _parsed(id, metadata), blobs=dict(data.get(row, ())))
        for (row, id, metadata, text, _), vector in zip(found, embeddings, strict=True)
    }


def read_blobs(connection: sqlite3.Connection, rows: Sequence[int], name: str) -> dict[int, bytes]:
    """The bytes of this name, by row."""
    stored = "sum" if has_sums(connection) else "NULL"
    query = f"SELECT row, data, {stored} FROM blobs WHERE row IN {LISTED} AND name = :name"  # noqa: S608
    found = connection.execute(query, {"listed": json.dumps(rows), "name": name}).fetchall()
    what, encoded = f"field {name!r}", name.encode()
    for row, data, kept in found:
        check_bytes(what, row, (encoded, data), kept)
    return {row: data for row, data, _ in found}


def read_batches(
    connection: sqlite3.Connection, collection: int, where: Filter | None, size: int, *, of: int
) -> Iterator[list[Record]]:
    """Whole records by rising id, in batches; without a filter, ``of`` of them must be there."""
    if where is None:
        check_structure(connection)
    condition, parameters = ("1", {}) if where is None else filter_sql(where)
    query = (
        f"{_JOINED} WHERE collection = :collection AND id > :after AND {condition} ORDER BY id LIMIT :size"
    )
    after, count = "", 0
    while found := _checked(
        connection, query, {"collection": collection, "after": after, "size": size, **parameters}
    ):
        yield _whole(connection, found)
        if found[-1][1] <= after:
            raise damaged("the order of ids")
        after, count = found[-1][1], count + len(found)
    if where is None and count != of:
        raise damaged(f"the collection ({count} of {of} records can be read)")


def _checked(connection: sqlite3.Connection, rest: str, parameters: Mapping[str, Any]) -> list[Any]:
    """Row, id, metadata, text and embedding of records that are as they were written."""
    sums = "sum, vector_sum" if has_sums(connection) else "NULL, NULL"
    query = f"SELECT row, id, metadata, text, embedding, {sums} {rest}"
    with ending_in_time(connection):
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
    query = f"SELECT * FROM {table} WHERE row IN {LISTED} AND {condition}"  # noqa: S608 - our names
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
        f"FROM records {'LEFT JOIN contents' if own else 'JOIN vectors'} USING (row) "
        f"WHERE collection = :collection AND row > :after {'' if own else 'AND field = :field '}ORDER BY row",
        {"collection": collection, "after": after, "field": field},
    )
    before = () if field is None else (field.encode(),)
    while found := cursor.fetchmany(block):
        for row, data, kept in found:
            if not isinstance(data, bytes) or len(data) != 4 * dimension:
                raise damaged(f"a vector in row {row}")
            check_bytes("a vector", row, (*before, data), kept)
        joined = b"".join(data for _, data, _ in found)
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


def check_words_after(connection: sqlite3.Connection, collection: int, after: int) -> int:
    """Check ids, metadata and texts of the rows beyond ``after``; the last row that was checked."""
    stored = "sum" if has_sums(connection) else "NULL"
    found = connection.execute(
        f"SELECT row, id, metadata, text, {stored} {_JOINED} WHERE collection = ? AND row > ? ORDER BY row",
        (collection, after),
    )
    for row, id, metadata, text, words in found:
        check_words(row, id, metadata, text, words)
        after = row
    return after


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
    if not packed:
        return np.zeros((0, 0), np.float32)
    lengths = {len(data) if isinstance(data, bytes) else -1 for data in packed}
    if len(lengths) == 1 and lengths.pop() % 4 == 0:
        joined = np.frombuffer(b"".join(packed), "<f4").astype(np.float32)
        if np.isfinite(joined).all():
            return joined.reshape(len(packed), -1)
    raise damaged("a stored vector")


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


def _floats(data: bytes) -> FloatArray:
    return np.frombuffer(data, "<f4").astype(np.float32)
