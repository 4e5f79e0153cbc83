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
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from itertools import dropwhile
from typing import Any, Literal, get_args

from dartboard.errors import ConfigError
from dartboard.ingest.documents import Document, Piece, Section
from dartboard.ingest.pieces import Cut, PieceMaker
from dartboard.ingest.sectioning import Stretch, stretches, title_of
from dartboard.ingest.units import (
    CODE,
    MARKDOWN,
    PROSE,
    RST,
    WORDS,
    CountTokens,
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
_REMEMBERED_WORDS = 50_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkingConfig:
    """How documents are split; sizes in tokens."""

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
    """The pieces of a document; a text without anything but space has none."""
    config = config or ChunkingConfig()
    cuts = _Cutter(document, config, count_tokens).cuts()
    return PieceMaker(document).pieces(cuts)


def method_for(document: Document) -> Method:
    """What ``auto`` means for a document."""
    if document.kind == "code":
        return "code"
    return "markdown" if any(section.path for section in document.sections) else "sentences"


@dataclass(frozen=True, slots=True)
class _Cutter:
    document: Document
    config: ChunkingConfig
    count: CountTokens

    def cuts(self) -> Iterator[Cut]:
        method = method_for(self.document) if self.config.method == "auto" else self.config.method
        text, size = self.document.text, self.config.size
        if method in ("tokens", "sentences"):
            splitters = WORDS if method == "tokens" else PROSE
            count = _remembered(self.count) if method == "tokens" else self.count
            parts = units(text, (0, len(text)), splitters, size, count)
            for start, end in pack(text, parts, size, self.config.overlap, self.count):
                yield Cut(start, end, self._title(start, end))
            return
        sections = self.document.sections or (Section(0, len(text)),)
        for stretch in stretches(text, sections, size, self.config.smallest, self.count):
            yield from self._split(stretch, method)

    def _split(self, stretch: Stretch, method: Method) -> Iterator[Cut]:
        """A stretch as it is if it fits with its context, else in parts."""
        text, size = self.document.text, self.config.size
        context = self._bounded(stretch.context)
        if self.count(context + text[stretch.start : stretch.end]) <= size:
            yield Cut(stretch.start, stretch.end, stretch.title, context)
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
            yield Cut(start, end, stretch.title, again if at else context)

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


def _remembered(count: CountTokens) -> CountTokens:
    """The same, asking only once for each common word."""
    return lru_cache(_REMEMBERED_WORDS)(count)
