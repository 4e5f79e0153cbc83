"""Split texts into the coarsest units that fit: sentences, lines, words and finally characters.

A splitter returns the spans of a text's units in order. :func:`units` tries splitters from coarse to fine,
and :func:`pack` joins neighbouring units. Sentences are found by rules: libraries such as nltk and spacy load
models and are not dependencies.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import NamedTuple

from dartboard.ingest.markdown import fences
from dartboard.ingest.rst import literal_blocks
from dartboard.ingest.sections import CountTokens, lines_with_starts

Span = tuple[int, int]
Splitter = Callable[[str], Iterator[Span]]

_TOKEN = re.compile(r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af]|[^\W_]{1,8}|_|[^\w\s]")
_WORD = re.compile(r"\S+")
_CHARACTERS_A_TOKEN = 16
"""More characters than a token usually has: a word is cut to this before its tokens are counted."""
_END = re.compile(
    r"(?<![.!?…])[.!?…]++[\"'”’»)\]]*+(?=\s)"  # sentence end before white space
    r"|[。！？]+[」』”）]*"  # sentence end that needs no white space
    r"|\n[ \t]*(?=\n)"  # end of a paragraph
    r"|\n(?=[ \t]*(?:[-*+•]|\d{1,3}[.)])[ \t])"  # before a list item
)
_ABBREVIATION = re.compile(
    r"(?:^|[\s(\[\"'])(?:[A-Z]|(?i:mr|mrs|ms|dr|prof|st|vs|cf|fig|figs|eq|eqs|sec|no|vol|pp|ed|eds|al|approx"
    r"|e\.g|i\.e|z\.b|d\.h|bzw|ca|inc|ltd|co|dept))\.$"
)


class Unit(NamedTuple):
    """A part of a text that is not split, and its number of tokens."""

    start: int
    end: int
    tokens: int


def estimate_tokens(text: str) -> int:
    """Estimate of a model's tokens: words in parts of up to 8 letters, punctuation, ideographs."""
    return sum(1 for _ in _TOKEN.finditer(text))


def words(text: str) -> Iterator[Span]:
    """The words between white space."""
    return (found.span() for found in _WORD.finditer(text))


def lines(text: str) -> Iterator[Span]:
    """Non-empty lines."""
    for start, line in lines_with_starts(text):
        if line.strip():
            yield start, start + len(line)


def blocks(text: str) -> Iterator[Span]:
    """The blocks between empty lines."""
    open_: Span | None = None
    for start, end in lines(text):
        if open_ and open_[1] + 1 == start:
            open_ = (open_[0], end)
        else:
            if open_:
                yield open_
            open_ = (start, end)
    if open_:
        yield open_


def sentences(text: str) -> Iterator[Span]:
    """All sentences, without surrounding white space.

    They end at punctuation, empty lines and list items; abbreviations do not end a sentence.
    """
    start = 0
    for found in _END.finditer(text):
        if found[0] == "." and _goes_on(text, found.start(), found.end()):
            continue
        yield from _trimmed(text, start, found.end())
        start = found.end()
    yield from _trimmed(text, start, len(text))


def _goes_on(text: str, dot: int, end: int) -> bool:
    """Whether the full stop belongs to an abbreviation, or a lower-case letter follows."""
    following = text[end : end + 20].lstrip()[:1]
    if following.islower() and "\n\n" not in text[end : end + 3]:
        return True
    return bool(_ABBREVIATION.search(text[max(0, dot - 8) : dot + 1]))


def _trimmed(text: str, start: int, end: int) -> Iterator[Span]:
    part = text[start:end]
    stripped = part.strip()
    if stripped:
        begin = start + len(part) - len(part.lstrip())
        yield begin, begin + len(stripped)


def markdown_units(text: str) -> Iterator[Span]:
    """Code fences as whole units, and the sentences between them."""
    return _code_and_sentences(text, fences(text))


def rst_units(text: str) -> Iterator[Span]:
    """Literal blocks as whole units, and the sentences between them."""
    return _code_and_sentences(text, literal_blocks(text))


def _code_and_sentences(text: str, code: Iterable[Span]) -> Iterator[Span]:
    at = 0
    for start, end in chain(code, [(len(text), len(text))]):
        for first, last in sentences(text[at:start]):
            yield at + first, at + last
        if end > start:
            yield start, end
        at = end


PROSE: tuple[Splitter, ...] = (sentences, words)
MARKDOWN: tuple[Splitter, ...] = (markdown_units, lines, words)
RST: tuple[Splitter, ...] = (rst_units, lines, words)
CODE: tuple[Splitter, ...] = (blocks, lines, words)
WORDS: tuple[Splitter, ...] = (words,)


def units(
    text: str, span: Span, splitters: Sequence[Splitter], size: int, count: CountTokens
) -> Iterator[Unit]:
    """The units of a span by the first splitter; a unit that exceeds ``size`` is split by the next."""
    if not splitters:
        yield from _characters(text, span, size, count)
        return
    for first, last in splitters[0](text[slice(*span)]):
        part = (span[0] + first, span[0] + last)
        tokens = count(text[slice(*part)])
        if tokens <= size:
            yield Unit(*part, tokens)
        else:
            yield from units(text, part, splitters[1:], size, count)


def _characters(text: str, span: Span, size: int, count: CountTokens) -> Iterator[Unit]:
    """Halve a word that exceeds ``size`` until the parts fit; a single character is never split."""
    step = size * _CHARACTERS_A_TOKEN
    pending = [(start, min(start + step, span[1])) for start in reversed(range(*span, step))]
    while pending:
        start, end = pending.pop()
        tokens = count(text[start:end])
        if tokens <= size or end - start == 1:
            yield Unit(start, end, tokens)
        else:
            middle = (start + end) // 2
            pending += [(middle, end), (start, middle)]


def pack(text: str, parts: Iterable[Unit], size: int, overlap: int, count: CountTokens) -> Iterator[Span]:
    """Join as many whole units as fit; each piece repeats up to ``overlap`` tokens of the previous one.

    Holds only the units of one piece plus one in memory; units without tokens count as one token.
    """
    rest = iter(parts)
    window: list[Unit] = []  # the units from the start of the current piece
    done = 0  # how many of them are in the previous piece
    while True:
        last = tokens = 0
        while last < len(window) or _read_one(rest, window):
            if last and (tokens + window[last].tokens > size or last >= size):
                break
            tokens += window[last].tokens
            last += 1
        else:
            if done == len(window):
                return
        # Token counts of units may not add up, because of the white space between: count the whole.
        while last > 1 and count(text[window[0].start : window[last - 1].end]) > size:
            last -= 1
        if last <= done:  # only overlap fits: retry with less of it
            del window[0]
            done -= 1
            continue
        yield window[0].start, window[last - 1].end
        first, shared = last, 0
        while first > 1 and shared + window[first - 1].tokens <= overlap:
            first -= 1
            shared += window[first].tokens
        del window[:first]
        done = last - first


def _read_one(rest: Iterator[Unit], window: list[Unit]) -> bool:
    """Add the next unit, if any."""
    unit = next(rest, None)
    if unit is not None:
        window.append(unit)
    return unit is not None
