"""Merge chunks of one document that overlap or follow each other, without repeating text.

Chunks that :mod:`dartboard.ingest` made say where they are: ``start`` and ``end`` are offsets in the text of
the document, ``position`` counts its chunks. A chunk's text is ``context + document[start:end]``, where the
context repeats headings or a class line; so the offsets also say where the chunk's own text begins. Chunks of
other origin, without ``document_hash``, have no such context.

Offsets are not trusted alone: chunks merge only if the text that they share is the same in both. Between two
chunks in a row that do not overlap there was white space, whose lines are known where the chunks have them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from dartboard.types import Chunk


class Location(NamedTuple):
    """Where a chunk is: its document, which of its chunks it is, and the range of its own text."""

    document: tuple[str | None, ...]
    position: int
    start: int
    end: int


def location_of(chunk: Chunk) -> Location | None:
    """Where a chunk is; None if its metadata do not say, or cannot be right."""
    known = chunk.metadata
    position, start, end = (known.get(name) for name in ("position", "start", "end"))
    document = tuple(known.get(name) for name in ("source", "row", "document_hash"))
    if not (type(position) is int and type(start) is int and type(end) is int and document[0]):
        return None
    if not all(value is None or isinstance(value, str) for value in document):
        return None
    length, longest = end - start, len(chunk.text)
    fits = 0 < length <= longest if document[2] else length == longest
    return Location(document, position, start, end) if start >= 0 and fits else None


@dataclass(frozen=True, slots=True)
class MergedText:
    """A text, and the positions of the chunks it was made from, in reading order."""

    text: str
    chunks: tuple[int, ...]


def merge(chunks: Sequence[Chunk]) -> list[MergedText]:
    """Merge neighbours; the merged texts come in the order of their first chunk in ``chunks``.

    Args:
        chunks: In any order; those whose location is not known stay as they are.

    Example:
        >>> import numpy as np
        >>> def part(position, start, end, text):
        ...     where = {"source": "tea.md", "position": position, "start": start, "end": end}
        ...     return Chunk(f"tea{position}", text, np.ones(2), where)
        >>> merge([part(1, 4, 13, "is served"), part(0, 0, 6, "Tea is")])
        [MergedText(text='Tea is served', chunks=(1, 0))]
    """
    places = [location_of(chunk) for chunk in chunks]
    order = sorted(range(len(chunks)), key=lambda at: _reading_order(places[at], at))
    merged: list[MergedText] = []
    last: int | None = None  # the chunk that ends where the last merged text ends
    for at in order:
        joined = None if last is None else _joined(merged[-1].text, chunks[last], chunks[at])
        if last is None or joined is None:
            merged.append(MergedText(chunks[at].text, (at,)))
            last = at
        else:
            merged[-1] = MergedText(joined, (*merged[-1].chunks, at))
            last = at if _end(places[at]) >= _end(places[last]) else last
    return sorted(merged, key=lambda one: min(one.chunks))


def _end(place: Location | None) -> int:
    return -1 if place is None else place.end


def _reading_order(place: Location | None, at: int) -> tuple[Any, ...]:
    if place is None:
        return (1, "", at, 0, 0)
    return (0, str(place.document), place.start, place.end, at)


def _joined(text: str, last: Chunk, chunk: Chunk) -> str | None:
    """``text``, which ends where ``last`` does, with what the chunk adds; None if they are not adjacent."""
    before, place = location_of(last), location_of(chunk)
    if before is None or place is None or before.document != place.document:
        return None
    own = chunk.text[len(chunk.text) - (place.end - place.start) :]
    shared = before.end - place.start
    if shared < 0:
        return text + _gap(last, chunk, -shared) + own if place.position == before.position + 1 else None
    if text[len(text) - shared :][: len(own)] != own[:shared]:
        return None
    return text + own[shared:]


def _gap(last: Chunk, chunk: Chunk, length: int) -> str:
    """The white space between two chunks in a row: line ends, then indentation."""
    line, next_line = last.metadata.get("end_line"), chunk.metadata.get("start_line")
    if type(line) is not int or type(next_line) is not int:
        return "\n" if length == 1 else "\n\n"  # rows of a table must not end up in one line
    lines = min(max(next_line - line, 0), length)
    return "\n" * lines + " " * (min(length - lines, 80) if lines else 1)
