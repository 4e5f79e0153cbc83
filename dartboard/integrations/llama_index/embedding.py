"""Dartboard's models for LlamaIndex's indexes."""

import asyncio
from typing import Any

from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.bridge.pydantic import PrivateAttr

from dartboard.embeddings.base import EmbeddingModel
from dartboard.errors import ConfigError
from dartboard.integrations.models import as_model


class DartboardEmbedding(BaseEmbedding):
    """A dartboard model, by default the one that needs no server and no key, for LlamaIndex's indexes."""

    _model: Any = PrivateAttr()

    def __init__(self, model: Any = None, **options: Any) -> None:
        loaded = as_model(model)
        named = options.get("model_name", loaded.name)
        if model is None and named != loaded.name:
            raise ConfigError(
                f"{named!r} is not the default model ({loaded.name}): give the model itself or its name as "
                "model, as in DartboardEmbedding.from_dict(saved, model=…)"
            )
        super().__init__(**{"model_name": loaded.name} | options)
        self._model = loaded

    @classmethod
    def class_name(cls) -> str:
        """The name in serialised pipelines."""
        return "DartboardEmbedding"

    @property
    def model(self) -> EmbeddingModel:
        """The model itself."""
        model: EmbeddingModel = self._model
        return model

    def _get_query_embedding(self, query: str) -> list[float]:
        vector: list[float] = self._model.encode_query(query).tolist()
        return vector

    def _get_text_embedding(self, text: str) -> list[float]:
        return self._get_text_embeddings([text])[0]

    def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        vectors: list[list[float]] = self._model.encode_documents(texts).tolist()
        return vectors

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return await asyncio.to_thread(self._get_query_embedding, query)

    async def _aget_text_embedding(self, text: str) -> list[float]:
        return await asyncio.to_thread(self._get_text_embedding, text)

    async def _aget_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        return await asyncio.to_thread(self._get_text_embeddings, texts)
