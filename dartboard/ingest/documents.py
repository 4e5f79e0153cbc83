"""What readers give: documents with their sections, or problems; what chunking makes of them: pieces."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from dartboard.errors import IngestError

Kind = Literal["text", "markdown", "rst", "html", "pdf", "docx", "code", "rows"]

ProblemCode = Literal[
    "binary",
    "clash",
    "damaged",
    "empty",
    "encrypted",
    "extra",
    "link",
    "name",
    "row",
    "size",
    "special",
    "unreadable",
]


@dataclass(frozen=True, slots=True)
class Problem:
    """A file, folder or row that was left out, and why. ``code`` is one word, to count by."""

    source: str
    reason: str
    code: ProblemCode = "unreadable"


class ReadError(IngestError):
    """A file, or a part of it, that cannot be used; ``code`` as in :class:`Problem`."""

    def __init__(self, reason: str, code: ProblemCode = "damaged") -> None:
        super().__init__(reason)
        self.code: ProblemCode = code


@dataclass(frozen=True, slots=True)
class Section:
    """A stretch of a document's text, under its headings or definitions from the outside in.

    ``context`` is what a part of the section needs to be understood alone (the line of the class that a
    method belongs to). ``page`` counts from 1, in documents that have pages. ``body`` is where the text below
    the section's heading begins, None where it has no heading.
    """

    start: int
    end: int
    path: tuple[str, ...] = ()
    context: str = ""
    page: int | None = None
    body: int | None = None

    @property
    def title(self) -> str:
        """``Install > Linux``."""
        return " > ".join(self.path)


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """One text with where it comes from. Its sections follow each other and together are the whole text.

    ``first_line`` is the line of the file on which the text begins, where lines of the text are lines of
    the file. ``key`` tells the rows of one file apart. ``notes`` say what the reader had to assume.
    """

    source: str
    text: str
    kind: Kind
    title: str
    metadata: Mapping[str, Any] = field(default_factory=dict)
    sections: tuple[Section, ...] = ()
    document_hash: str = ""
    first_line: int | None = None
    key: str = ""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Piece:
    """A chunk to index: text, an id that lasts, and metadata that is plain JSON."""

    id: str
    text: str
    metadata: dict[str, Any]


def digest(data: bytes) -> str:
    """sha256, cut to 32 hexadecimal digits."""
    return hashlib.sha256(data).hexdigest()[:32]
