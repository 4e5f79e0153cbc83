"""Passages that together say most about a question, instead of five copies of the same one.

The names below are what a first script needs; the rooms (:mod:`dartboard.selection`,
:mod:`dartboard.embeddings`, :mod:`dartboard.core`, :mod:`dartboard.vocab`) have the rest. Each is imported
on first use.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from dartboard.version import __version__

if TYPE_CHECKING:
    from dartboard.core import DartboardConfig, DartboardRetriever
    from dartboard.embeddings import EmbeddingModel, default_model
    from dartboard.errors import DartboardError
    from dartboard.selection import MMR, Dartboard, Selection, select
    from dartboard.types import Chunk, Dataset, RetrievalResult

_HOMES = {
    "MMR": "selection",
    "Chunk": "types",
    "Dartboard": "selection",
    "DartboardConfig": "core",
    "DartboardError": "errors",
    "DartboardRetriever": "core",
    "Dataset": "types",
    "EmbeddingModel": "embeddings",
    "RetrievalResult": "types",
    "Selection": "selection",
    "default_model": "embeddings",
    "select": "selection",
}
_ROOMS = {*_HOMES.values(), "vocab"}

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


def __getattr__(name: str) -> Any:
    if name in _ROOMS:
        return import_module(f"{__name__}.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
