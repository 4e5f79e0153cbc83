"""A store: dartboard's memory store, with every collection kept as a snapshot file in one folder.

``shelf:///path/of/a/folder``. Every write rewrites the collection's file, whole or not at all, before it
returns. That is simple and safe, and as slow as it sounds: a store for some thousand passages, and an
example of what a store has to do.
"""

import hashlib
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import unquote

from dartboard.errors import ConfigError, StoreError
from dartboard.stores import DEFAULT_COLLECTION, Collection, Filter, Manifest, Record
from dartboard.stores.checks import missing
from dartboard.stores.memory import MemoryStore
from dartboard.stores.snapshot_file import read_snapshot_file


class ShelfCollection:
    """A collection in memory whose writes are kept on disk; reading is the memory store's."""

    def __init__(self, inner: Collection, writing: Callable[[Collection], Any]) -> None:
        self._inner = inner
        self._writing = writing

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def configure(self, changes: Mapping[str, Any]) -> None:
        """Change these settings and keep the others."""
        with self._writing(self._inner):
            self._inner.configure(changes)

    def upsert(self, records: Sequence[Record]) -> None:
        """Keep the records, all or none."""
        with self._writing(self._inner):
            self._inner.upsert(records)

    def delete(self, ids: Sequence[str] | None = None, *, where: Filter | None = None) -> int:
        """Remove by ids or by filter."""
        with self._writing(self._inner):
            return self._inner.delete(ids, where=where)


class Shelf:
    """What the entry point names: called with the URL and ``read_only``, it is an open store."""

    def __init__(self, url: str, *, read_only: bool = False) -> None:
        folder = unquote(url.partition("://")[2])
        if not folder:
            raise ConfigError("shelf:// needs a folder: shelf:///path/of/a/folder")
        self.url = url
        self._folder = Path(folder)
        self._read_only = read_only
        self._memory = MemoryStore()
        self._lock = threading.RLock()
        if not read_only:
            self._folder.mkdir(parents=True, exist_ok=True)
        elif not self._folder.is_dir():
            raise StoreError(f"there is no folder {self._folder}: index something first, or check the path")
        for file in sorted(self._folder.glob("*.shelf")):
            name, manifest, batches = read_snapshot_file(file)
            collection = self._memory.create(name, manifest)
            for batch in batches:
                collection.upsert(batch)

    def collections(self) -> list[str]:
        """The names of the collections, sorted."""
        return self._memory.collections()

    def create(self, name: str, manifest: Manifest) -> ShelfCollection:
        """A new empty collection."""
        self._check_writable()
        with self._lock:
            inner = self._memory.create(name, manifest)
            inner.snapshot(self._file(name))
        return self.open(name)

    def open(self, name: str = DEFAULT_COLLECTION) -> ShelfCollection:
        """A collection that exists."""
        return ShelfCollection(self._memory.open(name), self._writing)

    def drop(self, name: str) -> None:
        """Remove a collection and all in it."""
        self._check_writable()
        with self._lock:
            if name not in self.collections():
                raise missing(name, self.collections())
            self._file(name).unlink(missing_ok=True)
            self._memory.drop(name)

    def restore(self, path: str | Path, name: str | None = None) -> ShelfCollection:
        """A new collection from a snapshot, all of it or none."""
        self._check_writable()
        with self._lock:
            inner = self._memory.restore(path, name)
            inner.snapshot(self._file(inner.name))
        return self.open(inner.name)

    def close(self) -> None:
        """Everything is on disk already."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
        /,
    ) -> None:
        self.close()

    @contextmanager
    def _writing(self, collection: Collection) -> Iterator[None]:
        """One write at a time, on disk when it ends."""
        self._check_writable()
        with self._lock:
            yield
            collection.snapshot(self._file(collection.name))

    def _check_writable(self) -> None:
        if self._read_only:
            raise StoreError(f"{self.url} was opened with read_only=True: open it without to change it")

    def _file(self, name: str) -> Path:
        """By a hash, since a name may hold anything that can be printed."""
        return self._folder / f"{hashlib.blake2b(name.encode(), digest_size=16).hexdigest()}.shelf"
