"""The command line: one file a command, gathered in :mod:`dartboard.cli.app`."""

from dartboard.cli.app import main

__all__ = ["main"]
