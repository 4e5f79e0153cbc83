"""Make untrusted text safe for a terminal and a page; a passage's location and heading.

A passage may contain escape sequences that move a terminal's cursor, or marks that change the direction of
writing. We remove whole terminal codes (ECMA-48: control sequences such as colours, and control strings such
as titles and links), control characters, direction marks and invisible tags. Lone surrogates, which no file
can contain, become question marks. An unterminated control string loses only its escape: a terminal would
swallow the rest of the text, but readers should see it.

Hand-written: rich strips only control characters, and bleach and nh3 handle HTML, not terminals.
"""

import re
from collections.abc import Mapping
from typing import Any

_BODY = "[^\x00-\x1f\x7f-\x9f]{0,2000}"
_NUMBERS = "{0,100}[ -/]{0,20}"
_CONTROL = rf"(?:\x1b\[[0-?]{_NUMBERS}|\x9b[0-?][0-?]{_NUMBERS})"
_STRING = rf"(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f]){_BODY}"
_CHARSET = r"\x1b[()*+]"
_STEERING = re.compile(
    rf"{_CONTROL}[@-~]?|{_STRING}(?:\x07|\x9c|\x1b\\)|{_CHARSET}[0-9A-Za-z]"
    "|[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u202a-\u202e\u2066-\u2069\ufff9-\ufffb\U000e0000-\U000e007f]"
)
_UNFINISHED = re.compile(rf"(?:{_CONTROL}|{_STRING}\x1b?|{_CHARSET}|\x1b|\x9b)\Z")


def plain_text(text: str) -> str:
    """The text without control codes; line ends and tabs stay."""
    return _STEERING.sub("", text.encode("utf-8", "replace").decode())


class PlainText:
    """The same for a text that arrives in pieces: a code may begin in one and end in another."""

    def __init__(self) -> None:
        self._held = ""

    def after(self, piece: str) -> str:
        """The plain text up to and including this piece; a possible start of a code is held back."""
        text = self._held + piece
        unfinished = _UNFINISHED.search(text)
        cut = unfinished.start() if unfinished else len(text)
        self._held = text[cut:]
        return plain_text(text[:cut])

    def rest(self) -> str:
        """The rest of a code that never ended."""
        held, self._held = self._held, ""
        return plain_text(held)


def clean(text: object) -> str:
    """The same in one line, with runs of white space as one space."""
    return plain_text(" ".join(str(text).split()))


def shortened(text: object, most: int) -> str:
    """The beginning in one line, at most ``most`` characters, cut between words if possible."""
    line = clean(text)
    if len(line) <= most:
        return line
    cut = line[: most - 2]
    last = cut.rfind(" ")
    return f"{cut[:last] if last > 0.7 * most else cut} …"


def counted(number: int, what: str) -> str:
    """1 chunk, 2 chunks, 3,000 chunks."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def place_of(metadata: Mapping[str, Any], id: str) -> str:
    """``guide.pdf, page 3`` or ``guide.md:12``; the passage's id if no document is known."""
    where = " ".join(plain_text(str(metadata.get("source") or id)).splitlines())
    if "page" in metadata:
        return f"{where}, page {clean(metadata['page'])}"
    if "start_line" in metadata:
        return f"{where}:{clean(metadata['start_line'])}"
    return where


def heading_of(metadata: Mapping[str, Any]) -> str:
    """The section or the title, in one line; empty if there is none."""
    return " ".join(plain_text(str(metadata.get("section") or metadata.get("title") or "")).split())
