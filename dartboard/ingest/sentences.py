"""Find the paragraphs, lines, sentences and words of a text, and estimate its tokens.

Sentences are found by rules: libraries such as nltk and spacy load models and are not dependencies.
"""

import re
from collections.abc import Iterator

Span = tuple[int, int]

_TOKEN = re.compile(r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af]|[^\W_]{1,8}|_|[^\w\s]")
_WORD = re.compile(r"\S+")
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


def estimate_tokens(text: str) -> int:
    """Estimate of a model's tokens: words in parts of up to 8 letters, punctuation, ideographs."""
    return sum(1 for _ in _TOKEN.finditer(text))


def lines_with_starts(text: str) -> Iterator[tuple[int, str]]:
    """The lines of a text with their start positions."""
    start = 0
    while (end := text.find("\n", start)) >= 0:
        yield start, text[start:end]
        start = end + 1
    yield start, text[start:]


def line_at(text: str, start: int) -> str:
    """The line that begins at a position."""
    end = text.find("\n", start)
    return text[start:] if end < 0 else text[start:end]


def words(text: str) -> Iterator[Span]:
    """The words between white space."""
    return (found.span() for found in _WORD.finditer(text))


def lines(text: str) -> Iterator[Span]:
    """Non-empty lines."""
    for start, line in lines_with_starts(text):
        if line.strip():
            yield start, start + len(line)


def paragraphs(text: str) -> Iterator[Span]:
    """The paragraphs between empty lines."""
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
