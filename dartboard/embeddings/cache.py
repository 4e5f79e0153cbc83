"""Vector caches: a model with its vectors on disk, and recently used arrays in memory.

The key on disk is the model's fingerprint, the task and the text, so a change of weights, pooling or prefixes
is a cache miss. Each batch is saved as soon as it is encoded: an interrupted run loses at most one batch.
"""

import hashlib
import os
import sqlite3
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import Any, Self

import numpy as np

from dartboard.embeddings.base import EmbeddingModel, Progress, TaskModel, WrappedModel
from dartboard.embeddings.descriptions import TaskType
from dartboard.embeddings.texts import batches_by_length, check_texts
from dartboard.embeddings.vectors import Vectors
from dartboard.errors import ConfigError, StoreError

CACHE_VARIABLE = "DARTBOARD_CACHE"
_FILE = "vectors-2.sqlite"  # with the number of its format: another release keeps its own

_PASSED_THROUGH = frozenset({"count_tokens", "description", "token_vectors", "tokens", "word_pieces"})
_APPLICATION = 0x44415256  # "DARV"
_KEYS_PER_QUERY = 500
_BUSY_SECONDS = 60


class CachedModel(WrappedModel, TaskModel):
    """Another model with a cache on disk: no text is encoded twice.

    Other methods of the model (``token_vectors``, ``count_tokens``) are passed through and not cached.

    Args:
        model: The model that encodes.
        path: The file; None is ``vectors-2.sqlite`` in the user's cache folder.

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
    """``vectors-2.sqlite`` in the folder of ``DARTBOARD_CACHE``, otherwise in the user's cache folder."""
    if folder := os.environ.get(CACHE_VARIABLE):
        return Path(folder) / _FILE
    import platformdirs

    return Path(platformdirs.user_cache_dir("dartboard", appauthor=False)) / _FILE


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

    One table, and one transaction a batch: a process killed during a batch loses only that batch.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = Lock()
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._connection = sqlite3.connect(path, timeout=_BUSY_SECONDS, check_same_thread=False)
        except (OSError, sqlite3.Error) as error:
            raise ConfigError(f"no vector cache can be kept at {path}: {error}", field="path") from error
        with self._reported():
            stamp = self._connection.execute("PRAGMA application_id").fetchone()[0]
            tables = self._connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
            if tables and stamp != _APPLICATION:
                raise ConfigError(
                    f"{path} is no vector cache of this release: delete it or give another path", field="path"
                )
            self._connection.execute("PRAGMA journal_mode = WAL")
            self._connection.execute("PRAGMA synchronous = NORMAL")
            self._connection.execute(f"PRAGMA application_id = {_APPLICATION}")
            self._connection.execute("CREATE TABLE IF NOT EXISTS vectors (key BLOB PRIMARY KEY, vector BLOB)")

    def read(self, keys: Sequence[bytes], dim: int) -> dict[bytes, Vectors]:
        """The vectors of ``dim`` dimensions for these keys, as far as they are there."""
        found: dict[bytes, Vectors] = {}
        with self._reported():
            for start in range(0, len(keys), _KEYS_PER_QUERY):
                some = keys[start : start + _KEYS_PER_QUERY]
                marks = ",".join("?" * len(some))
                query = f"SELECT key, vector FROM vectors WHERE key IN ({marks})"  # noqa: S608 - marks only
                for key, blob in self._connection.execute(query, some):
                    if len(blob) == 4 * dim:
                        found[key] = np.frombuffer(blob, "<f4").astype(np.float32)
        return found

    def write(self, vectors: Mapping[bytes, Vectors]) -> None:
        """Write these vectors: all of them or, if the process dies now, none."""
        rows = [(key, vector.astype("<f4").tobytes()) for key, vector in vectors.items()]
        with self._reported(), self._connection:
            self._connection.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?)", rows)

    def close(self) -> None:
        """Close the file; it cannot be used afterwards."""
        with self._lock:
            self._connection.close()

    @contextmanager
    def _reported(self) -> Iterator[None]:
        """One thread at a time; an error of SQLite says what to do."""
        with self._lock:
            try:
                yield
            except sqlite3.Error as error:
                raise StoreError(
                    f"the vector cache {self.path} cannot be used ({error}): delete it if it is damaged; its "
                    "vectors are computed again"
                ) from error
