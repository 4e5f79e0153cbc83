"""Embedding models of other libraries, used as one of ours.

A model is told by what it can do: ``embed_query`` and ``embed_documents`` (LangChain),
``get_query_embedding`` and ``get_text_embedding_batch`` (LlamaIndex). A text is the name of one of
dartboard's own, and None is the default one.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from threading import Lock
from typing import Any

import numpy as np

from dartboard.embeddings.base import EmbeddingModel, Progress
from dartboard.embeddings.by_name import default_model, model_by_name
from dartboard.embeddings.descriptions import TaskType, known_description
from dartboard.embeddings.texts import check_texts
from dartboard.embeddings.vectors import Vectors, check_vectors
from dartboard.errors import ConfigError, ModelError

_METHODS = (("embed_query", "embed_documents"), ("get_query_embedding", "get_text_embedding_batch"))
_ALLOWED = (
    "a dartboard EmbeddingModel, the name of one ('default', 'onnx:PATH' …), a LangChain Embeddings or a "
    "LlamaIndex BaseEmbedding"
)
_lock = Lock()


class ForeignModel(EmbeddingModel):
    """A model by two functions: one for a query, one for many passages."""

    def __init__(
        self,
        name: str,
        *,
        embed_query: Callable[[str], Any],
        embed_documents: Callable[[list[str]], Any],
    ) -> None:
        self._name = name
        self._embed_query = embed_query
        self._embed_documents = embed_documents
        self._dim: int | None = None

    @property
    def name(self) -> str:
        """What the other library calls it."""
        return self._name

    @property
    def embedding_dim(self) -> int:
        """The length of the vectors that it gave, or gives a first text."""
        if self._dim is None:
            self.encode_documents(["dimension"])
        return self._dim or 0

    @property
    def sigma(self) -> float | None:
        """The σ of the model of that name, where one is known."""
        known = known_description(self._name)
        return known.sigma if known else None

    def encode(self, texts: str | Sequence[str], batch_size: int = 32) -> Vectors:
        """Texts as passages."""
        return self.encode_task(texts, TaskType.RETRIEVAL_DOCUMENT, batch_size=batch_size)

    def encode_task(
        self,
        texts: str | Sequence[str],
        task: TaskType,
        *,
        batch_size: int = 32,
        progress: Progress | None = None,
    ) -> Vectors:
        """Checked ``(n, d)`` vectors; the other library makes its own batches."""
        listed = check_texts(texts)
        if not listed:
            return np.empty((0, self.embedding_dim), dtype=np.float32)
        as_passages = TaskType(task) is TaskType.RETRIEVAL_DOCUMENT
        raw = self._embed_documents(listed) if as_passages else [self._embed_query(text) for text in listed]
        vectors = check_vectors(raw, count=len(listed), dim=self._width(raw), model_name=self._name)
        self._dim = vectors.shape[1]
        if progress:
            progress(len(listed))
        return vectors

    def _width(self, raw: Any) -> int:
        try:
            return len(raw[0])
        except (TypeError, IndexError, KeyError) as error:
            raise ModelError(f"model {self._name!r} answered {type(raw).__name__}, not vectors") from error


class UnknownModel(ForeignModel):
    """Who made vectors that came ready-made: nothing is known of it, and it encodes nothing."""

    def __init__(self) -> None:
        super().__init__("unknown", embed_query=_refuse, embed_documents=_refuse)


def check_model(given: Any, name: str) -> None:
    """Something that :func:`as_model` takes, or an error; nothing is loaded."""
    if given is None or isinstance(given, EmbeddingModel) or _methods(given):
        return
    if not isinstance(given, str) or not given.strip():
        raise ConfigError(f"{name} must be {_ALLOWED}, got {type(given).__name__}")


def as_model(given: Any) -> EmbeddingModel:
    """A dartboard model of whatever was given; models by name are loaded once in a process."""
    check_model(given, "a model")
    if given is None:
        return default_model()
    if isinstance(given, EmbeddingModel):
        return given
    if isinstance(given, str):
        with _lock:
            return _named(given.strip())
    wrapped = getattr(given, "model", None)
    if isinstance(wrapped, EmbeddingModel):  # one of ours, on its way back
        return wrapped
    with _lock:
        return _wrapped(_Identity(given), _name_of(given))


class _Identity:
    """An object as a key: itself and no other, whatever it calls equal."""

    def __init__(self, given: Any) -> None:
        self.given = given

    def __hash__(self) -> int:
        return id(self.given)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Identity) and self.given is other.given


@lru_cache(maxsize=8)
def _wrapped(key: _Identity, name: str) -> ForeignModel:
    """One wrapper a model, for its vectors are cached under the wrapper."""
    embed_query, embed_documents = (getattr(key.given, method) for method in _methods(key.given))
    return ForeignModel(name, embed_query=embed_query, embed_documents=embed_documents)


@lru_cache(maxsize=8)
def _named(name: str) -> EmbeddingModel:
    return model_by_name(name)


def _methods(given: Any) -> tuple[str, ...]:
    """The names of its two methods, for a query and for passages."""
    for names in _METHODS:
        if not isinstance(given, type) and all(callable(getattr(given, name, None)) for name in names):
            return names
    return ()


def _name_of(given: Any) -> str:
    for attribute in ("model_name", "model"):
        name = getattr(given, attribute, None)
        if isinstance(name, str) and name.strip() and name != "unknown":
            return name
    return type(given).__qualname__


def _refuse(texts: Any) -> Any:
    raise ConfigError("the model that made these vectors is not known: say which one embeds the query")
