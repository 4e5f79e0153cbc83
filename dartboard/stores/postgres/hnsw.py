"""Whether a search asks an index, and how wide it searches.

Up to ``above`` records every search compares all of them. Beyond, the index is built by the first search
that finds it missing (or by ``prepare``, after a load), not while records come in: a build over all
records is many times faster than adding them one by one. Later records are added by PostgreSQL as they
are written. While one process builds, the others answer exactly; so does a reader without the right to.
"""

import logging
import time
from typing import Any

from dartboard.stores.filters import Filter
from dartboard.stores.postgres.building import build
from dartboard.stores.postgres.connections import Connections
from dartboard.stores.postgres.migrations import lock_key
from dartboard.stores.postgres.options import HnswOptions
from dartboard.stores.postgres.searching import WIDEST_VECTOR_INDEX
from dartboard.stores.postgres.shares import Shares, estimated_records
from dartboard.stores.postgres.tables import Table
from dartboard.stores.postgres.tuning import width_for

_log = logging.getLogger(__name__)
_GROWN = 4
"""An index is measured anew when the collection has grown by this factor."""
_KNOWN_FOR, _UNKNOWN_FOR, _FAILED_FOR = 60.0, 5.0, 600.0
"""Seconds until another look at what other processes have built, or another attempt."""
_LOCK_WAIT = "2s"


class Indexes:
    """The indexes of one collection's vectors."""

    def __init__(self, connections: Connections, table: Table) -> None:
        self._connections = connections
        self._table = table
        self._options = HnswOptions.of(table.manifest)
        self._known: dict[str | None, tuple[int | None, float]] = {}
        self._not_before = 0.0
        self._shares = Shares(table)

    def forget(self) -> None:
        """Look again before the next search where no index was known: there are new records."""
        self._known = {field: known for field, known in self._known.items() if known[0] is not None}

    def width(self, field: str | None, k: int, where: Filter | None = None) -> int | None:
        """How wide to search for ``k`` hits; None: exactly."""
        width, until = self._known.get(field, (None, 0.0))
        if time.monotonic() >= until:
            width = self._looked_up(field)
            for_long = _UNKNOWN_FOR if width is None else _KNOWN_FOR
            self._known[field] = (width, time.monotonic() + for_long)
        if width is None or where is None:
            return None if width is None else width_for(width, k)
        with self._connections.reading() as connection:
            return width_for(width, k, self._shares.share(connection, where))

    def prepare(self, field: str | None) -> None:
        """Build or measure now if that pays, and wait for others."""
        if self._possible(field):
            with self._connections.reading() as connection:
                _, needed = self._state(connection, field)
            if needed:
                self.build(field)

    def build(self, field: str | None) -> None:
        """Build and measure now, whatever the size, and wait for others."""
        if self._possible(field):
            with self._connections.writing() as connection:
                connection.execute("SELECT pg_advisory_xact_lock(%s)", (self._key(field),))
                build(connection, self._table, field, self._options)
            self._known.pop(field, None)

    def described(self, connection: Any) -> list[dict[str, Any]]:
        """What is known of each index."""
        rows = connection.execute(
            "SELECT field, m, ef_construction, ef_search, recall, records FROM indexes WHERE collection = %s "
            "ORDER BY field",
            (self._table.number,),
        ).fetchall()
        names = ("column", "m", "ef_construction", "ef_search", "recall", "records")
        return [
            {"kind": "none" if row[3] is None else "hnsw", **dict(zip(names, row, strict=True))}
            for row in rows
        ]

    def _looked_up(self, field: str | None) -> int | None:
        if not self._possible(field):
            return None
        with self._connections.reading() as connection:
            width, needed = self._state(connection, field)
        if needed and not self._connections.read_only and time.monotonic() >= self._not_before:
            self._try_to_build(field)
            with self._connections.reading() as connection:
                width, _ = self._state(connection, field)
        return width

    def _state(self, connection: Any, field: str | None) -> tuple[int | None, bool]:
        """The width that is known, and whether to build or measure."""
        from psycopg import sql

        column = self._table.column(field)
        known = connection.execute(
            "SELECT ef_search, records FROM indexes WHERE collection = %s AND field = %s",
            (self._table.number, column),
        ).fetchone()
        if known is None:
            count = sql.SQL("SELECT count(*) FROM (SELECT FROM {} WHERE {} IS NOT NULL LIMIT {}) AS counted")
            enough = self._options.above + 1
            (records,) = connection.execute(
                count.format(self._table.records, sql.Identifier(column), enough)
            ).fetchone()
            return None, records >= enough
        width, measured = known
        return width, estimated_records(connection, self._table) >= _GROWN * measured

    def _try_to_build(self, field: str | None) -> None:
        """A search goes on without an index if it cannot be built now."""
        from psycopg import Error

        with self._connections.writing() as connection:
            (mine,) = connection.execute(
                "SELECT pg_try_advisory_xact_lock(%s)", (self._key(field),)
            ).fetchone()
            if not mine or not self._state(connection, field)[1]:
                return
            try:
                with connection.transaction():
                    connection.execute("SELECT set_config('lock_timeout', %s, true)", (_LOCK_WAIT,))
                    build(connection, self._table, field, self._options)
            except Error as error:
                self._not_before = time.monotonic() + _FAILED_FOR
                _log.warning("searching without an index: %s", str(error).splitlines()[0])

    def _possible(self, field: str | None) -> bool:
        """Longer vectors are kept and compared, without an index."""
        described = self._table.described(field)
        widest = 2 * WIDEST_VECTOR_INDEX if described.metric == "cosine" else WIDEST_VECTOR_INDEX
        return described.dimension <= widest

    def _key(self, field: str | None) -> int:
        return lock_key("index", self._table.schema, self._table.number, self._table.column(field))
