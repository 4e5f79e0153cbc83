"""Merge chunks of one document that overlap or follow each other, without repeating text.

Chunks that :mod:`dartboard.ingest` made say where they stand: ``start`` and ``end`` are offsets in the text
of the document, ``position`` counts its chunks. A chunk's text is ``context + document[start:end]``, where
the context repeats headings or a class line; so the offsets also say where the chunk's own text begins.
Between two chunks in a row that do not overlap there was only white space.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from dartboard.types import Chunk


class Place(NamedTuple):
    """Where a chunk stands: its document, which of its chunks it is, and the range of its own text."""

    document: tuple[str | None, ...]
    position: int
    start: int
    end: int


def place_of(chunk: Chunk) -> Place | None:
    """Where a chunk stands; None if its metadata do not say."""
    known = chunk.metadata
    position, start, end = (known.get(name) for name in ("position", "start", "end"))
    document = tuple(known.get(name) for name in ("source", "row", "document_hash"))
    if not (type(position) is int and type(start) is int and type(end) is int and document[0]):
        return None
    if not 0 <= start < end or end - start > len(chunk.text):
        return None
    if not all(value is None or isinstance(value, str) for value in document):
        return None
    return Place(document, position, start, end)


def are_adjacent(one: Place | None, other: Place | None) -> bool:
    """Whether two chunks overlap or follow each other, so that they merge."""
    if one is None or other is None or one.document != other.document:
        return False
    first, second = sorted((one, other), key=lambda place: (place.start, place.end))
    return second.start <= first.end or second.position == first.position + 1


@dataclass(frozen=True, slots=True)
class MergedText:
    """A text, and the positions of the chunks it was made from, in reading order."""

    text: str
    chunks: tuple[int, ...]


def merge(chunks: Sequence[Chunk]) -> list[MergedText]:
    """Merge neighbours; the merged texts come in the order of their first chunk in ``chunks``.

    Args:
        chunks: In any order; those whose place is not known stay as they are.

    Example:
        >>> import numpy as np
        >>> def part(position, start, end, text):
        ...     where = {"source": "tea.md", "position": position, "start": start, "end": end}
        ...     return Chunk(f"tea{position}", text, np.ones(2), where)
        >>> merge([part(1, 4, 13, "is served"), part(0, 0, 6, "Tea is")])
        [MergedText(text='Tea is served', chunks=(1, 0))]
    """
    places = [place_of(chunk) for chunk in chunks]
    order = sorted(range(len(chunks)), key=lambda at: _reading_order(places[at], at))
    merged: list[MergedText] = []
    last: Place | None = None
    for at in order:
        chunk, place = chunks[at], places[at]
        if last is not None and place is not None and are_adjacent(last, place):
            before = merged.pop()
            merged.append(MergedText(_joined(before.text, last, chunk, place), (*before.chunks, at)))
            last = place if place.end >= last.end else last
        else:
            merged.append(MergedText(chunk.text, (at,)))
            last = place
    return sorted(merged, key=lambda one: min(one.chunks))


def _reading_order(place: Place | None, at: int) -> tuple[Any, ...]:
    if place is None:
        return (1, "", at, 0, 0)
    return (0, str(place.document), place.start, place.end, at)


def _joined(text: str, last: Place, chunk: Chunk, place: Place) -> str:
    """``text``, which ends at ``last.end``, with what the chunk adds to it."""
    own = chunk.text[len(chunk.text) - (place.end - place.start) :]
    if place.start <= last.end:
        return text + own[last.end - place.start :]
    code = chunk.metadata.get("kind") == "code"
    return text + ("\n" if code else " " if place.start == last.end + 1 else "\n\n") + own
