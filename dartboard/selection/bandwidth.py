"""σ from the candidates alone: their median distance over four, and half of that where nothing repeats.

σ is the spread of a query around its target. Candidates that lie close together ask for a small one, a
wide pool for a large one; no fixed number suits two encoders. Of the single numbers that a pool gives, the
median distance between candidates, divided by four, is the most robust where near-copies have to be seen
through. Where there are none, the same σ passes over what is merely alike and loses recall.

The two cases can be told apart without labels. Near-copies that crowd a list crowd its pool: most
candidates then have a neighbour much nearer than the pool is wide. With ``e`` the distance to the nearest
other candidate that 70 % of the candidates do not exceed, and ``m`` the median of all pairs,

    σ = m / (divisor · 2 ** t),    t = 0 for e/m <= .25,  1 for e/m >= .35,  straight between.

Ratios of distances do not depend on the encoder's scale. Pools of fewer than 64 are taken to repeat
themselves (t = 0). docs/sigma.md has the measurements.
"""

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from dartboard.selection.kernels import Distance, distances
from dartboard.types import FloatArray, IntArray

DIVISOR = 4.0
SMALLEST_POOL = 8
"""Fewer distinct candidates than this say nothing about how wide a pool is."""

SAMPLE = 256
"""The median of larger pools is judged by so many of their candidates."""

NEIGHBOURS_OF = 64
"""In larger pools so many candidates look for their nearest neighbour, among all."""

SMALLEST_CROWD = 64
"""In a smaller pool a few candidates would decide whether it repeats itself: it is taken to do so."""

CROWD = 0.7
REDUNDANT, DISTINCT = 0.25, 0.35
SHARPER = 2.0
"""How much smaller σ is where no more than ``CROWD`` of the candidates have a neighbour near by."""

FALLBACK = {"scaled_cosine": 0.09, "euclidean": 0.6}
"""Where a pool is too small and no model is known: what all-MiniLM-L6-v2 calibrates to."""


class Sigma(NamedTuple):
    """A σ and where it came from: ``given``, ``candidates``, ``model`` or ``fallback``."""

    value: float
    source: str


def from_candidates(
    vectors: FloatArray,
    distance: Distance,
    known: float | None = None,
    divisor: float = DIVISOR,
    *,
    sharpen: bool = True,
    apart: FloatArray | None = None,
) -> Sigma:
    """σ of a pool of distinct candidates, ``(n, d)`` in an order that has nothing to do with the query.

    ``known`` is the σ of the model that made the vectors; it stands in for a pool that is too small.
    Without ``sharpen`` σ is the same whether or not candidates repeat one another: for targets that are
    not the candidates, which a small σ would leave out of everyone's reach. ``apart``, ``(n, n)``, are
    their distances where these are known; pools larger than the sample do without.
    """
    if len(vectors) < SMALLEST_POOL:
        return _stand_in(distance, known)
    sample = vectors[:SAMPLE]
    pairwise = distances(sample, sample, distance) if apart is None else apart
    median = _median(pairwise)
    if median is None:
        return _stand_in(distance, known)
    if not sharpen or len(vectors) < SMALLEST_CROWD:
        return Sigma(median / divisor, "candidates")
    if len(vectors) > SAMPLE:
        pairwise = distances(vectors[:NEIGHBOURS_OF], vectors, distance)
    np.fill_diagonal(pairwise, np.inf)
    nearest = pairwise.min(axis=1)
    np.fill_diagonal(pairwise, 0.0)
    return Sigma(spread(median, crowd(nearest), distance, divisor), "candidates")


def from_distances(
    pairwise: FloatArray, distance: Distance, known: float | None = None, divisor: float = DIVISOR
) -> Sigma:
    """The same from an ``(n, n)`` matrix of distances; pairs at distance 0 are one candidate twice."""
    median = _median(pairwise) if len(pairwise) >= SMALLEST_POOL else None
    if median is None:
        return _stand_in(distance, known)
    if len(pairwise) < SMALLEST_CROWD:
        return Sigma(median / divisor, "candidates")
    nearest = np.where(pairwise > 0, pairwise, np.inf).min(axis=1)
    return Sigma(spread(median, crowd(nearest), distance, divisor), "candidates")


def crowd(nearest: FloatArray) -> float:
    """The distance to the nearest neighbour that ``CROWD`` of the candidates, ``(n,)``, do not exceed."""
    place = int(CROWD * (len(nearest) - 1))
    return float(np.partition(nearest, place)[place])


def spread(median: float, near: float, distance: Distance, divisor: float = DIVISOR) -> float:
    """σ of a pool by its median distance and its crowd's distance to the nearest neighbour."""
    ratio = near / median
    if distance == "euclidean":
        ratio *= ratio  # the scaled cosine goes with the square of the Euclidean distance
    distinct = min(max((ratio - REDUNDANT) / (DISTINCT - REDUNDANT), 0.0), 1.0)
    return median / (divisor * math.pow(SHARPER, distinct))


@lru_cache(maxsize=16)
def pairs(n: int) -> IntArray:
    """Where the pairs above the diagonal stand in a flattened ``(n, n)`` matrix."""
    return np.flatnonzero(np.triu(np.ones((n, n), dtype=bool), 1))


def _median(pairwise: FloatArray) -> float | None:
    """The median of the pairs that are apart, None where hardly any are."""
    apart = pairwise.reshape(-1).take(pairs(len(pairwise)))
    if len(apart) and not apart.min() > 0:
        apart = apart[apart > 0]
    if len(apart) < SMALLEST_POOL:
        return None
    middle = len(apart) // 2
    return float(np.partition(apart, middle)[middle])


def _stand_in(distance: Distance, known: float | None) -> Sigma:
    return Sigma(known, "model") if known is not None else Sigma(FALLBACK[distance], "fallback")
