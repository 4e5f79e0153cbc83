"""Documents to pieces of bounded size that keep what belongs together.

- ``tokens``: words, as many as fit, each piece beginning with the last ``overlap`` tokens of the one before;
- ``sentences``: the same with whole sentences, split only where one alone is too long;
- ``markdown``: by section; a section that fits, with all below it, is one piece, a larger one is split at
  its subsections, a larger one without any at sentences (blocks of code stay whole); one of fewer than
  ``smallest`` tokens joins its neighbour, a heading without text what follows it;
- ``code``: the same with definitions: a class that fits stays whole, a larger one is split at its methods,
  and each piece of it begins with the class's line; parts of a long function repeat its head;
- ``auto``: ``code`` for source code, ``markdown`` for what has headings, else ``sentences``.

A piece of several sections names them all (``Keys; Limits``, ``Install > Linux; macOS``).
Every character that is no space is in a piece, in order. Sizes are what ``count_tokens`` says of a piece.

A piece's id is ``source#hash``, for rows ``source#row#hash``, the hash being that of the text (sha256, 16
digits), with ``~2``, ``~3``, … where a document says the same thing again. A piece keeps its id as long as
its text is the same, wherever it moves: after a change in one section, whoever replaces the document has to
encode the pieces of that section only. (Plain text has no sections: there an insertion moves the ends of the
pieces behind it.)
"""

import re
from array import array
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from itertools import dropwhile
from typing import Any, Literal, NamedTuple, get_args

from dartboard.errors import ConfigError
from dartboard.ingest.documents import Document, Piece, Section, digest
from dartboard.ingest.sections import CountTokens, Stretch, stretches, title_of
from dartboard.ingest.splitters import (
    CODE,
    MARKDOWN,
    PROSE,
    RST,
    WORDS,
    Splitter,
    Unit,
    estimate_tokens,
    pack,
    units,
)

Method = Literal["auto", "tokens", "sentences", "markdown", "code"]

_LARGEST_CONTEXT = 3
"""A context may take up to one part in this many of a piece; a longer one is left out."""

_SPLITTERS = {"markdown": MARKDOWN, "rst": RST}
_BEFORE_DEFINITIONS = ("#", "@", "//", "/*", "*", "--", "[")
_LONGEST_HEAD = 8
_LONGEST_SIGNATURE = 10_000
"""Characters in which a signature is looked for."""
_CACHED_WORDS = 50_000
_LINE_END = re.compile(r"\n")
_RESERVED = {
    *("source", "position", "start", "end", "start_line", "end_line", "page", "end_page", "section", "title"),
    *("kind", "content_hash", "document_hash", "pieces", "read_as", "uploaded"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkingConfig:
    """How documents are split; sizes in tokens.

    Args:
        method: see the module's docstring.
        size: tokens that a piece has at most.
        overlap: tokens at the end of a piece that the next one begins with; less than ``size``.
        smallest: a section of fewer tokens joins its neighbour.

    Raises:
        ConfigError: an unknown method, or a size outside its range.
    """

    method: Method = "auto"
    size: int = 256
    overlap: int = 32
    smallest: int = 32

    def __post_init__(self) -> None:
        if self.method not in get_args(Method):
            raise ConfigError(f"method must be one of {', '.join(get_args(Method))}; got {self.method!r}")
        if self.size < 1:
            raise ConfigError(f"size must be >= 1 token, got {self.size}")
        if not 0 <= self.overlap < self.size:
            raise ConfigError(f"overlap must be >= 0 and < size ({self.size}), got {self.overlap}")
        if self.smallest < 0:
            raise ConfigError(f"smallest must be >= 0, got {self.smallest}")

    def to_json(self) -> dict[str, Any]:
        """The settings as plain data, for a manifest."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "ChunkingConfig":
        """The settings that :meth:`to_json` described."""
        try:
            return cls(**data)
        except TypeError as error:
            raise ConfigError(f"expected chunking settings, got {dict(data)!r}") from error


def chunk(
    document: Document,
    config: ChunkingConfig | None = None,
    *,
    count_tokens: CountTokens = estimate_tokens,
) -> list[Piece]:
    """Split a document.

    Args:
        document: what a reader made, or ``Document(source=…, text=…, kind="text", title=…)``.
        config: how to split; None is ``ChunkingConfig()``.
        count_tokens: the tokens of a text, of which sizes are counted; by default an estimate.

    Returns:
        The pieces in order; a text without anything but space has none.

    Example:
        >>> note = Document(source="note.txt", text="Tea grows on hills.", kind="text", title="Note")
        >>> [piece.text for piece in chunk(note)]
        ['Tea grows on hills.']
    """
    config = config or ChunkingConfig()
    cuts = _Cutter(document, config, count_tokens).cuts()
    return _PieceMaker(document).pieces(cuts)


def method_for(document: Document) -> Method:
    """What ``auto`` means for a document."""
    if document.kind == "code":
        return "code"
    return "markdown" if any(section.path for section in document.sections) else "sentences"


class _Cut(NamedTuple):
    """What a piece is made of: a stretch of the document, its section's title, and lines to put before it."""

    start: int
    end: int
    section: str = ""
    context: str = ""


@dataclass(frozen=True, slots=True)
class _Cutter:
    document: Document
    config: ChunkingConfig
    count: CountTokens

    def cuts(self) -> Iterator[_Cut]:
        method = method_for(self.document) if self.config.method == "auto" else self.config.method
        text, size = self.document.text, self.config.size
        if method in ("tokens", "sentences"):
            splitters = WORDS if method == "tokens" else PROSE
            count = lru_cache(_CACHED_WORDS)(self.count) if method == "tokens" else self.count
            parts = units(text, (0, len(text)), splitters, size, count)
            for start, end in pack(text, parts, size, self.config.overlap, self.count):
                yield _Cut(start, end, self._title(start, end))
            return
        sections = self.document.sections or (Section(0, len(text)),)
        for stretch in stretches(text, sections, size, self.config.smallest, self.count):
            yield from self._split(stretch, method)

    def _split(self, stretch: Stretch, method: Method) -> Iterator[_Cut]:
        """A stretch as it is if it fits with its context, else in parts."""
        text, size = self.document.text, self.config.size
        context = self._bounded(stretch.context)
        if self.count(context + text[stretch.start : stretch.end]) <= size:
            yield _Cut(stretch.start, stretch.end, stretch.title, context)
            return
        again = context
        if method == "code" and stretch.path:
            again = self._bounded(context + _signature(text[stretch.start : stretch.end])) or context
        room = size - max(self.count(context), self.count(again))
        splitters = CODE if method == "code" else _SPLITTERS.get(self.document.kind, PROSE)
        parts = units(text, (stretch.start, stretch.end), splitters, room, self.count)
        parts = self._opened_below_heading(parts, stretch, splitters, room)
        for at, (start, end) in enumerate(
            pack(text, parts, room, min(self.config.overlap, room - 1), self.count)
        ):
            yield _Cut(start, end, stretch.title, again if at else context)

    def _opened_below_heading(
        self, parts: Iterator[Unit], stretch: Stretch, splitters: Sequence[Splitter], room: int
    ) -> Iterator[Unit]:
        """Split the first unit below the heading where both do not fit together: no heading stands alone."""
        text = self.document.text
        headed = False
        for part in parts:
            if part.start < stretch.body:
                headed = True
                yield part
                continue
            left = room - self.count(text[stretch.start : stretch.body]) if headed else 0
            if left > 0 and self.count(text[stretch.start : part.end]) > room:
                yield from units(text, (part.start, part.end), splitters[1:], left, self.count)
            else:
                yield part
            break
        yield from parts

    def _bounded(self, context: str) -> str:
        return context if self.count(context) * _LARGEST_CONTEXT <= self.config.size else ""

    def _title(self, start: int, end: int) -> str:
        return title_of([s.path for s in self.document.sections if s.start < end and start < s.end])


def _signature(definition: str) -> str:
    """The line that begins a definition, or the few until its body begins."""
    lines = [line for line in definition[:_LONGEST_SIGNATURE].split("\n") if line.strip()]
    head = list(dropwhile(lambda line: line.lstrip().startswith(_BEFORE_DEFINITIONS), lines))[:_LONGEST_HEAD]
    ends = (at for at, line in enumerate(head, start=1) if line.rstrip().endswith((":", "{")))
    return "".join(f"{line}\n" for line in head[: next(ends, 1)])


class _PieceMaker:
    """Makes the pieces of one document."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._line_ends = array("I", (found.start() for found in _LINE_END.finditer(document.text)))
        self._starts = [section.start for section in document.sections]
        self._own = {f"{name}_" if name in _RESERVED else name: v for name, v in document.metadata.items()}
        self._seen: Counter[str] = Counter()

    def pieces(self, cuts: Iterable[_Cut]) -> list[Piece]:
        """A piece for every cut that holds more than space."""
        trimmed = (self._trimmed(cut) for cut in cuts)
        return [self._piece(cut, at) for at, cut in enumerate(cut for cut in trimmed if cut.end > cut.start)]

    def _trimmed(self, cut: _Cut) -> _Cut:
        """Without space at the ends, but with the indentation of a first line of code."""
        part = self._document.text[cut.start : cut.end]
        end = cut.start + len(part.rstrip())
        start = cut.start + len(part) - len(part.lstrip())
        if self._document.kind == "code":
            start = max(cut.start, self._document.text.rfind("\n", 0, start) + 1)
        return cut._replace(start=start, end=max(start, end))

    def _piece(self, cut: _Cut, position: int) -> Piece:
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

    def _lines(self, cut: _Cut) -> dict[str, Any]:
        if self._document.first_line is None:
            return {}
        first = self._document.first_line
        start, end = (first + bisect_right(self._line_ends, at - 1) for at in (cut.start, cut.end))
        return {"start_line": start, "end_line": end}

    def _pages(self, cut: _Cut) -> dict[str, Any]:
        first, last = self._section(cut.start), self._section(cut.end - 1)
        if not first or not last or first.page is None:
            return {}
        return {"page": first.page, "end_page": last.page}

    def _section(self, at: int) -> Section | None:
        number = bisect_right(self._starts, at) - 1
        return self._document.sections[number] if number >= 0 else None
