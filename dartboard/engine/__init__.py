"""Open, index, search: the one thing that every door calls.

Readers of documents are imported when something is indexed: a search needs none.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from dartboard.engine.engine import Engine
from dartboard.engine.settings import Configured, Settings, load_settings

if TYPE_CHECKING:
    from dartboard.engine.index import IndexReport, Progress, index_paths

__all__ = ["Configured", "Engine", "IndexReport", "Progress", "Settings", "index_paths", "load_settings"]


if not TYPE_CHECKING:  # type checkers know the names from the imports above, and should find typos

    def __getattr__(name: str) -> object:
        if name not in ("IndexReport", "Progress", "index_paths"):
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module("dartboard.engine.index"), name)

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
