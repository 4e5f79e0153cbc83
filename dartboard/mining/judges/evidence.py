"""Evidence must stand in a context: a quote that nobody wrote makes a verdict UNSURE.

Quote and context are compared without case, accents, kinds of quotes and dashes, and amounts of white space.
A quote may leave things out with an ellipsis; each of its parts must then stand in one of the contexts, not
necessarily the same one, since several contexts may be needed for one answer.

A few letters stand in almost any text. A quote of fewer than 8 letters and digits counts only if it is the
whole of a context, if it holds a known answer of the case, or if it is a number that the question has not,
with what it counts: "12 grams".
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from dartboard.mining.corpora.base import Document
from dartboard.mining.judges.answer_judge import find
from dartboard.mining.judges.text_folding import fold

LEAST_EVIDENCE = 8
"""Letters and digits of a quote that counts whatever it says."""

MOST_EVIDENCE = 4000
ELLIPSIS = " … "

_ELLIPSIS = re.compile(r"\s*(?:\[\s*\.{3,}\s*\]|\.{3,})\s*")
_WORDS = re.compile(r"\w+")
_LITTLE = frozenset(
    ("a", "an", "and", "are", "as", "at", "be", "by", "do", "does", "for", "from", "has", "have")
) | {*("in", "is", "it", "its", "of", "on", "or", "that", "the", "this", "to", "was", "were", "will", "with")}


@dataclass(frozen=True, slots=True)
class Quote:
    """``text`` is the quote as the contexts write it, or "" with ``trouble`` saying why it does not count."""

    text: str = ""
    trouble: str = ""


def check_quote(
    evidence: str,
    contexts: Sequence[Document],
    *,
    question: str = "",
    answers: Sequence[Sequence[str]] = (),
) -> Quote:
    """The evidence in the contexts' own spelling, if it stands there and says more than the question.

    ``answers`` are the known ones, by facet: a short quote that holds one of them counts.
    """
    squeezed = _squeezed(evidence)[0].strip("\"' ")
    parts = [part for part in _ELLIPSIS.split(squeezed) if _WORDS.search(part)]
    if not parts:
        return Quote(trouble="no evidence was quoted")
    if len(squeezed) > MOST_EVIDENCE:
        return Quote(
            trouble=f"the quoted evidence is so long ({len(squeezed)} characters) that it shows nothing"
        )
    texts = [context.text for context in contexts]
    found = []
    for part in parts:
        place = _first(part, texts)
        if place is None:
            return Quote(trouble=f"the quoted evidence stands in no context: {_short(part)}")
        found.append(place)
    whole = any(_size(part) == _size(text) for part, text in found)
    if sum(map(_size, parts)) < LEAST_EVIDENCE and not whole and not _telling(squeezed, question, answers):
        return Quote(trouble=f"the quoted evidence is too short to prove anything: {_short(squeezed)}")
    if question and _words(squeezed) <= _words(_squeezed(question)[0]) | _LITTLE:
        return Quote(trouble="the quoted evidence only repeats words of the question")
    return Quote(text=ELLIPSIS.join(dict.fromkeys(part for part, _ in found)))


def stands_in(evidence: str, texts: Sequence[str]) -> bool:
    """Whether each part of the evidence is in one of the texts, whatever case, quotes and line breaks."""
    if any(evidence in text for text in texts):
        return True
    parts = [part for part in _ELLIPSIS.split(_squeezed(evidence)[0].strip("\"' ")) if part.strip()]
    squeezed = [_squeezed(text)[0] for text in texts]
    return bool(parts) and all(any(part in text for text in squeezed) for part in parts)


def _first(part: str, texts: Sequence[str]) -> tuple[str, str] | None:
    """The part as the first text that holds it writes it, and that text; whole words only."""
    for text in texts:
        squeezed, places = _squeezed(text)
        start = _find(part, squeezed)
        if start >= 0:
            return text[places[start] : places[start + len(part) - 1] + 1], text
    return None


def _find(part: str, text: str) -> int:
    start = text.find(part)
    while start >= 0:
        if _whole(part, text, start):
            return start
        start = text.find(part, start + 1)
    return -1


def _telling(quote: str, question: str, answers: Sequence[Sequence[str]]) -> bool:
    """Whether a short quote says something all the same: a known answer, or a new number of something."""
    if any(find(answer, quote) for facet in answers for answer in facet):
        return True
    words = _words(quote)
    numbers = {word for word in words if word[0].isdigit()}
    return bool(numbers - _words(_squeezed(question)[0])) and bool(words - numbers - _LITTLE)


def _words(text: str) -> set[str]:
    return set(_WORDS.findall(text))


def _whole(part: str, text: str, start: int) -> bool:
    """Whether a match neither starts nor ends within a word."""
    end = start + len(part)
    cut_before = start > 0 and part[0].isalnum() and text[start - 1].isalnum()
    cut_after = end < len(text) and part[-1].isalnum() and text[end].isalnum()
    return not (cut_before or cut_after)


def _squeezed(text: str) -> tuple[str, list[int]]:
    """The folded text with single spaces, and where each of its characters came from."""
    folded = fold(text)
    kept: list[str] = []
    places: list[int] = []
    for at, character in enumerate(folded.text):
        if character.isspace():
            if kept and kept[-1] == " ":
                continue
            character = " "
        kept.append(character)
        places.append(folded.places[at])
    return "".join(kept), places


def _size(text: str) -> int:
    return sum(character.isalnum() for character in text)


def _short(text: str) -> str:
    return repr(text if len(text) <= 80 else f"{text[:77]}...")
