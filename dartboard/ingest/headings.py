"""Sections from headings: each lasts until the next heading, under the headings that stand above it."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from dartboard.ingest.documents import Section
from dartboard.ingest.limits import MAX_HEADINGS, MAX_TITLE


class Heading(NamedTuple):
    """Where a heading begins and ends in the text, its level (1 is the highest), its words."""

    start: int
    end: int
    level: int
    title: str


def sections_of(text: str, headings: Iterable[Heading]) -> tuple[Section, ...]:
    """Sections that follow each other and together are the whole text; what precedes all has no title."""
    path: list[tuple[int, str]] = []
    starts: list[tuple[int, tuple[str, ...], int | None]] = [(0, (), None)]
    for start, below, level, title in headings:
        while path and path[-1][0] >= level:
            path.pop()
        path.append((level, title))
        starts.append((start, tuple(title for _, title in path if title), below))
    ends = [start for start, _, _ in starts[1:]] + [len(text)]
    return tuple(
        Section(start, end, titles, body=below)
        for (start, titles, below), end in zip(starts, ends, strict=True)
        if end > start
    )


def join_bare_headings(text: str, sections: Sequence[Section]) -> list[Section]:
    """The same text in sections that have a body: a heading without one joins the section that follows.

    A heading at the very end has nothing to join, and stays.
    """
    joined: list[Section] = []
    start: int | None = None
    for section in sections:
        begin = section.start if start is None else start
        bare = section.body is not None and not text[section.body : section.end].strip()
        start = begin if bare and section.end < len(text) else None
        if start is None:
            joined.append(replace(section, start=begin))
    return joined


def top_title(headings: Sequence[Heading]) -> str:
    """The first title of the highest level, "" where there is no heading."""
    top = min((heading.level for heading in headings), default=0)
    return next((heading.title for heading in headings if heading.level == top), "")


def lines_with_starts(text: str) -> Iterator[tuple[int, str]]:
    """The lines of a text, each with where it begins."""
    start = 0
    while (end := text.find("\n", start)) >= 0:
        yield start, text[start:end]
        start = end + 1
    yield start, text[start:]


class TextBuilder:
    """Blocks of text put together by empty lines, remembering where the headings came to stand."""

    def __init__(self) -> None:
        self._blocks: list[str] = []
        self._length = 0
        self.headings: list[Heading] = []

    def add(self, block: str) -> None:
        """A block; an empty one is left out."""
        if block:
            self._blocks.append(block)
            self._length += len(block) + 2

    def add_heading(self, level: int, title: str) -> None:
        """A heading, as a block of its own; a very long one is text, and so is one after very many."""
        if title and len(title) <= MAX_TITLE and len(self.headings) < MAX_HEADINGS:
            self.headings.append(Heading(self._length, self._length + len(title), level, title))
        self.add(title)

    @property
    def length(self) -> int:
        """Characters so far."""
        return self._length

    @property
    def text(self) -> str:
        """All blocks."""
        return "\n\n".join(self._blocks)
