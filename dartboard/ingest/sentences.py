"""Where sentences begin and end: by punctuation, empty lines and list items; abbreviations do not end one."""

import re
from collections.abc import Iterator

Span = tuple[int, int]

_END = re.compile(
    r"(?<![.!?…])[.!?…]++[\"'”’»)\]]*+(?=\s)"  # an end that a space follows
    r"|[。！？]+[」』”）]*"  # one that needs none
    r"|\n[ \t]*(?=\n)"  # a paragraph's end
    r"|\n(?=[ \t]*(?:[-*+•]|\d{1,3}[.)])[ \t])"  # the next list item
)
_ABBREVIATION = re.compile(
    r"(?:^|[\s(\[\"'])(?:[A-Z]|(?i:mr|mrs|ms|dr|prof|st|vs|cf|fig|figs|eq|eqs|sec|no|vol|pp|ed|eds|al|approx"
    r"|e\.g|i\.e|z\.b|d\.h|bzw|ca|inc|ltd|co|dept))\.$"
)


def sentence_spans(text: str) -> Iterator[Span]:
    """Start and end of every sentence, in order, without the space around them."""
    start = 0
    for found in _END.finditer(text):
        if found[0] == "." and _goes_on(text, found.start(), found.end()):
            continue
        yield from _trimmed(text, start, found.end())
        start = found.end()
    yield from _trimmed(text, start, len(text))


def _goes_on(text: str, dot: int, end: int) -> bool:
    """Whether a full stop belongs to an abbreviation, or a small letter follows it."""
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
