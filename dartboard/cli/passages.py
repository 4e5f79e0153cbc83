"""Passages on the command line: where they stand, their first lines, and why they were picked."""

import re
import textwrap
from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.text import Text

from dartboard.cli.console import say
from dartboard.explain.result_view import pick_notes, question_facts, view_of
from dartboard.explain.text_table import table_of
from dartboard.plain_text import clean, heading_of, place_of, plain_text
from dartboard.types import RetrievalResult

_LINES = 4
_VERSION = re.compile(r"v?\d+(?:\.\d+)+|\d{4}-\d{2}-\d{2}")
_LEAST_HEADING = 10
"""With less room than this, a heading is omitted."""


def print_result(console: Console, result: RetrievalResult, *, explain: bool) -> None:
    """Print one block per passage; with ``explain``, also its id, who found it, and a table at the end.

    Where nothing relevant was found, that comes first. Of several questions, each passage names the one that
    it serves, and the last lines say how far each is covered. Copies that differ are always named.
    """
    known = result.explanation
    if not result.chunks:
        console.print(_nothing_text(result))
        return
    if known is not None and (message := known.relevance.get("message")):
        console.print(Text(f"{message}\n", style="yellow"), soft_wrap=True)
    for warning in (known and known.warnings) or []:
        console.print(Text(f"{warning}\n", style="yellow"), soft_wrap=True)
    for place, chunk in enumerate(result.chunks):
        console.print(title_line(f"{place + 1}. ", chunk.metadata, chunk.id, console.width), soft_wrap=True)
        console.print(Text(first_lines(chunk.text, console.width)), soft_wrap=True)
        for line in pick_notes(known, place, all_copies=explain):
            console.print(Text(f"   {line}", style="green"), soft_wrap=True)
        if explain:
            console.print(Text(f"   id {clean(chunk.id)}", style="dim"), soft_wrap=True)
            if known is not None and known.shares and (found := known.shares[place]):
                parts = (f"{name} at {one['rank']} ({one['score']:.3f})" for name, one in found.items())
                console.print(Text(f"   found by {', '.join(parts)}", style="dim"), soft_wrap=True)
        console.print()
    if explain:
        view = view_of(result, with_map=False)
        console.print(table_of(view))
        for fact in view.facts:
            console.print(Text(fact, style="dim"), soft_wrap=True)
        if known is not None:
            seconds = ", ".join(f"{name} {1000 * value:.1f}" for name, value in known.seconds.items())
            console.print(Text(f"ms: {seconds}", style="dim"), soft_wrap=True)
    elif known is not None:
        for fact in question_facts(known):
            console.print(Text(fact, style="green"), soft_wrap=True)


def _nothing_text(result: RetrievalResult) -> str:
    """Why a result is empty."""
    known = result.explanation
    if known is not None and known.options is not None and len(known.options.seen):
        return "Nothing new: nothing in the index matches and adds anything to what was seen."
    if known is not None and known.candidates:
        return f"None of the {known.candidates} candidates fits: allow more tokens."
    return "Nothing found: the index is empty, or nothing in it matches."


def title_line(before: str, metadata: Mapping[str, Any], id: str, width: int) -> Text:
    """The full location of a passage, and as much of its heading as fits."""
    title = Text(before, style="bold")
    title.append(place_of(metadata, id), style="bold cyan")
    heading = Text(heading_of(metadata), style="dim")
    room = width - title.cell_len - 2
    if heading and room >= _LEAST_HEADING:
        heading.truncate(room, overflow="ellipsis")
        title.append("  ").append(heading)
    return title


def first_lines(text: str, width: int) -> str:
    """The first lines of a text, indented."""
    lines = textwrap.wrap(
        " ".join(plain_text(text).split()), width=max(40, width - 3), max_lines=_LINES, placeholder=" …"
    )
    return textwrap.indent("\n".join(lines), "   ")


def version_advice(result: RetrievalResult, command: str) -> None:
    """Where most near-duplicates are of other versions of a document, say how to see the newest."""
    known = result.explanation
    if known is None or not known.near_copies or known.options is None or known.options.prefer:
        return
    pairs = [
        (chunk.id, str(other))
        for chunk, stands in zip(result.chunks, known.stands_for or (), strict=False)
        for other in stands
    ]
    if 2 * sum(other_version(*pair) for pair in pairs) > known.near_copies:
        say(f"Several versions of one document: {command} --prefer source shows the newest.")


def other_version(one: str, other: str) -> bool:
    """Whether two places differ in a version or a date and in nothing else."""
    one, other = one.partition("#")[0], other.partition("#")[0]
    return one != other and _VERSION.sub("", one) == _VERSION.sub("", other)
