"""A result as lines of text: what a Python prompt shows."""

import sys

from dartboard.display.plain_text import clean, shortened
from dartboard.display.view import Pick, View, percent, told

WIDTH = 88
_BAR = 10
_NAMES = 4
_EIGHTHS = " ▏▎▍▌▋▊▉"
_PLAIN = str.maketrans({"σ": "sigma", "…": "...", "“": "'", "”": "'"})


def as_text(view: View, *, blocks: bool | None = None) -> str:
    """A head, a line a pick, and how it was made.

    ``blocks`` says whether block characters and Greek letters may be used; by default, whether stdout can
    write them.
    """
    drawn = _can_write() if blocks is None else blocks
    table = _table(view, drawn) if view.picks else []
    lines = [clean(view.head), *table, *(clean(fact) for fact in view.facts)]
    text = "\n".join(line.rstrip() for line in lines)
    return text if drawn else text.translate(_PLAIN)


def _table(view: View, blocks: bool) -> list[str]:
    """The columns that are known, each as wide as it needs to be; texts on lines of their own."""
    largest = max((pick.gain or 0.0 for pick in view.picks), default=0.0)
    columns: list[tuple[str, str, list[str]]] = [
        ("#", ">", [str(place) for place in range(1, len(view.picks) + 1)]),
        (view.names_are, ">", [shortened(pick.name, 40) for pick in view.picks]),
        ("similarity", ">", [_number(pick.similarity) for pick in view.picks]),
        ("gain", ">", ["" if pick.gain is None else percent(pick.gain) for pick in view.picks]),
        ("", "<", [_bar(pick.gain, largest, blocks) for pick in view.picks]),
        ("coverage", ">", ["" if pick.coverage is None else percent(pick.coverage) for pick in view.picks]),
        ("stands for", "<", [shortened(told(pick, _NAMES), 40) for pick in view.picks]),
    ]
    shown = [column for column in columns if any(column[2])]
    widths = [max(len(title), *map(len, cells)) for title, _, cells in shown]
    lines = [_line([title for title, _, _ in shown], [side for _, side, _ in shown], widths)]
    for place, pick in enumerate(view.picks):
        lines.append(_line([cells[place] for _, _, cells in shown], [side for _, side, _ in shown], widths))
        lines += _text(pick, widths[0])
    return lines


def _line(cells: list[str], sides: list[str], widths: list[int]) -> str:
    return "  ".join(f"{cell:{side}{width}}" for cell, side, width in zip(cells, sides, widths, strict=True))


def _text(pick: Pick, indent: int) -> list[str]:
    return [f"{'':{indent + 2}}{shortened(pick.text, WIDTH - indent - 2)}"] if pick.text else []


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"


def _bar(gain: float | None, largest: float, blocks: bool) -> str:
    """The gain as a share of the largest one."""
    if gain is None or not largest > 0.0:
        return ""
    share = max(0.0, gain / largest)
    if not blocks:
        return f"{'#' * round(_BAR * share):<{_BAR}}"
    whole, part = divmod(round(8 * _BAR * share), 8)
    return f"{'█' * whole + (_EIGHTHS[part] if part else ''):<{_BAR}}"


def _can_write() -> bool:
    """Whether stdout's encoding has what the table is drawn with."""
    try:
        "█▏σ…".encode(getattr(sys.stdout, "encoding", None) or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True
