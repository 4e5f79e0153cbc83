"""Dartboard in LlamaIndex: a retriever over an index, a postprocessor for any nodes, an embedding.

All are synchronous inside; the asynchronous methods run them in a thread, so that the event loop stays free.
Notes are kept from the language model and from embeddings. Needs the extra ``llama-index``.
"""

from dartboard.errors import MissingExtraError

try:
    import llama_index.core  # noqa: F401
except ImportError as missing:
    raise MissingExtraError(
        "llama-index-core", "llama-index", "dartboard.integrations.llama_index"
    ) from missing

from dartboard.integrations.llama_index.embedding import DartboardEmbedding
from dartboard.integrations.llama_index.postprocessor import DartboardPostprocessor
from dartboard.integrations.llama_index.retriever import DartboardContextRetriever, DartboardRetriever

__all__ = ["DartboardContextRetriever", "DartboardEmbedding", "DartboardPostprocessor", "DartboardRetriever"]
