"""The consoles of every command: results go to stdout, everything else to stderr.

rich decides what a terminal can do: colours never reach a pipe, nor a terminal under ``NO_COLOR``. Its markup
is off: brackets in a text stay, and what is styled is a ``Text``. What strangers wrote has no control codes.
"""

import io
import json
import logging
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.text import Text

from dartboard.plain_text import plain_text

WIDEST = 160
"""Longer lines are hard to read, however wide the window is."""

EVERY = 10.0
"""Seconds between the lines of :func:`progress` where nobody sees a bar."""

Listener = Callable[..., None]
"""Is told ``(step, done, total, note="")``."""


class _Console(Console):
    def on_broken_pipe(self) -> None:
        """Leave it to the command: a reader that has seen enough is no failure."""
        raise BrokenPipeError


def results() -> Console:
    """Where results are drawn; a character that stdout cannot write becomes a question mark."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")
    console = _Console(highlight=False, markup=False, emoji=False)
    piped = not console.is_terminal and "COLUMNS" not in os.environ
    console.width = WIDEST if piped else min(console.width, WIDEST)
    return console


def messages() -> Console:
    """Where progress and warnings go."""
    return _Console(stderr=True, highlight=False, markup=False, emoji=False)


def show(text: str, style: str = "") -> None:
    """A line of the result."""
    results().print(Text(plain_text(text), style=style), soft_wrap=True)


def say(text: str, style: str = "") -> None:
    """A line on stderr."""
    messages().print(Text(plain_text(text), style=style), soft_wrap=True)


def print_json(facts: Any) -> None:
    """The result for programs."""
    print(json.dumps(facts, indent=2, ensure_ascii=False))


def warn(message: str) -> None:
    """One line on stderr that stops nothing."""
    print(f"dartboard: warning: {plain_text(message)}", file=sys.stderr)


@contextmanager
def progress() -> Iterator[Listener]:
    """A listener that draws a bar for each step on a terminal; elsewhere it prints a line now and then."""
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    console = messages()
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[note]}"))
    bar = Progress(*columns, TimeRemainingColumn(), console=console, transient=True, disable=True)
    tasks: dict[str, Any] = {}
    told = time.monotonic()

    def listen(step: str, done: int, total: int | None, note: str = "") -> None:
        nonlocal told
        note = note or (f"{done:,}" if not total else f"{done:,} of {total:,}")
        if not console.is_terminal:
            if time.monotonic() - told >= EVERY:
                told = time.monotonic()
                say(f"{step}: {note}")
            return
        if bar.disable:
            bar.disable = False
            bar.start()
        if step not in tasks:
            tasks[step] = bar.add_task(step, note="")
        bar.update(tasks[step], completed=done, total=total or None, note=note)

    with bar:
        yield listen


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
