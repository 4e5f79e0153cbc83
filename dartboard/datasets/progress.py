"""How a long preparation tells how far it is.

A listener hears ``(step, done, total)``, with ``total`` None while it is not known. The bar needs rich,
which comes with dartboard, and is imported only when a bar is asked for.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

Listener = Callable[[str, int, int | None], None]


def ignore(step: str, done: int, total: int | None) -> None:
    """A listener that does nothing."""


@contextmanager
def progress_bar() -> Iterator[Listener]:
    """A listener that draws one bar a step on stderr; on what is no terminal it stays silent."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True, highlight=False)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal) as bar:
        tasks = {}

        def listen(step: str, done: int, total: int | None) -> None:
            if step not in tasks:
                tasks[step] = bar.add_task(step, total=total)
            bar.update(tasks[step], completed=done, total=total)

        yield listen
