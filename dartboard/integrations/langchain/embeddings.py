"""Dartboard's models for LangChain's vector stores."""

from typing import Any

from langchain_core.embeddings import Embeddings

from dartboard.integrations.models import as_model


class DartboardEmbeddings(Embeddings):
    """A dartboard model for vector stores; by default the one that needs no server and no key."""

    def __init__(self, model: Any = None) -> None:
        self.model = as_model(model)

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """One vector a text."""
        vectors: list[list[float]] = self.model.encode_documents(texts).tolist()
        return vectors

    def embed_query(self, text: str) -> list[float]:
        """The vector of a question."""
        vector: list[float] = self.model.encode_query(text).tolist()
        return vector
