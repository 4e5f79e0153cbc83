"""Open, index, search: the one thing that every door calls."""

from dartboard.engine.engine import Engine
from dartboard.engine.index import IndexReport, Progress, index_paths
from dartboard.engine.settings import Configured, Settings, load_settings

__all__ = ["Configured", "Engine", "IndexReport", "Progress", "Settings", "index_paths", "load_settings"]
