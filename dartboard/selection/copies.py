"""Near-copies among candidates: groups that are much closer together than strangers are.

Whether two passages are copies of each other cannot be read off their distance: copies of one corpus are as
far apart as strangers of another, and of another encoder. A pool that holds copies shows it as a whole.
Joining the two closest groups again and again, by the average distance between their members, joins copies
first, at heights h_1 <= h_2 <= …, and then leaps to strangers. A pool without copies climbs in small steps.

A leap counts from the join that takes in two fifths of the pool on, while ten groups are left and copies are
within .4 median distances. If the largest ``log(h[i+1] / h[i])`` there reaches .3, the pool is cut at the
first leap of at least half its size. Averages, and not single pairs, because copies of two passages that are
alike stay two groups even where a pair among them is close. docs/sigma.md has the measurements.
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


def near_copies(apart: FloatArray, median: float) -> IntArray | None:
    """``(n,)`` the group of each candidate by their distances ``(n, n)``; None where nothing leaps."""
    n, limit, least = len(apart), WITHIN * median, fewest(len(apart))
    near = np.count_nonzero(apart <= limit, axis=1) > 1  # itself, and another
    if n < 2 * FEWEST_GROUPS or np.count_nonzero(near) < least:
        return None
    joins = _joins(apart, limit)
    order = joins.heights.argsort(kind="stable")
    heights = np.maximum(np.append(joins.heights[order], joins.next), _LOWEST * median)
    first, last = least - 2, min(len(heights) - 1, n - FEWEST_GROUPS)
    leaps = np.diff(np.log(heights))[first:last]
    if not len(leaps) or leaps.max() < LEAP:
        return None
    cut = first + int((leaps >= _FIRST * leaps.max()).argmax()) + 1
    groups = np.arange(n)
    for join in order[:cut].tolist():
        groups[joins.second[join]] = joins.first[join]
    while (further := groups[groups] != groups).any():
        groups[further] = groups[groups[further]]
    return groups


def crowded(nearest: FloatArray, median: float) -> bool:
    """Whether, by how far each is from the nearest other one, enough are near by for groups of copies."""
    return int(np.count_nonzero(nearest <= WITHIN * median)) >= fewest(len(nearest))


def fewest(n: int) -> int:
    """How many of n candidates need a neighbour near by: joins begin with two, and take in one more each."""
    return math.ceil(JOINED * (n - 1)) + 1


class _Joins(NamedTuple):
    """Joins up to a limit, as two candidates that stand for the groups joined; and the height beyond it."""

    first: IntArray
    second: IntArray
    heights: FloatArray
    next: float


def _joins(apart: FloatArray, limit: float) -> _Joins:
    """All joins of average linkage up to ``limit``.

    Two groups that are each other's nearest are joined sooner or later whatever else is joined meanwhile
    (average linkage is reducible), so all such pairs are joined at once.
    """
    between = apart.astype(np.float64)
    if machine := compiled():
        return _Joins(*machine.join(np.ascontiguousarray(between), limit))
    np.fill_diagonal(between, np.inf)
    names, sizes = np.arange(len(between)), np.ones(len(between))
    made: list[tuple[IntArray, IntArray, FloatArray]] = []
    while True:
        here = np.arange(len(between))
        nearest = between.argmin(axis=1)
        height = between[here, nearest]
        one = np.flatnonzero((nearest[nearest] == here) & (here < nearest) & (height <= limit))
        if not len(one):
            break
        other = nearest[one]
        made.append((names[one], names[other], height[one]))
        share = (sizes[one] / (sizes[one] + sizes[other]))[:, None]
        between[one] = share * between[one] + (1.0 - share) * between[other]
        between[:, one] = share.T * between[:, one] + (1.0 - share.T) * between[:, other]
        sizes[one] += sizes[other]
        left = np.ones(len(between), dtype=bool)
        left[other] = False
        between, names, sizes = between[left][:, left], names[left], sizes[left]
    none = np.empty(0, dtype=np.intp)
    first, second, heights = zip(*made, strict=True) if made else ((none,), (none,), (np.empty(0),))
    return _Joins(
        np.concatenate(first), np.concatenate(second), np.concatenate(heights), float(between.min())
    )
