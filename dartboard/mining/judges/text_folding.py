"""Texts made comparable, character by character: no case, no accents, one kind of quote and dash.

Each folded character remembers where it came from, so that what is found in the folded text can be shown
as it stands in the original.
"""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

_PLAIN = {
    **dict.fromkeys("‘’‚‛′`´", "'"),
    **dict.fromkeys("“”„‟″«»", '"'),
    **dict.fromkeys("‐‑‒–—―−", "-"),
    **dict.fromkeys("\u200b\u200c\u200d\u2060\ufeff\u00ad", ""),
    "ł": "l",
    "ø": "o",
    "đ": "d",
    "æ": "ae",
    "œ": "oe",
    "⁄": "/",
}


@dataclass(frozen=True, slots=True)
class Folded:
    """``text``, and for each of its characters (and its end) the place in the original."""

    text: str
    places: Sequence[int]

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Where ``text[start:end]`` stands in the original."""
        return self.places[start], self.places[end - 1] + 1 if end > start else self.places[start]


def fold(text: str) -> Folded:
    """NFKD without marks, case-folded, plain quotes and dashes."""
    if text.isascii():
        return Folded(text.lower().replace("`", "'"), range(len(text) + 1))
    folded: list[str] = []
    places: list[int] = []
    for place, character in enumerate(text):
        for plain in _folded(character):
            folded.append(plain)
            places.append(place)
    places.append(len(text))
    return Folded("".join(folded), places)


@lru_cache(maxsize=4096)
def _folded(character: str) -> str:
    if character in _PLAIN:
        return _PLAIN[character]
    parts = unicodedata.normalize("NFKD", character)
    bare = "".join(part for part in parts if not unicodedata.combining(part)).casefold()
    return "".join(_PLAIN.get(part, part) for part in bare)
