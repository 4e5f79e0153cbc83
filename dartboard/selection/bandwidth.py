"""σ from the candidates and the query: the median distance over four, half of that where nothing repeats.

σ is the spread of a query around its target. Candidates that lie close together ask for a small one, a
wide pool for a large one; no fixed number suits two encoders. Of the single numbers that a pool gives, the
median distance between candidates, divided by four, is the most robust where near-copies have to be seen
through. Where there are none, the same σ passes over what is merely alike and loses recall.

The two cases can be told apart without labels. Near-copies that crowd an answer crowd the candidates that
the query may mean: most of these then have a neighbour much nearer than the pool is wide. With ``m`` the
median distance of all pairs, ``e_t`` a candidate's distance to the nearest other one, and P(t|q) at σ = m/4,

    D = Σ_t P(t|q) · ramp(e_t / m, .25, .35)        the share of the probability that stands alone
    σ = m / (divisor · 2 ** ramp(D, .1, .4))        ramp(x, a, b): 0 up to a, 1 from b, straight between

Copies far from the query count for nothing, and a handful around the answer counts in full. Ratios of
distances do not depend on the encoder's scale. Pools of fewer than 64 are taken to repeat themselves
(D = 0). docs/sigma.md has the measurements.
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
"""In larger pools so many candidates, those nearest to the query, look for their neighbours among all."""

SMALLEST_CROWD = 64
"""In a smaller pool a few candidates would decide whether it repeats itself: it is taken to do so."""

NEAR, FAR = 0.25, 0.35
"""Neighbours up to so many medians away are near by; from there on a candidate stands alone."""
REDUNDANT, DISTINCT = 0.1, 0.4
"""Up to this share of the probability alone, a pool repeats itself; from there on it does not."""
SHARPER = 2.0
"""How much smaller σ is where it does not."""

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
    to_query: FloatArray | None = None,
    apart: FloatArray | None = None,
) -> Sigma:
    """σ of a pool of distinct candidates, ``(n, d)`` in an order that has nothing to do with the query.

    ``known`` is the σ of the model that made the vectors; it stands in for a pool that is too small.
    ``to_query``, ``(n,)``, are the distances to the query. Without them σ is the same whether or not
    candidates repeat one another: for targets that are not the candidates, which a small σ would leave out
    of everyone's reach. ``apart``, ``(n, n)``, are the candidates' own distances where these are known;
    pools larger than the sample do without.
    """
    if len(vectors) < SMALLEST_POOL:
        return _stand_in(distance, known)
    sample = vectors[:SAMPLE]
    pairwise = distances(sample, sample, distance) if apart is None else apart
    median = _median(pairwise)
    if median is None:
        return _stand_in(distance, known)
    if to_query is None or len(vectors) < SMALLEST_CROWD:
        return Sigma(median / divisor, "candidates")
    if len(vectors) <= SAMPLE:
        np.fill_diagonal(pairwise, np.inf)
        nearest = pairwise.min(axis=1)
        np.fill_diagonal(pairwise, 0.0)
    else:
        likely = np.argsort(to_query, kind="stable")[:NEIGHBOURS_OF]
        pairwise = distances(vectors[likely], vectors, distance)
        pairwise[np.arange(len(likely)), likely] = np.inf
        nearest, to_query = pairwise.min(axis=1), to_query[likely]
    alone = float(standing_alone(nearest, to_query, median, distance))
    return Sigma(spread(median, alone, divisor), "candidates")


def from_distances(
    pairwise: FloatArray,
    distance: Distance,
    known: float | None = None,
    divisor: float = DIVISOR,
    *,
    to_query: FloatArray | None = None,
) -> Sigma:
    """The same from an ``(n, n)`` matrix of distances; pairs at distance 0 are one candidate twice."""
    median = _median(pairwise) if len(pairwise) >= SMALLEST_POOL else None
    if median is None:
        return _stand_in(distance, known)
    if to_query is None or len(pairwise) < SMALLEST_CROWD:
        return Sigma(median / divisor, "candidates")
    nearest = np.where(pairwise > 0, pairwise, np.inf).min(axis=1)
    alone = float(standing_alone(nearest, to_query, median, distance))
    return Sigma(spread(median, alone, divisor), "candidates")


def standing_alone(
    nearest: FloatArray, to_query: FloatArray, median: FloatArray | float, distance: Distance
) -> FloatArray:
    """The share of the probability P(t|q) whose candidates have no neighbour near by.

    ``nearest`` and ``to_query`` are ``(…, n)``, ``median`` is ``(…)``. An average, and no quantile, so that
    a little rounding changes it a little.
    """
    wide = np.asarray(median, dtype=np.float64)[..., None]
    closest = to_query.min(axis=-1, keepdims=True)
    with np.errstate(under="ignore"):
        weights = np.exp((closest - to_query) * (closest + to_query) * (0.5 * (DIVISOR / wide) ** 2))
    ratio = nearest / wide
    if distance == "euclidean":
        ratio = ratio * ratio  # the scaled cosine goes with the square of the Euclidean distance
    alone = np.clip((ratio - NEAR) / (FAR - NEAR), 0.0, 1.0)
    share: FloatArray = (weights * alone).sum(axis=-1) / weights.sum(axis=-1)
    return share


def spread(median: float, alone: float, divisor: float = DIVISOR) -> float:
    """σ of a pool by its median distance and the share of the probability that stands alone."""
    distinct = min(max((alone - REDUNDANT) / (DISTINCT - REDUNDANT), 0.0), 1.0)
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
