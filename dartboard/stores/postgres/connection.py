"""The connection to PostgreSQL: its URL, a bounded pool, and translation of the server's errors.

libpq reads the URL without dartboard's own parameters, so its parameters (``sslmode``, ``host``,
``service`` …), its variables (``PGPASSWORD`` …) and ``~/.pgpass`` work as usual. The pool is psycopg_pool's:
it opens on first use and reconnects after a server restart. Every connection sees only the store's schema and
that of the extension, and has a statement timeout.
"""

import math
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
"""Seconds to wait for a connection from the pool before asking the server itself."""
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
        self._closed = False
        self._pool: Any = ConnectionPool(
            address.conninfo,
            min_size=0,
            max_size=address.pool_size,
            kwargs={"autocommit": True, "prepare_threshold": None},
            configure=lambda connection: self._prepare(connection),
            check=ConnectionPool.check_connection,
            num_workers=1,
            name="dartboard",
            open=False,
        )

    @contextmanager
    def first(self) -> Iterator[Any]:
        """A connection outside of the pool: for setting up, and to get connection errors immediately."""
        with _translated(self.address), psycopg.connect(self.address.conninfo, autocommit=True) as connection:
            yield connection

    @contextmanager
    def reading(self, *, stable: bool = False) -> Iterator[Any]:
        """A read transaction; with ``stable``, all its statements see the same state.

        The server cancels statements at the current deadline if that is much earlier than the store's own
        timeout.
        """
        with self._transaction() as connection:
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
        with self._transaction() as connection:
            connection.execute("SET LOCAL statement_timeout = 0")
            yield connection

    def close(self) -> None:
        """Close the connections."""
        self._closed = True
        self._pool.close()

    @contextmanager
    def _transaction(self) -> Iterator[Any]:
        if self._closed:
            raise StoreError("the store is closed: open it again")
        with _translated(self.address):
            self._pool.open()
            connection = self._taken()
            try:
                with connection.transaction():
                    yield connection
            finally:
                self._pool.putconn(connection)

    def _taken(self) -> Any:
        """A connection from the pool; after a short wait, the server itself is asked what is wrong."""
        try:
            return self._pool.getconn(timeout=min(_PATIENCE, self.address.timeout))
        except PoolTimeout:
            with self.first():
                pass
        try:
            return self._pool.getconn(timeout=self.address.timeout)
        except PoolTimeout:
            raise StoreUnavailableError(
                f"no connection became free in {self.address.timeout:g} s: {self.address.pool_size} are "
                f"allowed. Raise ?pool_size= in the store's URL, or look at its load [{self.address.url}]"
            ) from None

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
    """psycopg's errors as dartboard's: its first sentence, without secrets, and what to do."""
    try:
        yield
    except psycopg.Error as error:
        lines = str(error).strip().splitlines() or [type(error).__name__]
        said = lines[0].removeprefix("connection failed: ")
        hidden = bool(address.secret) and address.secret in str(error)
        if hidden:
            said = said.replace(address.secret, "***")
        kind, advice = next(
            (kind, advice.format(schema=address.schema))
            for known, kind, advice in _ADVICE
            if isinstance(error, known)
        )
        raise kind(f"PostgreSQL: {said}; {advice} [{address.url}]") from (None if hidden else error)
    except UnicodeEncodeError as error:
        raise InvalidInputError(f"text is not valid Unicode, so PostgreSQL cannot keep it: {error}") from None


_ADVICE: tuple[tuple[Any, type[DartboardError], str], ...] = (
    (
        errors.QueryCanceled,
        StoreError,
        "narrow the query, or allow more time with ?timeout=SECONDS in the URL",
    ),
    (
        errors.InsufficientPrivilege,
        StoreError,
        "the role needs USAGE and CREATE on schema {schema!r}, or to own it and its tables",
    ),
    (errors.ReadOnlySqlTransaction, StoreError, "the store was opened read-only, or the server is a standby"),
    ((errors.UndefinedTable, errors.InvalidSchemaName), CollectionError, "the collection was dropped"),
    ((errors.DiskFull, errors.OutOfMemory), StoreError, "nothing was changed; free some space and retry"),
    ((psycopg.DataError, errors.ProgramLimitExceeded), InvalidInputError, "the database cannot store this"),
    (
        (psycopg.OperationalError, psycopg.InterfaceError),
        StoreUnavailableError,
        "check that the server runs, and host, port, user, password (PGPASSWORD, ~/.pgpass) and database",
    ),
    (psycopg.Error, StoreError, "the server refused"),
)
"""By psycopg's class: the dartboard error, and what to do."""
