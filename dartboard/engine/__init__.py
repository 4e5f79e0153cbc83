"""Open, index, search: the one thing that every door calls."""

from dartboard.engine.engine import Engine
from dartboard.engine.settings import Configured, Settings, load_settings

__all__ = ["Configured", "Engine", "Settings", "load_settings"]
