"""Google's embedding models over the Gemini API."""

import time
from collections.abc import Callable
from typing import Any

from dartboard.embeddings.descriptions import ModelDescription, TaskType
from dartboard.embeddings.endpoint_names import GEMINI_URL
from dartboard.embeddings.remote import PATIENCE, Endpoint, Patience, RemoteModel, checked_key, counted
from dartboard.errors import ConfigError, EndpointError


class GeminiModel(RemoteModel):
    """Tasks are sent as the API's own task types; the key comes from ``api_key`` or ``GEMINI_API_KEY``.

    ``base_url`` ends before ``/models``; a proxy or a gateway has another one than Google.
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
            raise ConfigError("GeminiModel needs a key: give api_key or set GEMINI_API_KEY")
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
        rows = counted(answer.get("embeddings") if isinstance(answer, dict) else None, texts, self)
        try:
            return [row["values"] for row in rows]
        except (KeyError, TypeError) as error:
            raise EndpointError(f"{self!r} answered embeddings without values: {error!r}") from error
