"""Records by id, in pages, and counted."""

from collections.abc import Iterator, Sequence
from typing import Any

from dartboard.stores.filters import Filter
from dartboard.stores.postgres.conditions import condition
from dartboard.stores.postgres.connections import Connections
from dartboard.stores.postgres.rows import columns, from_row
from dartboard.stores.postgres.tables import Table
from dartboard.stores.records import Record

_PLAIN = 4  # id, text, metadata, embedding


def get(connections: Connections, table: Table, ids: Sequence[str], names: Sequence[str]) -> list[Record]:
    """The records that exist, in the order asked, with the bytes named."""
    from psycopg import sql

    query = sql.SQL("SELECT {} FROM {} WHERE id = ANY(%s)").format(
        _listed(columns(table)[:_PLAIN]), table.records
    )
    asked = [id for id in ids if storable(id)]
    with connections.reading(stable=bool(names)) as connection:
        rows = connection.execute(query, (asked,), binary=True).fetchall()
        blobs = _blobs(connection, table, asked, [name for name in names if storable(name)]) if names else {}
    found = {row[0]: row for row in rows}
    return [from_row(found[id], table, whole=False, blobs=blobs.get(id)) for id in asked if id in found]


def count(connections: Connections, table: Table, where: Filter | None) -> int:
    """How many records there are, or match."""
    from psycopg import sql

    text, parameters = condition(where) if where is not None else ("true", {})
    query = sql.SQL("SELECT count(*) FROM {} WHERE {}").format(table.records, sql.SQL(text))
    with connections.reading() as connection:
        return int(connection.execute(query, parameters).fetchone()[0])


def pages(
    connections: Connections, table: Table, where: Filter | None, batch_size: int
) -> Iterator[list[Record]]:
    """Whole records by rising id; no connection is held between pages, so writers come between them."""
    after = ""
    while True:
        with connections.reading(stable=True) as connection:
            page = _page(connection, table, where, after, batch_size)
        if page:
            yield page
        if len(page) < batch_size:
            return
        after = page[-1].id


def moment(connection: Any, table: Table, batch_size: int) -> Iterator[list[Record]]:
    """Whole records by rising id within a stable transaction: all as they were at one moment."""
    after = ""
    while page := _page(connection, table, None, after, batch_size):
        yield page
        after = page[-1].id


def storable(text: str) -> bool:
    """Whether PostgreSQL could hold the text at all; what it cannot hold is not there."""
    try:
        return b"\x00" not in text.encode()
    except UnicodeEncodeError:
        return False


def _page(connection: Any, table: Table, where: Filter | None, after: str, limit: int) -> list[Record]:
    from psycopg import sql

    text, parameters = condition(where) if where is not None else ("true", {})
    query = sql.SQL("SELECT {} FROM {} WHERE id > %(after)s AND {} ORDER BY id LIMIT %(limit)s").format(
        _listed(columns(table)), table.records, sql.SQL(text)
    )
    rows = connection.execute(query, {**parameters, "after": after, "limit": limit}, binary=True).fetchall()
    blobs = _blobs(connection, table, [row[0] for row in rows], None)
    return [from_row(row, table, whole=True, blobs=blobs.get(row[0])) for row in rows]


def _blobs(
    connection: Any, table: Table, ids: list[str], names: list[str] | None
) -> dict[str, dict[str, bytes]]:
    """The bytes of these records by id and name: those named, or all."""
    from psycopg import sql

    query = sql.SQL(
        "SELECT id, name, data FROM {} WHERE id = ANY(%s) AND (%s::text[] IS NULL OR name = ANY(%s::text[]))"
    ).format(table.blobs)
    found: dict[str, dict[str, bytes]] = {}
    for id, name, data in connection.execute(query, (ids, names, names), binary=True):
        found.setdefault(id, {})[name] = bytes(data)
    return found


def _listed(names: Sequence[str]) -> Any:
    from psycopg import sql

    return sql.SQL(", ").join(map(sql.Identifier, names))
