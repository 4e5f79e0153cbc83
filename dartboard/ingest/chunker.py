"""Split documents into chunks ("pieces") of bounded size along their structure.

- ``tokens``: as many words as fit; each piece starts with the last ``overlap`` tokens of the previous one.
- ``sentences``: the same with whole sentences; a sentence is split only if it is too long alone.
- ``markdown``: by section. A section that fits with all its subsections is one piece. A larger one is split
  at its subsections, or at sentences if it has none (code blocks stay whole). A section of fewer than
  ``smallest`` tokens joins its neighbour; a heading without text joins what follows it.
- ``code``: the same with definitions. A class that fits stays whole. A larger one is split at its methods,
  and each piece starts with the class line. Parts of a long function repeat its signature.
- ``auto``: ``code`` for source code, ``markdown`` for documents with headings, otherwise ``sentences``.

A piece of several sections names them all (``Keys; Limits``, ``Install > Linux; macOS``). Every character
except white space is in a piece, in order. Sizes are those that ``count_tokens`` returns.

A piece's id is ``source#hash``, or ``source#row#hash`` for rows. The hash is that of the text (sha256, 16
digits), with ``~2``, ``~3``, … for repeated text in a document. The id stays the same as long as the text
does, even if it moves. So after a change in one section, only the pieces of that section must be encoded
again. (Plain text has no sections: there an insertion shifts the ends of all later pieces.)
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
"""A context may take up to 1/n of a piece; a longer one is omitted."""

_SPLITTERS = {"markdown": MARKDOWN, "rst": RST}
_BEFORE_DEFINITIONS = ("#", "@", "//", "/*", "*", "--", "[")
_LONGEST_HEAD = 8
_LONGEST_SIGNATURE = 10_000
"""How many characters are searched for the end of a signature."""
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
        method: One of the methods in the module's docstring.
        size: Maximum tokens of a piece.
        overlap: Tokens at the end of a piece that the next one repeats; less than ``size``.
        smallest: A section of fewer tokens joins its neighbour.

    Raises:
        ConfigError: the method is unknown, or a size is outside of its range.
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
        """The settings as JSON data, for a manifest."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "ChunkingConfig":
        """The settings from :meth:`to_json`."""
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
        document: From a reader, or ``Document(source=…, text=…, kind="text", title=…)``.
        config: How to split; None is ``ChunkingConfig()``.
        count_tokens: Returns the number of tokens of a text; by default an estimate.

    Returns:
        The pieces in order; none for a text of white space only.

    Example:
        >>> note = Document(source="note.txt", text="Tea grows on hills.", kind="text", title="Note")
        >>> [piece.text for piece in chunk(note)]
        ['Tea grows on hills.']
    """
    config = config or ChunkingConfig()
    cuts = _Cutter(document, config, count_tokens).cuts()
    return _PieceMaker(document).pieces(cuts)


def method_for(document: Document) -> Method:
    """The method that ``auto`` chooses for a document."""
    if document.kind == "code":
        return "code"
    return "markdown" if any(section.path for section in document.sections) else "sentences"


class _Cut(NamedTuple):
    """The position of a piece in the document, its section's title, and context lines to prepend."""

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
        """One piece if the stretch fits with its context, otherwise several."""
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
        """Split the first unit below a heading if both do not fit together, so that no heading is alone."""
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
    """The first lines of a definition, up to its body."""
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
        """A piece for every cut that is not only white space."""
        trimmed = (self._trimmed(cut) for cut in cuts)
        return [self._piece(cut, at) for at, cut in enumerate(cut for cut in trimmed if cut.end > cut.start)]

    def _trimmed(self, cut: _Cut) -> _Cut:
        """Strip white space at the ends, but keep the indentation of a first line of code."""
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
