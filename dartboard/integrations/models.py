"""Embedding models of other libraries, used as one of ours, and their vectors kept in memory.

A model is told by what it can do: ``embed_query`` and ``embed_documents`` (LangChain),
``get_query_embedding`` and ``get_text_embedding_batch`` (LlamaIndex). A text is the name of one of
dartboard's own, and None is the default one.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from threading import Lock
from typing import Any

import numpy as np

from dartboard.embeddings.base import EmbeddingModel, Progress, TaskModel
from dartboard.embeddings.by_name import default_model, model_by_name
from dartboard.embeddings.cache import ArrayCache
from dartboard.embeddings.descriptions import TaskType, known_description
from dartboard.embeddings.texts import check_texts
from dartboard.embeddings.vectors import Vectors, check_vectors
from dartboard.errors import ConfigError, ModelError

_METHODS = (("embed_query", "embed_documents"), ("get_query_embedding", "get_text_embedding_batch"))
_ALLOWED = (
    "a dartboard EmbeddingModel, the name of one ('default', 'onnx:PATH' …), a LangChain Embeddings or a "
    "LlamaIndex BaseEmbedding"
)
MAX_BYTES = 64 * 1024 * 1024
"""What the cached vectors of one model may take: 43,000 of 384 dimensions."""
BLANK = "."
"""What is embedded for a blank text, of which models make no vector."""
_lock = Lock()


class ForeignModel(TaskModel):
    """A model by two functions: one for a query, one for many passages."""

    def __init__(
        self,
        name: str,
        embed_query: Callable[[str], Any],
        embed_documents: Callable[[list[str]], Any],
    ) -> None:
        self._name = name
        self._embed_query = embed_query
        self._embed_documents = embed_documents
        self._dim = 0

    @property
    def name(self) -> str:
        """What the other library calls it."""
        return self._name

    @property
    def embedding_dim(self) -> int:
        """The length of the vectors that it gave, or gives a first text."""
        if not self._dim:
            self.encode_documents(["dimension"])
        return self._dim

    @property
    def sigma(self) -> float | None:
        """The σ of the model of that name, where one is known."""
        known = known_description(self._name)
        return known.sigma if known else None

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
        try:
            dim = len(raw[0])
        except (TypeError, IndexError, KeyError) as error:
            raise ModelError(f"model {self._name!r} answered {type(raw).__name__}, not vectors") from error
        vectors = check_vectors(raw, count=len(listed), dim=dim, model_name=self._name)
        self._dim = dim
        if progress:
            progress(len(listed))
        return vectors


class UnknownModel(ForeignModel):
    """Who made vectors that came ready-made: nothing is known of it, and it encodes nothing."""

    def __init__(self) -> None:
        super().__init__("unknown", _refuse, _refuse)


def _refuse(texts: Any) -> Any:
    raise ConfigError("the model that made these vectors is not known: say which one embeds the query")


def check_model(given: Any, field: str) -> None:
    """Something that :func:`as_model` takes, or an error; nothing is loaded."""
    if given is None or isinstance(given, EmbeddingModel) or _methods(given):
        return
    if not isinstance(given, str) or not given.strip():
        raise ConfigError(f"{field} must be {_ALLOWED}, got {type(given).__name__}", field=field)


def as_model(given: Any) -> EmbeddingModel:
    """A dartboard model of whatever was given; models by name are loaded once in a process."""
    check_model(given, "model")
    if given is None:
        return default_model()
    if isinstance(given, EmbeddingModel):
        return given
    with _lock:
        if isinstance(given, str):
            return _named(given.strip())
        wrapped = getattr(given, "model", None)
        if isinstance(wrapped, EmbeddingModel):  # one of ours, on its way back
            return wrapped
        return _wrapped(_Identity(given))


def encode_documents(model: EmbeddingModel, texts: Sequence[str]) -> list[Vectors]:
    """The vectors of passages, ``(d,)`` each; recent ones of the same model come from memory."""
    if not texts:
        return []
    known = _cache_of(_Identity(model))
    found = {text: known.get(text) for text in texts}
    missing = [text for text, vector in found.items() if vector is None]
    if missing:
        for text, vector in zip(missing, model.encode_documents(missing), strict=True):
            # A copy: a row of the whole batch would keep the batch in memory.
            found[text] = copied = vector.copy()
            known.put(text, copied)
    return [vector for text in texts if (vector := found[text]) is not None]


class ModelChoice:
    """A model as a component keeps it: by its name, loaded where it is first used, or the model itself.

    A deep copy shares the model; a name can be sent to another process.
    """

    def __init__(self, given: Any = None) -> None:
        check_model(given, "model")
        self.given = given

    def __deepcopy__(self, memo: Any) -> "ModelChoice":
        return self

    @property
    def model(self) -> EmbeddingModel:
        """The model."""
        return as_model(self.given)

    def embed_query(self, text: str) -> list[float]:
        """The vector of a question."""
        vector: list[float] = self.model.encode_query(text).tolist()
        return vector

    def embed_documents(self, texts: Sequence[str]) -> list[list[float]]:
        """One vector a text; a blank one gets that of a full stop, so that it does not end a whole run."""
        wordy = [text if text.strip() else BLANK for text in texts]
        vectors: list[list[float]] = self.model.encode_documents(wordy).tolist()
        return vectors


class _Identity:
    """An object as a key: itself and no other, whatever it calls equal."""

    def __init__(self, given: Any) -> None:
        self.given = given

    def __hash__(self) -> int:
        return id(self.given)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Identity) and self.given is other.given


@lru_cache(maxsize=8)
def _cache_of(model: _Identity) -> ArrayCache:
    return ArrayCache(MAX_BYTES)


@lru_cache(maxsize=8)
def _wrapped(key: _Identity) -> ForeignModel:
    """One wrapper a model, for vectors are cached by the wrapper."""
    embed_query, embed_documents = (getattr(key.given, method) for method in _methods(key.given))
    return ForeignModel(_name_of(key.given), embed_query, embed_documents)


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
