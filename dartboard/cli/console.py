"""The consoles of every command: results go to stdout, everything else to stderr.

rich decides what a terminal can do: colours never reach a pipe, nor a terminal under ``NO_COLOR``.
"""

import io
import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console

WIDEST = 160
"""Longer lines are hard to read, however wide the window is."""


def results() -> Console:
    """Where results are drawn; a character that stdout cannot write becomes a question mark."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")
    console = Console(highlight=False)
    if console.width > WIDEST:
        console.width = WIDEST
    return console


def messages() -> Console:
    """Where progress and warnings go."""
    return Console(stderr=True, highlight=False)


def warn(message: str) -> None:
    """One line on stderr that stops nothing."""
    print(f"dartboard: warning: {message}", file=sys.stderr)


class _ToWarn(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        warn(record.getMessage())


@contextmanager
def forward_warnings() -> Iterator[None]:
    """Within it, what the library logs as a warning reaches the reader of stderr."""
    logger = logging.getLogger("dartboard")
    handler = _ToWarn(logging.WARNING)
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
