"""Which share of a collection matches a filter, by a sample of its pages.

To find k records of which a share s matches, an index must look at the k/s nearest of all. The planner
cannot know s for filters on JSON; a sample of a thousand records can, to a few percent.
"""

import threading
import time
from typing import Any

from dartboard.stores.filters import Filter
from dartboard.stores.postgres.conditions import condition
from dartboard.stores.postgres.tables import Table

_SAMPLE = 1000
_KEPT, _KEPT_FOR = 256, 60.0


class Shares:
    """Shares of filters, each kept for a minute."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._kept: dict[Filter, tuple[float, float]] = {}
        self._lock = threading.Lock()

    def share(self, connection: Any, where: Filter) -> float:
        """About how many of the records match, 0 to 1."""
        with self._lock:
            share, until = self._kept.get(where, (0.0, 0.0))
        if time.monotonic() < until:
            return share
        share = _sampled(connection, self._table, where)
        with self._lock:
            if len(self._kept) >= _KEPT:
                self._kept.clear()
            self._kept[where] = (share, time.monotonic() + _KEPT_FOR)
        return share


def estimated_records(connection: Any, table: Table) -> float:
    """How many records there were when PostgreSQL last counted; costs nothing."""
    (records,) = connection.execute(
        "SELECT reltuples FROM pg_catalog.pg_class WHERE oid = %s::regclass", (table.records.as_string(None),)
    ).fetchone()
    return max(float(records), 1.0)


def _sampled(connection: Any, table: Table, where: Filter) -> float:
    from psycopg import sql

    text, parameters = condition(where)
    percent = min(100.0, 100.0 * _SAMPLE / estimated_records(connection, table))
    statement = sql.SQL(
        "SELECT count(*) FILTER (WHERE {}), count(*) FROM {} TABLESAMPLE SYSTEM ({}) REPEATABLE (0)"
    ).format(sql.SQL(text), table.records, percent)
    matching, seen = connection.execute(statement, parameters).fetchone()
    return matching / seen if seen else 0.0
