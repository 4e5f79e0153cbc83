"""Text from anywhere, made harmless for a terminal and for a page.

A passage may hold escape sequences that move a terminal's cursor, or marks that turn the direction of what
follows. Such characters are dropped; runs of white space become one space.
"""

import unicodedata

_TURNING = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def clean(text: object) -> str:
    """One line without control characters, lone surrogates and marks of direction."""
    spaced = " ".join(str(text).split())
    return "".join(
        letter
        for letter in spaced
        if letter not in _TURNING and unicodedata.category(letter) not in ("Cc", "Cs")
    )


def shortened(text: object, most: int) -> str:
    """The beginning of a text, ``most`` characters at most, cut between words where that is near."""
    line = clean(text)
    if len(line) <= most:
        return line
    cut = line[: most - 2]
    last = cut.rfind(" ")
    return f"{cut[:last] if last > 0.7 * most else cut} …"
