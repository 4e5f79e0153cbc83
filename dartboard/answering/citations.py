"""Passages numbered from 1, and which of them a text cites.

A citation is ``[2]``, ``[2, 5]`` or ``[2-4]``, also in the brackets 【2】 of some models. A number of no
passage is an unknown citation, and counts for nothing. Code is not looked into, where ``row[1]`` is something
else.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dartboard.plain_text import heading_of, place_of
from dartboard.types import Chunk


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """What ``[number]`` in an answer means; ``name`` is what the model is told of where it is from."""

    number: int
    text: str
    name: str = ""
    chunk_id: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)


def numbered(chunks: Iterable[Chunk]) -> tuple[Passage, ...]:
    """Chunks in the order in which they were picked."""
    return tuple(
        Passage(
            number=number,
            text=chunk.text,
            name=" | ".join(filter(None, (place_of(chunk.metadata, chunk.id), heading_of(chunk.metadata)))),
            chunk_id=chunk.id,
            metadata=chunk.metadata,
        )
        for number, chunk in enumerate(chunks, start=1)
    )


_LIST = r"\d{1,3}(?:\s*[,;–-]\s*\d{1,3})*"
_MARK = re.compile(rf"\[\s*({_LIST})\s*\]|【\s*({_LIST})[^】\n]{{0,40}}】")
_CODE = re.compile(r"```.*?(?:```|\Z)|`[^`\n]+`", re.DOTALL)
_PART = re.compile(r"(\d+)(?:\s*[–-]\s*(\d+))?")
_WIDEST_RANGE = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Citation:
    """A number in a text; ``text[start:end]`` is the bracket that it stands in.

    ``chunk_id`` is empty where there is no such passage.
    """

    number: int
    start: int
    end: int
    chunk_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Citations:
    """``known`` ones name a passage, ``unknown`` ones do not; both in the order of the text."""

    known: tuple[Citation, ...]
    unknown: tuple[Citation, ...]


def find_citations(text: str, passages: Sequence[Passage]) -> Citations:
    """Every citation of a text.

    Args:
        text: what a model wrote.
        passages: what it may cite.

    Returns:
        Citations of passages, and numbers of none, in the order of the text.
    """
    ids = {passage.number: passage.chunk_id for passage in passages}
    known: list[Citation] = []
    unknown: list[Citation] = []
    for mark in _marks(text):
        for number in _numbers(mark[1] or mark[2]):
            found = Citation(number=number, start=mark.start(), end=mark.end(), chunk_id=ids.get(number, ""))
            (known if number in ids else unknown).append(found)
    return Citations(known=tuple(known), unknown=tuple(unknown))


def without_citations(text: str) -> str:
    """The text with a space in the place of every bracket of numbers."""
    kept, end = [], 0
    for mark in _marks(text):
        kept.append(text[end : mark.start()])
        end = mark.end()
    return " ".join([*kept, text[end:]]) if kept else text


def _marks(text: str) -> Iterator[re.Match[str]]:
    code = [(span.start(), span.end()) for span in _CODE.finditer(text)]
    for mark in _MARK.finditer(text):
        if not any(start <= mark.start() < end for start, end in code):
            yield mark


def _numbers(listed: str) -> list[int]:
    """``2, 5-7`` as numbers, each once; a range that is too wide, or runs backwards, as its two ends."""
    found: dict[int, None] = {}
    for part in _PART.finditer(listed):
        first, last = int(part[1]), int(part[2] or part[1])
        whole = range(first, last + 1) if 0 <= last - first < _WIDEST_RANGE else (first, last)
        found.update(dict.fromkeys(whole))
    return list(found)
