"""Vectors of documents, each embedded once, and long ones as far as it takes to tell them apart.

A model cuts texts off at its ``max_tokens``. Texts that differ only beyond that would get one vector, and all
but one of them would be left out as copies. They are distinguished by their rests, from where they differ on:
    v(text) = unit(v(text) + v(rest))
and rests that are alike once more, in the same way. A model that counts no tokens is taken at its word.

What models made of texts lately stays in one bounded cache in memory for all frameworks, under the model and
a hash of the text: when full, what has not been asked for longest goes first.
"""

import hashlib
import weakref
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import count
from os.path import commonprefix
from typing import Any

import numpy as np

from dartboard.embeddings.base import EmbeddingModel
from dartboard.embeddings.cache import ArrayCache
from dartboard.embeddings.vectors import Vectors
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

    Vectors of texts that the model embedded lately come from the cache.
    """
    vectors: FloatArray = encode_documents(model, texts)
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
    counted = count_tokens(model, [before + text for text in texts])
    return [Length(tokens, min(tokens, most)) for tokens in counted]


def _alike(
    model: Any, texts: Sequence[str], lengths: Sequence[Length]
) -> Iterator[tuple[Sequence[int], int]]:
    """The rows of texts that the model cannot tell apart, and where these begin to differ."""
    cut = [row for row, length in enumerate(lengths) if length.read < length.tokens]
    if len(cut) < 2 or not hasattr(model, "tokens"):
        return
    groups: defaultdict[bytes, list[int]] = defaultdict(list)
    for row, read in zip(cut, read_as(model, [texts[row] for row in cut]), strict=True):
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


MAX_BYTES = 128 * 1024 * 1024
"""What the cached vectors may take: 87,000 of 384 dimensions."""

_kept = ArrayCache(MAX_BYTES)
_numbers: dict[int, tuple[weakref.ref[EmbeddingModel], int]] = {}
_next_number = count()


def encode_documents(model: EmbeddingModel, texts: Sequence[str]) -> Vectors:
    """The model's ``(n, d)`` vectors of passages; those that are in the cache are not made again."""
    return np.stack(_recall(model, "vector", texts, model.encode_documents))


def count_tokens(model: Any, texts: Sequence[str]) -> list[int]:
    """The model's own counts, in the same way."""
    counted = _recall(model, "tokens", texts, lambda new: np.array(model.count_tokens(new), dtype=np.int64))
    return [int(number) for number in counted]


def read_as(model: Any, texts: Sequence[str]) -> list[bytes]:
    """A hash of the tokens that the model reads of each text: equal where it cannot tell texts apart."""

    def hashes(new: list[str]) -> list[Any]:
        digests = [hashlib.sha256("\0".join(tokens).encode()).digest() for tokens in model.tokens(new)]
        return [np.frombuffer(digest, dtype=np.uint8) for digest in digests]

    return [array.tobytes() for array in _recall(model, "read", texts, hashes)]


def knows_any(model: EmbeddingModel, texts: Sequence[str]) -> bool:
    """Whether a vector of any of the texts is in the cache."""
    key = _key_of(model, "vector")
    return any(_kept.get(_hashed(key, text)) is not None for text in texts)


def clear() -> None:
    """Forget everything."""
    global _kept
    _kept = ArrayCache(MAX_BYTES)


def _recall(
    model: EmbeddingModel, kind: str, texts: Sequence[str], make: Callable[[list[str]], Any]
) -> list[Any]:
    """One array a text; ``make`` gets those that are not known, in one call."""
    kept, key = _kept, _key_of(model, kind)
    hashes = [_hashed(key, text) for text in texts]
    found = {hashed: kept.get(hashed) for hashed in hashes}
    missing = {hashed: text for hashed, text in zip(hashes, texts, strict=True) if found[hashed] is None}
    if missing:
        for hashed, made in zip(missing, make(list(missing.values())), strict=True):
            # A copy: a row of the whole batch would keep the batch in memory.
            found[hashed] = array = np.array(made)
            kept.put(hashed, array)
    return [found[hashed] for hashed in hashes]


def _hashed(key: str, text: str) -> str:
    return f"{key}:{hashlib.sha256(text.encode()).hexdigest()}"


def _key_of(model: EmbeddingModel, kind: str) -> str:
    """A model is known by its object: asking for its fingerprint could cost a call to a server.

    The name is part of the key for objects whose settings were changed. Two threads that number a model at
    once cost a miss, never a wrong vector.
    """
    known = _numbers.get(id(model))
    if known is None or known[0]() is not model:
        gone = weakref.ref(model, partial(_forget, id(model)))
        known = _numbers[id(model)] = (gone, next(_next_number))
    return f"{kind}:{known[1]}:{model.name}"


def _forget(number: int, _: object) -> None:
    _numbers.pop(number, None)
