"""Documents as a model reads them: as far as it reads, and a little further where that is not enough.

A model cuts texts off at its ``max_tokens``. Texts that differ only beyond that would get one vector, and all
but one of them would be left out as copies. They are told apart by their rests, from where they differ on:
    v(text) = unit(v(text) + v(rest))
and rests that are alike once more, in the same way. Whoever counts no tokens is taken at its word.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from os.path import commonprefix
from typing import Any

from dartboard.embeddings.base import EmbeddingModel
from dartboard.integrations import cache
from dartboard.types import FloatArray
from dartboard.utils import unit_rows

_LEVELS = 8
"""How often rests of rests are read at most."""
_WORD = 40
"""The most letters that are gone back to begin a rest with a whole word."""


@dataclass(frozen=True, slots=True)
class Length:
    """How many tokens the model makes of a text, its own marks among them, and how many it has read."""

    tokens: int
    read: int


def embed_documents(
    model: EmbeddingModel, texts: Sequence[str], *, levels: int = _LEVELS
) -> tuple[FloatArray, list[Length] | None]:
    """One row a text, no text twice; lengths only of a model that counts tokens.

    Texts that the model embedded lately come from :mod:`dartboard.integrations.cache`.
    """
    vectors: FloatArray = cache.encode_documents(model, texts)
    lengths = _lengths(model, texts)
    if lengths is None or not levels:
        return vectors, lengths
    for rows, start in _alike(model, texts, lengths):
        rows = [row for row in rows if texts[row][start:].strip()]
        if not rows:
            continue
        more, also = embed_documents(model, [texts[row][start:] for row in rows], levels=levels - 1)
        vectors[rows] = unit_rows(unit_rows(vectors[rows]) + unit_rows(more))
        for row, length in zip(rows, also or (), strict=True):
            known = lengths[row]
            lengths[row] = Length(known.tokens, min(known.tokens, known.read + length.read))
    return vectors, lengths


def _lengths(model: Any, texts: Sequence[str]) -> list[Length] | None:
    most = getattr(model, "max_tokens", None)
    if most is None or not hasattr(model, "count_tokens"):
        return None
    before = getattr(getattr(model, "description", None), "document_prefix", "")
    counted = cache.count_tokens(model, [before + text for text in texts])
    return [Length(tokens, min(tokens, most)) for tokens in counted]


def _alike(
    model: Any, texts: Sequence[str], lengths: Sequence[Length]
) -> Iterator[tuple[Sequence[int], int]]:
    """The rows of texts that the model cannot tell apart, and where these begin to differ."""
    cut = [row for row, length in enumerate(lengths) if length.read < length.tokens]
    if len(cut) < 2 or not hasattr(model, "tokens"):
        return
    groups: defaultdict[bytes, list[int]] = defaultdict(list)
    for row, read in zip(cut, cache.read_as(model, [texts[row] for row in cut]), strict=True):
        groups[read].append(row)
    for rows in groups.values():
        start = _difference([texts[row] for row in rows])
        if len(rows) > 1 and start:
            yield rows, start


def _difference(texts: list[str]) -> int:
    """Where texts begin to differ, at the start of a word if one is near."""
    shared = commonprefix(texts)  # noqa: RUF071 - letters are what is compared here, not paths
    space = max(shared.rfind(space) for space in " \n\t")
    return space + 1 if 0 <= len(shared) - space <= _WORD else len(shared)
