"""A bounded pool of connections, opened when first needed and made anew after the server went away.

Every connection looks only into the store's schema and the one where the extension lives, gives up on
long statements, and is asked whether it is alive before it is handed out.
"""

import math
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from dartboard.deadline import check, remaining
from dartboard.errors import StoreError, StoreUnavailableError
from dartboard.stores.postgres.address import Address
from dartboard.stores.postgres.failures import translated

_PATIENCE = 1.0
"""Seconds to wait for a connection before finding out whether the server can be reached at all."""

_NEARER = 0.9
"""A deadline beyond this share of the store's own limit is left to that: it saves a round trip."""


class Connections:
    """Transactions for whoever asks, on ``pool_size`` connections at most."""

    def __init__(self, address: Address, *, read_only: bool) -> None:
        self.address = address
        self.read_only = read_only
        self._pool: Any = None
        self._closed = False
        self._lock = threading.Lock()
        self._extension_schema = "public"

    @contextmanager
    def first(self) -> Iterator[Any]:
        """A connection outside the pool: for migrations, and to learn at once what is wrong."""
        import psycopg

        with translated(self.address), psycopg.connect(self.address.conninfo, autocommit=True) as connection:
            yield connection

    def find_types(self, schema: str) -> None:
        """Look for the extension's types in ``schema``."""
        self._extension_schema = schema

    @contextmanager
    def reading(self, *, stable: bool = False) -> Iterator[Any]:
        """A transaction that reads; ``stable``: all its statements see the same moment."""
        with self._connection() as connection, connection.transaction():
            if stable:
                connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            with self._in_time(connection):
                yield connection

    @contextmanager
    def writing(self) -> Iterator[Any]:
        """A transaction that writes, all or none, for as long as it takes."""
        if self.read_only:
            raise StoreError("the store was opened read-only: open it to write")
        with self._connection() as connection, connection.transaction():
            connection.execute("SET LOCAL statement_timeout = 0")
            yield connection

    def close(self) -> None:
        """Give the connections back."""
        with self._lock:
            self._closed = True
            if self._pool is not None:
                self._pool.close()
                self._pool = None

    @contextmanager
    def _connection(self) -> Iterator[Any]:
        with translated(self.address):
            pool = self._opened()
            connection = self._taken(pool)
            try:
                yield connection
            finally:
                pool.putconn(connection)

    @contextmanager
    def _in_time(self, connection: Any) -> Iterator[None]:
        """The server gives up on statements at the deadline of this context, if that is much nearer."""
        from psycopg.errors import QueryCanceled

        check()
        left = remaining()
        if left is not None and left < _NEARER * self.address.timeout:
            milliseconds = str(1 + math.ceil(1000 * left))
            connection.execute("SELECT set_config('statement_timeout', %s, true)", (milliseconds,))
        try:
            yield
        except QueryCanceled:
            check()
            raise

    def _taken(self, pool: Any) -> Any:
        """A connection; where none comes soon, a fresh one says why, or else they are all busy."""
        from psycopg_pool import PoolTimeout

        started = time.monotonic()
        try:
            return pool.getconn(timeout=_PATIENCE)
        except PoolTimeout:
            with self.first() as connection:
                self._prepare(connection)
        try:
            return pool.getconn(timeout=max(0.1, self.address.timeout - (time.monotonic() - started)))
        except PoolTimeout:
            raise StoreUnavailableError(
                f"all {self.address.pool_size} connections were busy for {self.address.timeout:g} s: "
                "raise ?pool_size= in the store's URL"
            ) from None

    def _opened(self) -> Any:
        from psycopg_pool import ConnectionPool

        with self._lock:
            if self._closed:
                raise StoreError("the store is closed: open it again")
            if self._pool is None:
                self._pool = ConnectionPool(
                    self.address.conninfo,
                    min_size=0,
                    max_size=self.address.pool_size,
                    kwargs={"autocommit": True, "prepare_threshold": None},
                    configure=self._prepare,
                    check=ConnectionPool.check_connection,
                    num_workers=1,
                    name="dartboard",
                    open=True,
                )
            return self._pool

    def _prepare(self, connection: Any) -> None:
        from pgvector.psycopg import register_vector
        from psycopg import sql

        path = sql.SQL(", ").join(map(sql.Identifier, (self.address.schema, self._extension_schema)))
        connection.execute(sql.SQL("SET search_path = {}").format(path))
        settings = {
            "statement_timeout": str(int(self.address.timeout * 1000)),
            "default_transaction_read_only": "on" if self.read_only else "off",
            "hnsw.iterative_scan": "relaxed_order",
        }
        for name, value in settings.items():
            connection.execute("SELECT set_config(%s, %s, false)", (name, value))
        register_vector(connection)
