"""The connection to PostgreSQL: its URL, a bounded pool, and translation of the server's errors.

libpq reads the URL without dartboard's own parameters, so its parameters (``sslmode``, ``host``,
``service`` …), its variables (``PGPASSWORD`` …) and ``~/.pgpass`` work as usual. The pool is psycopg_pool's:
it opens on first use and reconnects after a server restart. Every connection sees only the store's schema and
the schema of the extension, has a statement timeout, and is checked before it is handed out.
"""

import math
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode, urlsplit, urlunsplit

import psycopg
from pgvector.psycopg import register_vector
from psycopg import errors, sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg_pool import ConnectionPool, PoolTimeout

from dartboard.deadline import check, remaining
from dartboard.errors import (
    CollectionError,
    ConfigError,
    DartboardError,
    InvalidInputError,
    StoreError,
    StoreUnavailableError,
)

DEFAULT_SCHEMA = "dartboard"
_OWN_PARAMETERS = ("schema", "pool_size", "timeout")
_SECRET_PARAMETERS = ("password", "sslpassword", "passfile")
_LONGEST_SCHEMA = 63
_PATIENCE = 1.0
"""Seconds to wait for a connection before testing whether the server can be reached at all."""
_NEARER = 0.9
"""Above this share of the store's own timeout, a deadline is not sent: that saves a round trip."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """A server, a schema and connection limits.

    ``timeout``: seconds after which the server cancels a reading statement; writes and index builds have no
    limit. ``pool_size``: the maximum number of connections.
    """

    conninfo: str = field(repr=False)
    secret: str = field(default="", repr=False)
    url: str
    schema: str = DEFAULT_SCHEMA
    pool_size: int = 8
    timeout: float = 30.0

    def __post_init__(self) -> None:
        if not self.schema.isprintable() or not 0 < len(self.schema.encode()) <= _LONGEST_SCHEMA:
            raise ConfigError(f"schema must be 1 to {_LONGEST_SCHEMA} printable bytes, got {self.schema!r}")
        if self.schema.startswith("pg_"):
            raise ConfigError(f"schema {self.schema!r}: PostgreSQL reserves names that begin with pg_")
        if self.pool_size < 1:
            raise ConfigError(f"pool_size must be >= 1, got {self.pool_size}")
        if not 0 < self.timeout < 1e6:
            raise ConfigError(f"timeout must be a positive number of seconds, got {self.timeout}")


def parse_address(url: str, **given: Any) -> Address:
    """Parse ``url``; ``given`` (schema, pool_size, timeout) overrides its parameters."""
    parts = urlsplit(url)
    if parts.netloc.count("@") > 1 or "@" in parts.path or "@" in parts.fragment:
        raise ConfigError("cannot read the store's URL: in a user name or password write @ as %40, / as %2F")
    pairs = parse_qsl(parts.query, keep_blank_values=True)
    rest = [(name, value) for name, value in pairs if name not in _OWN_PARAMETERS]
    try:
        options = conninfo_to_dict(urlunsplit(parts._replace(query=urlencode(rest, quote_via=quote))))
    except psycopg.ProgrammingError:
        raise ConfigError(
            "cannot read the store's URL: expected postgresql://user:password@host:5432/database, special "
            "characters as %.., and after ? only schema, pool_size, timeout and libpq's own parameters"
        ) from None
    own: dict[str, Any] = {name: value for name, value in pairs if name in _OWN_PARAMETERS}
    own |= {name: value for name, value in given.items() if value is not None}
    for name, kind in (("pool_size", int), ("timeout", float)):
        if name in own:
            try:
                own[name] = kind(own[name])
            except (TypeError, ValueError):
                raise ConfigError(f"{name} must be a number, got {own[name]!r}") from None
    user, at, host = parts.netloc.rpartition("@")
    shown = [(name, value) for name, value in pairs if name not in _SECRET_PARAMETERS]
    shown_query = urlencode(shown, safe="/:", quote_via=quote)
    defaults = {"connect_timeout": 10, "application_name": "dartboard"}
    return Address(
        conninfo=make_conninfo(**{**defaults, **options, "client_encoding": "utf8"}),
        secret=str(options.get("password") or ""),
        url=str(urlunsplit(parts._replace(netloc=user.split(":")[0] + at + host, query=shown_query))),
        **own,
    )


class Connections:
    """Transactions on at most ``pool_size`` connections."""

    def __init__(self, address: Address, *, read_only: bool) -> None:
        self.address = address
        self.read_only = read_only
        self.extension_schema = "public"
        self.wait = address.timeout
        """Seconds to wait for a connection from the pool."""
        self._in_use = 0
        self._counting = threading.Lock()
        self._closed = False
        self._pool = self._new_pool()

    @contextmanager
    def first(self) -> Iterator[Any]:
        """A connection outside of the pool: for migrations, and to get connection errors immediately."""
        with _translated(self.address), psycopg.connect(self.address.conninfo, autocommit=True) as connection:
            yield connection

    @contextmanager
    def reading(self, *, stable: bool = False) -> Iterator[Any]:
        """A read transaction; with ``stable``, all its statements see the same state.

        The server cancels statements at the current deadline if that is much earlier than the store's own
        timeout.
        """
        with self._connection() as connection, connection.transaction():
            if stable:
                connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            check()
            left = remaining()
            if left is not None and left < _NEARER * self.address.timeout:
                milliseconds = str(1 + math.ceil(1000 * left))
                connection.execute("SELECT set_config('statement_timeout', %s, true)", (milliseconds,))
            try:
                yield connection
            except errors.QueryCanceled:
                check()
                raise

    @contextmanager
    def writing(self) -> Iterator[Any]:
        """A write transaction, all or none, without a timeout."""
        if self.read_only:
            raise StoreError("the store was opened read-only: open it to write")
        with self._connection() as connection, connection.transaction():
            connection.execute("SET LOCAL statement_timeout = 0")
            yield connection

    def close(self) -> None:
        """Close the connections."""
        self._closed = True
        self._pool.close()

    @contextmanager
    def _connection(self) -> Iterator[Any]:
        if self._closed:
            raise StoreError("the store is closed: open it again")
        with _translated(self.address):
            self._pool.open()
            connection = self._taken()
            self._count(1)
            try:
                yield connection
            finally:
                self._count(-1)
                self._pool.putconn(connection)

    def _count(self, change: int) -> None:
        with self._counting:
            self._in_use += change

    def _taken(self) -> Any:
        """A connection from the pool; after a short wait, a new one shows whether the server is down."""
        started = time.monotonic()
        try:
            return self._pool.getconn(timeout=min(_PATIENCE, self.wait))
        except PoolTimeout:
            with self.first() as connection:
                self._prepare(connection)
        try:
            return self._pool.getconn(timeout=max(0.1, self.wait - (time.monotonic() - started)))
        except PoolTimeout:
            raise self._no_connection() from None

    def _no_connection(self) -> StoreUnavailableError:
        """The error when the pool gave no connection in time, because of its size or of the server."""
        size, in_use = self.address.pool_size, self._in_use
        if in_use >= size:
            return StoreUnavailableError(
                f"all {size} connections are in use, and none became free within {self.wait:g} s: "
                "raise ?pool_size= in the store's URL"
            )
        return StoreUnavailableError(
            f"PostgreSQL did not accept a connection within {self.wait:g} s ({in_use} of {size} are in use): "
            "look at the server's load, or allow more time with ?timeout=SECONDS in the store's URL "
            f"[{self.address.url}]"
        )

    def _new_pool(self) -> Any:
        return ConnectionPool(
            self.address.conninfo,
            min_size=0,
            max_size=self.address.pool_size,
            kwargs={"autocommit": True, "prepare_threshold": None},
            configure=self._prepare,
            check=ConnectionPool.check_connection,
            num_workers=1,
            name="dartboard",
            open=False,
        )

    def _prepare(self, connection: Any) -> None:
        path = sql.SQL(", ").join(map(sql.Identifier, (self.address.schema, self.extension_schema)))
        connection.execute(sql.SQL("SET search_path = {}").format(path))
        settings = {
            "statement_timeout": str(int(self.address.timeout * 1000)),
            "default_transaction_read_only": "on" if self.read_only else "off",
            "hnsw.iterative_scan": "relaxed_order",
        }
        for name, value in settings.items():
            connection.execute("SELECT set_config(%s, %s, false)", (name, value))
        register_vector(connection)


@contextmanager
def _translated(address: Address) -> Iterator[None]:
    """Translate psycopg's errors, without secrets."""
    try:
        yield
    except psycopg.Error as error:
        has_secret = bool(address.secret) and address.secret in str(error)
        raise translate(error, address) from (None if has_secret else error)
    except UnicodeEncodeError as error:
        raise InvalidInputError(
            f"PostgreSQL stores text as UTF-8, which cannot encode {error.object[error.start]!r}, "
            "half of a surrogate pair: fix the text's encoding"
        ) from None


def translate(error: Exception, address: Address) -> DartboardError:
    """The dartboard error for one of psycopg: what went wrong and what to do."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
    said = lines[0].removeprefix("connection failed: ")
    if address.secret:
        said = said.replace(address.secret, "***")
    match error:
        case errors.QueryCanceled():
            return StoreError(
                f"PostgreSQL stopped after {address.timeout:g} s: narrow the query, or allow more time with "
                "?timeout=SECONDS in the store's URL"
            )
        case errors.InsufficientPrivilege():
            return StoreError(
                f"PostgreSQL refuses ({said}): the role needs USAGE and CREATE on schema {address.schema!r}, "
                "or to own it and its tables"
            )
        case errors.ReadOnlySqlTransaction():
            return StoreError("the store was opened read-only, or the server is a standby: open it to write")
        case errors.UndefinedTable() | errors.InvalidSchemaName():
            return CollectionError(f"the collection is gone: it was dropped ({said})")
        case errors.DiskFull() | errors.OutOfMemory():
            return StoreError(
                f"PostgreSQL is out of space ({said}): nothing was changed; free some space and retry"
            )
        case psycopg.DataError():
            return InvalidInputError(f"PostgreSQL cannot store this: {said}")
        case psycopg.OperationalError() | psycopg.InterfaceError():
            hints = (hint for words, hint in _HINTS.items() if words in said)
            hint = next(hints, "check that it runs, host and port")
            return StoreUnavailableError(f"PostgreSQL cannot be reached: {said}; {hint} [{address.url}]")
    return StoreError(f"PostgreSQL: {said} [{address.url}]")


_HINTS = {
    "password authentication failed": "check user and password",
    "no password supplied": "give the password in PGPASSWORD, in ~/.pgpass or in the store's URL",
    "does not exist": "check the names in the store's URL; createdb makes a database",
    "pg_hba.conf": "the server does not let this user in from here: see its pg_hba.conf",
    "too many clients": "lower ?pool_size=, or raise max_connections",
    "remaining connection slots": "lower ?pool_size=, or raise max_connections",
    "terminating connection": "the connection was lost and the transaction undone; try again",
    "server closed the connection": "the connection was lost and the transaction undone; try again",
}
"""Connection errors have no code before the server responds, so their text is matched."""
