"""Where a Milvus store lives, read from its URL.

milvus://host:19530/database        a server or cluster; milvuss:// for TLS
milvus://user:password@host         or a token as user, or ?token=…, or DARTBOARD_MILVUS_TOKEN
milvus:///path/file.db              Milvus Lite in this process (relative: milvus:///./file.db)
…?index=flat                        the index of new collections: auto, flat, hnsw or autoindex (Zilliz)
"""

import os
from dataclasses import dataclass, field
from urllib.parse import parse_qs, unquote, urlencode, urlsplit

from dartboard.errors import ConfigError

DEFAULT_PORT = 19530
TOKEN_VARIABLE = "DARTBOARD_MILVUS_TOKEN"  # noqa: S105 - the name of a variable
INDEXES = ("auto", "flat", "hnsw", "autoindex")


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """A server by ``uri``, or Milvus Lite by ``path``; ``shown`` is the URL without its secret."""

    shown: str
    uri: str = ""
    path: str = ""
    database: str = ""
    token: str = field(default="", repr=False)
    index: str = "auto"

    @property
    def place(self) -> str:
        """What people call it."""
        return self.path or self.uri.split("://", 1)[1]


def read_address(url: str) -> Address:
    """The parts of a Milvus URL."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise ConfigError("cannot read the Milvus URL: expected milvus://host:port/database") from None
    options = _options(parts.query)
    index = options.get("index", "auto")
    if index not in INDEXES:
        raise ConfigError(f"index={index!r} in the Milvus URL: use one of {', '.join(INDEXES)}")
    tail = f"?{urlencode({'index': index})}" if "index" in options else ""
    scheme = parts.scheme.lower()
    if not parts.hostname:
        path = _local_path(unquote(parts.path), scheme)
        return Address(shown=f"{scheme}://{parts.path}{tail}", path=path, index=index)
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    where = f"{host}:{port or DEFAULT_PORT}"
    database = unquote(parts.path).strip("/")
    if "/" in database:
        raise ConfigError(f"the Milvus URL names the database {database!r}: one name without /")
    return Address(
        shown=f"{scheme}://{where}{f'/{database}' if database else ''}{tail}",
        uri=f"{'https' if scheme == 'milvuss' else 'http'}://{where}",
        database=database,
        token=_token(parts.username, parts.password, options),
        index=index,
    )


def _local_path(path: str, scheme: str) -> str:
    if scheme == "milvuss":
        raise ConfigError("milvuss:// needs a host: Milvus Lite runs in this process, without TLS")
    if path.startswith("/./"):
        path = path[1:]
    if not path.strip("/"):
        raise ConfigError(
            "the Milvus URL needs a host (milvus://host:19530) or a path (milvus:///path/file.db)"
        )
    return path


def _options(query: str) -> dict[str, str]:
    given = {name: values[-1] for name, values in parse_qs(query, keep_blank_values=True).items()}
    if unknown := sorted(set(given) - {"token", "index"}):
        raise ConfigError(f"unknown option {unknown[0]!r} in the Milvus URL: use token or index")
    return given


def _token(user: str | None, password: str | None, options: dict[str, str]) -> str:
    if user and password:
        return f"{unquote(user)}:{unquote(password)}"
    if user:
        return unquote(user)
    return options.get("token") or os.environ.get(TOKEN_VARIABLE, "")
