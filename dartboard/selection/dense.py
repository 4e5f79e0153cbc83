"""The walk on plain numbers in NumPy: a burst of picks among the few rows that can win.

One search for one pick is a dozen calls, most of them for the proof. Here the rows with the largest bounds
go through several picks together, with all their gains worked out at each, and the proofs of the whole
burst are made at its end: a pick stands if its lead over every row of the burst, and over the bounds of
all other rows, exceeds what rounding may have done. Picks after the first that fails are forgotten. Where
the bound of a row outside the burst was in the way, such bounds are made tight before the next one.

It keeps the contract of :mod:`dartboard.selection.compiled`: a walk that stops after m picks because it
cannot prove the next one returns ``-m - 1``.
"""

import numpy as np
import numpy.typing as npt

from dartboard.deadline import check
from dartboard.types import FloatArray, IntArray

HALF = 0.5
"""A pick stands for a target if it is at least this good a stand-in as the best candidate."""

_BURST = 16
_FEW_TARGETS = 256
"""Up to so many targets calls cost more than numbers, and a burst is long; beyond, it is short and narrow."""

_CACHED = 65_536
"""Entries that a block of rows may have to stay in the processor's cache."""

TIGHT = 160
"""At least so many bounds are made tight for what a selection says of the best possible."""

_COUNTING = np.arange(_BURST)
_ZERO = {np.dtype(t): np.zeros((), t) for t in (np.float32, np.float64)}


def walk(
    kernel: FloatArray,
    weights: FloatArray,
    covered: FloatArray,
    bounds: FloatArray,
    slack: FloatArray,
    smallest: float,
    stop_below: float,
    rows: IntArray,
    gains: FloatArray,
) -> int:
    """Fill ``rows`` and ``gains`` with the next picks; keeps ``covered`` and ``bounds``."""
    longest, least = (_BURST, 48 if len(rows) > 10 else 32) if len(weights) <= _FEW_TARGETS else (4, 24)
    made, size = 0, least
    while made < len(rows):
        check()
        count = min(longest, len(rows) - made)
        active, outside = _largest(bounds, size)
        block, margin = kernel.take(active, axis=0), slack[active]
        after = covered.copy()
        now, leaders = _burst(block, weights, after, count)
        ceilings = now + margin
        found = now[_COUNTING[:count], leaders]
        level = found - margin[leaders]
        good = _proved(ceilings >= level[:, None], level > max(smallest, outside))
        stop = _first(found < stop_below)
        kept = min(good, stop)
        bounds[active] = np.minimum(bounds[active], ceilings[min(kept, count - 1)])
        if kept:
            picked = active[leaders[:kept]]
            rows[made : made + kept] = picked
            gains[made : made + kept] = found[:kept]
            bounds[picked] = -np.inf
            if kept < count:
                after = np.maximum(covered, block[leaders[:kept]].max(axis=0))
            covered[:] = after
            made += kept
        if stop < min(count, good) or (
            stop == good < count and max(outside, ceilings[stop].max()) < stop_below
        ):
            return made
        if kept < count:
            if outside < level[kept] or size >= len(bounds):
                return -made - 1
            size = least if kept else 2 * size
            if not kept:
                refresh(kernel, weights, covered, bounds, slack, (bounds >= level[0]).nonzero()[0])
    return made


def answer(
    kernel: FloatArray,
    weights: FloatArray,
    alone: FloatArray,
    slack: FloatArray,
    smallest: float,
    stop_share: float,
    size: int,
    rows: IntArray,
    gains: FloatArray,
    owners: IntArray,
    most: FloatArray,
) -> int:
    """The whole walk from the pick ``rows[0]`` on, and what explains it; negative where a pick is unclear.

    ``owners`` receives for each target the first pick that stands for it best and by half, or -1; ``most``
    the sums of the ``size`` largest bounds before the first and after the last pick.
    """
    first = rows[0]
    if alone[first] - slack[first] < smallest:
        return -1
    gains[0] = alone[first]
    covered, bounds = kernel[first].copy(), alone + slack
    most[0] = sum_of_largest(bounds, size)
    bounds[first] = -np.inf
    stop_below = stop_share * gains[0] if stop_share > 0.0 else -np.inf
    made = walk(kernel, weights, covered, bounds, slack, smallest, stop_below, rows[1:], gains[1:])
    if made < 0:
        return made
    made += 1
    refresh(kernel, weights, covered, bounds, slack, _largest(bounds, max(2 * size, TIGHT))[0])
    most[1] = sum_of_largest(bounds, size)
    kernel.take(rows[:made], axis=0).argmax(axis=0, out=owners)
    owners[covered < HALF] = -1
    return made


def refresh(
    kernel: FloatArray,
    weights: FloatArray,
    covered: FloatArray,
    bounds: FloatArray,
    slack: FloatArray,
    rows: IntArray,
) -> None:
    """Make the bounds of ``rows`` that are not picked as tight as they can be."""
    at_once = max(1, _CACHED // kernel.shape[1])
    for start in range(0, len(rows), at_once):
        some = rows[start : start + at_once]
        rise = kernel.take(some, axis=0)
        rise -= covered
        np.maximum(rise, _ZERO[rise.dtype], out=rise)
        bounds[some] = np.minimum(bounds[some], rise @ weights + slack[some])


def sum_of_largest(values: FloatArray, size: int) -> float:
    """The sum of the ``size`` largest values that are positive."""
    if size < len(values):
        values = np.partition(values, len(values) - size)[-size:]
    return float(np.maximum(values, 0.0).sum())


def _proved(level: npt.NDArray[np.bool_], clear: npt.NDArray[np.bool_]) -> int:
    """How many first picks stand: nobody but the leader is ``level``, and the gain itself is ``clear``."""
    if np.count_nonzero(level) == len(level) and clear.all():
        return len(level)
    return _first(~clear | (np.count_nonzero(level, axis=1) > 1))


def _first(true: npt.NDArray[np.bool_]) -> int:
    """Where the first true entry stands, or how many entries there are."""
    place = int(true.argmax())
    return place if true[place] else len(true)


def _burst(
    block: FloatArray, weights: FloatArray, covered: FloatArray, count: int
) -> tuple[FloatArray, list[int]]:
    """Gains of the rows of a block before each of ``count`` picks, and who leads; adds to ``covered``."""
    now = np.empty((count, len(block)), block.dtype)
    rise, zero = np.empty_like(block), _ZERO[block.dtype]
    leaders: list[int] = []
    for gains in now:
        np.subtract(block, covered, out=rise)
        np.maximum(rise, zero, out=rise)
        np.dot(rise, weights, out=gains)
        leader = int(gains.argmax())
        leaders.append(leader)
        np.maximum(covered, block[leader], out=covered)
    return now, leaders


def _largest(bounds: FloatArray, count: int) -> tuple[IntArray, float]:
    """The ``count`` rows with the largest bounds, in no order, and the largest bound of the others."""
    if count >= len(bounds):
        return np.arange(len(bounds)), -np.inf
    order = bounds.argpartition(len(bounds) - count - 1)
    cut = len(bounds) - count
    return order[cut:], float(bounds[order[cut - 1]])
