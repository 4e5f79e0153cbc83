"""Dartboard in LangChain: a retriever over an index, a compressor for any retriever's documents, embeddings.

All are synchronous inside; ``ainvoke`` and ``acompress_documents`` run them in LangChain's thread pool, so
that the event loop stays free. Needs the extra ``langchain``.
"""

from dartboard.errors import MissingExtraError

try:
    import langchain_core  # noqa: F401
except ImportError as missing:
    raise MissingExtraError("langchain-core", "langchain", "dartboard.integrations.langchain") from missing

from dartboard.integrations.langchain.compressor import DartboardCompressor
from dartboard.integrations.langchain.embeddings import DartboardEmbeddings
from dartboard.integrations.langchain.retriever import DartboardContextRetriever, DartboardRetriever

__all__ = ["DartboardCompressor", "DartboardContextRetriever", "DartboardEmbeddings", "DartboardRetriever"]
