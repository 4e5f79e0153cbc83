"""Embedding models over HTTP: endpoints with OpenAI's or Google's protocol."""

import base64
import binascii
import hashlib
import time
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from typing import Any, ClassVar, Literal, Self

import numpy as np

from dartboard.embeddings.base import BatchModel
from dartboard.embeddings.by_name import GEMINI_URL, OPENAI_URL
from dartboard.embeddings.descriptions import ModelDescription, TaskType, known_description
from dartboard.embeddings.vectors import Vectors
from dartboard.errors import ConfigError, EndpointError
from dartboard.http_client import Endpoint, Patience, checked_key
from dartboard.utils import unit_rows

PATIENCE = Patience()


class RemoteModel(BatchModel):
    """A model at an endpoint; subclasses build the request of a batch and parse the response."""

    max_batch: ClassVar[int]
    """Maximum texts per request."""

    def __init__(
        self,
        endpoint: Endpoint,
        model: str,
        *,
        dimensions: int | None,
        description: ModelDescription | None,
    ) -> None:
        if not model:
            raise ConfigError("model must be the endpoint's name of the model, got ''")
        if dimensions is not None and dimensions < 1:
            raise ConfigError(f"dimensions must be >= 1 or None for the model's own, got {dimensions}")
        self._endpoint = endpoint
        self._model = model
        self._dimensions = dimensions
        self._stated = description or known_description(model)

    @abstractmethod
    def _ask(self, texts: list[str], task: TaskType) -> list[Any]:
        """Send one request: the vectors of prefixed texts, in order."""

    @cached_property
    def description(self) -> ModelDescription:
        """The given or known description; an unknown dimension is found by encoding one word."""
        dim = self._dimensions or (self._stated.dim if self._stated else None)
        if dim is None:
            dim = self._vectors(self._ask(["dimension"], TaskType.RETRIEVAL_DOCUMENT)).shape[1]
        stated = self._stated or ModelDescription(name=self._model, dim=dim)
        return replace(stated, name=self._model, dim=dim)

    @property
    def max_tokens(self) -> int | None:
        """The limit in the given or known description; None for other models."""
        return self._stated.max_tokens if self._stated else None

    @cached_property
    def fingerprint(self) -> str:
        """Name and a hash of endpoint, model and description: weights behind HTTP cannot be hashed."""
        known = (
            type(self).__name__,
            self._endpoint.base_url,
            self._dimensions,
            replace(self.description, sigma=None),
        )
        return f"{self.name}:{hashlib.sha256(repr(known).encode()).hexdigest()[:16]}"

    def close(self) -> None:
        """Close the connections."""
        self._endpoint.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"{type(self).__name__}(model={self._model!r}, base_url={self._endpoint.base_url!r})"

    def _encode_batch(self, texts: list[str], task: TaskType) -> Vectors:
        prefix = self.description.prefix(task)
        answers: list[Any] = []
        for start in range(0, len(texts), self.max_batch):
            some = [prefix + text for text in texts[start : start + self.max_batch]]
            answers += self._ask(some, task)
        vectors = self._vectors(answers)
        return unit_rows(vectors) if self.description.normalize else vectors

    def _rows(self, answer: Any, key: str, count: int) -> list[Any]:
        """The list under a key of the response; it must have one entry per text."""
        rows = answer.get(key) if isinstance(answer, dict) else None
        if not isinstance(rows, list) or len(rows) != count:
            got = len(rows) if isinstance(rows, list) else type(rows).__name__
            raise EndpointError(f"{self!r} returned {got} vectors for {count} texts")
        return rows

    def _vectors(self, answers: list[Any]) -> Vectors:
        try:
            raw = np.array(answers)
            if raw.dtype.kind not in "fiu":
                raise TypeError(raw.dtype)
            with np.errstate(over="ignore"):
                vectors = raw.astype(np.float32)
        except (TypeError, ValueError, OverflowError):
            raise EndpointError(
                f"{self!r} returned vectors that are not lists of numbers of one length"
            ) from None
        if vectors.ndim != 2 or not vectors.shape[1]:
            raise EndpointError(f"{self!r} returned vectors of shape {vectors.shape} instead of rows")
        return vectors


class OpenAIModel(RemoteModel):
    """Any endpoint with OpenAI's ``/v1/embeddings``: OpenAI, Ollama, vLLM, TEI, LM Studio …

    Args:
        base_url: The URL before ``/embeddings``, as in ``http://localhost:11434/v1``.
        model: The endpoint's name of the model.
        api_key: None uses ``OPENAI_API_KEY``; local servers need none.
        dimensions: Sent to models that can shorten their vectors.
        description: The model's description; None uses the known one of a model of that name. Tasks become
            its prefixes.
        encoding_format: The format of vectors in the response.
        patience: Time limit and retries.
        sleep: Waits between attempts; tests replace it.

    Raises:
        ConfigError: a URL, key or dimension is not valid.
    """

    max_batch = 2048

    def __init__(
        self,
        base_url: str = OPENAI_URL,
        model: str = "text-embedding-3-small",
        api_key: str | None = None,
        dimensions: int | None = None,
        *,
        description: ModelDescription | None = None,
        encoding_format: Literal["float", "base64"] = "float",
        patience: Patience = PATIENCE,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        key = checked_key(api_key, "OPENAI_API_KEY")
        if not key and base_url.rstrip("/") == OPENAI_URL:
            reason = f"{model!r} at {OPENAI_URL} needs a key: set OPENAI_API_KEY or give api_key"
            raise ConfigError(reason, field="api_key")
        headers = {"authorization": f"Bearer {key}"} if key else {}
        endpoint = Endpoint(base_url, headers=headers, secret=key, patience=patience, sleep=sleep)
        super().__init__(endpoint, model, dimensions=dimensions, description=description)
        self._encoding_format = encoding_format

    def _ask(self, texts: list[str], task: TaskType) -> list[Any]:
        body: dict[str, Any] = {
            "model": self._model,
            "input": texts,
            "encoding_format": self._encoding_format,
        }
        if self._dimensions is not None:
            body["dimensions"] = self._dimensions
        answer = self._endpoint.post("/embeddings", body)
        rows = self._rows(answer, "data", len(texts))
        try:
            by_index = {int(row.get("index", at)): row["embedding"] for at, row in enumerate(rows)}
            return [_floats(by_index[at]) for at in range(len(texts))]
        except (AttributeError, KeyError, TypeError, ValueError, binascii.Error) as error:
            raise EndpointError(
                f"{self!r} returned rows without a valid index and embedding: {error!r}"
            ) from error


class GeminiModel(RemoteModel):
    """Google's embedding models over the Gemini API.

    Like :class:`OpenAIModel`, but tasks are sent as the API's own task types, ``api_key`` None uses
    ``GEMINI_API_KEY``, and ``base_url`` is the URL before ``/models``, for proxies and gateways.
    """

    max_batch = 100

    def __init__(
        self,
        model: str = "models/text-embedding-004",
        api_key: str | None = None,
        dimensions: int | None = None,
        *,
        base_url: str = GEMINI_URL,
        description: ModelDescription | None = None,
        patience: Patience = PATIENCE,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        key = checked_key(api_key, "GEMINI_API_KEY")
        if key is None:
            raise ConfigError(f"{model!r} needs a key: set GEMINI_API_KEY or give api_key", field="api_key")
        headers = {"x-goog-api-key": key}
        endpoint = Endpoint(base_url, headers=headers, secret=key, patience=patience, sleep=sleep)
        path = model if "/" in model or not model else f"models/{model}"
        super().__init__(endpoint, path, dimensions=dimensions, description=description)

    def _ask(self, texts: list[str], task: TaskType) -> list[Any]:
        shared: dict[str, Any] = {"model": self._model, "taskType": task.value}
        if self._dimensions is not None:
            shared["outputDimensionality"] = self._dimensions
        body = {"requests": [shared | {"content": {"parts": [{"text": text}]}} for text in texts]}
        answer = self._endpoint.post(f"/{self._model}:batchEmbedContents", body)
        rows = self._rows(answer, "embeddings", len(texts))
        try:
            return [row["values"] for row in rows]
        except (KeyError, TypeError) as error:
            raise EndpointError(f"{self!r} returned embeddings without values: {error!r}") from error


def _floats(embedding: Any) -> Any:
    """A vector, from a list of numbers or from base64 of little-endian float32."""
    if isinstance(embedding, str):
        return np.frombuffer(base64.b64decode(embedding, validate=True), "<f4")
    return embedding
