"""Where the server is: the URL without dartboard's own parameters, and without its secrets.

libpq reads the rest of the URL, so its parameters (``sslmode``, ``host``, ``service`` …), its variables
(``PGPASSWORD`` …) and ``~/.pgpass`` work as everywhere.
"""

from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode, urlsplit, urlunsplit

from dartboard.errors import ConfigError, MissingExtraError

DEFAULT_SCHEMA = "dartboard"
_OWN = ("schema", "pool_size", "timeout")
_SECRET = ("password", "sslpassword", "passfile")
_LONGEST_SCHEMA = 63


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """A server, a schema in it, and how to hold on to them.

    ``timeout``: seconds after which the server gives up on a reading statement; writes and index builds
    take as long as they take. ``pool_size``: the most connections held at once.
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
            raise ConfigError(f"schema {self.schema!r}: PostgreSQL keeps names that begin with pg_ to itself")
        if self.pool_size < 1:
            raise ConfigError(f"pool_size must be >= 1, got {self.pool_size}")
        if not 0 < self.timeout < 1e6:
            raise ConfigError(f"timeout must be a positive number of seconds, got {self.timeout}")


def parse_address(url: str, **given: Any) -> Address:
    """The address in ``url``; what is ``given`` (schema, pool_size, timeout) goes before its parameters."""
    try:
        from psycopg import ProgrammingError
        from psycopg.conninfo import conninfo_to_dict, make_conninfo
    except ImportError as error:
        raise MissingExtraError("psycopg", "postgres", "the PostgreSQL store") from error
    parts = urlsplit(url)
    if parts.netloc.count("@") > 1 or "@" in parts.path or "@" in parts.fragment:
        raise ConfigError("cannot read the store's URL: in a user name or password write @ as %40, / as %2F")
    pairs = parse_qsl(parts.query, keep_blank_values=True)
    own = {name: value for name, value in pairs if name in _OWN}
    rest = [(name, value) for name, value in pairs if name not in _OWN]
    try:
        options = conninfo_to_dict(urlunsplit(parts._replace(query=urlencode(rest, quote_via=quote))))
    except ProgrammingError:
        raise ConfigError(
            "cannot read the store's URL: expected postgresql://user:password@host:5432/database, special "
            "characters as %.., and after ? only schema, pool_size, timeout and libpq's own parameters"
        ) from None
    defaults = {"connect_timeout": 10, "application_name": "dartboard"}
    return Address(
        conninfo=make_conninfo(**{**defaults, **options, "client_encoding": "utf8"}),
        secret=str(options.get("password") or ""),
        url=_shown(parts, pairs),
        **_numbers({**own, **{name: value for name, value in given.items() if value is not None}}),
    )


def _numbers(own: dict[str, Any]) -> dict[str, Any]:
    for name, kind in (("pool_size", int), ("timeout", float)):
        if name in own:
            try:
                own[name] = kind(own[name])
            except (TypeError, ValueError):
                raise ConfigError(f"{name} must be a number, got {own[name]!r}") from None
    return own


def _shown(parts: Any, pairs: list[tuple[str, str]]) -> str:
    user, at, host = parts.netloc.rpartition("@")
    kept = [(name, value) for name, value in pairs if name not in _SECRET]
    query = urlencode(kept, safe="/:", quote_via=quote)
    return str(urlunsplit(parts._replace(netloc=user.split(":")[0] + at + host, query=query)))
