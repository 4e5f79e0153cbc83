"""Near-copies among candidates: groups that are much closer together than strangers are.

Whether two passages are copies of each other cannot be read off their distance: copies of one corpus are as
far apart as strangers of another, and of another encoder. A pool that holds copies shows it as a whole:
joining the two closest groups again and again joins copies first, at heights h_1 <= h_2 <= …, and strangers
higher up. A pool without copies climbs in small steps. Two things are looked for, in turn.

**A bend**, where copies lie equally far from what they are copies of. Scaled cosine distances are squared
Euclidean ones, so independent displacements add up: with r_i how far i lies from the centre of its group,

    d(i, j) = r_i + r_j + δ      δ = 0 within a group, the distance of the centres between groups
    r_i ≈ mean_b ½(d(i, a) + d(i, b) - d(a, b))      a the nearest to i, b the five next

An original has r = 0, and two originals that are alike are closer to each other than to their own copies. So
that they are not joined first and their copies after them, r_i below the median r are raised to it:
d'(i, j) = d(i, j) + (r - r_i)⁺ + (r - r_j)⁺. Two of which no b says that r_i or r_j is as much as half the
median are both originals, and are kept apart. Groups A and B are joined by Ward's criterion,

    h = 2|A||B| / (|A| + |B|) · d'(centre of A, centre of B)

which is 2r for every join within a group, however large, and 2r + 2|A||B| / (|A| + |B|) · δ between two. Past
.55 of the joins, the first height that exceeds the mean of those below by four of their standard deviations
ends the copies, if ten groups are left, and if one of two things holds of the logarithm of the heights:

* it was level: from a twentieth of all joins to the half of them it rose by .16 at most, which was not seen
  among passages that are merely alike; or
* it was nearly level up to there (it rose by .6 at most) and bends: the five joins from there on rise by .35
  more than the five before.

**A leap** of average linkage, where copies lie at all sorts of distances: the largest ``log(h[i+1] / h[i])``
from the join that takes in two fifths of the pool on, while ten groups are left and copies are within .4
median distances. From .3 on the pool is cut, at the first leap of at least half its size.

docs/sigma.md has the measurements.
"""

import math
from typing import NamedTuple

import numpy as np

from dartboard.selection.compiled import compiled
from dartboard.types import FloatArray, IntArray

LEAP = 0.3
"""The least log-ratio of two heights between which copies end and strangers begin."""

JOINED = 0.4
"""Copies are looked for in pools of which joins take in this share at least."""

WITHIN = 0.4
"""How far apart copies may be, in median distances of the pool."""

FEWEST_GROUPS = 10
_FIRST = 0.5
_LOWEST = 1e-3

BEND = 0.35
"""How much more the heights' logarithm rises after copies than before, over as many joins as here:"""
_STRIDE = 5

UNLIKELY = 4.0
"""Copies end where a join is higher than the mean of those before by so many standard deviations."""

EVEN = 0.6
"""Copies may be equally strong where the logarithm of heights rises by no more, from a fifth of all on."""

LEVEL = 0.16
"""They are, bend or no bend, where it rises by no more from a twentieth of all joins to the half of them."""

ORIGINAL = 0.5
"""Whoever is nearer to the centre of its group than this share of the median is what others are copies of."""

MOST = 0.55
"""Copies that are equally strong are looked for in pools of whose joins more than this share is theirs."""

_NEIGHBOURS = 6
_TIE = 0.01
_NEVER = 1e3


def near_copies(apart: FloatArray, median: float) -> IntArray | None:
    """``(n,)`` the group of each candidate by distances ``(n, n)``; None where nothing bends or leaps."""
    n, apart = len(apart), apart / median  # squares of large numbers would overflow
    near = np.count_nonzero(apart <= WITHIN, axis=1) > 1  # itself, and another
    if n < 2 * FEWEST_GROUPS or np.count_nonzero(near) < fewest(n):
        return None
    joins = _joins(_equal_leaves(apart), math.inf, ward=True)
    bend = _bend(np.maximum(np.sort(joins.heights), _LOWEST))
    if bend is not None:
        return _groups(joins, bend, n)
    by_average = _joins(apart, WITHIN)
    cut = _leap(np.maximum(np.append(np.sort(by_average.heights), by_average.next), _LOWEST), n)
    return None if cut is None else _groups(by_average, cut, n)


def crowded(nearest: FloatArray, median: float) -> bool:
    """Whether, by how far each is from the nearest other one, enough are near by for groups of copies."""
    return int(np.count_nonzero(nearest <= WITHIN * median)) >= fewest(len(nearest))


def fewest(n: int) -> int:
    """How many of n candidates need a neighbour near by: joins begin with two, and take in one more each."""
    return math.ceil(JOINED * (n - 1)) + 1


def _bend(heights: FloatArray) -> int | None:
    """How many of n - 1 heights in rising order are of copies, if these are equally strong."""
    count = len(heights)
    least, most = math.ceil(MOST * count), count + 1 - FEWEST_GROUPS
    before = np.arange(1, count)
    mean = np.cumsum(heights)[:-1] / before
    spread = np.sqrt(np.maximum(np.cumsum(heights * heights)[:-1] / before - mean * mean, 0.0))
    beyond = np.flatnonzero(heights[least:] > (mean + UNLIKELY * spread)[least - 1 :])
    if not len(beyond) or not least < (cut := least + int(beyond[0])) <= most:
        return None
    rise = np.log(heights)
    last = rise[cut - 1]
    level = rise[count // 2] - rise[count // 20] <= LEVEL
    bends = rise[cut - 1 + _STRIDE] - last >= last - rise[cut - 1 - _STRIDE] + BEND
    return cut if level or (bends and last - rise[count // 5] <= EVEN) else None


def _leap(heights: FloatArray, n: int) -> int | None:
    """How many joins come before the first leap of at least half the largest, if that is large enough."""
    first, last = fewest(n) - 2, min(len(heights) - 1, n - FEWEST_GROUPS)
    leaps = np.diff(np.log(heights))[first:last]
    if not len(leaps) or leaps.max() < LEAP:
        return None
    return first + int((leaps >= _FIRST * leaps.max()).argmax()) + 1


def _equal_leaves(apart: FloatArray) -> FloatArray:
    """Distances as they were if every candidate were at least the median as far from its group's centre.

    Two that are much nearer to it are originals, and are put further apart than all others. A hundredth of
    how far a candidate is from all of them is added as well, so that of two that are equally near, as copies
    made at one distance are, rounding does not choose.
    """
    alone = apart.astype(np.float64)
    far = _TIE * alone.mean(axis=0)
    alone += far[:, None] + far
    furthest = float(alone.max())
    np.fill_diagonal(alone, np.inf)
    leaves, longest = np.maximum(_leaves(alone), 0.0)
    usual = np.median(leaves)
    short = np.maximum(usual - leaves, 0.0)
    longer: FloatArray = alone + short[:, None] + short
    originals = np.flatnonzero(longest < ORIGINAL * usual)
    longer[np.ix_(originals, originals)] += _NEVER * furthest
    return longer


def _leaves(alone: FloatArray) -> FloatArray:
    """``(2, n)`` how far each lies from the centre of its group, by the five next on average, and at most."""
    if machine := compiled():
        return machine.leaves(alone, _NEIGHBOURS)
    near = np.argpartition(alone, (0, _NEIGHBOURS - 1), axis=1)[:, :_NEIGHBOURS]
    first, others, here = near[:, :1], near[:, 1:], np.arange(len(alone))[:, None]
    leaves = 0.5 * (alone[here, first] + alone[here, others] - alone[first, others])
    return np.stack([leaves.mean(axis=1), leaves.max(axis=1)])


class _Joins(NamedTuple):
    """Joins up to a limit, as two candidates that stand for the groups joined; and the height beyond it."""

    first: IntArray
    second: IntArray
    heights: FloatArray
    next: float


def _groups(joins: _Joins, count: int, n: int) -> IntArray:
    """The groups of n candidates after so many joins, the lowest."""
    groups = np.arange(n)
    lowest = joins.heights.argsort(kind="stable")[:count]
    groups[joins.second[lowest]] = joins.first[lowest]
    while (further := groups[groups] != groups).any():
        groups[further] = groups[groups[further]]
    return groups


def _joins(apart: FloatArray, limit: float, *, ward: bool = False) -> _Joins:
    """All joins up to ``limit``, of average linkage or by Ward's criterion.

    Two groups that are each other's nearest are joined sooner or later whatever else is joined meanwhile
    (both are reducible), so all such pairs are joined at once. ``between`` are mean distances, or those of
    the centres: these are less by ``share * rest`` of the distance of the two that are joined.
    """
    between = apart.astype(np.float64)
    if machine := compiled():
        return _Joins(*machine.join(np.ascontiguousarray(between), limit, ward=ward))
    np.fill_diagonal(between, np.inf)
    names, sizes = np.arange(len(between)), np.ones(len(between))
    made: list[tuple[IntArray, IntArray, FloatArray]] = []
    while True:
        here = np.arange(len(between))
        reach = between / (0.5 / sizes[:, None] + 0.5 / sizes) if ward else between
        nearest = reach.argmin(axis=1)
        height = reach[here, nearest]
        one = np.flatnonzero((nearest[nearest] == here) & (here < nearest) & (height <= limit))
        if not len(one):
            break
        other = nearest[one]
        made.append((names[one], names[other], height[one]))
        share = sizes[one] / (sizes[one] + sizes[other])
        rest = 1.0 - share
        less = share * rest * between[one, other] if ward else np.zeros(len(one))
        between[one] = share[:, None] * between[one] + rest[:, None] * between[other] - less[:, None]
        between[:, one] = share * between[:, one] + rest * between[:, other] - less
        sizes[one] += sizes[other]
        here[other] = -1
        left = np.flatnonzero(here >= 0)
        between, names, sizes = between.take(left, axis=0).take(left, axis=1), names[left], sizes[left]
    none = np.empty(0, dtype=np.intp)
    first, second, heights = zip(*made, strict=True) if made else ((none,), (none,), (np.empty(0),))
    return _Joins(np.concatenate(first), np.concatenate(second), np.concatenate(heights), float(height.min()))
