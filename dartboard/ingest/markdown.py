"""Markdown and Jupyter notebooks: headings, code fences, tables, labels, and front matter as metadata.

Headings are ``# Title`` and titles underlined with = or -, except in code fences and comments. Front matter
is YAML between ``---`` or TOML between ``+++``; its values keep their types. A notebook becomes Markdown: its
texts unchanged, its code in fences, without outputs. We use no Markdown library: those return HTML or tokens,
and chunking needs the positions of blocks in the original text.
"""

import json
import re
import tomllib
from collections.abc import Iterator
from typing import Any

from dartboard.errors import IngestError
from dartboard.ingest.documents import MAX_BLOCKS, MAX_METADATA, MAX_TITLE, Block, check_json
from dartboard.ingest.sentences import line_at

_FRONT = re.compile(
    r"\A(?:---[ \t]*\n(?P<yaml>.*?\n)?(?:---|\.\.\.)|\+\+\+[ \t]*\n(?P<toml>.*?\n)?\+\+\+)"
    r"[ \t]*(?:\n|\Z)",
    re.DOTALL,
)
_ATX = re.compile(r" {0,3}(#{1,6})(?:[ \t]+(.*?))?(?:[ \t]+#+)?[ \t]*$")
_UNDERLINE = re.compile(r" {0,3}(=+|-+)[ \t]*$")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})(.*)$")
_NO_PARAGRAPH = re.compile(r" {4}|\t| {0,3}(?:[#>|]|[-*+] |\d+[.)] |(?:[-*_] *){3,}$)")
_COMMENT = re.compile(r" {0,3}<!--")
_ANCHOR = re.compile(
    r" {0,3}(?:<a\s+(?:name|id)=[^<>]*>(?:</a>)?\s*$"  # an anchor
    r"|(?:!!!|\?\?\?\+?|:{3,}).*$"  # the first line of a note
    r"|\(\S+\)=\s*$)"  # an anchor of MyST
)
_DEFINITION = re.compile(r" {0,3}\[[^\]]+\]:\s*\S+")
_DELIMITERS = re.compile(r"\s*\|?\s*:?-+:?\s*(?:\|\s*:?-+:?\s*)*\|?\s*$")
_ANCHORED = "anchor"
"""The title of labels that belong to a heading below them."""
_LONGEST_TITLE = 5
"""How many lines an underlined title may have."""
_MARKUP = re.compile(r"!?\[([^\]]*)\]\([^)]*\)|[*_]{1,3}(?=\S)|(?<=\S)[*_]{1,3}|`+|<[^>]+>|\{#[^}]*\}")


def notebook_text(text: str) -> str:
    """The cells of a notebook (format 4), joined."""
    check_json(text)
    try:
        stored = json.loads(text)
        cells = stored["cells"]
        language = stored.get("metadata", {}).get("kernelspec", {}).get("language", "python")
        parts = [_cell(cell, str(language)) for cell in cells]
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise IngestError(f"is not a notebook of format 4: {type(error).__name__}") from error
    return "\n\n".join(part for part in parts if part)


def _cell(cell: dict[str, Any], language: str) -> str:
    source = cell["source"]
    body = (source if isinstance(source, str) else "".join(source)).strip()
    return f"```{language}\n{body}\n```" if body and cell["cell_type"] == "code" else body


def front_matter(text: str) -> tuple[dict[str, Any], str, int, tuple[str, ...]]:
    """The fields of the front matter, the text after it, its number of lines, and a note if it is not valid.

    What holds no fields, or is very long, is text.
    """
    found = _FRONT.match(text)
    if not found or found.end() > MAX_METADATA:
        return {}, text, 0, ()
    notes: tuple[str, ...] = ()
    fields: Any = {}
    try:
        fields = tomllib.loads(found["toml"] or "") if text[0] == "+" else _yaml(found["yaml"] or "")
    except (ValueError, RecursionError) as error:
        notes = (f"its front matter is not valid and was left out: {str(error).splitlines()[0]}",)
    if fields is not None and not isinstance(fields, dict):
        return {}, text, 0, ()
    known = {str(name): value for name, value in (fields or {}).items() if value not in (None, "", [])}
    return known, text[found.end() :], found[0].count("\n"), notes


def _yaml(text: str) -> Any:
    """The values of a YAML text: plain types only, without aliases, which can expand to any size."""
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        if any(isinstance(event, yaml.AliasEvent) for event in yaml.parse(text, Loader=loader)):
            raise ValueError("it holds an alias (*name): write the value out")
        return loader(text).get_single_data()
    except yaml.YAMLError as error:
        raise ValueError(str(getattr(error, "problem", None) or error)) from error


def markdown_blocks(text: str) -> tuple[Block, ...]:
    """The headings, code fences, tables and labels of a Markdown text."""
    found: list[Block] = []
    for block in _blocks(text):
        if len(found) == MAX_BLOCKS:
            break
        if block.kind == "heading":  # anchors above a heading are part of it
            while found and found[-1].title == _ANCHORED and not text[found[-1].end : block.start].strip():
                block = Block(found.pop().start, block.end, "heading", block.level, block.title)
        found.append(block)
    return tuple(found)


def _blocks(text: str) -> Iterator[Block]:
    at = 0
    before: list[tuple[int, str]] = []  # the lines of the current paragraph
    while at < len(text):
        line = line_at(text, at)
        start, at = at, at + len(line) + 1
        opened = before
        before = []
        if (fence := _FENCE.match(line)) and not (fence[1][0] == "`" and "`" in fence[2]):
            at = _fence_end(text, fence[1], at)
            yield Block(start, min(at, len(text)), "code")
        elif _COMMENT.match(line):
            end = text.find("-->", start)
            if end < 0:
                continue
            at = start + len(text[start:end]) + 3
            rest = line_at(text, at)
            if not rest.strip():
                yield Block(start, at, "label", title=_ANCHORED)
            at += len(rest) + 1
        elif len(line) > MAX_TITLE:
            continue
        elif heading := _ATX.match(line):
            yield Block(start, start + len(line), "heading", len(heading[1]), _plain(heading[2] or ""))
        elif opened and (under := _UNDERLINE.match(line)):
            title = " ".join(words for _, words in opened)
            if len(title) <= MAX_TITLE and not opened[0][1].lstrip().startswith("|"):
                level = 1 if under[1][0] == "=" else 2
                yield Block(opened[0][0], start + len(line), "heading", level, _plain(title))
        elif opened and "|" in line and "|" in opened[-1][1] and _DELIMITERS.match(line):
            head, below = opened[-1][0], min(at, len(text))
            at = _table_end(text, at)
            yield Block(head, min(at, len(text)), "table", repeat=text[head:below])
        elif _ANCHOR.match(line):
            yield Block(start, start + len(line), "label", title=_ANCHORED)
        elif not opened and _DEFINITION.match(line):
            yield Block(start, start + len(line), "label")
        elif line.strip() and (opened or line.lstrip().startswith("|") or not _NO_PARAGRAPH.match(line)):
            before = [*opened[-_LONGEST_TITLE:], (start, line)]


def _fence_end(text: str, mark: str, at: int) -> int:
    """Where the line after the end of a code fence begins; an open fence ends with the text."""
    while at < len(text):
        line = line_at(text, at)
        at += len(line) + 1
        found = _FENCE.match(line)
        if found and found[1].startswith(mark) and not found[2].strip():
            break
    return at


def _table_end(text: str, at: int) -> int:
    """Where the line after the last row of a table begins."""
    while at < len(text) and "|" in (line := line_at(text, at)):
        at += len(line) + 1
    return at


def _plain(title: str) -> str:
    """A title without markup."""
    return " ".join(_MARKUP.sub(lambda found: found[1] or "", title).split())
