"""Open stores by URL, find the file of a URL, and hide its secrets.

memory://                      in this process, lost when it ends
docs.dartboard                 a file (any path, or file:///path)
postgresql://user@host/name    PostgreSQL with pgvector
milvus://host:19530            a Milvus server or cluster; milvus:///path is Milvus Lite
scheme://…                     a plug-in (:mod:`dartboard.plugins`)
"""

import os
import re
from difflib import get_close_matches
from pathlib import Path
from urllib.parse import unquote, urlsplit

from dartboard.errors import ConfigError
from dartboard.plugins import find, names
from dartboard.stores.base import Store

SCHEMES = frozenset({"memory", "file", "postgresql", "postgres", "milvus", "milvuss"})
"""Schemes of the built-in stores; a path has none."""

_MEMBERS = ("url", "collections", "create", "open", "drop", "restore", "close", "__enter__", "__exit__")


def open_store(url: str, *, read_only: bool = False) -> Store:
    """Open the store at a URL.

    Args:
        url: ``docs.dartboard`` or any other path, ``file:///path``, ``memory://``, ``postgresql://…``,
            ``milvus://…``, or the scheme of a plug-in.
        read_only: Reject writes, and create no file.

    Returns:
        The open store: close it, or use it in ``with``.

    Raises:
        ConfigError: the URL cannot be read, or its scheme is unknown.
        StoreError: the store cannot be opened; the message says why.
        MissingExtraError: the store needs a package that is not installed.

    Example:
        >>> with open_store("docs.dartboard", read_only=True) as store:
        ...     store.collections()
        ['default']
    """
    if not isinstance(url, str) or not url.strip():
        raise ConfigError("a store needs a URL: a file path, postgresql://…, milvus://… or memory://")
    scheme = _scheme(url)
    if scheme == "memory":
        from dartboard.stores.memory import MemoryStore

        return MemoryStore()
    if scheme in ("", "file"):
        from dartboard.stores.sqlite import SqliteStore

        return SqliteStore(_path(url), read_only=read_only)
    if scheme in ("postgresql", "postgres"):
        from dartboard.stores.postgres import PostgresStore

        return PostgresStore(url, read_only=read_only)
    if scheme in ("milvus", "milvuss"):
        from dartboard.stores.milvus import MilvusStore

        return MilvusStore(url, read_only=read_only)
    plugin = find("store", scheme)
    if plugin is None:
        added = "".join(f"{name}://…, " for name in names("store"))
        raise ConfigError(
            f"unknown kind of store {scheme!r}: use a file path, postgresql://…, milvus://…, {added}or memory://"
        )
    made: Store = plugin.make(_MEMBERS, url, read_only=read_only)
    return made


def is_there(url: str) -> bool:
    """Whether the store exists: opening it would create no file."""
    file = file_of(url)
    return file is None or file.exists()


def missing_index(url: str) -> str:
    """The message that there is no store at a file-based URL; it names the one beside it most like it."""
    file, meant = file_of(url), ""
    if file is not None and file.parent.is_dir():
        there = {one.name: one for one in file.parent.iterdir() if one.suffix == file.suffix}
        near = get_close_matches(file.name, there, n=1) or sorted(there)[:1]
        meant = f" Did you mean {there[near[0]]}?" if near else ""
    return f"there is no index at {without_password(url)}.{meant} Make one with dartboard index PATH"


def file_of(url: str) -> Path | None:
    """The file of a file-based store; None for servers and memory."""
    return Path(os.path.expanduser(_path(url))).resolve() if _scheme(url) in ("", "file") else None  # noqa: PTH111


def without_password(url: str) -> str:
    """The URL for display, with passwords, keys and tokens replaced by stars."""
    shown = re.sub(r"(://[^/@:?#]*):[^/?#]*@", r"\1:***@", url)
    return re.sub(r"(?i)([?&](?:password|token|key|secret)=)[^&#]*", r"\1***", shown)


def _scheme(url: str) -> str:
    return url.split("://", 1)[0].lower() if "://" in url else ""


def _path(url: str) -> str:
    return unquote(urlsplit(url).path) if "://" in url else url
