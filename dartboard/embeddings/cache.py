"""Never encode the same text twice: an embedding model that remembers on disk.

Vectors are kept under the model's fingerprint, the task and the text, so a change of weights, pooling
or prefixes misses rather than lies. Each batch is kept as soon as it is encoded: an interrupted run
loses one batch at most.
"""

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np

from dartboard.embeddings.base import EmbeddingModel, Progress, TaskModel, WrappingModel
from dartboard.embeddings.descriptions import TaskType
from dartboard.embeddings.texts import batches_by_length, check_batch_size, check_texts
from dartboard.embeddings.vector_file import VectorFile
from dartboard.embeddings.vectors import Vectors

CACHE_VARIABLE = "DARTBOARD_CACHE"

_PASSED_THROUGH = frozenset(
    {"count_tokens", "description", "max_tokens", "token_vectors", "tokens", "word_pieces"}
)


class CachedModel(WrappingModel, TaskModel):
    """Another model, with its vectors kept in one file; ``None`` is the user's cache folder.

    What else the model can do (``token_vectors``, ``count_tokens``) is passed through, not cached.
    """

    def __init__(self, model: EmbeddingModel, path: str | Path | None = None) -> None:
        self.model = model
        self._file = VectorFile(Path(path) if path is not None else default_cache_path())

    @property
    def path(self) -> Path:
        """Where the vectors are kept."""
        return self._file.path

    def encode_task(
        self,
        texts: str | Sequence[str],
        task: TaskType,
        *,
        batch_size: int = 32,
        progress: Progress | None = None,
    ) -> Vectors:
        """As the model answers; a text that is known, or occurs twice in ``texts``, is not encoded again."""
        listed = check_texts(texts)
        check_batch_size(batch_size)
        keys = [self._key(text, task) for text in listed]
        found = self._file.read(list(dict.fromkeys(keys)), self.embedding_dim)
        missing = {key: text for key, text in zip(keys, listed, strict=True) if key not in found}
        if progress:
            progress(_finished(keys, found))
        new_keys, new_texts = list(missing), list(missing.values())
        for rows in batches_by_length(new_texts, batch_size):
            batch = self.model.encode_task([new_texts[row] for row in rows], task, batch_size=batch_size)
            new = {new_keys[row]: vector for row, vector in zip(rows, batch, strict=True)}
            self._file.write(new)
            found |= new
            if progress:
                progress(_finished(keys, found))
        return np.array([found[key] for key in keys], np.float32).reshape(len(keys), self.embedding_dim)

    def close(self) -> None:
        """Let go of the file."""
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
    """``vectors.sqlite`` in the folder ``DARTBOARD_CACHE`` names, else in the user's cache folder."""
    if folder := os.environ.get(CACHE_VARIABLE):
        return Path(folder) / "vectors.sqlite"
    import platformdirs

    return Path(platformdirs.user_cache_dir("dartboard", appauthor=False)) / "vectors.sqlite"


def _finished(keys: Sequence[bytes], found: dict[bytes, Vectors]) -> int:
    return sum(key in found for key in keys)
