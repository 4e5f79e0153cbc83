"""σ from the candidates alone: the median distance between them, divided by four.

σ is the spread of a query around its target. Candidates that lie close together ask for a small one, a
wide pool for a large one; no fixed number suits two encoders. Of the label-free rules that were measured
on three encoders and seven data sets, this one was never the best by much and never broke.
"""

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from dartboard.selection.kernels import Distance, distances
from dartboard.types import FloatArray, IntArray

DIVISOR = 4.0
SMALLEST_POOL = 8
"""Fewer distinct candidates than this say nothing about how wide a pool is."""

SAMPLE = 256
"""Pools larger than this are judged by so many of their candidates."""

FALLBACK = {"scaled_cosine": 0.09, "euclidean": 0.6}
"""Where a pool is too small and no model is known: what all-MiniLM-L6-v2 calibrates to."""


class Sigma(NamedTuple):
    """A σ and where it came from: ``given``, ``candidates``, ``model`` or ``fallback``."""

    value: float
    source: str


def from_candidates(
    vectors: FloatArray, distance: Distance, known: float | None = None, divisor: float = DIVISOR
) -> Sigma:
    """σ of a pool of distinct candidates, ``(n, d)`` in an order that has nothing to do with the query.

    ``known`` is the σ of the model that made the vectors; it stands in for a pool that is too small.
    """
    if len(vectors) >= SMALLEST_POOL:
        sample = vectors[:SAMPLE]
        return from_distances(distances(sample, sample, distance), distance, known, divisor)
    return _stand_in(distance, known)


def from_distances(
    pairwise: FloatArray, distance: Distance, known: float | None = None, divisor: float = DIVISOR
) -> Sigma:
    """The same from an ``(n, n)`` matrix of distances; pairs at distance 0 are one candidate twice."""
    apart = pairwise.reshape(-1).take(pairs(len(pairwise)))
    if len(apart) and not apart.min() > 0:
        apart = apart[apart > 0]
    if len(pairwise) < SMALLEST_POOL or len(apart) < SMALLEST_POOL:
        return _stand_in(distance, known)
    middle = len(apart) // 2
    return Sigma(float(np.partition(apart, middle)[middle]) / divisor, "candidates")


@lru_cache(maxsize=16)
def pairs(n: int) -> IntArray:
    """Where the pairs above the diagonal stand in a flattened ``(n, n)`` matrix."""
    return np.flatnonzero(np.triu(np.ones((n, n), dtype=bool), 1))


def _stand_in(distance: Distance, known: float | None) -> Sigma:
    return Sigma(known, "model") if known is not None else Sigma(FALLBACK[distance], "fallback")
