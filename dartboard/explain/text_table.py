"""A result as a table of text: at a Python prompt, and for ``dartboard search --explain``."""

import io

from rich.console import Console
from rich.table import Table
from rich.text import Text

from dartboard.explain.result_view import View, percent
from dartboard.plain_text import clean, shortened

WIDTH = 100
_BAR = 10
_EIGHTHS = " ▏▎▍▌▋▊▉"
_LONGEST_NAME = 40


def as_text(view: View) -> str:
    """A head, one line per pick, their texts, and how the selection was made."""
    drawn = io.StringIO()  # and not where rich would draw in a notebook
    console = Console(file=drawn, width=WIDTH, color_system=None, highlight=False, force_jupyter=False)
    console.print(Text(clean(view.head)), soft_wrap=True)
    if view.picks:
        console.print(table_of(view))
    for place, pick in enumerate(view.picks, start=1):
        for line in filter(None, (pick.text, *pick.notes)):
            console.print(Text(f"{place}  {shortened(line, WIDTH - 4)}"), soft_wrap=True)
    for fact in view.facts:
        console.print(Text(clean(fact)), soft_wrap=True)
    return "\n".join(line.rstrip() for line in drawn.getvalue().splitlines())


def table_of(view: View) -> Table:
    """The picks with the known columns."""
    largest = max((pick.gain or 0.0 for pick in view.picks), default=0.0)
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    rows = [
        (
            str(place),
            shortened(pick.name, _LONGEST_NAME),
            "" if pick.similarity is None else f"{pick.similarity:.3f}",
            "" if pick.gain is None else percent(pick.gain),
            _bar(pick.gain, largest),
            "" if pick.coverage is None else percent(pick.coverage),
            shortened(pick.stands_for_text(4), _LONGEST_NAME),
        )
        for place, pick in enumerate(view.picks, start=1)
    ]
    titles = ("#", view.names_are, "similarity", "gain", "", "coverage", "stands for")
    known = [any(row[column] for row in rows) for column in range(len(titles))]
    for column, title in enumerate(titles):
        if known[column]:
            words = column in (1, 6)  # these give way where the line is short
            least = None if words else max(len(title), *(len(row[column]) for row in rows))
            side = "left" if words or column == 4 else "right"
            table.add_column(title, justify=side, min_width=least, no_wrap=True, overflow="ellipsis")  # type: ignore[arg-type]
    for row in rows:
        table.add_row(*(Text(cell) for cell, there in zip(row, known, strict=True) if there))
    return table


def _bar(gain: float | None, largest: float) -> str:
    """The gain relative to the largest one."""
    if gain is None or not largest > 0.0:
        return ""
    whole, part = divmod(round(8 * _BAR * max(0.0, gain / largest)), 8)
    return "█" * whole + (_EIGHTHS[part] if part else "")
