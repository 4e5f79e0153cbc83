"""One table as Markdown and as HTML, with the best value of a column in bold."""

from collections.abc import Sequence
from html import escape

Rows = Sequence[Sequence[str]]


def markdown(head: Sequence[str], rows: Rows) -> str:
    """A table in Markdown.

    >>> print(markdown(["", "recall"], [["ours", ".9"]]))
    |  | recall |
    |---|---|
    | ours | .9 |
    """
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)])


def html(head: Sequence[str], rows: Rows, classes: Sequence[str] = ()) -> str:
    """The same in HTML, in a box that scrolls. Cells are HTML; ``classes`` are those of the rows."""
    top = "".join(f"<th>{cell}</th>" for cell in head)
    body = []
    for place, row in enumerate(rows):
        kind = f" class='{escape(classes[place])}'" if classes else ""
        body.append(f"<tr{kind}>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>")
    table = f"<table><thead><tr>{top}</tr></thead><tbody>{''.join(body)}</tbody></table>"
    return f"<div class='scroll'>{table}</div>"


def best_bold(cells: Sequence[str], *, largest: bool = True) -> list[str]:
    """The cells of a column with the best in bold; cells such as ``1.08 / 1.05`` at each depth.

    >>> best_bold([".7 / .9", ".8 / .6", "–"])
    ['.7 / **.9**', '**.8** / .6', '–']
    """
    parts = [cell.split(" / ") for cell in cells]
    for depth in range(max(map(len, parts), default=0)):
        values = {row: _number(part[depth]) for row, part in enumerate(parts) if depth < len(part)}
        known = [value for value in values.values() if value is not None]
        if not known:
            continue
        best = max(known) if largest else min(known)
        for row, value in values.items():
            if value == best:
                parts[row][depth] = f"**{parts[row][depth]}**"
    return [" / ".join(part) for part in parts]


def _number(cell: str) -> float | None:
    """The number that a cell begins with; None without one."""
    try:
        return float(cell.split(" ")[0].removesuffix("%").replace(",", ""))
    except ValueError:
        return None
