"""σ from the candidates and the query: the median distance over four, less where nothing repeats itself.

σ is the spread of a query around its target. Candidates that lie close together ask for a small one, a
wide pool for a large one; no fixed number suits two encoders. Of the single numbers that a pool gives, the
median distance between candidates, divided by four, is the most robust where near-copies have to be seen
through. Where there are none, the same σ passes over what is merely alike and loses recall.

The two cases can be told apart without labels. Where the pool falls into groups of near-copies, the most
probable of each group stands for it, and σ is that of those. Copies are known by their words
(:mod:`dartboard.selection.wording`), or where there are none by their distances
(:mod:`dartboard.selection.copies`), unless one group has nearly all the probability: then it is what the
query is about, and no copies.
Copies that are too few or too uneven for that still crowd the candidates that the query may mean: most of
these then have a neighbour much nearer than the pool is wide. With ``m`` the median distance of all pairs,
``e_t`` a candidate's distance to the nearest other one, and P(t|q) at σ = m/4,

    D = Σ_t P(t|q) · ramp(e_t / m, .25, .35)        the share of the probability that stands alone
    σ = m / (divisor · s ** ramp(D, .1, .3))        ramp(x, a, b): 0 up to a, 1 from b, straight between

with s = 2.5, and 2 among those that stand for groups.
Copies far from the query count for nothing, and a handful around the answer counts in full. Ratios of
distances do not depend on the encoder's scale. Pools of fewer than 64 are taken to repeat themselves
(D = 0). docs/sigma.md has the measurements.
"""

import math
from functools import lru_cache
from typing import NamedTuple, TypeVar

import numpy as np

from dartboard.selection.copies import crowded, near_copies
from dartboard.selection.kernels import Distance, distances
from dartboard.selection.wording import Texts, repeating, telling
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
REDUNDANT, DISTINCT = 0.1, 0.3
"""Up to this share of the probability alone, a pool repeats itself; from there on it does not."""
SHARPER = 2.5
"""How much smaller σ is where it does not."""
SHARPER_BESIDE_COPIES = 2.0
"""The same among those that stand for groups of near-copies."""
ALL_ALONE = 0.9
"""Where more of the probability stands alone, the query means no copies, and none are looked for."""
ONE_TOPIC = 0.9
"""A group with more of the probability than this is a topic, whose passages the query asks for."""

FALLBACK = {"scaled_cosine": 0.09, "euclidean": 0.6}
"""Where a pool is too small and no model is known: what all-MiniLM-L6-v2 calibrates to."""


_Number = TypeVar("_Number", float, FloatArray)


class Sigma(NamedTuple):
    """A σ and where it came from: ``given``, ``candidates``, ``model`` or ``fallback``."""

    value: float
    source: str


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
    if to_query is None or len(vectors) < SMALLEST_CROWD:
        return Judged(Sigma(median / divisor, "candidates"))
    alone, groups = _share_alone(vectors, distance, median, to_query, apart), None
    if alone <= ALL_ALONE:
        groups = groups_of(vectors, distance, median, to_query, apart, texts)
    sharper = SHARPER if groups is None else SHARPER_BESIDE_COPIES
    if groups is not None:
        leaders = leading(groups, to_query)
        vectors, to_query = vectors[leaders], to_query[leaders]
        apart = None if apart is None else apart[np.ix_(leaders, leaders)]
        median = _median_of(vectors, distance, apart) or median
        alone = _share_alone(vectors, distance, median, to_query, apart)
    return Judged(Sigma(spread(median, alone, divisor, sharper), "candidates"), groups)


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
    alone, groups = _share_apart(pairwise, distance, median, to_query), None
    if alone <= ALL_ALONE:
        groups = groups_of(pairwise, distance, median, to_query, pairwise)
    sharper = SHARPER if groups is None else SHARPER_BESIDE_COPIES
    if groups is not None:
        leaders = leading(groups, to_query)
        pairwise, to_query = pairwise[np.ix_(leaders, leaders)], to_query[leaders]
        median = _median(pairwise) or median
        alone = _share_apart(pairwise, distance, median, to_query)
    return Judged(Sigma(spread(median, alone, divisor, sharper), "candidates"), groups)


def leading(groups: IntArray, to_query: FloatArray) -> IntArray:
    """The candidate of each group that is nearest to the query, the first of several; in their own order."""
    order = np.argsort(to_query, kind="stable")
    _, firsts = np.unique(groups[order], return_index=True)
    leaders: IntArray = np.sort(order[firsts])
    return leaders


def groups_of(
    vectors: FloatArray,
    distance: Distance,
    median: float,
    to_query: FloatArray,
    apart: FloatArray | None,
    texts: Texts | None = None,
) -> IntArray | None:
    """Groups of near-copies; in a large pool only the candidates nearest to the query are looked at."""
    likely = np.arange(len(vectors))
    if len(vectors) > SAMPLE:
        likely = np.sort(np.argsort(to_query, kind="stable")[:SAMPLE])
        apart = None if apart is None else apart[np.ix_(likely, likely)]
    near = _as_cosine(
        distances(vectors[likely], vectors[likely], distance) if apart is None else apart, distance
    )
    wide = _as_cosine(median, distance)
    if not crowded(_nearest(near), wide):
        return None
    groups, closest = np.arange(len(vectors)), likely[np.argsort(to_query[likely], kind="stable")]
    read = texts(closest) if texts is not None else ()
    if read and telling(read):
        repeated = repeating(read)
        if repeated is None:
            return None
        groups[closest] = closest[repeated]
        return groups
    found = near_copies(near, wide)
    if found is None:
        return None
    groups[likely] = likely[found]
    weights = _probability(to_query, median)
    return None if np.bincount(groups, weights).max() > ONE_TOPIC * weights.sum() else groups


def _share_alone(
    vectors: FloatArray, distance: Distance, median: float, to_query: FloatArray, apart: FloatArray | None
) -> float:
    """The share of the probability that stands alone; in a large pool, among what is nearest to the query."""
    if len(vectors) <= SAMPLE:
        nearest = _nearest(distances(vectors, vectors, distance) if apart is None else apart)
    else:
        likely = np.argsort(to_query, kind="stable")[:NEIGHBOURS_OF]
        pairwise = distances(vectors[likely], vectors, distance)
        pairwise[np.arange(len(likely)), likely] = np.inf
        nearest, to_query = pairwise.min(axis=1), to_query[likely]
    return float(standing_alone(nearest, to_query, median, distance))


def _share_apart(pairwise: FloatArray, distance: Distance, median: float, to_query: FloatArray) -> float:
    """The same by distances, of which those of 0 are one candidate twice."""
    nearest = np.where(pairwise > 0, pairwise, np.inf).min(axis=1)
    return float(standing_alone(nearest, to_query, median, distance))


def standing_alone(
    nearest: FloatArray, to_query: FloatArray, median: FloatArray | float, distance: Distance
) -> FloatArray:
    """The share of the probability P(t|q) whose candidates have no neighbour near by.

    ``nearest`` and ``to_query`` are ``(…, n)``, ``median`` is ``(…)``. An average, and no quantile, so that
    a little rounding changes it a little.
    """
    wide = np.asarray(median, dtype=np.float64)[..., None]
    weights = _probability(to_query, wide)
    ratio = _as_cosine(nearest / wide, distance)
    alone = np.clip((ratio - NEAR) / (FAR - NEAR), 0.0, 1.0)
    share: FloatArray = (weights * alone).sum(axis=-1) / weights.sum(axis=-1)
    return share


def _probability(to_query: FloatArray, median: FloatArray | float) -> FloatArray:
    """P(t|q) at a quarter of the median, up to a factor."""
    closest = to_query.min(axis=-1, keepdims=True)
    with np.errstate(under="ignore"):
        weights: FloatArray = np.exp(
            (closest - to_query) * (closest + to_query) * (0.5 * (DIVISOR / median) ** 2)
        )
    return weights


def spread(median: float, alone: float, divisor: float = DIVISOR, sharper: float = SHARPER) -> float:
    """σ of a pool by its median distance and the share of the probability that stands alone."""
    distinct = min(max((alone - REDUNDANT) / (DISTINCT - REDUNDANT), 0.0), 1.0)
    return median / (divisor * math.pow(sharper, distinct))


@lru_cache(maxsize=16)
def pairs(n: int) -> IntArray:
    """Where the pairs above the diagonal stand in a flattened ``(n, n)`` matrix."""
    return np.flatnonzero(np.triu(np.ones((n, n), dtype=bool), 1))


def _as_cosine(value: _Number, distance: Distance) -> _Number:
    """The scaled cosine goes with the square of the Euclidean distance."""
    return value * value if distance == "euclidean" else value


def _nearest(pairwise: FloatArray) -> FloatArray:
    """How far each is from the nearest other one."""
    diagonal = pairwise.diagonal().copy()
    np.fill_diagonal(pairwise, np.inf)
    nearest: FloatArray = pairwise.min(axis=1)
    np.fill_diagonal(pairwise, diagonal)
    return nearest


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
