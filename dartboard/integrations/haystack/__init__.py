"""Dartboard in Haystack: a ranker for any retriever's documents, and a retriever over an index.

Both are components with ``run`` and ``run_async``, and pipelines with them can be saved and loaded (allow the
module when loading: ``Pipeline.loads(text, allowed_modules=["dartboard"])``). Needs the extra ``haystack``.
"""

from dartboard.errors import MissingExtraError

try:
    import haystack  # noqa: F401
except ImportError as missing:
    raise MissingExtraError("haystack-ai", "haystack", "dartboard.integrations.haystack") from missing

from dartboard.integrations.haystack.ranker import DartboardRanker
from dartboard.integrations.haystack.retriever import DartboardContextRetriever, DartboardRetriever

__all__ = ["DartboardContextRetriever", "DartboardRanker", "DartboardRetriever"]
