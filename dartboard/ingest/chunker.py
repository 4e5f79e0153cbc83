"""Split documents into chunks ("pieces") of bounded size along their blocks.

- ``auto``: by section. A section that fits with all its subsections is one piece, and so is a class or
  function. A larger one is split at its subsections, then between blocks (paragraphs, code, tables). A block
  that is too large alone is split: text at sentences, code at empty lines and lines, tables at rows. A
  section of fewer than ``smallest`` tokens joins its neighbour; a heading without text joins what follows it,
  and so do labels. Methods repeat the line of their class, parts of a function its signature, parts of a
  table its head.
- ``sentences``: as many whole sentences as fit; one is split only if it is too long alone.
- ``tokens``: as many words as fit.

Where a section is split, a piece starts with the last ``overlap`` tokens of the one before, as whole blocks,
sentences or words. A piece of several sections names them all (``Keys; Limits``, ``Install > Linux; macOS``).
Every character except white space is in a piece, in order; only what would be a piece of nothing but labels
(link definitions, targets) or borders of a table is left out. Sizes are those that ``count_tokens`` returns.

A piece's id is ``source#hash``, or ``source#row#hash`` for rows. The hash is that of the text (sha256, 16
digits), with ``~2``, ``~3``, … for repeated text in a document. The id stays the same as long as the text
does, even if it moves. So after a change in one section, only the pieces of that section must be encoded
again.
"""

import re
from array import array
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache, reduce
from itertools import groupby, takewhile
from typing import Any, Literal, NamedTuple, get_args

from dartboard.errors import ConfigError
from dartboard.ingest.documents import MAX_HEADINGS, Block, BlockKind, Document, Piece, digest
from dartboard.ingest.sentences import Span, estimate_tokens, lines, paragraphs, sentences, words

CountTokens = Callable[[str], int]
Splitter = Callable[[str], Iterator[Span]]
Method = Literal["auto", "sentences", "tokens"]

_LARGEST_REPEAT = 3
"""What a piece repeats may take up to 1/n of it; a longer text is omitted."""
_CHARACTERS_A_TOKEN = 16
"""More characters than a token usually has: a word is cut to this before its tokens are counted."""
_CACHED_WORDS = 50_000
_LINE_END = re.compile(r"\n")
_BORDERS = re.compile(r"[\s=~^+|-]*")
_RESERVED = {
    *("source", "position", "start", "end", "start_line", "end_line", "page", "end_page", "section", "title"),
    *("kind", "content_hash", "document_hash", "pieces", "read_as", "uploaded"),
}
_PROSE: tuple[Splitter, ...] = (sentences, words)
_SPLITTERS: dict[BlockKind, tuple[Splitter, ...]] = {
    "code": (paragraphs, lines, words),
    "table": (lines, words),
    "label": (lines, words),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkingConfig:
    """How documents are split; sizes in tokens.

    Args:
        method: One of the methods in the module's docstring.
        size: Maximum tokens of a piece; at most what the model reads.
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
            allowed = ", ".join(get_args(Method))
            raise ConfigError(f"method must be one of {allowed}; got {self.method!r}", field="method")
        if self.size < 1:
            raise ConfigError(f"size must be >= 1 token, got {self.size}", field="size")
        if not 0 <= self.overlap < self.size:
            reason = f"overlap must be >= 0 and < size ({self.size}), got {self.overlap}"
            raise ConfigError(reason, field="overlap")
        if self.smallest < 0:
            raise ConfigError(f"smallest must be >= 0, got {self.smallest}", field="smallest")

    def to_json(self) -> dict[str, Any]:
        """The settings as JSON data, for a manifest."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "ChunkingConfig":
        """The settings from :meth:`to_json`; ``markdown`` and ``code`` of older indexes are ``auto``."""
        if data.get("method") in ("markdown", "code"):
            data = {**data, "method": "auto"}
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
    cutter = _Cutter(document, config or ChunkingConfig(), count_tokens)
    return _PieceMaker(document).pieces(cutter.cuts())


class Section(NamedTuple):
    """A part of the text under a path of headings or definitions, outermost first.

    ``body`` is where the text below the heading and its labels begins. ``around`` are the first lines of the
    definitions around the section, which its pieces repeat, and ``own`` those of its own definition.
    """

    start: int
    end: int
    path: tuple[str, ...]
    body: int
    around: tuple[str, ...] = ()
    own: str = ""


def sections_of(document: Document) -> list[Section]:
    """The sections of a document: consecutive, and together the whole text."""
    found: list[Section] = []
    above: list[Block] = []  # the headings of the current section, outermost first
    start = body = opened = 0

    def close(end: int) -> None:
        if end > start:
            path = tuple(block.title for block in above if block.title)
            around = tuple(block.repeat for block in above[:-1] if block.repeat)
            found.append(Section(start, end, path, body, around, above[-1].repeat if above else ""))

    for block in document.blocks:
        if block.kind in ("heading", "definition") and opened < MAX_HEADINGS:
            opened += 1
            close(block.start)
            while above and above[-1].level >= block.level:
                above.pop()
            above.append(block)
            start, body = block.start, block.end
        elif block.kind == "label" and not document.text[body : block.start].strip():
            body = block.end
    close(len(document.text))
    return found


class _Cut(NamedTuple):
    """The position of a piece in the document, its section's title, and the lines that it repeats."""

    start: int
    end: int
    section: str = ""
    context: str = ""


class _Unit(NamedTuple):
    """A part of a text that is not split, its tokens, and what it repeats as the first of a piece."""

    start: int
    end: int
    tokens: int
    repeat: str = ""


class _Stretch(NamedTuple):
    """Consecutive sections as one unit. ``path`` is their common path, or that of the largest; ``named`` are
    the paths of all joined sections.
    """

    first: Section
    end: int
    path: tuple[str, ...]
    tokens: int
    named: tuple[tuple[str, ...], ...]


class _Cutter:
    """Finds where the pieces of one document begin and end."""

    def __init__(self, document: Document, config: ChunkingConfig, count: CountTokens) -> None:
        self._text, self._blocks = document.text, document.blocks
        self._method, self._size, self._overlap = config.method, config.size, config.overlap
        self._smallest = config.smallest if config.method == "auto" else 0
        self._count = lru_cache(_CACHED_WORDS)(count) if config.method == "tokens" else count
        self._sections = sections_of(document)
        self._ends = [block.end for block in document.blocks]

    def cuts(self) -> Iterator[_Cut]:
        if self._method == "auto":
            for stretch in self._joined(self._plan(_bare_joined(self._text, self._sections), 0)):
                yield from self._split(stretch)
            return
        splitters = (words,) if self._method == "tokens" else _PROSE
        starts = [section.start for section in self._sections]
        for cut in self._pack(self._units((0, len(self._text)), splitters, self._size), self._size):
            inside = slice(bisect_right(starts, cut.start) - 1, bisect_left(starts, cut.end))
            yield cut._replace(section=title_of([section.path for section in self._sections[inside]]))

    # ---- sections into stretches that fit

    def _plan(self, sections: Sequence[Section], depth: int) -> list[_Stretch]:
        """Group sections by their path to ``depth``; groups that do not fit are split one level deeper."""
        found: list[_Stretch] = []
        for _, members in groupby(sections, key=lambda section: section.path[: depth + 1]):
            family = list(members)
            whole = self._whole(family)
            if len(family) == 1 or whole.tokens <= self._size:
                found.append(whole)
            elif all(len(section.path) <= depth + 1 for section in family):
                found += [self._whole([section]) for section in family]
            else:
                found += self._joined(self._plan(family, depth + 1))
        return found

    def _whole(self, family: Sequence[Section]) -> _Stretch:
        path = reduce(_shared, (section.path for section in family))
        tokens = self._count(self._text[family[0].start : family[-1].end])
        return _Stretch(family[0], family[-1].end, path, tokens, (path,))

    def _joined(self, parts: list[_Stretch]) -> list[_Stretch]:
        """Join parts of fewer than ``smallest`` tokens with the more closely related neighbour that fits."""
        at = 0
        while at < len(parts):
            pairs = [pair for pair in (at, at - 1) if 0 <= pair < len(parts) - 1]
            pairs.sort(key=lambda pair: -len(_shared(parts[pair].path, parts[pair + 1].path)))
            small = parts[at].tokens < self._smallest
            at = next((pair for pair in pairs if small and self._join(parts, pair)), at + 1)
        return parts

    def _join(self, parts: list[_Stretch], at: int) -> bool:
        """Join two neighbours if they fit."""
        left, right = parts[at : at + 2]
        tokens = self._count(self._text[left.first.start : right.end])
        if tokens > self._size:
            return False
        larger = left if left.tokens >= right.tokens else right
        path = larger.path
        if larger.tokens < self._smallest:  # both are small, so neither path represents the result
            path = _shared(left.path, right.path) or path
        parts[at : at + 2] = [_Stretch(left.first, right.end, path, tokens, left.named + right.named)]
        return True

    # ---- a stretch into pieces

    def _split(self, stretch: _Stretch) -> Iterator[_Cut]:
        """One piece if the stretch fits with what it repeats, otherwise several."""
        start, end, title = stretch.first.start, stretch.end, title_of(stretch.named)
        context = self._bounded("".join(stretch.first.around))
        if self._count(context + self._text[start:end]) <= self._size:
            yield _Cut(start, end, title, context)
            return
        later = self._bounded(context + stretch.first.own) or context
        room = self._size - max(map(self._count, (context, later))) if later else self._size
        share = -(-stretch.tokens // -(-stretch.tokens // room))  # even, so that no piece is a remainder
        for at, cut in enumerate(self._pack(self._block_units(start, end, room), room, share)):
            yield cut._replace(section=title, context=(later if at else context) + cut.context)

    def _block_units(self, start: int, end: int, room: int) -> Iterator[_Unit]:
        """The blocks between two positions, each whole if it fits.

        Headings and labels belong to the text after them, labels at the end to the text before.
        """
        opened = -1  # start of the headings and labels that wait for a text
        held: tuple[Block, int] | None = None
        for block in self._blocks_between(start, end):
            if block.kind in ("heading", "definition", "label"):
                opened = block.start if opened < 0 else opened
                continue
            if held:
                yield from self._block_unit(*held, room)
            held, opened = (block, block.start if opened < 0 else opened), -1
        if opened < 0 or not held:
            yield from self._block_unit(*held, room) if held else self._rest(opened, end, room)
            return
        *units, last = self._block_unit(*held, room)
        yield from units
        left = room - self._unit(opened, end).tokens
        if left <= 0:  # as many labels as fill a piece
            yield last
            yield from self._rest(opened, end, room)
        elif last.tokens <= left:
            yield self._unit(last.start, end)._replace(repeat=last.repeat)
        else:
            *parts, last = self._units((last.start, last.end), _SPLITTERS.get(held[0].kind, _PROSE), left)
            yield from parts
            yield self._unit(last.start, end)

    def _rest(self, start: int, end: int, room: int) -> Iterator[_Unit]:
        """Headings and labels without any text."""
        return self._units((start, end), (lines, words), room) if start >= 0 else iter(())

    def _block_unit(self, block: Block, first: int, room: int) -> Iterator[_Unit]:
        """A block, or its parts; the headings from ``first`` on join the first of them."""
        whole = self._unit(first, block.end)
        if whole.tokens <= room:
            yield whole
            return
        head = self._unit(first, block.start)
        left = room - head.tokens if block.start > first else room
        repeat = self._bounded(block.repeat)
        later = room - self._count(repeat) if repeat else room
        begun = False
        splitters = _SPLITTERS.get(block.kind, _PROSE)
        for unit in self._units((block.start, block.end), splitters, min(max(1, left), later)):
            if begun or first == block.start:
                yield unit._replace(repeat=repeat if begun else "")
            elif (opening := self._unit(first, unit.end)).tokens <= room:
                yield opening
            else:  # the headings alone are too long
                yield from self._units((first, block.start), (lines, words), room)
                yield unit
            begun = True

    def _blocks_between(self, start: int, end: int) -> Iterator[Block]:
        """The blocks of a part of the text, and the paragraphs between them as blocks."""
        at = start
        for number in range(bisect_right(self._ends, start), len(self._blocks)):
            block = self._blocks[number]
            if block.start >= end:
                break
            yield from self._paragraphs(at, block.start)
            if block.end > block.start:
                yield block
            at = block.end
        yield from self._paragraphs(at, end)

    def _paragraphs(self, start: int, end: int) -> Iterator[Block]:
        for first, last in paragraphs(self._text[start:end]):
            yield Block(start + first, start + last, "text")

    def _bounded(self, repeat: str) -> str:
        return repeat if self._count(repeat) * _LARGEST_REPEAT <= self._size else ""

    def _unit(self, start: int, end: int) -> _Unit:
        return _Unit(start, end, self._count(self._text[start:end]))

    def _units(self, span: Span, splitters: Sequence[Splitter], size: int) -> Iterator[_Unit]:
        """The units of a span by the first splitter; a unit that exceeds ``size`` is split by the next."""
        if not splitters:
            yield from self._characters(span, size)
            return
        for first, last in splitters[0](self._text[slice(*span)]):
            unit = self._unit(span[0] + first, span[0] + last)
            if unit.tokens <= size:
                yield unit
            else:
                yield from self._units((unit.start, unit.end), splitters[1:], size)

    def _characters(self, span: Span, size: int) -> Iterator[_Unit]:
        """Halve a word that exceeds ``size`` until the parts fit; a single character is never split."""
        step = size * _CHARACTERS_A_TOKEN
        pending = [(start, min(start + step, span[1])) for start in reversed(range(*span, step))]
        while pending:
            start, end = pending.pop()
            unit = self._unit(start, end)
            if unit.tokens <= size or end - start == 1:
                yield unit
            else:
                middle = (start + end) // 2
                pending += [(middle, end), (start, middle)]

    def _pack(self, parts: Iterable[_Unit], size: int, share: int | None = None) -> Iterator[_Cut]:
        """Join as many whole units as fit; each piece repeats up to ``overlap`` tokens of the one before.

        A piece ends early once it has ``share`` tokens that no piece before it has.
        A last piece of fewer than ``smallest`` tokens repeats more, so that no remainder stands alone.
        Holds only the units of two pieces in memory; units without tokens count as one token.
        """
        rest = iter(parts)
        window: list[_Unit] = []  # the units from the start of the current piece
        done = 0  # how many of them are in the previous piece
        before: list[_Unit] = []  # the units of the previous piece that are not in the window
        overlap = min(self._overlap, size - 1)
        while True:
            last = tokens = new = 0
            while last < len(window) or _read_one(rest, window):
                if last and (tokens + window[last].tokens > size or last >= size or new >= (share or size)):
                    break
                tokens += window[last].tokens
                new += window[last].tokens if last >= done else 0
                last += 1
            else:
                if done == len(window):
                    return
                while (
                    tokens < self._smallest
                    and len(before) > 1
                    and (before[-1].tokens * _LARGEST_REPEAT <= size)
                ):
                    window.insert(0, before.pop())
                    tokens, last, done = tokens + window[0].tokens, last + 1, done + 1
            # Token counts of units may not add up, because of the white space between: count the whole.
            start, repeat = window[0].start, window[0].repeat
            while last > 1 and self._count(repeat + self._text[start : window[last - 1].end]) > size:
                last -= 1
            if last <= done:  # only overlap fits: retry with less of it
                del window[0]
                done -= 1
                continue
            yield _Cut(start, window[last - 1].end, context=repeat)
            first, shared = last, 0
            while first > 1 and shared + window[first - 1].tokens <= overlap:
                first -= 1
                shared += window[first].tokens
            before = window[:first]
            del window[:first]
            done = last - first


def _bare_joined(text: str, sections: Sequence[Section]) -> list[Section]:
    """Join headings without text to the section after them: ``Guide``, ``Install`` and the first words."""
    joined: list[Section] = []
    waiting: Section | None = None
    for section in sections:
        if waiting is not None:
            section = section._replace(start=waiting.start)
        headed = section.body > section.start and not section.own
        bare = headed and not text[section.body : section.end].strip()
        waiting = section if bare else None
        if not bare:
            joined.append(section)
    return joined if waiting is None else [*joined, waiting]


def _read_one(rest: Iterator[_Unit], window: list[_Unit]) -> bool:
    """Add the next unit, if any."""
    unit = next(rest, None)
    if unit is not None:
        window.append(unit)
    return unit is not None


def title_of(paths: Sequence[tuple[str, ...]]) -> str:
    """The names of all sections, with a common path only once: ``Install > Linux; macOS``, ``Keys; Limits``.

    Text before the first heading, or directly under the common one, has no name.
    """
    named = list(dict.fromkeys(path for path in paths if path))
    if not named:
        return ""
    within = reduce(_shared, named)
    own = [" > ".join(path[len(within) :]) for path in named if len(path) > len(within)]
    return " > ".join([*within, *(["; ".join(own)] if own else [])])


def _shared(left: tuple[str, ...], right: tuple[str, ...]) -> tuple[str, ...]:
    pairs = zip(left, right, strict=False)
    return tuple(name for name, _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


class _PieceMaker:
    """Makes the pieces of one document."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._line_ends = array("I", (found.start() for found in _LINE_END.finditer(document.text)))
        self._own = {f"{name}_" if name in _RESERVED else name: v for name, v in document.metadata.items()}
        self._seen: Counter[str] = Counter()
        self._labels = [block for block in document.blocks if block.kind == "label"]
        self._label_ends = [block.end for block in self._labels]

    def pieces(self, cuts: Iterable[_Cut]) -> list[Piece]:
        """A piece for every cut with text for a reader; for every one that is not blank if none has any."""
        filled = [cut for cut in map(self._trimmed, cuts) if cut.end > cut.start]
        read = [cut for cut in filled if self._has_text(cut)]
        return [self._piece(cut, at) for at, cut in enumerate(read or filled)]

    def _has_text(self, cut: _Cut) -> bool:
        """Whether the cut holds more than labels and the borders of tables."""
        text, at = self._document.text, cut.start
        for place in range(bisect_right(self._label_ends, cut.start), len(self._labels)):
            label = self._labels[place]
            if label.start >= cut.end:
                break
            if not _BORDERS.fullmatch(text, at, max(at, label.start)):
                return True
            at = label.end
        return at < cut.end and not _BORDERS.fullmatch(text, at, cut.end)

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
        if not self._document.pages:
            return {}
        first, last = (bisect_right(self._document.pages, at) for at in (cut.start, cut.end - 1))
        return {"page": first, "end_page": last}
