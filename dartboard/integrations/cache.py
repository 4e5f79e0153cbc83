"""What models made of texts lately, so that a document is embedded once and not for every query.

One cache in memory for all frameworks, under the model and a hash of the text. It is bounded: when full, what
has not been asked for longest goes first.
"""

import hashlib
import weakref
from collections.abc import Callable, Sequence
from functools import partial
from itertools import count
from typing import Any

import numpy as np

from dartboard.embeddings.base import EmbeddingModel
from dartboard.embeddings.cache import ArrayCache
from dartboard.embeddings.vectors import Vectors

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
