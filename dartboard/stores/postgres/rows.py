"""Read, replace and delete records as rows within a transaction, in PostgreSQL's binary formats.

Each write is one transaction, all or none, and writers may run in parallel. It deletes the existing rows and
copies the new ones in, both in order of id, so two writers never deadlock. If another writer adds one of the
same ids in between, PostgreSQL rejects the copy. The batch then waits for an exclusive lock and retries;
normal writes hold that lock shared.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from pgvector import SparseVector as Sparsevec
from psycopg import errors
from psycopg.types.json import Jsonb

from dartboard.errors import InvalidInputError
from dartboard.stores.filters import Filter
from dartboard.stores.postgres.filter_sql import condition, to_json
from dartboard.stores.postgres.schema import SPARSE_DIMENSION, Table, lock_key
from dartboard.stores.records import Record, SparseVector
from dartboard.types import FloatArray

LONGEST_ID = 2_600
"""The longest id in bytes that always fits into PostgreSQL's index."""
MOST_TERMS = 16_000
"""pgvector's limit for the terms of one sparse vector."""
_LENGTHS = (1e-15, 1e15)
"""pgvector multiplies in float32; squares of longer or shorter vectors would overflow or underflow."""
_PLAIN = 4
"""Columns of every read: id, text, metadata, embedding."""


def to_row(record: Record, table: Table) -> tuple[Any, ...]:
    """The record's values for :attr:`Table.columns`."""
    sparse = [record.sparse.get(name) for name in table.sparse]
    return (
        record.id,
        record.text,
        Jsonb(record.metadata, dumps=to_json),
        record.embedding,
        *(record.vectors.get(name) for name in table.vectors),
        *(None if vector is None else to_sparsevec(vector) for vector in sparse),
    )


def from_row(row: Sequence[Any], table: Table, blobs: Mapping[str, bytes] | None) -> Record:
    """The record of a row, with further vectors if the row has them."""
    id, text, metadata, embedding, *further = row
    dense, sparse = further[: len(table.vectors)], further[len(table.vectors) :]
    return Record(
        id,
        text,
        embedding.to_numpy(),
        metadata,
        vectors={
            name: vector.to_numpy()
            for name, vector in zip(table.vectors, dense, strict=False)
            if vector is not None
        },
        sparse={
            name: SparseVector.of(vector.indices(), vector.values())
            for name, vector in zip(table.sparse, sparse, strict=False)
            if vector is not None
        },
        blobs=dict(blobs or {}),
    )


def to_sparsevec(vector: SparseVector) -> Sparsevec:
    """The vector in pgvector's format."""
    return Sparsevec(dict(zip(vector.terms.tolist(), vector.weights.tolist(), strict=True)), SPARSE_DIMENSION)


def check_records(records: Iterable[Record]) -> None:
    """Raise for what pgvector or PostgreSQL's index cannot store, before anything is written."""
    for record in records:
        if len(record.id) * 4 > LONGEST_ID and len(record.id.encode("utf-8", "replace")) > LONGEST_ID:
            raise InvalidInputError(
                f"id {record.id[:60]!r}… has more than {LONGEST_ID} bytes, the maximum of PostgreSQL's index"
            )
        for vector in (record.embedding, *record.vectors.values()):
            check_length(vector, f"chunk {record.id!r}")
        for sparse in record.sparse.values():
            check_sparse(sparse, f"chunk {record.id!r}")


def check_length(vector: FloatArray, what: str) -> None:
    """Check that the vector's squares stay within float32."""
    doubled = vector.astype(np.float64)
    length = math.sqrt(doubled @ doubled)
    if not _LENGTHS[0] <= length <= _LENGTHS[1]:
        raise InvalidInputError(
            f"{what}: a vector has length {length:.3g}; pgvector computes within {_LENGTHS[0]:g} to "
            f"{_LENGTHS[1]:g}: scale it to unit length"
        )


def check_sparse(vector: SparseVector, what: str) -> None:
    """Check that the sparse vector fits pgvector's ``sparsevec``."""
    if vector.terms.size > MOST_TERMS:
        raise InvalidInputError(
            f"{what}: a sparse vector has {vector.terms.size} terms; pgvector takes {MOST_TERMS}: keep the "
            "heaviest"
        )
    if vector.terms.size and vector.terms[-1] >= SPARSE_DIMENSION:
        raise InvalidInputError(f"{what}: a sparse vector has a term beyond pgvector's {SPARSE_DIMENSION:,}")


def is_storable(text: str) -> bool:
    """Whether PostgreSQL can store the text; if not, no record can have it."""
    try:
        return b"\x00" not in text.encode()
    except UnicodeEncodeError:
        return False


def read(connection: Any, table: Table, ids: Sequence[str], blobs: Sequence[str]) -> list[Record]:
    """The records that exist, in the order of ``ids``, with the named blobs and no further vectors."""
    query = table.statement(
        "SELECT {columns} FROM {records} WHERE id = ANY(%s)", columns=", ".join(list(table.columns)[:_PLAIN])
    )
    asked = [id for id in ids if is_storable(id)]
    found = {row[0]: row for row in connection.execute(query, (asked,), binary=True)}
    names = [name for name in blobs if is_storable(name)]
    kept = _blobs(connection, table, asked, names) if blobs else {}
    return [from_row(found[id], table, kept.get(id)) for id in asked if id in found]


def read_page(connection: Any, table: Table, where: Filter | None, after: str, limit: int) -> list[Record]:
    """The next whole records, sorted by id."""
    matching, parameters = condition(where)
    query = table.statement(
        "SELECT {columns} FROM {records} WHERE id > %(after)s AND {matching} ORDER BY id LIMIT %(limit)s",
        columns=", ".join(table.columns),
        matching=matching,
    )
    rows = connection.execute(query, {**parameters, "after": after, "limit": limit}, binary=True).fetchall()
    blobs = _blobs(connection, table, [row[0] for row in rows], None)
    return [from_row(row, table, blobs.get(row[0])) for row in rows]


def read_all(connection: Any, table: Table, page: int) -> Iterator[list[Record]]:
    """All whole records sorted by id, in pages; consistent if the transaction is stable."""
    after = ""
    while records := read_page(connection, table, None, after, page):
        yield records
        after = records[-1].id


def put(connection: Any, table: Table, records: Iterable[Record]) -> None:
    """Write checked records within a transaction; the last of several records with one id wins."""
    latest = {record.id: record for record in records}
    ordered = [latest[id] for id in sorted(latest)]
    try:
        with connection.transaction():
            _lock(connection, table, "pg_advisory_xact_lock_shared")
            _replace(connection, table, ordered)
    except errors.UniqueViolation:
        _lock(connection, table, "pg_advisory_xact_lock")
        _replace(connection, table, ordered)


def delete(connection: Any, table: Table, matching: str, parameters: dict[str, Any]) -> int:
    """Delete matching rows and return how many; rows are locked in order of id first."""
    _lock(connection, table, "pg_advisory_xact_lock_shared")
    query = table.statement(
        "DELETE FROM {records} WHERE id IN "
        "(SELECT id FROM {records} WHERE {matching} ORDER BY id FOR UPDATE)",
        matching=matching,
    )
    return int(connection.execute(query, parameters).rowcount)


def _lock(connection: Any, table: Table, function: str) -> None:
    connection.execute(f"SELECT {function}(%s)", (lock_key("write", table.schema, table.number),))


def _replace(connection: Any, table: Table, ordered: Sequence[Record]) -> None:
    ids = [record.id for record in ordered]
    query = table.statement("SELECT id FROM {records} WHERE id = ANY(%s) ORDER BY id FOR UPDATE")
    there = [id for (id,) in connection.execute(query, (ids,))]
    if there:
        connection.execute(table.statement("DELETE FROM {records} WHERE id = ANY(%s)"), (there,))
    _copy(connection, table.named("records"), table.columns, (to_row(record, table) for record in ordered))
    blobs = [(record.id, name, data) for record in ordered for name, data in record.blobs.items()]
    if blobs:
        _copy(connection, table.named("blobs"), {"id": "text", "name": "text", "data": "bytea"}, blobs)


def _copy(connection: Any, target: str, types: dict[str, str], rows: Iterable[Any]) -> None:
    query = f"COPY {target} ({', '.join(types)}) FROM STDIN WITH (FORMAT binary)"
    with connection.cursor() as cursor, cursor.copy(query) as copy:
        copy.set_types(list(types.values()))
        for row in rows:
            copy.write_row(row)


def _blobs(
    connection: Any, table: Table, ids: list[str], names: list[str] | None
) -> dict[str, dict[str, bytes]]:
    """The blobs of these records by id and name: the named ones, or all."""
    query = table.statement(
        "SELECT id, name, data FROM {blobs} "
        "WHERE id = ANY(%s) AND (%s::text[] IS NULL OR name = ANY(%s::text[]))"
    )
    found: dict[str, dict[str, bytes]] = {}
    for id, name, data in connection.execute(query, (ids, names, names), binary=True):
        found.setdefault(id, {})[name] = bytes(data)
    return found
