"""The interfaces of models: :class:`EmbeddingModel` and :class:`PairScorer`.

::

    EmbeddingModel      the specification's interface: encode and embedding_dim are enough
    ├── WrappedModel    another model with batching or caching
    └── TaskModel       a model that treats queries and passages differently
        └── BatchModel  one that encodes batch by batch: ONNX, torch, HTTP
"""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Protocol

import numpy as np

from dartboard.embeddings.descriptions import ModelDescription, TaskType
from dartboard.embeddings.texts import batches_by_length, check_batch_size, check_texts
from dartboard.embeddings.vectors import Scores, Vectors, check_vectors
from dartboard.errors import InvalidInputError

Progress = Callable[[int], None]

_PROBES = [
    "The quick brown fox jumps over the lazy dog.",
    "Consumers fall behind when messages take long to handle.",
    "def add(a, b): return a + b",
]


class EmbeddingModel(ABC):
    """Encode texts as ``(n, d)`` float32 vectors.

    Subclasses implement :meth:`encode` and :attr:`embedding_dim`. Callers use :meth:`encode_query`,
    :meth:`encode_queries` and :meth:`encode_documents`, which pass the task to models that distinguish
    tasks and check the vectors.

    Example:
        >>> class LetterCounts(EmbeddingModel):
        ...     embedding_dim = 26
        ...
        ...     def encode(self, texts, batch_size=32):
        ...         texts = [texts] if isinstance(texts, str) else texts
        ...         return np.array([[text.count(chr(97 + i)) for i in range(26)] for text in texts])
    """

    @abstractmethod
    def encode(self, texts: str | Sequence[str], batch_size: int = 32) -> Vectors:
        """Encode texts.

        Args:
            texts: A list, or a single string, which is a list of one.
            batch_size: How many texts the model may encode at once.

        Returns:
            ``(n, d)``, one row per text, in order.
        """

    @property
    @abstractmethod
    def embedding_dim(self) -> int:
        """Dimension of the vectors."""

    @property
    def name(self) -> str:
        """The model's name for people."""
        return type(self).__qualname__

    @cached_property
    def fingerprint(self) -> str:
        """An id that changes when the vectors change: the key of caches and index manifests.

        By default it is computed from the vectors of a few sentences. They are rounded so coarsely that
        another processor usually gives the same result. If it does not, a cache misses; it never returns
        vectors of another model.
        """
        vectors = self.encode_documents(_PROBES).astype(np.float64)
        coarse = np.round(vectors / np.sqrt(np.mean(vectors**2)), 2) + 0.0
        digest = hashlib.sha256(coarse.tobytes()).hexdigest()[:16]
        return f"{type(self).__module__}.{type(self).__qualname__}:{self.embedding_dim}:{digest}"

    @property
    def sigma(self) -> float | None:
        """The calibrated σ for this model on the scaled cosine distance, or None."""
        return None

    @property
    def max_tokens(self) -> int | None:
        """How many tokens of a text the model reads, special tokens included; None if that is not known."""
        return None

    def encode_task(
        self,
        texts: str | Sequence[str],
        task: TaskType,
        *,
        batch_size: int = 32,
        progress: Progress | None = None,
    ) -> Vectors:
        """Encode texts for a task. This base class ignores the task.

        Args:
            texts: A list, or a single string, which is a list of one.
            task: What the vectors are for, also by name.
            batch_size: How many texts the model may encode at once.
            progress: Called with the number of texts finished so far.

        Returns:
            ``(n, d)`` float32, checked.

        Raises:
            InvalidInputError: a text is blank or not a string.
            ConfigError: the task is unknown, or the batch size is below 1.
            ModelError: the model returned vectors that cannot be used.
        """
        listed = check_texts(texts)
        TaskType(task)  # raises for an unknown task
        check_batch_size(batch_size)
        raw = self.encode(listed, batch_size) if listed else np.empty((0, self.embedding_dim))
        vectors = check_vectors(raw, count=len(listed), dim=self.embedding_dim, model_name=self.name)
        if progress:
            progress(len(listed))
        return vectors

    def encode_query(self, text: str, *, task: TaskType = TaskType.RETRIEVAL_QUERY) -> Vectors:
        """Encode one query.

        Args:
            text: The query.
            task: What the vector is for.

        Returns:
            ``(d,)`` float32.

        Raises:
            InvalidInputError: the text is blank or not a string.
            ModelError: the model returned a vector that cannot be used.
        """
        if not isinstance(text, str):
            raise InvalidInputError(f"a query is one string, got {type(text).__name__}: see encode_queries")
        vector: Vectors = self.encode_task([text], task)[0]
        return vector

    def encode_queries(
        self,
        texts: Sequence[str],
        *,
        task: TaskType = TaskType.RETRIEVAL_QUERY,
        batch_size: int = 32,
        progress: Progress | None = None,
    ) -> Vectors:
        """Encode several queries.

        Args:
            texts: The queries.
            task: What the vectors are for.
            batch_size: How many texts the model may encode at once.
            progress: Called with the number of texts finished so far.

        Returns:
            ``(n, d)`` float32, one row per query.

        Raises:
            InvalidInputError: a text is blank or not a string.
            ModelError: the model returned vectors that cannot be used.
        """
        return self.encode_task(texts, task, batch_size=batch_size, progress=progress)

    def encode_documents(
        self, texts: Sequence[str], *, batch_size: int = 32, progress: Progress | None = None
    ) -> Vectors:
        """Encode passages.

        Args:
            texts: The passages.
            batch_size: How many texts the model may encode at once.
            progress: Called with the number of texts finished so far.

        Returns:
            ``(n, d)`` float32, one row per passage.

        Raises:
            InvalidInputError: a text is blank or not a string.
            ModelError: the model returned vectors that cannot be used.
        """
        return self.encode_task(texts, TaskType.RETRIEVAL_DOCUMENT, batch_size=batch_size, progress=progress)


class WrappedModel(EmbeddingModel):
    """A wrapper around ``model``; vectors, name and fingerprint stay the same."""

    model: EmbeddingModel

    @property
    def embedding_dim(self) -> int:
        """The wrapped model's dimension."""
        return self.model.embedding_dim

    @property
    def name(self) -> str:
        """The wrapped model's name."""
        return self.model.name

    @property
    def fingerprint(self) -> str:
        """The wrapped model's fingerprint: the vectors are the same."""
        return self.model.fingerprint

    @property
    def sigma(self) -> float | None:
        """The wrapped model's σ."""
        return self.model.sigma

    @property
    def max_tokens(self) -> int | None:
        """The wrapped model's limit."""
        return self.model.max_tokens


class TaskModel(EmbeddingModel):
    """A model that distinguishes tasks: subclasses implement :meth:`encode_task`; :meth:`encode` calls it."""

    def encode(
        self,
        texts: str | Sequence[str],
        batch_size: int = 32,
        *,
        task: TaskType = TaskType.RETRIEVAL_DOCUMENT,
        progress: Progress | None = None,
    ) -> Vectors:
        """Like :meth:`encode_task`; texts are passages unless ``task`` is given."""
        return self.encode_task(texts, task, batch_size=batch_size, progress=progress)


class BatchModel(TaskModel):
    """A model that encodes batch by batch; subclasses encode one batch."""

    @property
    @abstractmethod
    def description(self) -> ModelDescription:
        """The model's dimension, limits and prefixes."""

    @abstractmethod
    def _encode_batch(self, texts: list[str], task: TaskType) -> Vectors:
        """``(len(texts), d)``: one batch of checked texts, without prefixes."""

    @property
    def name(self) -> str:
        """The name in the description."""
        return self.description.name

    @property
    def embedding_dim(self) -> int:
        """The dimension in the description."""
        return self.description.dim

    @property
    def sigma(self) -> float | None:
        """The σ in the description."""
        return self.description.sigma

    @property
    def max_tokens(self) -> int | None:
        """The limit in the description."""
        return self.description.max_tokens

    def encode_task(
        self,
        texts: str | Sequence[str],
        task: TaskType,
        *,
        batch_size: int = 32,
        progress: Progress | None = None,
    ) -> Vectors:
        """Encode in batches of similar length to avoid padding; rows keep the given order."""
        listed, task, stated = check_texts(texts), TaskType(task), self.description
        vectors = np.empty((len(listed), stated.dim), dtype=np.float32)
        done = 0
        for rows in batches_by_length(listed, batch_size):
            raw = self._encode_batch([listed[row] for row in rows], task)
            vectors[rows] = check_vectors(raw, count=len(rows), dim=stated.dim, model_name=stated.name)
            done += len(rows)
            if progress:
                progress(done)
        return vectors


PAPER_BOUNDS = (-11.6, 11.4)
"""Logits of the paper's cross-encoder for "nothing in common" and "as close as possible"."""


class PairScorer(Protocol):
    """Scores pairs of texts; higher is closer.

    ``bounds`` are the scores for "nothing in common" and "as close as possible". With them, a caller can
    rescale the scores of any scorer to a distance.
    """

    @property
    def bounds(self) -> tuple[float, float]:
        """Lowest and highest expected score; single scores may lie slightly outside."""

    def score(self, query: str, passages: Sequence[str]) -> Scores:
        """``(n,)``: the score of the query with each passage."""

    def score_matrix(self, passages: Sequence[str]) -> Scores:
        """``(n, n)``, symmetric: the score of each passage with each, including itself."""
