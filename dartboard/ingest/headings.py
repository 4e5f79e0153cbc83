"""Sections from headings: each lasts until the next heading, under the headings that stand above it."""

from collections.abc import Iterable

from dartboard.ingest.documents import Section

Heading = tuple[int, int, str]
"""Where it begins in the text, its level (1 is the highest), its words."""


def sections_of(text: str, headings: Iterable[Heading]) -> tuple[Section, ...]:
    """Sections that follow each other and together are the whole text; what precedes all has no title."""
    path: list[tuple[int, str]] = []
    starts: list[tuple[int, tuple[str, ...]]] = [(0, ())]
    for start, level, title in headings:
        while path and path[-1][0] >= level:
            path.pop()
        path.append((level, title))
        starts.append((start, tuple(title for _, title in path if title)))
    ends = [start for start, _ in starts[1:]] + [len(text)]
    return tuple(
        Section(start, end, titles) for (start, titles), end in zip(starts, ends, strict=True) if end > start
    )


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
        """A heading, as a block of its own."""
        if title:
            self.headings.append((self._length, level, title))
            self.add(title)

    @property
    def text(self) -> str:
        """All blocks."""
        return "\n\n".join(self._blocks)
