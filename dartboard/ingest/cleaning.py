"""Text cleaning: what a reader cannot see does not reach the model.

Unicode is composed (NFC), so that one letter is one code point; control and format characters
(zero-width spaces, soft hyphens, byte-order marks) and U+FFFD, which stands for what an earlier program
could not read, are removed; runs of spaces become one, and runs of empty lines one. Words, punctuation,
symbols, lines and their indentation stay: they carry meaning in code, formulas and lists.

:func:`clean` does all of it. :func:`tidy` leaves spaces and lines alone, so that line numbers hold.
"""

import re
import unicodedata

_SPACES = re.compile(r"\s+")
_EMPTY_LINES = re.compile(r"\n{3,}")
_NOT_PLAIN = re.compile(r"[^ -~\n\t]+")
_JOINERS = frozenset("\u200c\u200d")
"""Invisible, but some scripts and emoji change their meaning without them."""


def tidy(text: str) -> str:
    """The text without what cannot be seen, its lines and spaces as they are; lines end in ``\\n``."""
    if not text.isascii():
        text = unicodedata.normalize("NFC", text).replace("\ufffd", "")
    if not text.isprintable():
        text = _NOT_PLAIN.sub(_seen, text.replace("\r\n", "\n").replace("\r", "\n"))
    return text


def clean(text: str) -> str:
    """The text as a reader sees it."""
    text = tidy(text)
    if "\n" not in text:
        return _SPACES.sub(" ", text).strip()
    lines = [_clean_line(line) for line in text.split("\n")]
    cleaned = _EMPTY_LINES.sub("\n\n", "\n".join(lines)).strip("\n")
    indented = any(line[:1].isspace() for line in cleaned.split("\n")[1:])
    return cleaned if indented else cleaned.strip()


def one_line(text: str) -> str:
    """The text cleaned, for titles: without line breaks."""
    return " ".join(tidy(text).split())


def _clean_line(line: str) -> str:
    body = line.strip()
    return line[: line.index(body)] + _SPACES.sub(" ", body) if body else ""


def _seen(run: re.Match[str]) -> str:
    return run[0] if run[0].isprintable() else "".join(map(_visible, run[0]))


def _visible(character: str) -> str:
    if character in "\n\t" or character in _JOINERS:
        return character
    if character.isspace():
        return " "
    return "" if unicodedata.category(character) in ("Cc", "Cf", "Cs", "Co", "Cn") else character
