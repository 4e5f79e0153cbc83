"""Passages that together say most about a question, instead of five copies of the same one."""

from dartboard.version import __version__

__all__ = ["__version__"]
