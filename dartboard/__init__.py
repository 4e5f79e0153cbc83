"""Passages that together say most about a question, instead of five copies of the same one.

The names below are what a first script needs; the rooms (:mod:`dartboard.selection`,
:mod:`dartboard.embeddings`, :mod:`dartboard.core`, :mod:`dartboard.vocab`) have the rest.
"""

from dartboard.core import DartboardConfig, DartboardRetriever
from dartboard.embeddings import EmbeddingModel, default_model
from dartboard.errors import DartboardError
from dartboard.forks import survive_forks
from dartboard.selection import MMR, Dartboard, Selection, select
from dartboard.types import Chunk, Dataset, RetrievalResult
from dartboard.version import __version__

__all__ = [
    "MMR",
    "Chunk",
    "Dartboard",
    "DartboardConfig",
    "DartboardError",
    "DartboardRetriever",
    "Dataset",
    "EmbeddingModel",
    "RetrievalResult",
    "Selection",
    "__version__",
    "default_model",
    "select",
]

survive_forks()
