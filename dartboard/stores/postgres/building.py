"""Building the index of one vector, and finding out how wide it must be searched.

Both happen in one transaction, so no other process meets an index that was not measured. An index that
misses too much at any width is rolled back, and that is remembered.
"""

import logging
from typing import Any

from dartboard.stores.postgres.options import HnswOptions
from dartboard.stores.postgres.searching import halved, indexed_expression
from dartboard.stores.postgres.tables import Table
from dartboard.stores.postgres.tuning import TARGET, tune

_log = logging.getLogger(__name__)
_MOST_MEMORY = 1 << 30


def build(connection: Any, table: Table, field: str | None, options: HnswOptions) -> None:
    """Build if there is no such index, and measure. Writers wait until it is done, readers do not."""
    from psycopg import Rollback, sql

    column = table.column(field)
    (records,) = connection.execute(
        sql.SQL("SELECT count({}) FROM {}").format(sql.Identifier(column), table.records)
    ).fetchone()
    if records < 2 * options.m:
        return
    _give_memory(connection, table, field, options, records)
    with connection.transaction() as point:
        _create(connection, table, field, options)
        connection.execute(sql.SQL("ANALYZE {}").format(table.records))
        width, recall = tune(connection, table, field)
        if width is None:
            raise Rollback(point)
    if width is None:
        _log.warning(
            "no index for %s: it would find %.3f of the nearest, %s is wanted", column, recall, TARGET
        )
        connection.execute(sql.SQL("DROP INDEX IF EXISTS {}").format(_name(table, field)))
    connection.execute(
        "INSERT INTO indexes (collection, field, m, ef_construction, ef_search, recall, records) "
        "VALUES (%s, %s, %s, %s, %s, %s, %s) ON CONFLICT (collection, field) DO UPDATE "
        "SET m = excluded.m, ef_construction = excluded.ef_construction, ef_search = excluded.ef_search, "
        "recall = excluded.recall, records = excluded.records, built = now()",
        (table.number, column, options.m, options.ef_construction, width, recall, records),
    )


def _create(connection: Any, table: Table, field: str | None, options: HnswOptions) -> None:
    from psycopg import sql

    built = connection.execute(
        "SELECT m, ef_construction FROM indexes WHERE collection = %s AND field = %s",
        (table.number, table.column(field)),
    ).fetchone()
    if built not in (None, (options.m, options.ef_construction)):
        connection.execute(sql.SQL("DROP INDEX IF EXISTS {}").format(_name(table, field)))
    kind = "halfvec" if halved(table, field) else "vector"
    measure = {"cosine": "cosine", "dot": "ip"}[table.described(field).metric]
    statement = "CREATE INDEX IF NOT EXISTS {} ON {} USING hnsw ({} {}) WITH (m = {}, ef_construction = {})"
    connection.execute(
        sql.SQL(statement).format(
            sql.Identifier(table.plain(f"{table.column(field)}_hnsw")),
            table.records,
            indexed_expression(table, field),
            sql.SQL(f"{kind}_{measure}_ops"),
            options.m,
            options.ef_construction,
        )
    )


def _give_memory(
    connection: Any, table: Table, field: str | None, options: HnswOptions, records: int
) -> None:
    """A graph that does not fit the memory for maintenance takes many times longer to build."""
    size = (2 if halved(table, field) else 4) * table.described(field).dimension
    needed = min(int(1.3 * records * (size + 40 * options.m + 200)), _MOST_MEMORY)
    connection.execute(
        "SELECT set_config('maintenance_work_mem', "
        "greatest(pg_size_bytes(current_setting('maintenance_work_mem')), %s) / 1024 || 'kB', true)",
        (needed,),
    )


def _name(table: Table, field: str | None) -> Any:
    return table.named(f"{table.column(field)}_hnsw")
