"""σ from the candidates and the query: the median distance over four, less where nothing repeats itself.

σ is the spread of a query around its target. Candidates that lie close together ask for a small one, a
wide pool for a large one; no fixed number suits two encoders. Of the single numbers that a pool gives, the
median distance between candidates, divided by four, is the most robust where near-copies have to be seen
through. Where there are none, the same σ passes over what is merely alike and loses recall.

The two cases can be told apart without labels. Where there are copies, the most probable of each group
stands for it, and σ is that of those. *Where the texts are known*, copies are known by their words
(:mod:`dartboard.selection.wording`), and are set aside where a quarter of the probability P(t|q) has some, or
half of it at m/20.
*Where there are vectors alone*, pools that fall into groups as a whole tell it
(:mod:`dartboard.selection.copies`), unless one group has nearly all the probability: then it is what the
query is about, and no copies.

What is left may still repeat itself in other words. With ``m`` the median distance of all pairs, ``e_t`` a
candidate's distance to the nearest other one, and P(t|q) at σ = m/4,

    D = Σ_t P(t|q) · ramp(e_t / m, .25, .35)                    the share of the probability that stands alone
    C = Σ_{t≠u} P(t|q) P(u|q) · (1 - ramp(d(t,u) / m, .25, .35))   that of two draws which are neighbours
    σ = m / (divisor · s ** (ramp(D, .05, .2) · (1 - ramp(C, .15, .25))))

where ramp(x, a, b) is 0 up to a, 1 from b and straight between. A pool repeats itself where nothing stands
alone (D), or where what is most probable does (C): five copies of the answer leave the rest of the
probability alone, and two draws are still likely to be two of them. s is 2.5; among those that stand for
groups it is 2, and ramp(D, .1, .3). Words may say that neighbours do not repeat each other, however near they
are: each names what the other does not. Where they were read and nothing is set aside, D and C pass over
such neighbours, and s = 5: what is not repeated asks for nearest neighbours.

Copies far from the query count for nothing, and a handful around the answer counts in full. Ratios of
distances do not depend on the encoder's scale. In a pool of fewer than 64, distances are too few to tell:
whoever is not told apart from all others by words has a neighbour there, and without words D = 0.
docs/sigma.md has the measurements.
"""

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from dartboard.selection.kernels import Distance, distances
from dartboard.selection.neighbourhood import (
    SAMPLE,
    SEPARATE,
    TOGETHER,
    Crowd,
    Neighbourhood,
    below,
    crowd_among,
    crowd_by_pairs,
    leading,
    standing_alone,
)
from dartboard.selection.wording import Texts
from dartboard.types import FloatArray, IntArray

DIVISOR = 4.0
SMALLEST_POOL = 8
"""Fewer distinct candidates than this say nothing about how wide a pool is."""

NEIGHBOURS_OF = 64
"""In larger pools so many candidates, those nearest to the query, look for their neighbours among all."""

SMALLEST_CROWD = 64
"""In a smaller pool a few distances would decide whether it repeats itself: without words, it does."""

ALL_ALONE = 0.9
"""Where more of the probability stands alone, the query means no copies, and none are looked for."""

FALLBACK = {"scaled_cosine": 0.09, "euclidean": 0.6}
"""Where a pool is too small and no model is known: what all-MiniLM-L6-v2 calibrates to."""


class Sigma(NamedTuple):
    """A σ and where it came from: ``given``, ``candidates``, ``model`` or ``fallback``."""

    value: float
    source: str


class Scale(NamedTuple):
    """σ by what stands alone: median / 4 up to ``redundant``, ``sharper`` times less from ``distinct`` on."""

    redundant: float
    distinct: float
    sharper: float


BY_DISTANCE = Scale(0.05, 0.2, 2.5)
BY_WORDS = Scale(0.05, 0.2, 5.0)
"""Where words were read, and no copies are set aside."""
BESIDE_COPIES = Scale(0.1, 0.3, 2.0)
"""Among those that stand for groups of copies, which may well be reworded, too."""


class Judged(NamedTuple):
    """What a pool says about itself: σ, and the group of near-copies that each candidate belongs to.

    ``groups``, ``(n,)``, is None where there are none.
    """

    sigma: Sigma
    groups: IntArray | None = None


def from_candidates(
    vectors: FloatArray,
    distance: Distance,
    known: float | None = None,
    divisor: float = DIVISOR,
    *,
    to_query: FloatArray | None = None,
    apart: FloatArray | None = None,
    texts: Texts | None = None,
) -> Judged:
    """σ and near-copies of distinct candidates, ``(n, d)`` in an order that has nothing to do with the query.

    ``known`` is the σ of the model that made the vectors; it stands in for a pool that is too small.
    ``to_query``, ``(n,)``, are the distances to the query. Without them σ is the same whether or not
    candidates repeat one another: for targets that are not the candidates, which a small σ would leave out
    of everyone's reach. ``apart``, ``(n, n)``, are the candidates' own distances where these are known;
    pools larger than the sample do without. ``texts`` are asked for where there may be near-copies.
    """
    median = _median_of(vectors, distance, apart) if len(vectors) >= SMALLEST_POOL else None
    if median is None:
        return Judged(_stand_in(distance, known))
    few = len(vectors) < SMALLEST_CROWD
    if to_query is None or (few and texts is None):
        return Judged(Sigma(median / divisor, "candidates"))
    crowd = Crowd(0.0, 1.0) if few else _crowd_of(vectors, distance, median, to_query, apart)
    if crowd.alone > ALL_ALONE:
        return Judged(Sigma(spread(median, crowd, divisor), "candidates"))
    near = Neighbourhood.of(vectors, distance, median, to_query, apart)
    words = near.read(texts)
    groups = None if few and words is None else near.groups(words)
    if words is not None and (few or groups is None):
        crowd = near.crowd_by(words, groups, few=few)
    scale = BY_DISTANCE if words is None else BY_WORDS
    if groups is not None:
        scale, leaders = BESIDE_COPIES, leading(groups, to_query)
        vectors, to_query = vectors[leaders], to_query[leaders]
        apart = None if apart is None else apart[np.ix_(leaders, leaders)]
        median = _median_of(vectors, distance, apart) or median
        if not few:
            crowd = _crowd_of(vectors, distance, median, to_query, apart)
    return Judged(Sigma(spread(median, crowd, divisor, scale), "candidates"), groups)


def from_distances(
    pairwise: FloatArray,
    distance: Distance,
    known: float | None = None,
    divisor: float = DIVISOR,
    *,
    to_query: FloatArray | None = None,
) -> Judged:
    """The same from an ``(n, n)`` matrix of distances; pairs at distance 0 are one candidate twice."""
    pairwise = (pairwise + pairwise.T) / 2.0  # pair scores need not be symmetric
    np.fill_diagonal(pairwise, 0.0)
    median = _median(pairwise) if len(pairwise) >= SMALLEST_POOL else None
    if median is None:
        return Judged(_stand_in(distance, known))
    if to_query is None or len(pairwise) < SMALLEST_CROWD:
        return Judged(Sigma(median / divisor, "candidates"))
    crowd, groups = _crowd_apart(pairwise, distance, median, to_query), None
    if crowd.alone <= ALL_ALONE:
        groups = Neighbourhood.of(pairwise, distance, median, to_query, pairwise).groups(None)
    scale = BY_DISTANCE
    if groups is not None:
        scale, leaders = BESIDE_COPIES, leading(groups, to_query)
        pairwise, to_query = pairwise[np.ix_(leaders, leaders)], to_query[leaders]
        median = _median(pairwise) or median
        crowd = _crowd_apart(pairwise, distance, median, to_query)
    return Judged(Sigma(spread(median, crowd, divisor, scale), "candidates"), groups)


def _crowd_of(
    vectors: FloatArray, distance: Distance, median: float, to_query: FloatArray, apart: FloatArray | None
) -> Crowd:
    """How crowded it is; in a large pool, among what is nearest to the query."""
    if len(vectors) <= SAMPLE:
        near = distances(vectors, vectors, distance) if apart is None else apart
        return crowd_among(near, to_query, median, distance)
    likely = np.argsort(to_query, kind="stable")[:NEIGHBOURS_OF]
    near = distances(vectors[likely], vectors, distance)
    near[np.arange(len(likely)), likely] = np.inf
    to_query = to_query[likely]
    alone = float(standing_alone(near.min(axis=1), to_query, median, distance))
    return crowd_by_pairs(alone, lambda: near[:, likely][below(len(likely))], to_query, median, distance)


def _crowd_apart(pairwise: FloatArray, distance: Distance, median: float, to_query: FloatArray) -> Crowd:
    """The same by distances, of which those of 0 are one candidate twice."""
    return crowd_among(np.where(pairwise > 0, pairwise, np.inf), to_query, median, distance)


def spread(median: float, crowd: Crowd, divisor: float = DIVISOR, scale: Scale = BY_DISTANCE) -> float:
    """σ of a pool by its median distance and how crowded what the query may mean is."""
    alone = _ramp(crowd.alone, scale.redundant, scale.distinct)
    together = _ramp(crowd.together, SEPARATE, TOGETHER)
    return median / (divisor * math.pow(scale.sharper, alone * (1.0 - together)))


def _ramp(value: float, low: float, high: float) -> float:
    """0 up to ``low``, 1 from ``high`` on, straight between."""
    return min(max((value - low) / (high - low), 0.0), 1.0)


@lru_cache(maxsize=16)
def pairs(n: int) -> IntArray:
    """Where the pairs above the diagonal stand in a flattened ``(n, n)`` matrix."""
    return np.flatnonzero(np.triu(np.ones((n, n), dtype=bool), 1))


def _median_of(vectors: FloatArray, distance: Distance, apart: FloatArray | None) -> float | None:
    """The median distance of a pool, of a sample where it is large."""
    if apart is not None:
        return _median(apart)
    sample = vectors[:SAMPLE]
    return _median(distances(sample, sample, distance))


def _median(pairwise: FloatArray) -> float | None:
    """The median of the pairs that are apart, None where hardly any are."""
    apart = pairwise.reshape(-1).take(pairs(len(pairwise)))
    if len(apart) and not apart.min() > noise(apart):
        apart = apart[apart > noise(apart)]
    if len(apart) < SMALLEST_POOL:
        return None
    middle = len(apart) // 2
    return float(np.partition(apart, middle)[middle])


def noise(distances: FloatArray) -> float:
    """Smaller distances are rounding, and their pairs one candidate twice."""
    return 8.0 * float(np.finfo(distances.dtype).eps)


def _stand_in(distance: Distance, known: float | None) -> Sigma:
    return Sigma(known, "model") if known is not None else Sigma(FALLBACK[distance], "fallback")
