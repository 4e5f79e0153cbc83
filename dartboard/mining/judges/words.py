"""Words of a text with their places, and whether one text's words stand in another.

Words are compared without case and accents, numbers without thousands commas; articles may be missing or
added. Known answers and quoted evidence are looked for in the same way. Other spellings, such as "March 5"
for "2021-03-05", belong into a case's ``answers``.
"""

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

ARTICLES = frozenset({"a", "an", "the"})
LEAST_EVIDENCE = 8
"""Letters and digits of a quote that counts whatever it says."""
LEAST_WORDS = 3
"""Words of a part of a quote that counts as a passage of its own."""
MOST_EVIDENCE = 4000
ELLIPSIS = " … "

_WORD = re.compile(r"\d{1,3}(?:,\d{3})+(?![\d,])(?:\.\d+)?|\d+(?:\.\d+)+|\w[\w\u0300-\u036f]*(?:\+\+|#)?")
_ELLIPSIS = re.compile(r"\s*(?:\[\s*(?:\.{3,}|…)\s*\]|\.{3,}|…)\s*")
_SENTENCE_END = re.compile(r"[.!?][\"')\]]*\s+(?=[A-Z0-9\"'(\[])|\n+")
_PARAGRAPH_END = re.compile(r"\n\s*\n")
_LONGEST_SENTENCE = 400
_LITTLE = frozenset(
    ("a", "an", "and", "are", "as", "at", "be", "by", "do", "does", "for", "from", "has", "have")
) | {*("in", "is", "it", "its", "of", "on", "or", "that", "the", "this", "to", "was", "were", "will", "with")}


@dataclass(frozen=True, slots=True)
class Words:
    """A text's words in order; word i stands at ``text[starts[i]:ends[i]]``; ``places`` by word."""

    words: tuple[str, ...]
    starts: tuple[int, ...]
    ends: tuple[int, ...]
    places: dict[str, list[int]]


@lru_cache(maxsize=1024)
def words_of(text: str) -> Words:
    """The words of a text; texts come back often, so the last are kept."""
    found = list(_WORD.finditer(text))
    words = tuple(_folded(match[0]) for match in found)
    places: dict[str, list[int]] = {}
    for at, word in enumerate(words):
        places.setdefault(word, []).append(at)
    starts = tuple(match.start() for match in found)
    return Words(words, starts, tuple(match.end() for match in found), places)


def find(wanted: str, text: str, start: int = 0) -> tuple[int, int] | None:
    """Where the words of ``wanted`` stand in the text, from ``start`` on; symbols alone as they are."""
    there = words_of(text)
    needed = words_of(wanted).words
    # An article says little, unless it ends the name: vitamin A.
    needed = tuple(one for at, one in enumerate(needed) if one not in ARTICLES or at == len(needed) - 1)
    if not needed:
        place = text.find(wanted.strip(), start) if wanted.strip() else -1
        return None if place < 0 else (place, place + len(wanted.strip()))
    for at in there.places.get(needed[0], ()):
        if there.starts[at] >= start and (end := _match(needed, there.words, at)) is not None:
            return there.starts[at], there.ends[end - 1]
    return None


def first_sentence(spellings: Sequence[str], texts: Sequence[str]) -> str | None:
    """The sentence around the first spelling that stands in a text, or None."""
    for text in texts:
        for one in spellings:
            if (span := find(one, text)) is not None:
                return widened(text, *span)
    return None


def widened(text: str, start: int, end: int) -> str:
    """The sentence or line around a span, cut at words where it is very long."""
    bounds = [0, *(match.end() for match in _SENTENCE_END.finditer(text)), len(text)]
    left = max(bound for bound in bounds if bound <= start)
    right = min(bound for bound in bounds if bound >= end)
    if right - left > _LONGEST_SENTENCE:
        spare = max(0, (_LONGEST_SENTENCE - (end - start)) // 2)
        near = [at for at in words_of(text).starts if start - spare <= at <= start]
        far = [at for at in words_of(text).ends if end <= at <= end + spare]
        left, right = max(left, min(near, default=start)), min(right, max(far, default=end))
    return text[left:right].strip()


@dataclass(frozen=True, slots=True)
class Quote:
    """``text`` is the quote as the contexts write it, or "" with ``trouble`` saying why it does not count."""

    text: str = ""
    trouble: str = ""


def check_quote(
    evidence: str, texts: Sequence[str], *, question: str = "", answers: Sequence[Sequence[str]] = ()
) -> Quote:
    """The evidence in the contexts' own spelling, if it stands there and says more than the question.

    A quote is one passage of a context, or has parts, with an ellipsis or a new line between them. A part
    goes on in the paragraph of the part before it, or is a passage of its own. Each part must be long enough;
    a short quote counts if it is all of a context, holds a known answer (``answers``, by facet), or gives a
    number that the question has not, with what it counts.
    """
    if not words_of(evidence).words:
        return Quote(trouble="no evidence was quoted")
    if len(evidence) > MOST_EVIDENCE:
        return Quote(trouble=f"the evidence is so long ({len(evidence)} characters) that it shows nothing")
    found: list[str] = []
    for line in [evidence] if _passages(evidence, texts) else evidence.splitlines():
        passages = _passages(line, texts)
        if passages is None:
            break  # what follows a quote is an explanation
        found += passages
    if not found:
        return Quote(trouble=f"the quoted evidence stands in no context: {_short(evidence)}")
    said = {word for part in found for word in words_of(part).words}
    asked = set(words_of(question).words)
    alone = any(_size(part) == _size(text) for part in found for text in texts)
    short = len(found) == 1 and _size(found[0]) < LEAST_EVIDENCE
    if short and not alone and not _telling(found[0], asked, answers):
        return Quote(trouble=f"the quoted evidence is too short to prove anything: {_short(found[0])}")
    if question and said <= asked | _LITTLE:
        return Quote(trouble="the quoted evidence only repeats words of the question")
    return Quote(text=ELLIPSIS.join(dict.fromkeys(found)))


def stands_in(evidence: str, texts: Sequence[str]) -> bool:
    """Whether evidence that was checked before still stands in these texts."""
    parts = [part for part in _ELLIPSIS.split(evidence) if part.strip()]
    whole = any(find(evidence, text) for text in texts)
    return whole or (bool(parts) and all(any(find(part, text) for text in texts) for part in parts))


def _passages(line: str, texts: Sequence[str]) -> list[str] | None:
    """A line of a quote as the texts write it; None where a part of it is not there, or too short."""
    whole = next((text[slice(*span)] for text in texts if (span := find(line, text)) is not None), None)
    if whole is not None:
        return [whole]
    parts = [part for part in _ELLIPSIS.split(line) if words_of(part).words]
    if len(parts) < 2:
        return None
    found: list[str] = []
    text, end = "", 0
    for part in parts:
        span = find(part, text, end) if found else None
        if span is None or _PARAGRAPH_END.search(text, end, span[0]):
            if found and len(words_of(part).words) < LEAST_WORDS:
                return None
            text = next((one for one in texts if find(part, one) is not None), "")
            span = find(part, text)
        if span is None or _size(part) < LEAST_EVIDENCE:
            return None
        found.append(text[slice(*span)])
        end = span[1]
    return found


def _match(wanted: tuple[str, ...], words: tuple[str, ...], at: int) -> int | None:
    """The end of a match that starts at ``at``; articles in the text are passed over."""
    for want in wanted:
        while at < len(words) and words[at] != want and words[at] in ARTICLES:
            at += 1
        if at >= len(words) or words[at] != want:
            return None
        at += 1
    return at


def _telling(quote: str, asked: set[str], answers: Sequence[Sequence[str]]) -> bool:
    """Whether a short quote says something all the same: a known answer, or a new number of something."""
    if any(find(answer, quote) for facet in answers for answer in facet):
        return True
    words = set(words_of(quote).words)
    numbers = {word for word in words if word[0].isdigit()}
    return bool(numbers - asked) and bool(words - numbers - _LITTLE)


@lru_cache(maxsize=65536)
def _folded(word: str) -> str:
    parts = unicodedata.normalize("NFKD", word)
    bare = "".join(part for part in parts if not unicodedata.combining(part)).casefold()
    return bare.replace(",", "") if bare[:1].isdigit() else bare


def _size(text: str) -> int:
    return sum(character.isalnum() for character in text)


def _short(text: str) -> str:
    return repr(text if len(text) <= 80 else f"{text[:77]}...")
