"""A search result for people: passages with where they stand, and why they were picked."""

import textwrap
from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.text import Text

from dartboard.cli.terminal import can_draw
from dartboard.display.source import heading_of, place_of, plain_text
from dartboard.display.view import aside
from dartboard.types import RetrievalResult

_LINES = 4
_BAR = 10
_LEAST_HEADING = 10
"""With less room than this for it, a heading is left out."""


def draw(console: Console, result: RetrievalResult, *, explain: bool) -> None:
    """One block a passage; with ``explain``, its gain and who found it, and a last line on the whole.

    Where nothing relevant was found, that comes first.
    """
    if not result.chunks:
        some = result.metadata.get("candidates")
        console.print(
            f"None of the {some} candidates fits: allow more tokens."
            if some
            else "Nothing found: the index is empty, or nothing in it matches."
        )
        return
    if message := result.metadata.get("relevance", {}).get("message"):
        console.print(Text(f"{message}\n", style="yellow"))
    for place, chunk in enumerate(result.chunks):
        console.print(title_line(f"{place + 1}. ", chunk.metadata, chunk.id, console.width))
        console.print(Text(shortened(chunk.text, console.width)))
        if explain:
            for line in _reasons(result, place, bars=can_draw(console)):
                console.print(Text(f"   {line}", style="dim"))
        console.print()
    if explain:
        console.print(Text(_summary(result), style="dim"))


def title_line(before: str, metadata: Mapping[str, Any], id: str, width: int) -> Text:
    """Where a passage stands, whole, and as much of its heading as the line has room for."""
    title = Text(before, style="bold")
    title.append(place_of(metadata, id), style="bold cyan")
    heading = Text(heading_of(metadata), style="dim")
    room = width - title.cell_len - 2
    if heading and room >= _LEAST_HEADING:
        heading.truncate(room, overflow="ellipsis")
        title.append("  ").append(heading)
    return title


def shortened(text: str, width: int) -> str:
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
        f"gain {facts['gain'][place]:.4f} {bar:<{_BAR}}  coverage {facts['coverage'][place]:.0%}  "
        f"similarity {facts['similarity'][place]:.3f}"
    ]
    others = [name for name in facts["stands_for"][place] if name != result.chunks[place].id]
    if others and facts.get("targets") == "candidates":
        more = f" and {len(others) - 2} more" if len(others) > 2 else ""
        lines.append(f"stands for itself, {', '.join(map(str, others[:2]))}{more}")
    if found := facts["shares"][place]:
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
    removed = f" ({aside(facts['near_copies'])})" if facts.get("near_copies") else ""
    return (
        f"{len(result.chunks)} of {facts['candidates']} candidates{removed} by {facts['method']} "
        f"(retriever {facts['retriever']}, σ {facts['sigma']:.3f} from {facts['sigma_source']}); "
        f"coverage {facts['coverage'][-1]:.0%}{sure}; ms: {seconds}"
    )
