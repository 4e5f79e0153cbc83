"""Text cleaning: what a reader cannot see, or sees as space, does not reach the model.

Unicode is composed (NFC), so that one letter is one code point; control and format characters
(zero-width spaces, soft hyphens, byte-order marks) and U+FFFD, which stands for what an earlier program
could not read, are removed; every run of white space becomes one space. Words, punctuation and symbols
stay: they carry meaning in code, formulas and names.
"""

import re
import unicodedata

_SPACE = re.compile(r"\s+")
_JOINERS = frozenset("\u200c\u200d")
"""Invisible, but some scripts and emoji change their meaning without them."""


def clean(text: str) -> str:
    """The text as a reader sees it, on one line."""
    if not text.isascii():
        text = unicodedata.normalize("NFC", text)
    if not text.isprintable():
        text = "".join(_visible(character) for character in text)
    return _SPACE.sub(" ", text.replace("\ufffd", "")).strip()


def _visible(character: str) -> str:
    if character.isspace():
        return " "
    if character in _JOINERS:
        return character
    return "" if unicodedata.category(character) in ("Cc", "Cf", "Cs", "Co", "Cn") else character
