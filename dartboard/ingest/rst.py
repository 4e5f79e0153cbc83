"""reStructuredText: titles, code, tables, directives and labels.

The text stays reStructuredText, with the lines of the file. Levels are numbered in the order in which the
styles of titles (character, with or without an overline) first occur, as in docutils. We read only the
outline and do not use docutils: it does not know the roles and directives of Sphinx, which most documentation
uses, and replaces each by an error message.

A label or the head of a directive stays with what follows, also if that is a title.
"""

import re
from collections.abc import Iterator
from itertools import islice

from dartboard.ingest.documents import MAX_BLOCKS, MAX_TITLE, Block
from dartboard.ingest.sentences import line_at

_ADORNMENT = re.compile(r"([!-/:-@\[-`{-~])\1*$")
_SHORTEST_ADORNMENT = 4
"""An underline of at least this many characters may be shorter than its title."""

_NO_TITLE = re.compile(r"\s|[-+*•‣⁃] |\.\.(?:\s|$)|:[^:\s][^:]*:(?:\s|$)|>>> |\|\s")
"""Lists, explicit markup, fields, doctests and line blocks: an underline does not make them titles."""

_LABEL = re.compile(r"\s*(?:\.\. _(?!\[)(?:[^:`\\]|\\.|`[^`]*`|:(?=\S))*:(?:\s|$)|__ |\.\. \|[^|]+\| )")
"""Targets, link definitions and substitutions."""
_EXPLICIT = re.compile(r"\s*\.\.(?:\s|$)")
_DIRECTIVE = re.compile(r"\s*\.\. (?P<name>[\w:.+-]+)::(?:\s|$)")
_CODE = re.compile(
    r"(?:code|code-block|sourcecode|parsed-literal|math|doctest|testcode|testsetup|testoutput|productionlist"
    r"|prompt|graphviz|ipython|console|highlight-lang)$"
)
_PLACED = re.compile(
    r"(?:auto\w+|version\w+|deprecated|centered|tip|note|warning|toctree|(?P<unseen>\w*include|image|figure"
    r"|contents|raw|sectionauthor|codeauthor|moduleauthor))$"
)
"""Directives that belong where they stand, even without content; others announce what follows. ``unseen`` are
no text for a reader.
"""
_STAYS = "stays"
"""The title of labels that are no part of a title below them."""
_FIELD = re.compile(r":[\w-]+:(?:\s|$)")
_OPTION = re.compile(r"\s+:[\w-]+:(?:\s|$)")
_SIMPLE_TABLE = re.compile(r"\s*=+(?: +=+)+\s*$")
_GRID_TABLE = re.compile(r"\s*\+(?:[-=]+\+)+\s*$")
_LONGEST_TABLE = 100_000
"""Characters that are searched for the end of a table."""
_MARKUP = re.compile(
    r":[\w:.+-]+:`(?P<role>[^`]+)`|``(?P<literal>.+?)``|`(?P<link>[^`]+)`_{0,2}"
    r"|\*{1,2}(?P<strong>[^*\s](?:[^*]*[^*\s])?)\*{1,2}|\|(?P<name>[^|\s]+)\||\\(?P<escaped>.)"
)
_TARGET = re.compile(r"(.+?)\s*<[^<>]*>$")
_FEWEST_TITLES = 2


def looks_like_rst(text: str) -> bool:
    """Whether plain text is clearly reStructuredText: two underlined titles, or one and a directive."""
    titles = marked = 0
    for block in _blocks(text):
        titles += block.kind == "heading"
        marked += block.kind == "label"
        if titles >= _FEWEST_TITLES or (titles and marked):
            return True
    return False


def rst_blocks(text: str) -> tuple[Block, ...]:
    """The blocks of a reStructuredText that are more than a paragraph."""
    return tuple(islice(_with_labels(text), MAX_BLOCKS))


def _with_labels(text: str) -> Iterator[Block]:
    """The blocks; labels directly above a title are part of it."""
    labels: list[Block] = []
    for block in _blocks(text):
        near = bool(labels) and not text[labels[-1].end : block.start].strip()
        if block.kind == "label" and block.title != _STAYS and (near or not labels):
            labels.append(block)
            continue
        if block.kind == "heading" and near:
            yield Block(labels[0].start, block.end, "heading", block.level, block.title)
            labels = []
            continue
        yield from labels
        labels = [block] if block.kind == "label" and block.title != _STAYS else []
        if not labels:
            yield block
    yield from labels


def _blocks(text: str) -> Iterator[Block]:
    styles: list[tuple[str, bool]] = []
    at = 0
    free = True  # whether a title may begin here: after an empty line, a title, or indented text
    begun = False  # fields before all else, such as ``:orphan:``, are about the file
    while at < len(text):
        start, line = at, line_at(text, at)
        at += len(line) + 1
        if free and (found := _title(text, start, line)):
            style, title, end = found
            if style not in styles:
                styles.append(style)
            yield Block(start, end, "heading", styles.index(style) + 1, _plain(title))
            at, begun = end + 1, True
        elif not line.strip():
            free = True
        elif not begun and _FIELD.match(line):
            yield Block(start, start + len(line), "label")
        elif free and _is_adornment(line) and not line_at(text, at).strip():  # a line between paragraphs
            yield Block(start, start + len(line), "label", title=_STAYS)
        elif _LABEL.match(line):
            end = start + len(line)
            yield Block(start, end, "label")
        elif _EXPLICIT.match(line):
            for block in _explicit(text, start, line):
                yield block
                at = max(at, block.end + 1)
        elif free and (_SIMPLE_TABLE.match(line) or _GRID_TABLE.match(line)):
            table = _table(text, start, line)
            yield table
            at = table.end + 1
        else:
            begun = True
            free = line[0].isspace() or _is_adornment(line)
            if line.rstrip().endswith("::") and (end := _indented_end(text, at, _indent(line))) > at:
                if line.strip() == "::":
                    yield Block(start, start + len(line), "label")
                yield Block(_text_start(text, at), end, "code")
                at, free = end + 1, True


def _explicit(text: str, start: int, line: str) -> Iterator[Block]:
    """The head of a directive as a label, with its content if that is code; a comment; nothing for text."""
    indent = _indent(line)
    below = _below(text, start + len(line) + 1, indent)
    head = min(below - 1, len(text))
    end = _indented_end(text, below, indent)
    directive = _DIRECTIVE.match(line)
    name = directive["name"].rpartition(":")[2] if directive else ""
    if not directive:
        if not line.lstrip().startswith(".. ["):  # a comment, not a footnote
            yield Block(start, max(head, end), "label")
    elif end > below or not (placed := _PLACED.match(name)) or placed["unseen"]:
        stays = end <= below and _PLACED.match(name) is not None
        yield Block(start, head, "label", title=_STAYS if stays else "")
        if end > below and _CODE.match(name):
            yield Block(_text_start(text, below), end, "code")


def _below(text: str, at: int, indent: int) -> int:
    """Where the lines of a directive's head (its arguments and options) end."""
    while at < len(text):
        line = line_at(text, at)
        if not line.strip() or _indent(line) <= indent or not _OPTION.match(line):
            break
        at += len(line) + 1
    return at


def _indented_end(text: str, at: int, indent: int) -> int:
    """The end of the lines that are indented deeper; ``at`` if there are none."""
    end = first = at
    while at < len(text):
        line = line_at(text, at)
        if line.strip():
            if _indent(line) <= indent:
                break
            end = at + len(line)
        at += len(line) + 1
    return max(end, first)


def _paragraph_end(text: str, at: int) -> int:
    end = at
    while at < len(text) and (line := line_at(text, at)).strip():
        end = at + len(line)
        at = end + 1
    return end


def _text_start(text: str, at: int) -> int:
    """The start of the next line that is not empty."""
    while at < len(text) and not (line := line_at(text, at)).strip():
        at += len(line) + 1
    return at


def _table(text: str, start: int, line: str) -> Block:
    """A table: a grid ends with its lines, a simple table with a border before an empty line."""
    end = at = start + len(line)
    if not _SIMPLE_TABLE.match(line):
        return Block(start, _paragraph_end(text, start), "table")
    borders = [end]
    while (at := at + 1) < min(len(text), start + _LONGEST_TABLE):
        line = line_at(text, at)
        at += len(line)
        if _SIMPLE_TABLE.match(line):
            end = at
            borders.append(at)
        if len(borders) > 1 and end == at and not line_at(text, at + 1).strip():
            break
        if len(borders) == 1 and not line.strip():
            break
    head = text[start : borders[1] + 1] if len(borders) > 2 else ""
    return Block(start, end, "table", repeat=head)


_Found = tuple[tuple[str, bool], str, int]
"""The style, the title, and where it ends."""


def _title(text: str, start: int, line: str) -> _Found | None:
    if len(line) > MAX_TITLE or not line.strip():
        return None
    second_at = start + len(line) + 1
    second = line_at(text, second_at)
    first = line.rstrip()
    if _is_adornment(first) and not first[0].isspace():
        third = line_at(text, second_at + len(second) + 1)
        title = second.strip()
        if third.rstrip() != first or not title or _is_adornment(title) or not _fits(title, first):
            return None
        return (first[0], True), title, second_at + len(second) + 1 + len(third)
    under = second.rstrip()
    if _NO_TITLE.match(first) or not under or not _is_adornment(under) or not _fits(first, under):
        return None
    return (under[0], False), first, second_at + len(second)


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


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
