"""Sections: readers make them from headings, and chunking groups them into stretches that fit.

A section extends to the next heading and belongs to the headings above it.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import groupby, islice, takewhile
from typing import NamedTuple

from dartboard.ingest.documents import Section
from dartboard.ingest.limits import MAX_HEADINGS, MAX_TITLE

CountTokens = Callable[[str], int]


class Heading(NamedTuple):
    """Start and end of a heading in the text, its level (1 is the highest) and its title."""

    start: int
    end: int
    level: int
    title: str


def sections_of(text: str, headings: Iterable[Heading]) -> tuple[Section, ...]:
    """Consecutive sections that cover the whole text; text before the first heading has no title."""
    path: list[tuple[int, str]] = []
    begun = [Section(0, 0)]
    for start, below, level, title in headings:
        while path and path[-1][0] >= level:
            path.pop()
        path.append((level, title))
        begun.append(Section(start, start, tuple(title for _, title in path if title), body=below))
    return until_next(begun, len(text))


def until_next(begun: Sequence[Section], end: int) -> tuple[Section, ...]:
    """Sections from their starts, each until the next one; empty ones are dropped."""
    ends = (*(section.start for section in begun[1:]), end)
    pairs = zip(begun, ends, strict=False)  # no starts means no ends
    return tuple(replace(section, end=last) for section, last in pairs if last > section.start)


def join_bare_headings(text: str, sections: Sequence[Section]) -> list[Section]:
    """Merge each heading without a body into the section that follows.

    A heading at the very end has nothing to join and stays.
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


def outline(text: str, found: Iterator[Heading]) -> tuple[tuple[Section, ...], str]:
    """The sections of a text, and its first title of the highest level ("" without headings)."""
    headings = list(islice(found, MAX_HEADINGS))
    top = min((heading.level for heading in headings), default=0)
    title = next((heading.title for heading in headings if heading.level == top), "")
    return sections_of(text, headings), title


def lines_with_starts(text: str) -> Iterator[tuple[int, str]]:
    """The lines of a text with their start positions."""
    start = 0
    while (end := text.find("\n", start)) >= 0:
        yield start, text[start:end]
        start = end + 1
    yield start, text[start:]


class TextBuilder:
    """Joins blocks of text with empty lines and records the positions of headings."""

    def __init__(self) -> None:
        self._blocks: list[str] = []
        self._length = 0
        self.headings: list[Heading] = []

    def add(self, block: str) -> None:
        """Add a block; an empty one is skipped."""
        if block:
            self._blocks.append(block)
            self._length += len(block) + 2

    def add_heading(self, level: int, title: str) -> None:
        """Add a heading as its own block; a very long one, or one after very many, is normal text."""
        if title and len(title) <= MAX_TITLE and len(self.headings) < MAX_HEADINGS:
            self.headings.append(Heading(self._length, self._length + len(title), level, title))
        self.add(title)

    @property
    def length(self) -> int:
        """Number of characters so far."""
        return self._length

    def finish(self, title: str) -> tuple[str, tuple[Section, ...], str]:
        """The text, its sections, and the title (by default the first heading)."""
        text = "\n\n".join(self._blocks)
        first = self.headings[0].title if self.headings else ""
        return text, sections_of(text, self.headings), title or first


@dataclass(frozen=True, slots=True)
class Stretch:
    """Consecutive sections as one unit. ``path`` is their common path, or that of the largest; ``named`` are
    the paths of all joined sections. ``body`` is where the text below the heading begins.
    """

    start: int
    end: int
    path: tuple[str, ...]
    context: str
    tokens: int
    named: tuple[tuple[str, ...], ...]
    body: int

    @property
    def title(self) -> str:
        """``Install > Linux``, or for several sections ``Install > Linux; macOS``."""
        return title_of(self.named)


def stretches(
    text: str, sections: Sequence[Section], size: int, smallest: int, count: CountTokens
) -> list[Stretch]:
    """Consecutive stretches that cover the whole text. One that exceeds ``size`` is a single section, plus
    the headings without text before it.
    """
    return _Planner(text, size, smallest, count).plan(join_bare_headings(text, sections), 0)


@dataclass(frozen=True, slots=True)
class _Planner:
    text: str
    size: int
    smallest: int
    count: CountTokens

    def plan(self, sections: Sequence[Section], depth: int) -> list[Stretch]:
        """Group sections by their path to ``depth``; groups that do not fit are split one level deeper."""
        found: list[Stretch] = []
        for _, members in groupby(sections, key=lambda section: section.path[: depth + 1]):
            family = list(members)
            whole = self._whole(family)
            if len(family) == 1 or whole.tokens <= self.size:
                found.append(whole)
            elif all(len(section.path) <= depth + 1 for section in family):
                found += [self._whole([section]) for section in family]
            else:
                found += self.plan(family, depth + 1)
        return self._joined(found)

    def _whole(self, family: Sequence[Section]) -> Stretch:
        path = reduce(_shared, (section.path for section in family))
        start, end = family[0].start, family[-1].end
        tokens = self.count(self.text[start:end])
        body = start if family[0].body is None else family[0].body
        return Stretch(start, end, path, family[0].context, tokens, (path,), body)

    def _joined(self, parts: list[Stretch]) -> list[Stretch]:
        """Join parts of fewer than ``smallest`` tokens with the more closely related neighbour that fits."""
        at = 0
        while at < len(parts):
            pairs = [pair for pair in (at, at - 1) if 0 <= pair < len(parts) - 1]
            pairs.sort(key=lambda pair: -len(_shared(parts[pair].path, parts[pair + 1].path)))
            small = parts[at].tokens < self.smallest
            at = next((pair for pair in pairs if small and self._join(parts, pair)), at + 1)
        return parts

    def _join(self, parts: list[Stretch], at: int) -> bool:
        """Join two neighbours if they fit."""
        left, right = parts[at : at + 2]
        tokens = self.count(self.text[left.start : right.end])
        if tokens > self.size:
            return False
        larger = left if left.tokens >= right.tokens else right
        path = larger.path
        if larger.tokens < self.smallest:  # both are small, so neither path represents the result
            path = _shared(left.path, right.path) or path
        named = left.named + right.named
        parts[at : at + 2] = [Stretch(left.start, right.end, path, left.context, tokens, named, left.body)]
        return True


def title_of(paths: Sequence[tuple[str, ...]]) -> str:
    """The names of all sections, with a common path only once: ``Install > Linux; macOS``, ``Keys; Limits``.

    Text before the first heading, or directly under the common one, has no name.
    """
    named = list(dict.fromkeys(path for path in paths if path))
    if not named:
        return ""
    within = reduce(_shared, named)
    own = [" > ".join(path[len(within) :]) for path in named if len(path) > len(within)]
    return " > ".join([*within, *(["; ".join(own)] if own else [])])


def _shared(left: tuple[str, ...], right: tuple[str, ...]) -> tuple[str, ...]:
    pairs = zip(left, right, strict=False)
    return tuple(name for name, _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
