"""Read, replace and delete records as rows within a transaction, in PostgreSQL's binary formats.

Each write is one transaction, all or none, and writers may run in parallel. It deletes the existing rows and
copies the new ones in, both in order of id, so two writers never deadlock. If another writer adds one of the
same ids in between, PostgreSQL rejects the copy. The batch then waits for an exclusive lock and retries;
normal writes hold that lock shared.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from pgvector import SparseVector as Sparsevec
from psycopg import errors
from psycopg.types.json import Jsonb

from dartboard.stores.filters import Filter
from dartboard.stores.postgres.filter_sql import condition, to_json
from dartboard.stores.postgres.schema import SPARSE_DIMENSION, Table, lock_key
from dartboard.stores.records import Record, SparseVector

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


def read(connection: Any, table: Table, ids: Sequence[str], blobs: Sequence[str]) -> list[Record]:
    """The records that exist, in the order of ``ids``, with the named blobs and no further vectors."""
    query = table.statement(
        "SELECT {columns} FROM {records} WHERE id = ANY(%s)", columns=", ".join(list(table.columns)[:_PLAIN])
    )
    found = {row[0]: row for row in connection.execute(query, (list(ids),), binary=True)}
    kept = read_blobs(connection, table, ids, list(blobs)) if blobs else {}
    return [from_row(found[id], table, kept.get(id)) for id in ids if id in found]


def read_page(connection: Any, table: Table, where: Filter | None, after: str, limit: int) -> list[Record]:
    """The next whole records, sorted by id."""
    matching, parameters = condition(where)
    query = table.statement(
        "SELECT {columns} FROM {records} WHERE id > %(after)s AND {matching} ORDER BY id LIMIT %(limit)s",
        columns=", ".join(table.columns),
        matching=matching,
    )
    rows = connection.execute(query, {**parameters, "after": after, "limit": limit}, binary=True).fetchall()
    blobs = read_blobs(connection, table, [row[0] for row in rows], None)
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


def read_blobs(
    connection: Any, table: Table, ids: Sequence[str], names: list[str] | None
) -> dict[str, dict[str, bytes]]:
    """The blobs of these records by id and name: the named ones, or all."""
    query = table.statement(
        "SELECT id, name, data FROM {blobs} "
        "WHERE id = ANY(%s) AND (%s::text[] IS NULL OR name = ANY(%s::text[]))"
    )
    found: dict[str, dict[str, bytes]] = {}
    for id, name, data in connection.execute(query, (list(ids), names, names), binary=True):
        found.setdefault(id, {})[name] = bytes(data)
    return found
