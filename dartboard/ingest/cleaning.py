"""Text cleaning: what a reader cannot see does not reach the model.

Unicode is composed (NFC), so that one letter is one code point; control and format characters
(zero-width spaces, soft hyphens, byte-order marks) and U+FFFD, which stands for what an earlier program
could not read, are removed; runs of spaces become one, and runs of empty lines one. Words, punctuation,
symbols, lines and their indentation stay: they carry meaning in code, formulas and lists.

:func:`clean` does all of it. :func:`tidy` leaves spaces and lines alone, so that line numbers hold.
"""

import re
import unicodedata
from collections.abc import Iterator

_SPACES = re.compile(r"\s+")
_EMPTY_LINES = re.compile(r"\n{3,}")
_INDENTED = re.compile(r"\n[^\S\n]")
_AFTER_LINE = re.compile(r"\n")
_SAFE_CUT = re.compile(r"\n|(?=[ -~])")
"""Where a text can be cut for cleaning: ASCII does not compose with what stands before it."""
_BLOCK = 100_000
_NOT_PLAIN = re.compile(r"[^ -~\n\t]+")
_JOINERS = frozenset("\u200c\u200d")
"""Invisible, but some scripts and emoji change their meaning without them."""


def tidy(text: str) -> str:
    """The text without what cannot be seen, its lines and spaces as they are; lines end in ``\\n``."""
    if len(text) <= _BLOCK:
        return _tidy(text)
    return "".join(_tidy(block) for block in _blocks(text, _SAFE_CUT, _BLOCK))


def clean(text: str) -> str:
    """The text as a reader sees it."""
    text = tidy(text)
    if "\n" not in text:
        return _without_runs(text).strip()
    blocks = _blocks(text, _AFTER_LINE)
    cleaned = _EMPTY_LINES.sub("\n\n", "".join(map(_clean_lines, blocks))).strip("\n")
    return cleaned if _INDENTED.search(cleaned) else cleaned.strip()


def one_line(text: str) -> str:
    """The text cleaned, for titles: without line breaks."""
    return _without_runs(tidy(text)).strip()


def _blocks(text: str, cut: re.Pattern[str], hard: int | None = None) -> Iterator[str]:
    """The text in blocks that end where ``cut`` matches: a list of all words takes many times their size.

    Where there is no such place in the ``hard`` characters after a block, it ends all the same.
    """
    start = 0
    while start < len(text):
        end = start + _BLOCK
        found = cut.search(text, end, len(text) if hard is None else end + hard)
        if found:
            end = found.end()
        elif hard is not None:
            end += hard
        else:
            end = len(text)
        yield text[start:end]
        start = end


def _tidy(text: str) -> str:
    if not text.isascii():
        text = unicodedata.normalize("NFC", text).replace("\ufffd", "")
    if not text.isprintable():
        text = _NOT_PLAIN.sub(_seen, text.replace("\r\n", "\n").replace("\r", "\n"))
    return text


def _without_runs(text: str) -> str:
    """Every run of space as one space; blocks end behind a space, which the next one may begin with."""
    if len(text) <= _BLOCK:
        return " ".join(text.split())
    return " ".join(filter(None, (" ".join(block.split()) for block in _blocks(text, _SPACES))))


def _clean_lines(block: str) -> str:
    return "\n".join(map(_clean_line, block.split("\n")))


def _clean_line(line: str) -> str:
    body = line.strip()
    return line[: line.index(body)] + _without_runs(body) if body else ""


def _seen(run: re.Match[str]) -> str:
    return run[0] if run[0].isprintable() else "".join(map(_visible, run[0]))


def _visible(character: str) -> str:
    if character in "\n\t" or character in _JOINERS:
        return character
    if character.isspace():
        return " "
    return "" if unicodedata.category(character) in ("Cc", "Cf", "Cs", "Co", "Cn") else character
