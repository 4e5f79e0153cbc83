"""Writes: each one transaction, all or none, by as many writers as there are.

An upsert deletes the rows that are there, locking them by rising id, and copies the new ones in, by rising
id, so two writers never wait for each other in a circle. If another writer adds one of the same ids in
between, PostgreSQL refuses the copy; the batch then waits until it is the only writer, and goes again.
Writers share a lock for that; only such a second attempt holds it alone.
"""

from collections.abc import Sequence
from typing import Any

from dartboard.stores.filters import Filter
from dartboard.stores.postgres.conditions import condition
from dartboard.stores.postgres.connections import Connections
from dartboard.stores.postgres.migrations import lock_key
from dartboard.stores.postgres.rows import check_records, column_types, columns, to_row
from dartboard.stores.postgres.tables import Table
from dartboard.stores.records import Record


def upsert(connections: Connections, table: Table, records: Sequence[Record]) -> None:
    """Keep the records; of equal ids the last."""
    ordered = sorted({record.id: record for record in records}.values(), key=lambda record: record.id)
    check_records(ordered)
    if not ordered:
        return
    with connections.writing() as connection:
        put(connection, table, ordered)


def put(connection: Any, table: Table, ordered: Sequence[Record]) -> None:
    """Keep checked records, by rising id, within a transaction."""
    from psycopg import errors

    try:
        with connection.transaction():
            _lock(connection, table, alone=False)
            _replace(connection, table, ordered)
    except errors.UniqueViolation:
        _lock(connection, table, alone=True)
        _replace(connection, table, ordered)


def delete_ids(connections: Connections, table: Table, ids: Sequence[str]) -> int:
    """Remove these; returns how many there were."""
    with connections.writing() as connection:
        return _delete(connection, table, "id = ANY(%(ids)s)", {"ids": list(ids)})


def delete_matching(connections: Connections, table: Table, where: Filter) -> int:
    """Remove what matches; returns how many."""
    text, parameters = condition(where)
    with connections.writing() as connection:
        return _delete(connection, table, text, parameters)


def settle(connections: Connections, table: Table) -> None:
    """After a load: merge what was put aside for the inverted indexes, and count anew for plans."""
    from psycopg import errors, sql

    with connections.writing() as connection:
        try:
            with connection.transaction():
                for ending in ("terms", "metadata"):
                    name = table.named(ending).as_string(None)
                    connection.execute("SELECT gin_clean_pending_list(%s::regclass)", (name,))
                connection.execute(sql.SQL("ANALYZE {}").format(table.records))
        except errors.InsufficientPrivilege:
            return  # the tables are another role's; the server does it in its own time


def _lock(connection: Any, table: Table, *, alone: bool) -> None:
    query = "SELECT pg_advisory_xact_lock(%s)" if alone else "SELECT pg_advisory_xact_lock_shared(%s)"
    connection.execute(query, (lock_key("write", table.schema, table.number),))


def _delete(connection: Any, table: Table, text: str, parameters: dict[str, Any]) -> int:
    """Rows are locked by rising id before any is deleted; their bytes go with them."""
    from psycopg import sql

    _lock(connection, table, alone=False)
    query = sql.SQL(
        "DELETE FROM {0} WHERE id IN (SELECT id FROM {0} WHERE {1} ORDER BY id FOR UPDATE)"
    ).format(table.records, sql.SQL(text))
    return int(connection.execute(query, parameters).rowcount)


def _replace(connection: Any, table: Table, ordered: Sequence[Record]) -> None:
    from psycopg import sql

    ids = [record.id for record in ordered]
    query = sql.SQL("SELECT id FROM {} WHERE id = ANY(%s) ORDER BY id FOR UPDATE").format(table.records)
    there = [id for (id,) in connection.execute(query, (ids,))]
    if there:
        connection.execute(sql.SQL("DELETE FROM {} WHERE id = ANY(%s)").format(table.records), (there,))
    rows = (to_row(record, table) for record in ordered)
    _copy(connection, table.records, columns(table), column_types(table), rows)
    blobs = [(record.id, name, data) for record in ordered for name, data in record.blobs.items()]
    if blobs:
        _copy(connection, table.blobs, ["id", "name", "data"], ["text", "text", "bytea"], blobs)


def _copy(connection: Any, target: Any, names: list[str], types: list[str], rows: Any) -> None:
    from psycopg import sql

    query = sql.SQL("COPY {} ({}) FROM STDIN WITH (FORMAT binary)").format(
        target, sql.SQL(", ").join(map(sql.Identifier, names))
    )
    with connection.cursor() as cursor, cursor.copy(query) as copy:
        copy.set_types(types)
        for row in rows:
            copy.write_row(row)
