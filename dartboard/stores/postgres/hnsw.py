"""HNSW indexes of a collection's vectors: when they are built, and their search width.

Up to ``above`` records, every search is exact. Above that, the first search without an index builds it (or
``prepare``, after a load). It is not built while records are loaded, because one build over all records is
many times faster than adding them one by one. PostgreSQL adds later records as they are written. During a
build, other processes search exactly; so does a reader who may not build.

pgvector's recall at one width (``ef_search``) is near 1 on text embeddings and a third of that on noise. So
after each build, the smallest width that finds what exact search finds is measured on the collection itself.
Both happen in one transaction, so no other process sees an index without a measured width. If the index
misses too much at any width, it is rolled back, and that is recorded.

If a share s of the records matches a filter, an index must visit the k/s nearest to find k of them. The
planner cannot know s for filters on JSON; a sample of a thousand records estimates it to a few percent.
"""

import logging
import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from psycopg import Error, Rollback

from dartboard.errors import ConfigError
from dartboard.stores.filters import Filter
from dartboard.stores.manifest import Manifest
from dartboard.stores.postgres.connection import Connections
from dartboard.stores.postgres.filter_sql import condition
from dartboard.stores.postgres.schema import Table, lock_key
from dartboard.stores.postgres.vector_search import (
    WIDEST_VECTOR_INDEX,
    approximate_statement,
    exact_statement,
    indexed_expression,
    is_halved,
    set_width,
)
from dartboard.types import FloatArray
from dartboard.utils import unit_rows

_log = logging.getLogger(__name__)
WIDTHS = (100, 150, 200, 300, 400, 600, 1000)
"""The last is pgvector's maximum."""
TARGET = 0.995
"""The share of the nearest ``HITS`` that an index must find."""
HITS = 100
_QUERIES = 60
_SAME = 1e-6  # smaller differences of distances are ties
_GROWN = 4
"""A width is measured again when the collection has grown by this factor."""
_KNOWN_FOR, _UNKNOWN_FOR, _FAILED_FOR = 60.0, 5.0, 600.0
"""Seconds until the next check for indexes of other processes, or the next attempt to build."""
_LOCK_WAIT = "2s"
_MOST_MEMORY = 1 << 30
_SAMPLE = 1000
_MOST_SHARES = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class HnswOptions:
    """``settings["hnsw"]`` of a manifest: ``{"m": 16, "ef_construction": 64, "above": 10000}``.

    pgvector's ``m`` and ``ef_construction``; up to ``above`` records there is no index.
    """

    m: int = 16
    ef_construction: int = 64
    above: int = 10_000

    def __post_init__(self) -> None:
        for name, least, most in (("m", 2, 100), ("ef_construction", 4, 1000), ("above", 100, 10**12)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
                raise ConfigError(f"hnsw setting {name} must be a number {least} to {most}, got {value!r}")
        if self.ef_construction < 2 * self.m:
            raise ConfigError(f"hnsw setting ef_construction must be at least 2 m = {2 * self.m}")

    @classmethod
    def of(cls, manifest: Manifest) -> "HnswOptions":
        """The options from the manifest."""
        given = manifest.settings.get("hnsw", {})
        known = [option.name for option in fields(cls)]
        if not isinstance(given, Mapping):
            raise ConfigError(f"hnsw settings must be an object of {', '.join(known)}; got {given!r}")
        if unknown := sorted(set(given) - set(known)):
            raise ConfigError(f"unknown hnsw setting {unknown[0]!r}: use {', '.join(known)}")
        return cls(**given)


class HnswIndexes:
    """The indexes of one collection's vectors."""

    def __init__(self, connections: Connections, table: Table) -> None:
        self._connections = connections
        self._table = table
        self._options = HnswOptions.of(table.manifest)
        self._widths: dict[str | None, tuple[int | None, float]] = {}
        self._shares: dict[Filter, tuple[float, float]] = {}
        self._not_before = 0.0

    def forget(self) -> None:
        """Check for an index again before the next search: there are new records."""
        self._widths = {field: known for field, known in self._widths.items() if known[0] is not None}

    def width(self, field: str | None, k: int, where: Filter | None = None) -> int | None:
        """The search width for ``k`` hits; None for exact search."""
        width, until = self._widths.get(field, (None, 0.0))
        if time.monotonic() >= until:
            width = self._look_up(field)
            for_long = _UNKNOWN_FOR if width is None else _KNOWN_FOR
            self._widths[field] = (width, time.monotonic() + for_long)
        if width is None or where is None:
            return None if width is None else width_for(width, k)
        with self._connections.reading() as connection:
            return width_for(width, k, self._share(connection, where))

    def prepare(self, *, always: bool = False) -> None:
        """Build or measure now if useful (``always``: at any size), and wait for other builders."""
        for field in filter(self._is_possible, (None, *self._table.manifest.vectors)):
            with self._connections.reading() as connection:
                _, needed = self._state(connection, field)
            if needed or always:
                with self._connections.writing() as connection:
                    connection.execute("SELECT pg_advisory_xact_lock(%s)", (self._key(field),))
                    self._build(connection, field)
                self._widths.pop(field, None)

    def describe(self, connection: Any) -> list[dict[str, Any]]:
        """The state of each index."""
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

    def _look_up(self, field: str | None) -> int | None:
        """The known width; a missing index is built first, if possible now."""
        if not self._is_possible(field):
            return None
        with self._connections.reading() as connection:
            width, needed = self._state(connection, field)
        if needed and not self._connections.read_only and time.monotonic() >= self._not_before:
            self._try_to_build(field)
            with self._connections.reading() as connection:
                width, _ = self._state(connection, field)
        return width

    def _state(self, connection: Any, field: str | None) -> tuple[int | None, bool]:
        """The known width, and whether to build or measure."""
        column = self._table.column(field)
        known = connection.execute(
            "SELECT ef_search, records FROM indexes WHERE collection = %s AND field = %s",
            (self._table.number, column),
        ).fetchone()
        if known is None:
            enough = self._options.above + 1
            count = self._table.statement(
                "SELECT count(*) FROM (SELECT FROM {records} WHERE {column} IS NOT NULL LIMIT %s) AS counted",
                column=column,
            )
            (records,) = connection.execute(count, (enough,)).fetchone()
            return None, records >= enough
        width, measured = known
        return width, self._estimated_records(connection) >= _GROWN * measured

    def _try_to_build(self, field: str | None) -> None:
        """Build; if that fails now, the search continues without an index."""
        with self._connections.writing() as connection:
            (mine,) = connection.execute(
                "SELECT pg_try_advisory_xact_lock(%s)", (self._key(field),)
            ).fetchone()
            if not mine or not self._state(connection, field)[1]:
                return
            try:
                with connection.transaction():
                    connection.execute("SELECT set_config('lock_timeout', %s, true)", (_LOCK_WAIT,))
                    self._build(connection, field)
            except Error as error:
                self._not_before = time.monotonic() + _FAILED_FOR
                _log.warning("searching without an index: %s", str(error).splitlines()[0])

    def _build(self, connection: Any, field: str | None) -> None:
        """Build the index if it is missing, and measure its width. This blocks writers, not readers."""
        table, options, column = self._table, self._options, self._table.column(field)
        count = table.statement("SELECT count({column}) FROM {records}", column=column)
        (records,) = connection.execute(count).fetchone()
        if records < 2 * options.m:
            return
        # A graph that does not fit into maintenance_work_mem takes many times longer to build.
        size = (2 if is_halved(table, field) else 4) * table.manifest.vector_field(field).dimension
        connection.execute(
            "SELECT set_config('maintenance_work_mem', "
            "greatest(pg_size_bytes(current_setting('maintenance_work_mem')), %s) / 1024 || 'kB', true)",
            (min(int(1.3 * records * (size + 40 * options.m + 200)), _MOST_MEMORY),),
        )
        with connection.transaction() as point:
            self._create(connection, field)
            connection.execute(table.statement("ANALYZE {records}"))
            width, recall = _measure(connection, table, field)
            if width is None:
                raise Rollback(point)
        if width is None:
            _log.warning(
                "no index for %s: it would find %.3f of the nearest, %s is wanted", column, recall, TARGET
            )
            self._drop(connection, column)
        connection.execute(
            "INSERT INTO indexes (collection, field, m, ef_construction, ef_search, recall, records) "
            "VALUES (%s, %s, %s, %s, %s, %s, %s) ON CONFLICT (collection, field) DO UPDATE "
            "SET m = excluded.m, ef_construction = excluded.ef_construction, ef_search = excluded.ef_search, "
            "recall = excluded.recall, records = excluded.records, built = now()",
            (table.number, column, options.m, options.ef_construction, width, recall, records),
        )

    def _create(self, connection: Any, field: str | None) -> None:
        table, options, column = self._table, self._options, self._table.column(field)
        built = connection.execute(
            "SELECT m, ef_construction FROM indexes WHERE collection = %s AND field = %s",
            (table.number, column),
        ).fetchone()
        if built not in (None, (options.m, options.ef_construction)):
            self._drop(connection, column)
        kind = "halfvec" if is_halved(table, field) else "vector"
        measure = {"cosine": "cosine", "dot": "ip"}[table.manifest.vector_field(field).metric]
        statement = table.statement(
            "CREATE INDEX IF NOT EXISTS {name} ON {records} USING hnsw ({indexed} {operators}) "
            "WITH (m = {options.m}, ef_construction = {options.ef_construction})",
            name=table.plain(f"{column}_hnsw"),
            indexed=indexed_expression(table, field),
            operators=f"{kind}_{measure}_ops",
            options=options,
        )
        connection.execute(statement)

    def _drop(self, connection: Any, column: str) -> None:
        connection.execute(f"DROP INDEX IF EXISTS {self._table.named(f'{column}_hnsw')}")

    def _share(self, connection: Any, where: Filter) -> float:
        """The estimated share of records that match, 0 to 1, from a sample of pages; cached for a minute."""
        share, until = self._shares.get(where, (0.0, 0.0))
        if time.monotonic() < until:
            return share
        matching, parameters = condition(where)
        percent = min(100.0, 100.0 * _SAMPLE / self._estimated_records(connection))
        statement = self._table.statement(
            "SELECT count(*) FILTER (WHERE {matching}), count(*) FROM {records} "
            "TABLESAMPLE SYSTEM ({percent}) REPEATABLE (0)",
            matching=matching,
            percent=percent,
        )
        found, seen = connection.execute(statement, parameters).fetchone()
        share = found / seen if seen else 0.0
        if len(self._shares) >= _MOST_SHARES:
            self._shares.clear()
        self._shares[where] = (share, time.monotonic() + _KNOWN_FOR)
        return share

    def _estimated_records(self, connection: Any) -> float:
        """PostgreSQL's own estimate of the number of records; costs nothing."""
        (records,) = connection.execute(
            "SELECT reltuples FROM pg_catalog.pg_class WHERE oid = %s::regclass",
            (self._table.named("records"),),
        ).fetchone()
        return max(float(records), 1.0)

    def _is_possible(self, field: str | None) -> bool:
        """Whether pgvector can index the field; longer vectors are compared exactly."""
        described = self._table.manifest.vector_field(field)
        widest = 2 * WIDEST_VECTOR_INDEX if described.metric == "cosine" else WIDEST_VECTOR_INDEX
        return described.dimension <= widest

    def _key(self, field: str | None) -> int:
        return lock_key("index", self._table.schema, self._table.number, self._table.column(field))


def width_for(width: int, k: int, share: float = 1.0) -> int | None:
    """The width for ``k`` hits among the matching ``share``, if ``width`` is enough for 100 hits of all.

    None if it exceeds pgvector's maximum, or if so few match that exact search is cheaper.
    """
    if share <= 0:
        return None
    needed = math.ceil(width * max(k / share, HITS) / HITS)
    return needed if needed <= WIDTHS[-1] else None


def _measure(connection: Any, table: Table, field: str | None) -> tuple[int | None, float]:
    """The smallest width that reaches the target, or None, and the last measured recall."""
    queries = _trial_queries(connection, table, field)
    exact, _ = exact_statement(table, field, None)
    farthest = [connection.execute(exact, {"query": query, "k": HITS}).fetchall()[-1][1] for query in queries]
    connection.execute("SET LOCAL enable_seqscan = off")
    approximate, _ = approximate_statement(table, field, None)
    recall = 1.0
    for width in WIDTHS:
        set_width(connection, width)
        found = 0
        for query, bound in zip(queries, farthest, strict=True):
            rows = connection.execute(approximate, {"query": query, "k": HITS}).fetchall()
            found += sum(distance <= bound + _SAME for _, distance in rows)
        recall = found / (HITS * len(queries))
        if recall >= TARGET:
            return width, recall
    return None, recall


def _trial_queries(connection: Any, table: Table, field: str | None) -> list[FloatArray]:
    """Queries halfway between two vectors of the collection; deterministic.

    Real questions lie about as far from the passages that answer them.
    """
    statement = table.statement(
        "SELECT {column} FROM {records} WHERE {column} IS NOT NULL ORDER BY hashtext(id), id LIMIT %s",
        column=table.column(field),
    )
    rows = connection.execute(statement, (2 * _QUERIES,), binary=True).fetchall()
    vectors = unit_rows(np.stack([vector.to_numpy() for (vector,) in rows]))
    half = len(vectors) // 2
    return list(vectors[:half] + vectors[half : 2 * half])
