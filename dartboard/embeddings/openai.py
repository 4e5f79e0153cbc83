"""Any endpoint that speaks OpenAI's ``/v1/embeddings``: OpenAI, Ollama, vLLM, TEI, LM Studio …"""

import base64
import binascii
import time
from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from dartboard.embeddings.descriptions import ModelDescription, TaskType
from dartboard.embeddings.endpoint_names import OPENAI_URL
from dartboard.embeddings.remote import PATIENCE, Endpoint, Patience, RemoteModel, checked_key, counted
from dartboard.errors import EndpointError


class OpenAIModel(RemoteModel):
    """``base_url`` ends before ``/embeddings``, as in ``http://localhost:11434/v1``.

    The key comes from ``api_key`` or ``OPENAI_API_KEY``; local servers need none. ``dimensions`` is
    sent to models that can shorten their vectors. Tasks become the prefixes of ``description``.
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
        rows = counted(answer.get("data") if isinstance(answer, dict) else None, texts, self)
        try:
            by_index = {int(row.get("index", at)): row["embedding"] for at, row in enumerate(rows)}
            return [_floats(by_index[at]) for at in range(len(texts))]
        except (AttributeError, KeyError, TypeError, ValueError, binascii.Error) as error:
            raise EndpointError(
                f"{self!r} answered rows without a usable index and embedding: {error!r}"
            ) from error


def _floats(embedding: Any) -> Any:
    """A vector, from a list of numbers or from base64 of little-endian float32."""
    if isinstance(embedding, str):
        return np.frombuffer(base64.b64decode(embedding, validate=True), "<f4")
    return embedding
