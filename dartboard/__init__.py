"""Passages that together say most about a question, instead of five copies of the same one.

The names below are what a first script needs; the rooms (:mod:`dartboard.selection`,
:mod:`dartboard.embeddings`, :mod:`dartboard.core`, :mod:`dartboard.vocab`) have the rest. Each is imported
on first use.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from dartboard.version import __version__

if TYPE_CHECKING:
    from dartboard.core import DartboardConfig, DartboardRetriever
    from dartboard.embeddings import EmbeddingModel, default_model
    from dartboard.errors import DartboardError
    from dartboard.selection import MMR, Dartboard, Selection, select
    from dartboard.types import Chunk, Dataset, RetrievalResult

_MODULE_OF = {
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


if not TYPE_CHECKING:  # type checkers know the names from the imports above, and should find typos

    def __getattr__(name: str) -> object:
        if name in _MODULE_OF:
            return getattr(import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
        if not name.startswith("_"):
            try:
                return import_module(f"{__name__}.{name}")
            except ModuleNotFoundError as error:
                if error.name != f"{__name__}.{name}":
                    raise
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

    def __dir__() -> list[str]:
        there = {name for name in globals() if name.startswith("__")}
        return sorted({*there, *__all__, *_MODULE_OF.values(), "vocab"})
