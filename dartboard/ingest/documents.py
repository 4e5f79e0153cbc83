"""Types of ingestion: readers return documents with sections, or problems; chunking returns pieces."""

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
    """A file, folder or row that was skipped, and why. ``code`` is one word, for statistics."""

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
    """A part of a document's text under a path of headings or definitions, outermost first.

    ``context`` is text that a part of the section needs to be understood alone (the class line of a method).
    ``page`` counts from 1, in documents with pages. ``body`` is where the text below the section's heading
    begins; None without a heading.
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
    """One text with its origin. Its sections are consecutive and cover the whole text.

    ``first_line`` is the line of the file where the text begins, if lines of the text are lines of the file.
    ``key`` distinguishes the rows of one file. ``notes`` say what the reader had to guess.
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
    """A chunk to index: text, a stable id, and JSON metadata."""

    id: str
    text: str
    metadata: dict[str, Any]


def digest(data: bytes) -> str:
    """sha256, cut to 32 hexadecimal digits."""
    return hashlib.sha256(data).hexdigest()[:32]
