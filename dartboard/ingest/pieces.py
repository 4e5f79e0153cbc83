"""Pieces with ids that last and metadata that says where each comes from.

An id is ``source#hash``, for rows ``source#row#hash``, the hash being that of the text (sha256, 16 digits),
with ``~2``, ``~3``, … where a document says the same thing again. A piece keeps its id as long as its text
is the same, wherever it moves: after a change in one section, whoever replaces the document has to encode
the pieces of that section only. (Plain text has no sections: there an insertion moves the ends of the
pieces behind it.)
"""

import re
from array import array
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable
from typing import Any, NamedTuple

from dartboard.ingest.documents import Document, Piece, Section, digest

_LINE_END = re.compile(r"\n")
_RESERVED = {
    *("source", "position", "start", "end", "start_line", "end_line", "page", "end_page", "section", "title"),
    *("kind", "content_hash", "document_hash", "pieces", "read_as", "uploaded"),
}


class Cut(NamedTuple):
    """What a piece is made of: a stretch of the document, its section's title, and lines to put before it."""

    start: int
    end: int
    section: str = ""
    context: str = ""


class PieceMaker:
    """Makes the pieces of one document."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._line_ends = array("I", (found.start() for found in _LINE_END.finditer(document.text)))
        self._starts = [section.start for section in document.sections]
        self._own = {f"{name}_" if name in _RESERVED else name: v for name, v in document.metadata.items()}
        self._seen: Counter[str] = Counter()

    def pieces(self, cuts: Iterable[Cut]) -> list[Piece]:
        """A piece for every cut that holds more than space."""
        trimmed = (self._trimmed(cut) for cut in cuts)
        return [self._piece(cut, at) for at, cut in enumerate(cut for cut in trimmed if cut.end > cut.start)]

    def _trimmed(self, cut: Cut) -> Cut:
        """Without space at the ends, but with the indentation of a first line of code."""
        part = self._document.text[cut.start : cut.end]
        end = cut.start + len(part.rstrip())
        start = cut.start + len(part) - len(part.lstrip())
        if self._document.kind == "code":
            start = max(cut.start, self._document.text.rfind("\n", 0, start) + 1)
        return cut._replace(start=start, end=max(start, end))

    def _piece(self, cut: Cut, position: int) -> Piece:
        document = self._document
        text = cut.context + document.text[cut.start : cut.end]
        content_hash = digest(text.encode())
        stem = "#".join(filter(None, (document.source, document.key, content_hash[:16])))
        self._seen[stem] += 1
        times = self._seen[stem]
        metadata = {
            **self._own,
            "source": document.source,
            "position": position,
            "start": cut.start,
            "end": cut.end,
            **self._lines(cut),
            **self._pages(cut),
            "section": cut.section,
            "title": document.title,
            "kind": document.kind,
            "content_hash": content_hash,
            "document_hash": document.document_hash,
        }
        return Piece(stem if times == 1 else f"{stem}~{times}", text, metadata)

    def _lines(self, cut: Cut) -> dict[str, Any]:
        if self._document.first_line is None:
            return {}
        first = self._document.first_line
        start, end = (first + bisect_right(self._line_ends, at - 1) for at in (cut.start, cut.end))
        return {"start_line": start, "end_line": end}

    def _pages(self, cut: Cut) -> dict[str, Any]:
        first, last = self._section(cut.start), self._section(cut.end - 1)
        if not first or not last or first.page is None:
            return {}
        return {"page": first.page, "end_page": last.page}

    def _section(self, at: int) -> Section | None:
        number = bisect_right(self._starts, at) - 1
        return self._document.sections[number] if number >= 0 else None
