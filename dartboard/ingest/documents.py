"""Types of ingestion: readers return documents made of blocks, or problems; chunking returns pieces.

Also the limits on the memory that one file may take. A file of a few kB can expand to gigabytes of text
(compressed, or drawn a million times), and parsed markup takes a hundred times its size. Text, tags, values
and blocks are counted, and content above a limit is left out with a message that names the limit.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from dartboard.errors import IngestError

MAX_CHARACTERS = 20_000_000
"""Maximum characters of one text: about ten thousand pages."""
MAX_BLOCKS = 100_000
"""Blocks of a text that a reader marks; what follows is plain text."""
MAX_HEADINGS = 50_000
"""Headings that open a section; later ones are normal text."""
MAX_TITLE = 1_000
"""Characters of a title or heading; every passage has a copy."""
MAX_METADATA = 64 * 1024
"""Bytes of a document's metadata as JSON; every passage has a copy."""
MAX_VALUES = 1_000_000
"""Values of a JSON text, and separators in a line of CSV."""

Kind = Literal["text", "markdown", "rst", "html", "pdf", "docx", "code", "rows"]

BlockKind = Literal["heading", "definition", "text", "code", "table", "label"]

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
    "rule",
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
    """A file, or a part of it, that cannot be used; ``problem`` is the code of its :class:`Problem`."""

    def __init__(self, reason: str, problem: ProblemCode = "damaged") -> None:
        super().__init__(reason)
        self.problem: ProblemCode = problem


class TooLargeError(ReadError):
    """A file, or a part of it, exceeds a memory limit."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason, "size")


@dataclass(frozen=True, slots=True)
class Block:
    """A part of a document's text that a reader recognised; text between blocks is paragraphs.

    ==========  ==========================================================================================
    heading     opens a section; ``level`` 1 is the highest. A heading without a title ends the sections of
                its level
    definition  the same for a function or class, with its comments and decorators
    text        text that is split at sentences, whatever empty lines it has
    code        split at empty lines, then at lines
    table       split at rows
    label       no text for a reader (an anchor, a link definition, the head of a directive): stays with what
                follows, or with the text before it at the end of a section
    ==========  ==========================================================================================

    ``repeat`` is text that later parts repeat where a block or section is split: a class line, or the head of
    a table.
    """

    start: int
    end: int
    kind: BlockKind
    level: int = 0
    title: str = ""
    repeat: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """One text with its origin.

    ``blocks`` are in order and do not overlap. ``pages`` are the positions where the pages begin, in
    documents with pages. ``first_line`` is the line of the file where the text begins, if lines of the text
    are lines of the file. ``key`` distinguishes the rows of one file. ``notes`` say what the reader had to
    guess.
    """

    source: str
    text: str
    kind: Kind
    title: str
    metadata: Mapping[str, Any] = field(default_factory=dict)
    blocks: tuple[Block, ...] = ()
    pages: tuple[int, ...] = ()
    document_hash: str = ""
    first_line: int | None = None
    key: str = ""
    notes: tuple[str, ...] = ()


class Reading(NamedTuple):
    """What the reader of a format found in a file."""

    text: str
    blocks: tuple[Block, ...] = ()
    title: str = ""
    notes: tuple[str, ...] = ()
    pages: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Piece:
    """A chunk to index: text, a stable id, and JSON metadata."""

    id: str
    text: str
    metadata: dict[str, Any]


class TextBuilder:
    """Writes a text with its blocks, for readers of formats whose text is not that of the file."""

    def __init__(self, most: int = MAX_CHARACTERS) -> None:
        self._parts: list[str] = []
        self._blocks: list[Block] = []
        self._most = most
        self.length = 0

    def add(self, text: str, kind: BlockKind = "text", *, title: str = "", repeat: str = "") -> None:
        """Add a paragraph or another block; an empty one is skipped."""
        if not text:
            return
        if (kind != "text" or "\n\n" in text) and len(self._blocks) < MAX_BLOCKS:
            self._blocks.append(Block(self.length, self.length + len(text), kind, 0, title, repeat))
        self._parts.append(text)
        self.length += len(text) + 2
        check_characters(self.length - 2, self._most)

    def add_heading(self, level: int, title: str) -> None:
        """Add a heading; a very long one is normal text."""
        text = f"{'#' * max(1, min(level, 6))} {title}" if title else ""
        if title and len(title) <= MAX_TITLE and len(self._blocks) < MAX_BLOCKS:
            self._blocks.append(Block(self.length, self.length + len(text), "heading", level, title))
            self._parts.append(text)
            self.length += len(text) + 2
        else:
            self.add(text)

    def finish(self, title: str) -> Reading:
        """The text, its blocks, and the title (by default that of the first heading)."""
        blocks = tuple(self._blocks)
        return Reading("\n\n".join(self._parts), blocks, title or title_among(blocks))


def title_among(blocks: tuple[Block, ...]) -> str:
    """The title of a document: its first heading of the highest level.

    Headings of a lower level than 1 give it only if one of them stands for the whole: if it is the first
    block, or the only one of its level.
    """
    headings = [block for block in blocks if block.kind == "heading" and block.title]
    top = min((block.level for block in headings), default=0)
    highest = [block for block in headings if block.level == top]
    if highest and (top <= 1 or len(highest) == 1 or highest[0].start == 0):
        return highest[0].title
    return ""


def digest(data: bytes) -> str:
    """sha256, cut to 32 hexadecimal digits."""
    return hashlib.sha256(data).hexdigest()[:32]


def check_characters(count: int, most: int) -> None:
    """Raise if a text is too long to be split."""
    if count > most:
        raise TooLargeError(
            f"holds more than {most:,} characters of text (max_characters): split it into smaller files"
        )


def check_json(text: str) -> None:
    """Raise for too many JSON values before they are parsed: an empty list takes 60 bytes in memory."""
    values = text.count(",") + text.count("[") + text.count("{")
    if values > MAX_VALUES:
        raise TooLargeError(f"holds more than {MAX_VALUES:,} JSON values: split it")


def check_metadata_size(metadata: Any) -> None:
    """Raise if metadata is too large to be stored with every passage of its document."""
    size = len(json.dumps(metadata, ensure_ascii=False).encode())
    if size > MAX_METADATA:
        raise TooLargeError(
            f"has {size:,} bytes of metadata, which every passage would carry; at most {MAX_METADATA:,}: "
            "shorten them, or make them part of the text"
        )
