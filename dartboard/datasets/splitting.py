"""Split long texts at sentence ends into pieces of bounded length."""

import re
from collections.abc import Iterator

from dartboard.errors import ConfigError

_SENTENCE_END = re.compile(r"(?<=[.!?。！？])\s+|(?<=[.!?。！？][\"'”’)\]])\s+")


def sentences(text: str) -> list[str]:
    """The sentences of a text, by their punctuation; a text without any is one sentence."""
    return [part for part in _SENTENCE_END.split(text) if part.strip()]


def split(text: str, max_words: int) -> list[str]:
    """Pieces of at most ``max_words`` words, whole sentences where they fit.

    Nothing is lost and nothing repeated: the words of the pieces are the words of the text.
    """
    if max_words < 1:
        raise ConfigError(f"max_words must be >= 1, got {max_words}")
    if len(text.split()) <= max_words:
        return [text]
    pieces: list[list[str]] = [[]]
    for words in _bounded(text, max_words):
        if pieces[-1] and len(pieces[-1]) + len(words) > max_words:
            pieces.append([])
        pieces[-1] += words
    return [" ".join(piece) for piece in pieces]


def _bounded(text: str, max_words: int) -> Iterator[list[str]]:
    """The words of each sentence, and of a sentence that is too long in parts."""
    for sentence in sentences(text):
        words = sentence.split()
        for start in range(0, len(words), max_words):
            yield words[start : start + max_words]
