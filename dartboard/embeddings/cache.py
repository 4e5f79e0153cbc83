"""Vector caches: a model with its vectors on disk, and recently used arrays in memory.

The key on disk is the model's fingerprint, the task and the text, so a change of weights, pooling or prefixes
is a cache miss. Each batch is saved as soon as it is encoded: an interrupted run loses at most one batch.
diskcache and cachetools would be new dependencies for a few lines of SQLite and OrderedDict, and here a
damaged file is replaced instead of raising an error.
"""

import hashlib
import logging
import os
import sqlite3
import time
import zlib
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import Any, Self

import numpy as np

from dartboard.embeddings.base import EmbeddingModel, Progress, TaskModel, WrappedModel
from dartboard.embeddings.descriptions import TaskType
from dartboard.embeddings.texts import batches_by_length, check_texts
from dartboard.embeddings.vectors import Vectors
from dartboard.errors import ConfigError

logger = logging.getLogger(__name__)

CACHE_VARIABLE = "DARTBOARD_CACHE"

_PASSED_THROUGH = frozenset(
    {"count_tokens", "description", "max_tokens", "token_vectors", "tokens", "word_pieces"}
)
_APPLICATION = 0x44415254  # "DART"
_FORMAT = 1
_KEYS_PER_QUERY = 500
_BUSY_SECONDS = 60
_DAMAGE = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
_SCHEMA = "CREATE TABLE IF NOT EXISTS vectors (key BLOB PRIMARY KEY, vector BLOB, checksum INTEGER)"


class CachedModel(WrappedModel, TaskModel):
    """Another model with a cache on disk: no text is encoded twice.

    Other methods of the model (``token_vectors``, ``count_tokens``) are passed through and not cached.

    Args:
        model: The model that encodes.
        path: The file; None is ``vectors.sqlite`` in the user's cache folder.

    Raises:
        ConfigError: the cache cannot be created there.

    Example:
        >>> with CachedModel(default_model(), "vectors.sqlite") as model:
        ...     model.encode_documents(texts)
    """

    def __init__(self, model: EmbeddingModel, path: str | Path | None = None) -> None:
        self.model = model
        self._file = VectorFile(Path(path) if path is not None else default_cache_path())

    @property
    def path(self) -> Path:
        """The cache file."""
        return self._file.path

    def encode_task(
        self,
        texts: str | Sequence[str],
        task: TaskType,
        *,
        batch_size: int = 32,
        progress: Progress | None = None,
    ) -> Vectors:
        """Like the model's; cached texts and repeated texts are not encoded again."""
        listed = check_texts(texts)
        keys = [self._key(text, task) for text in listed]
        found = self._file.read(list(dict.fromkeys(keys)), self.embedding_dim)
        missing = {key: text for key, text in zip(keys, listed, strict=True) if key not in found}
        if progress:
            progress(sum(key in found for key in keys))
        new_keys, new_texts = list(missing), list(missing.values())
        for rows in batches_by_length(new_texts, batch_size):
            batch = self.model.encode_task([new_texts[row] for row in rows], task, batch_size=batch_size)
            new = {new_keys[row]: vector for row, vector in zip(rows, batch, strict=True)}
            self._file.write(new)
            found |= new
            if progress:
                progress(sum(key in found for key in keys))
        return np.array([found[key] for key in keys], np.float32).reshape(len(keys), self.embedding_dim)

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _key(self, text: str, task: TaskType) -> bytes:
        parts = (self.fingerprint.encode(), task.encode(), hashlib.sha256(text.encode()).digest())
        return hashlib.sha256(b"\0".join(parts)).digest()

    def __getattr__(self, name: str) -> Any:
        if name in _PASSED_THROUGH:
            return getattr(self.model, name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")


def default_cache_path() -> Path:
    """``vectors.sqlite`` in the folder of ``DARTBOARD_CACHE``, otherwise in the user's cache folder."""
    if folder := os.environ.get(CACHE_VARIABLE):
        return Path(folder) / "vectors.sqlite"
    import platformdirs

    return Path(platformdirs.user_cache_dir("dartboard", appauthor=False)) / "vectors.sqlite"


class ArrayCache:
    """An LRU cache of arrays by text, up to ``max_bytes``. Thread-safe."""

    def __init__(self, max_bytes: int) -> None:
        if max_bytes < 0:
            raise ConfigError(f"cache_bytes must be >= 0, got {max_bytes}")
        self.max_bytes = max_bytes
        self.bytes = 0
        self._kept: OrderedDict[str, Vectors] = OrderedDict()
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self._kept)

    def get(self, text: str) -> Vectors | None:
        """The array, which becomes the most recently used, or None."""
        with self._lock:
            if text in self._kept:
                self._kept.move_to_end(text)
            return self._kept.get(text)

    def put(self, text: str, array: Vectors) -> None:
        """Add an array; one larger than the whole cache is not added."""
        with self._lock:
            if text in self._kept:
                self.bytes -= self._kept.pop(text).nbytes
            if array.nbytes > self.max_bytes:
                return
            self._kept[text] = array
            self.bytes += array.nbytes
            while self.bytes > self.max_bytes:
                self.bytes -= self._kept.popitem(last=False)[1].nbytes


class VectorFile:
    """A dictionary from 32-byte keys to vectors in one SQLite file, shared by threads and processes.

    Write-ahead logging lets several processes read and write at once; a process killed during a batch loses
    only that batch. Every vector has a checksum. A damaged file is renamed and a new one started: a cache may
    lose entries, but it must not fail or return wrong vectors.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = Lock()
        self._last_trouble = ""
        if path.is_dir():
            raise ConfigError(
                f"{path} is a folder: give the path of a file in it, e.g. {path / 'vectors.sqlite'}"
            )
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ConfigError(f"no vector cache can be kept at {path}: {error}") from error
        self._connection = self._open_or_replace(thorough=False)

    def read(self, keys: Sequence[bytes], dim: int) -> dict[bytes, Vectors]:
        """The valid vectors of ``dim`` dimensions for these keys; all others count as missing."""
        found: dict[bytes, Vectors] = {}
        with self._lock:
            try:
                for start in range(0, len(keys), _KEYS_PER_QUERY):
                    some = keys[start : start + _KEYS_PER_QUERY]
                    marks = ",".join("?" * len(some))
                    query = f"SELECT key, vector, checksum FROM vectors WHERE key IN ({marks})"  # noqa: S608 - marks only
                    for key, blob, checksum in self._connection.execute(query, some):
                        whole = isinstance(key, bytes) and isinstance(blob, bytes) and len(blob) == 4 * dim
                        if whole and checksum == _checksum(key, blob):
                            found[key] = np.frombuffer(blob, "<f4").astype(np.float32)
            except sqlite3.Error as error:
                self._survive(error)
        return found

    def write(self, vectors: Mapping[bytes, Vectors]) -> None:
        """Write these vectors: all of them or, if the process dies now, none."""
        rows = []
        for key, vector in vectors.items():
            blob = vector.astype("<f4").tobytes()
            rows.append((key, blob, _checksum(key, blob)))
        with self._lock:
            try:
                with self._connection:
                    self._connection.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?, ?)", rows)
            except sqlite3.Error as error:
                self._survive(error)

    def close(self) -> None:
        """Close the file; it cannot be used afterwards."""
        with self._lock:
            self._connection.close()

    def _survive(self, error: sqlite3.Error) -> None:
        """Replace a damaged file; after any other error (disk full, locked), continue without the cache."""
        if not _is_damage(error):
            if str(error) != self._last_trouble:
                logger.warning("vector cache %s cannot be used, continuing without it: %s", self.path, error)
            self._last_trouble = str(error)
            return
        self._connection.close()
        self._connection = self._open_or_replace(thorough=True)

    def _open_or_replace(self, *, thorough: bool) -> sqlite3.Connection:
        try:
            return _open(self.path, thorough=thorough)
        except sqlite3.Error as error:
            if not _is_damage(error):
                raise ConfigError(f"vector cache {self.path} cannot be opened: {error}") from error
            _set_aside(self.path, error)
            return _open(self.path, thorough=False)


def _open(path: Path, *, thorough: bool) -> sqlite3.Connection:
    """Open a cache file; ``thorough`` checks the whole file for damage."""
    connection = sqlite3.connect(path, timeout=_BUSY_SECONDS, check_same_thread=False)
    try:
        # Tables are counted first: if another process has just created ours, it has also stamped the file.
        tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        stamp = connection.execute("PRAGMA application_id").fetchone()[0]
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        if tables and stamp != _APPLICATION:
            raise ConfigError(f"{path} is a database of another program: give the cache a path of its own")
        if version not in (0, _FORMAT):
            raise ConfigError(
                f"{path} has cache format {version}, this dartboard reads {_FORMAT}: give another path"
            )
        if thorough:
            (problem,) = connection.execute("PRAGMA quick_check(1)").fetchone()
            if problem != "ok":
                error = sqlite3.DatabaseError(problem)
                error.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
                raise error
        if version == 0:
            _create(connection)
        connection.execute("PRAGMA synchronous = NORMAL")
    except BaseException:
        connection.close()
        raise
    return connection


def _create(connection: sqlite3.Connection) -> None:
    """Several processes may do this at once; switching to write-ahead logging does not wait by itself."""
    for attempt in range(_BUSY_SECONDS * 10):
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            break
        except sqlite3.OperationalError:
            if attempt + 1 == _BUSY_SECONDS * 10:
                raise
            time.sleep(0.1)
    with connection:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute(_SCHEMA)
        connection.execute(f"PRAGMA application_id = {_APPLICATION}")
        connection.execute(f"PRAGMA user_version = {_FORMAT}")


def _set_aside(path: Path, error: sqlite3.Error) -> None:
    """Rename the file and its log; nothing is deleted."""
    kept = path.with_name(f"{path.name}.damaged-{time.time_ns()}")
    for suffix in ("", "-wal", "-shm"):
        part = path.with_name(path.name + suffix)
        with suppress(FileNotFoundError):
            part.rename(kept.with_name(kept.name + suffix))
    logger.warning("vector cache %s is damaged (%s): renamed to %s, starting a new one", path, error, kept)


def _is_damage(error: sqlite3.Error) -> bool:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in _DAMAGE


def _checksum(key: bytes, blob: bytes) -> int:
    return zlib.crc32(blob, zlib.crc32(key))
