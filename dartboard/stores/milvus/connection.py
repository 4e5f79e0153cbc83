"""A connection to Milvus: its URL, calls with a time limit, and translation of Milvus's errors.

milvus://host:19530/database        a server or cluster; milvuss:// for TLS
milvus://user:password@host         or a token as user, or ?token=…, or DARTBOARD_MILVUS_TOKEN
milvus:///path/file.db              Milvus Lite in this process (relative: milvus:///./file.db)
…?index=flat                        the index of new collections: auto, flat, hnsw or autoindex (Zilliz)
"""

import os
import threading
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlencode, urlsplit

import grpc
from pymilvus import MilvusClient
from pymilvus.exceptions import MilvusException

from dartboard.deadline import check, within
from dartboard.errors import (
    CollectionError,
    ConfigError,
    MissingExtraError,
    StoreError,
    StoreUnavailableError,
)

DEFAULT_PORT = 19530
TOKEN_VARIABLE = "DARTBOARD_MILVUS_TOKEN"  # noqa: S105 - the name of a variable
INDEXES = ("auto", "flat", "hnsw", "autoindex")
CONNECT_SECONDS = 5.0
_SECONDS, _SLOW_SECONDS = 60.0, 600.0
_SLOW = ("load_collection", "flush", "create_index", "upsert", "delete")
_ERRORS = (MilvusException, grpc.RpcError, grpc.FutureTimeoutError)
_COLLECTION_MISSING, _NOT_LOADED = 100, 101


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
        """Where it is, for messages."""
        return self.path or self.uri.split("://", 1)[1]


def parse_address(url: str) -> Address:
    """Parse a Milvus URL."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise ConfigError("cannot read the Milvus URL: expected milvus://host:port/database") from None
    options = {name: values[-1] for name, values in parse_qs(parts.query, keep_blank_values=True).items()}
    if unknown := sorted(set(options) - {"token", "index"}):
        raise ConfigError(f"unknown option {unknown[0]!r} in the Milvus URL: use token or index")
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
    login = ":".join(unquote(part) for part in (parts.username, parts.password) if part and parts.username)
    return Address(
        shown=f"{scheme}://{where}{f'/{database}' if database else ''}{tail}",
        uri=f"{'https' if scheme == 'milvuss' else 'http'}://{where}",
        database=database,
        token=login or options.get("token") or os.environ.get(TOKEN_VARIABLE, ""),
        index=index,
    )


def _local_path(path: str, scheme: str) -> str:
    if scheme == "milvuss":
        raise ConfigError("milvuss:// needs a host: Milvus Lite runs in this process, without TLS")
    if path.startswith("/./"):
        path = path[1:]
    if not path.strip("/") or not path.endswith(".db"):
        raise ConfigError(
            "the Milvus URL needs a host (milvus://host:19530) or a path to a .db (milvus:///path/file.db)"
        )
    return path


class Connection:
    """Calls the client's methods by name; ``is_lite`` is true for Milvus Lite and false for a server."""

    def __init__(self, address: Address, *, read_only: bool) -> None:
        self.address = address
        self.read_only = read_only
        if read_only and address.path and not Path(address.path).exists():
            raise StoreError(f"there is no Milvus Lite store at {address.path}")
        if address.path and find_spec("milvus_lite") is None:
            raise MissingExtraError("milvus-lite", "milvus", "Milvus Lite (milvus:///path)")
        self._client: Any = None
        try:
            self._client = MilvusClient(  # starts Milvus Lite for a path
                uri=address.path or address.uri,
                token=address.token,
                db_name=address.database,
                timeout=CONNECT_SECONDS,
                dedicated=True,
            )
            self.version = str(self._client.get_server_version(timeout=CONNECT_SECONDS))
            self._client.list_collections(timeout=CONNECT_SECONDS)
        except _ERRORS as error:
            self.close()
            advice = f"check host, port, TLS (milvuss://), database, and the token (URL or {TOKEN_VARIABLE})"
            if address.path:
                advice = "Milvus Lite takes a folder in an existing one, and one process at a time"
            raise StoreUnavailableError(
                f"cannot open Milvus at {address.place} ({_reason(error, address)}): {advice}"
            ) from None
        self.is_lite = "lite" in self.version.lower()
        # A server accepts parallel writes; Milvus Lite needs them one after another.
        self.writing: AbstractContextManager[Any] = threading.RLock() if self.is_lite else nullcontext()

    def call(self, method: str, collection: str = "", *, may_load: bool = True, **given: Any) -> Any:
        """Call ``method`` of the client; if a restart has unloaded the collection, load it and retry."""
        if self._client is None:
            raise StoreError("the store is closed: open it again")
        check()
        given.setdefault("timeout", max(0.001, within(_SLOW_SECONDS if method in _SLOW else _SECONDS)))
        if method in ("search", "query"):
            given.setdefault("consistency_level", "Strong")
        if collection:
            given["collection_name"] = collection
        try:
            return getattr(self._client, method)(**given)
        except _ERRORS as error:
            check()
            not_loaded = _code(error) == _NOT_LOADED or "not loaded" in str(error).lower()
            if not (may_load and collection and not_loaded):
                raise self._translated(error) from error
        self.call("load_collection", collection, may_load=False)
        return self.call(method, may_load=False, **given)

    def check_writable(self) -> None:
        """Raise if the store was opened read-only."""
        if self.read_only:
            raise StoreError(
                f"{self.address.shown} was opened read-only: open it without read_only to change it"
            )

    def close(self) -> None:
        """Close the connection; closing twice does nothing."""
        client, self._client = self._client, None
        if client is not None:
            client.close()

    def _translated(self, error: Exception) -> StoreError:
        """The client's message, without the token."""
        said = f"Milvus at {self.address.place}: {_reason(error, self.address)}"
        if _code(error) == _COLLECTION_MISSING:
            return CollectionError(said)
        lost = not isinstance(error, MilvusException) or "UNAVAILABLE" in said or "connect" in said.lower()
        return StoreUnavailableError(said) if lost else StoreError(said)


def _code(error: Any) -> Any:
    code = getattr(error, "code", None)
    return code() if callable(code) else code


def _reason(error: Exception, address: Address) -> str:
    """What the client says, in one line."""
    line = " ".join(str(error).split())
    for secret in {address.token, address.token.partition(":")[2]} - {""}:
        line = line.replace(secret, "***")
    return line if len(line) <= 400 else f"{line[:400]}…"
