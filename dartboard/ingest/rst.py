"""reStructuredText: sections by underlined titles, with or without an overline.

The text stays reStructuredText, with the lines of the file. Levels are numbered in the order in which their
styles (character, with or without an overline) first occur, as in docutils. We read only the outline and do
not use docutils: it does not know the roles and directives of Sphinx, which most documentation uses, and
replaces each by an error message.
"""

import re
from collections import deque
from collections.abc import Iterator, Sequence
from itertools import islice

from dartboard.ingest.limits import MAX_TITLE
from dartboard.ingest.sections import Heading, lines_with_starts

_ADORNMENT = re.compile(r"([!-/:-@\[-`{-~])\1*$")
_SHORTEST_ADORNMENT = 4
"""An underline of at least this many characters may be shorter than its title."""

_NO_TITLE = re.compile(r"\s|[-+*•‣⁃] |\.\.(?:\s|$)|:[^:\s][^:]*:(?:\s|$)|>>> |\|\s")
"""Lists, explicit markup, fields, doctests and line blocks: an underline does not make them titles."""

_DIRECTIVE = re.compile(r"\s*\.\. (?:[\w:.+-]+::(?:\s|$)|_[^_`].*:\s*$|_`[^`]+`:)")
_LITERAL = re.compile(
    r"\s*\.\. (?:code|code-block|sourcecode|parsed-literal|math|doctest|testcode|productionlist|prompt)::|"
    r"(?!\s*\.\. [\w:.+-]+::).*::\s*$"
)
_MARKUP = re.compile(
    r":[\w:.+-]+:`(?P<role>[^`]+)`|``(?P<literal>.+?)``|`(?P<link>[^`]+)`_{0,2}"
    r"|\*{1,2}(?P<strong>[^*\s](?:[^*]*[^*\s])?)\*{1,2}|\|(?P<name>[^|\s]+)\||\\(?P<escaped>.)"
)
_TARGET = re.compile(r"(.+?)\s*<[^<>]*>$")


def looks_like_rst(text: str) -> bool:
    """Whether plain text is clearly reStructuredText: it has titles, and directives or targets."""
    marked = any(_DIRECTIVE.match(line) for _, line in lines_with_starts(text) if ".. " in line)
    return marked and any(True for _ in rst_headings(text))


def literal_blocks(text: str) -> Iterator[tuple[int, int]]:
    """Start and end of code blocks: text indented below ``::`` or a code directive."""
    opened: tuple[int, int] | None = None  # start of the block, and the indentation above it
    end = 0
    for start, line in lines_with_starts(text):
        body = line.strip()
        indent = len(line) - len(line.lstrip())
        if opened and body and indent <= opened[1]:
            if end > opened[0]:
                yield opened[0], end
            opened = None
        if opened is None:
            if _LITERAL.match(line):
                opened, end = (start + len(line), indent), 0
        elif body:
            opened = opened if end else (start, opened[1])
            end = start + len(line)
    if opened and end > opened[0]:
        yield opened[0], end


def rst_headings(text: str) -> Iterator[Heading]:
    """The titles of a reStructuredText, in order."""
    styles: list[tuple[str, bool]] = []
    rest = lines_with_starts(text)
    ahead = deque(islice(rest, 3))
    free = True  # whether a title may begin here: after an empty line, a title, or indented text
    while ahead:
        over = _over_and_under(ahead) if free else None
        under = _under(ahead) if free and over is None else None
        found = over or under
        count = 1
        if found is None:
            line = ahead[0][1]
            free = not line.strip() or line[0].isspace() or line.startswith("..") or _is_adornment(line)
        else:
            style, title, count = found
            if style not in styles:
                styles.append(style)
            last, words = ahead[count - 1]
            yield Heading(ahead[0][0], last + len(words), styles.index(style) + 1, _plain(title))
            free = True
        for _ in range(count):
            ahead.popleft()
        ahead.extend(islice(rest, count))


_Found = tuple[tuple[str, bool], str, int]
"""The style, the title, and its number of lines."""


def _over_and_under(lines: Sequence[tuple[int, str]]) -> _Found | None:
    if len(lines) < 3:
        return None
    over, title, under = (line.rstrip() for _, line in lines)
    if over != under or not _is_adornment(over) or not title or _is_adornment(title):
        return None
    return ((over[0], True), title.strip(), 3) if _fits(title.strip(), over) else None


def _under(lines: Sequence[tuple[int, str]]) -> _Found | None:
    if len(lines) < 2:
        return None
    title, under = (line.rstrip() for _, line in islice(lines, 2))
    if not title or _is_adornment(title) or _NO_TITLE.match(title) or not _is_adornment(under):
        return None
    return ((under[0], False), title, 2) if _fits(title, under) else None


def _is_adornment(line: str) -> bool:
    return bool(_ADORNMENT.match(line.rstrip()))


def _fits(title: str, adornment: str) -> bool:
    enough = min(len(title), _SHORTEST_ADORNMENT)
    return len(title) <= MAX_TITLE and len(adornment) >= enough


def _plain(title: str) -> str:
    """A title without markup: ``:mod:`!abc` --- Classes`` is ``abc --- Classes``."""
    return " ".join(_MARKUP.sub(_shown, title).split())


def _shown(found: re.Match[str]) -> str:
    words = found[found.lastgroup or 0]
    if found.lastgroup not in ("role", "link"):
        return words
    if target := _TARGET.match(words):
        return target[1]
    return words.removeprefix("!").rsplit(".", 1)[-1] if words.startswith("~") else words.removeprefix("!")
