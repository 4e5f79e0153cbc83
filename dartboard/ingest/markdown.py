"""Markdown and Jupyter notebooks: headings, code fences, and front matter as metadata.

Headings are ``# Title`` and titles underlined with = or -, except in code fences. Front matter is read as
flat ``name: value`` lines and lists; more complex values are kept as text under their name (a YAML parser
would execute tags and aliases of an untrusted file). A notebook becomes Markdown: its texts unchanged, its
code in fences, without outputs. We use no Markdown library: those return HTML or tokens, and chunking needs
the positions of headings in the original text.
"""

import json
import re
from collections.abc import Iterator
from typing import Any

from dartboard.errors import IngestError
from dartboard.ingest.limits import MAX_METADATA, MAX_TITLE, check_json
from dartboard.ingest.sections import Heading, lines_with_starts

_FRONT = re.compile(r"\A---[ \t]*\n(.*?\n)?(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL)
_FIELD = re.compile(r"([A-Za-z_][\w .-]*):(?:[ \t]+(.*)|[ \t]*)$")
_ITEM = re.compile(r"[ \t]*-[ \t]+(.*)$")
_ATX = re.compile(r" {0,3}(#{1,6})(?:[ \t]+(.*?))?(?:[ \t]+#+)?[ \t]*$")
_UNDERLINE = re.compile(r" {0,3}(=+|-+)[ \t]*$")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})(.*)$")
_NO_PARAGRAPH = re.compile(r"\s*$| {4}|\t| {0,3}(?:[#>|]|[-*+] |\d+[.)] |(?:[-*_] *){3,}$)")
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


def front_matter(text: str) -> tuple[dict[str, Any], str, int]:
    """The fields of the front matter, the text after it, and its number of lines; a very long one is text."""
    found = _FRONT.match(text)
    if not found or found.end() > MAX_METADATA:
        return {}, text, 0
    return _fields((found[1] or "").splitlines()), text[found.end() :], found[0].count("\n")


def fences(text: str) -> Iterator[tuple[int, int]]:
    """Start and end of the code fences of a text; an open fence ends with the text."""
    opened: tuple[int, str] | None = None
    for start, line in lines_with_starts(text):
        found = _FENCE.match(line)
        if opened is None:
            if found and not (found[1][0] == "`" and "`" in found[2]):
                opened = (start, found[1])
        elif found and found[1].startswith(opened[1]) and not found[2].strip():
            yield opened[0], start + len(line)
            opened = None
    if opened:
        yield opened[0], len(text)


def markdown_headings(text: str) -> Iterator[Heading]:
    """The headings of a Markdown text, in order."""
    code = [at for span in fences(text) for at in span]
    at, before = 0, (0, "")
    for start, line in lines_with_starts(text):
        while at < len(code) and start >= code[at]:
            at += 1
        if at % 2 or len(line) > MAX_TITLE:  # inside of a fence, or too long for a heading
            before = (start, "")
            continue
        if found := _ATX.match(line):
            yield Heading(start, start + len(line), len(found[1]), _plain(found[2] or ""))
            line = ""
        elif (under := _UNDERLINE.match(line)) and not _NO_PARAGRAPH.match(before[1]):
            level = 1 if under[1][0] == "=" else 2
            yield Heading(before[0], start + len(line), level, _plain(before[1]))
            line = ""
        before = (start, line)


def _cell(cell: dict[str, Any], language: str) -> str:
    source = cell["source"]
    body = (source if isinstance(source, str) else "".join(source)).strip()
    return f"```{language}\n{body}\n```" if body and cell["cell_type"] == "code" else body


def _plain(title: str) -> str:
    """A title without markup."""
    return " ".join(_MARKUP.sub(lambda found: found[1] or "", title).split())


def _fields(lines: list[str]) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    name = ""
    for line in lines:
        so_far = fields.get(name, "")
        if found := _FIELD.match(line):
            name = found[1].strip()
            fields[name] = _value((found[2] or "").strip())
        elif not name or not line.strip():
            continue
        elif (item := _ITEM.match(line)) and (so_far == "" or isinstance(so_far, list)):
            fields[name] = [*so_far, _unquoted(item[1])]
        elif isinstance(so_far, str):
            fields[name] = f"{so_far}\n{line.strip()}".strip()
    return {name: value for name, value in fields.items() if value not in ("", [])}


def _value(text: str) -> Any:
    if text.startswith("[") and text.endswith("]"):
        return [_unquoted(item) for item in text[1:-1].split(",") if item.strip()]
    return "" if text in ("|", ">", "|-", ">-") else _unquoted(text)


def _unquoted(text: str) -> str:
    text = text.strip()
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'" else text
