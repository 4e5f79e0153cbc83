"""Results in a terminal: at a Python prompt (:func:`as_text`), and on the command line."""

import sys
import textwrap
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from dartboard.explain.view import (
    View,
    percent,
    pick_notes,
    question_facts,
    removed_text,
    stands_for_text,
)
from dartboard.plain_text import clean, heading_of, place_of, plain_text, shortened
from dartboard.types import RetrievalResult

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text


WIDTH = 88
_BAR = 10
_NAMES = 4
_EIGHTHS = " ▏▎▍▌▋▊▉"
_PLAIN = str.maketrans({"σ": "sigma", "…": "...", "“": "'", "”": "'"})


def as_text(view: View, *, blocks: bool | None = None) -> str:
    """A head, one line per pick, and how the selection was made.

    ``blocks`` says whether block characters and Greek letters may be used; by default, whether stdout can
    encode them.
    """
    drawn = _can_write() if blocks is None else blocks
    table = _table(view, drawn) if view.picks else []
    lines = [clean(view.head), *table, *(clean(fact) for fact in view.facts)]
    text = "\n".join(line.rstrip() for line in lines)
    return text if drawn else text.translate(_PLAIN)


def _table(view: View, blocks: bool) -> list[str]:
    """The known columns, each as wide as needed; texts on their own lines."""
    picks = view.picks
    largest = max((pick.gain or 0.0 for pick in picks), default=0.0)
    columns: list[tuple[str, str, list[str]]] = [
        ("#", ">", [str(place) for place in range(1, len(picks) + 1)]),
        (view.names_are, ">", [shortened(pick.name, 40) for pick in picks]),
        ("similarity", ">", ["" if pick.similarity is None else f"{pick.similarity:.3f}" for pick in picks]),
        ("gain", ">", ["" if pick.gain is None else percent(pick.gain) for pick in picks]),
        ("", "<", [_bar(pick.gain, largest, blocks) for pick in picks]),
        ("coverage", ">", ["" if pick.coverage is None else percent(pick.coverage) for pick in picks]),
        ("stands for", "<", [shortened(stands_for_text(pick, _NAMES), 40) for pick in picks]),
    ]
    shown = [column for column in columns if any(column[2])]
    widths = [max(len(title), *map(len, cells)) for title, _, cells in shown]
    lines = [_line([title for title, _, _ in shown], [side for _, side, _ in shown], widths)]
    for place, pick in enumerate(view.picks):
        lines.append(_line([cells[place] for _, _, cells in shown], [side for _, side, _ in shown], widths))
        indent = widths[0] + 2
        for line in (pick.text, *pick.notes):
            if line:
                lines.append(f"{'':{indent}}{shortened(line, WIDTH - indent)}")
    return lines


def _line(cells: list[str], sides: list[str], widths: list[int]) -> str:
    return "  ".join(f"{cell:{side}{width}}" for cell, side, width in zip(cells, sides, widths, strict=True))


def _bar(gain: float | None, largest: float, blocks: bool) -> str:
    """The gain relative to the largest one, as a bar."""
    if gain is None or not largest > 0.0:
        return ""
    share = max(0.0, gain / largest)
    if not blocks:
        return f"{'#' * round(_BAR * share):<{_BAR}}"
    whole, part = divmod(round(8 * _BAR * share), 8)
    return f"{'█' * whole + (_EIGHTHS[part] if part else ''):<{_BAR}}"


def _can_write() -> bool:
    """Whether stdout's encoding has the characters of the table."""
    try:
        "█▏σ…".encode(getattr(sys.stdout, "encoding", None) or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


_LINES = 4
_LEAST_HEADING = 10
"""With less room than this, a heading is omitted."""


def print_result(console: "Console", result: RetrievalResult, *, explain: bool) -> None:
    """Print one block per passage; with ``explain``, also its gain and origin, and a summary at the end.

    Where nothing relevant was found, that comes first. Of several questions, each passage names the one that
    it serves, and the last lines say how far each is covered. Copies that differ are always named.
    """
    from rich.text import Text

    if not result.chunks:
        console.print(nothing_text(result))
        return
    if message := result.metadata.get("relevance", {}).get("message"):
        console.print(Text(f"{message}\n", style="yellow"))
    for place, chunk in enumerate(result.chunks):
        console.print(title_line(f"{place + 1}. ", chunk.metadata, chunk.id, console.width))
        console.print(Text(first_lines(chunk.text, console.width)))
        for line in pick_notes(result.metadata, place, all_copies=explain):
            console.print(Text(f"   {line}", style="green"))
        if explain:
            for line in _reasons(result, place, bars=can_draw(console)):
                console.print(Text(f"   {line}", style="dim"))
        console.print()
    for fact in question_facts(result.metadata):
        console.print(Text(fact, style="green"))
    if explain:
        console.print(Text(_summary(result), style="dim"))


def nothing_text(result: RetrievalResult) -> str:
    """Why a result is empty."""
    options = None if result.explanation is None else result.explanation.options
    if options is not None and len(options.seen):
        return "Nothing new: nothing in the index matches and adds anything to what was seen."
    if some := result.metadata.get("candidates"):
        return f"None of the {some} candidates fits: allow more tokens."
    return "Nothing found: the index is empty, or nothing in it matches."


def title_line(before: str, metadata: Mapping[str, Any], id: str, width: int) -> "Text":
    """The full location of a passage, and as much of its heading as fits."""
    from rich.text import Text

    title = Text(before, style="bold")
    title.append(place_of(metadata, id), style="bold cyan")
    heading = Text(heading_of(metadata), style="dim")
    room = width - title.cell_len - 2
    if heading and room >= _LEAST_HEADING:
        heading.truncate(room, overflow="ellipsis")
        title.append("  ").append(heading)
    return title


def can_draw(console: "Console") -> bool:
    """Whether the console's encoding has block characters and Greek letters."""
    return console.encoding.lower().startswith("utf")


def first_lines(text: str, width: int) -> str:
    """The first lines of a text, indented."""
    lines = textwrap.wrap(" ".join(plain_text(text).split()), width=max(40, width - 3))
    shown = lines[:_LINES]
    if len(lines) > _LINES:
        shown[-1] = shown[-1][: max(40, width - 3) - 2] + " …"
    return textwrap.indent("\n".join(shown), "   ")


def _reasons(result: RetrievalResult, place: int, *, bars: bool) -> list[str]:
    facts: dict[str, Any] = result.metadata
    largest = max(facts["gain"]) or 1.0
    share = facts["gain"][place] / largest
    bar = ("█" if bars else "#") * round(_BAR * share)
    lines = [
        f"id {clean(result.chunks[place].id)}",
        f"gain {facts['gain'][place]:.4f} {bar:<{_BAR}}  coverage {facts['coverage'][place]:.0%}  "
        f"similarity {facts['similarity'][place]:.3f}",
    ]
    others = [name for name in facts["stands_for"][place] if name != result.chunks[place].id]
    if others and facts.get("targets") == "candidates":
        more = f" and {len(others) - 2} more" if len(others) > 2 else ""
        lines.append(f"stands for itself, {', '.join(map(clean, others[:2]))}{more}")
    if found := facts.get("shares", {}) and facts["shares"][place]:
        lines.append(
            "found by "
            + ", ".join(f"{name} at {share['rank']} ({share['score']:.3f})" for name, share in found.items())
        )
    return lines


def _summary(result: RetrievalResult) -> str:
    facts = result.metadata
    seconds = ", ".join(f"{name} {1000 * value:.1f}" for name, value in facts["seconds"].items())
    bound = facts.get("bound")
    sure = f", at least {bound:.0%} of the best set's" if isinstance(bound, float) else ""
    copies = facts.get("near_copies")
    removed = f" ({removed_text(copies, facts['method'])})" if copies else ""
    return (
        f"{len(result.chunks)} of {facts['candidates']} candidates{removed} by {facts['method']} "
        f"(retriever {facts['retriever']}, σ {facts['sigma']:.3f} from {facts['sigma_source']}); "
        f"coverage {facts['coverage'][-1]:.0%}{sure}; ms: {seconds}"
    )
