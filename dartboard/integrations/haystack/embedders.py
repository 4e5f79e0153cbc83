"""Haystack's embedders as sources of vectors."""

from typing import Any

from haystack import Document
from haystack.components.embedders.types import DocumentEmbedder, TextEmbedder

from dartboard.errors import ConfigError
from dartboard.integrations.models import ForeignModel


class DocumentVectors:
    """The function of documents that a document embedder is; it is known by the embedder's name."""

    def __init__(self, embedder: DocumentEmbedder) -> None:
        if not callable(getattr(embedder, "run", None)):
            raise ConfigError(
                f"document_embedder must be a component that embeds documents, got {type(embedder).__name__}"
            )
        self._embedder = embedder
        self.__qualname__ = type(embedder).__qualname__

    def __call__(self, documents: list[Document]) -> list[Any]:
        """One vector a document."""
        embedded: list[Document] = self._embedder.run(documents=documents)["documents"]
        return [document.embedding for document in embedded]


def query_model(embedder: TextEmbedder) -> ForeignModel:
    """The model that a text embedder is, for queries alone."""
    if not callable(getattr(embedder, "run", None)):
        raise ConfigError(
            f"text_embedder must be a component that embeds a text, got {type(embedder).__name__}"
        )
    named = getattr(embedder, "model", None)
    return ForeignModel(
        named if isinstance(named, str) and named else type(embedder).__qualname__,
        embed_query=lambda text: embedder.run(text=text)["embedding"],
        embed_documents=_refuse,
    )


def _refuse(texts: list[str]) -> Any:
    raise ConfigError("a text embedder embeds queries: documents need a document_embedder")
