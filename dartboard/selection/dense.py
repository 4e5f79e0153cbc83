"""The walk on plain numbers in NumPy: a burst of picks among the few rows that can win.

One search for one pick is a dozen calls, most of them for the proof. Here the rows with the largest bounds
go through several picks together, with all their gains worked out at each, and the proofs of the whole
burst are made at its end: a pick stands if its lead over every row of the burst, and over the bounds of
all other rows, exceeds what rounding may have done. Picks after the first that fails are forgotten. Where
the bound of a row outside the burst was in the way, such bounds are made tight before the next one. Small
kernels compare what rows reach together with the picks, which takes half of the passes, and look at gains
only where that is too coarse: because weights are steep, or where a proof fails. A target that is covered in
full, as a pick is by itself, adds nothing to anybody's gain, and nothing to what rounding may do to it: with
steep weights that is most of it, and rows of a small kernel are judged by what is left.

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
_EPS = {np.dtype(t): float(np.finfo(t).eps) for t in (np.float32, np.float64)}
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
    small = len(weights) <= _FEW_TARGETS
    longest, least = (_BURST, 48 if len(rows) > 10 else 32) if small else (4, 24)
    burst = _by_totals if small and not _steep(weights, len(rows)) else _by_rises
    made, size, full = 0, least, slack
    while made < len(rows):
        check()
        if small and burst is _by_rises:
            slack = _slack(kernel, weights, covered, full)
        count = min(longest, len(rows) - made)
        active, outside = _largest(bounds, size)
        block = kernel.take(active, axis=0)
        now, leaders, tops, blur = burst(block, weights, covered, count)
        margin = slack[active]
        margin += blur
        ceilings = now + margin
        for step, leader in enumerate(leaders, start=1):  # who is picked is no rival any more
            ceilings[step:, leader] = -np.inf
        if outside == -np.inf:
            ceilings[:, bounds[active] == -np.inf] = -np.inf
        found = now[_COUNTING[:count], leaders]
        level = found - margin[leaders]
        good = _proved(ceilings >= level[:, None], level, max(smallest, outside))
        stop = _first(found < stop_below) if stop_below > -np.inf else count
        kept = min(good, stop)
        bounds[active] = np.minimum(bounds[active], ceilings[min(kept, count - 1)])
        if kept:
            won = leaders[:kept]
            picked = active[won]
            rows[made : made + kept] = picked
            gains[made : made + kept] = _gains(block[won], weights, covered, tops) if blur else found[:kept]
            bounds[picked] = -np.inf
            covered[:] = tops[kept - 1]
            made += kept
        if stop < min(count, good) or (
            stop == good < count and max(outside, ceilings[stop].max()) < stop_below
        ):
            return made
        if kept < count:
            if outside < level[kept] or size >= len(bounds):
                if not blur and not (small and kept):
                    return -made - 1
                burst = _by_rises
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
    most[1] = sum_of_largest(_ceilings(kernel, weights, covered, slack), size)
    kernel.take(rows[:made], axis=0).argmax(axis=0, out=owners)
    owners[covered < HALF] = -1
    return made


def _ceilings(kernel: FloatArray, weights: FloatArray, covered: FloatArray, slack: FloatArray) -> FloatArray:
    """The most that every row can still gain, by totals."""
    gains: FloatArray = np.maximum(kernel, covered) @ weights
    gains *= 1.0 + _blur(weights)
    gains -= covered @ weights
    gains += slack
    return gains


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
    total = float(values.sum())
    return total if total > -np.inf else float(np.maximum(values, 0.0).sum())


def _proved(reaching: npt.NDArray[np.bool_], level: FloatArray, least: float) -> int:
    """How many first picks stand: only the leader is ``reaching`` its level, which exceeds the ``least``."""
    if np.count_nonzero(reaching) == len(level) and level.min() > least:
        return len(level)
    return _first((level <= least) | (np.count_nonzero(reaching, axis=1) > 1))


def _first(true: npt.NDArray[np.bool_]) -> int:
    """Where the first true entry stands, or how many entries there are."""
    place = int(true.argmax())
    return place if true[place] else len(true)


def _by_rises(
    block: FloatArray, weights: FloatArray, covered: FloatArray, count: int
) -> tuple[FloatArray, list[int], FloatArray, float]:
    """Gains of the rows of a block before each of ``count`` picks, who leads, and what is covered after each.

    Last comes what gains may be off by beyond what rounding does to the kernel: nothing.
    """
    now = np.empty((count, len(block)), block.dtype)
    tops = np.empty((count, len(weights)), block.dtype)
    rise, zero = np.empty_like(block), _ZERO[block.dtype]
    leaders: list[int] = []
    for gains, top in zip(now, tops, strict=True):
        np.subtract(block, covered, out=rise)
        np.maximum(rise, zero, out=rise)
        np.dot(rise, weights, out=gains)
        leader = int(gains.argmax())
        leaders.append(leader)
        covered = np.maximum(covered, block[leader], out=top)
    return now, leaders, tops, 0.0


def _by_totals(
    block: FloatArray, weights: FloatArray, covered: FloatArray, count: int
) -> tuple[FloatArray, list[int], FloatArray, float]:
    """The same with gains as differences of totals ``Σ_t w_t max(K[c,t], m_t)``: half of the passes.

    A total of n numbers is off by at most n roundings, in whatever order they are added up.
    """
    totals = np.empty((count, len(block)), block.dtype)
    tops = np.empty((count, len(weights)), block.dtype)
    reached = np.empty((count, 1), block.dtype)
    reached[0] = np.dot(covered, weights)
    best = np.maximum(block, covered)
    leaders: list[int] = []
    for now, top in zip(totals, tops, strict=True):
        np.dot(best, weights, out=now)
        leader = int(now.argmax())
        leaders.append(leader)
        top[:] = best[leader]
        np.maximum(best, top, out=best)
    reached[1:, 0] = totals[_COUNTING[: count - 1], leaders[:-1]]
    blur = float(totals[-1, leaders[-1]]) * _blur(weights)
    totals -= reached
    return totals, leaders, tops, blur


def _steep(weights: FloatArray, picks: int) -> bool:
    """Whether the last of so many picks will hardly be seen in a total."""
    place = max(0, len(weights) - picks - 1)
    return float(np.partition(weights, place)[place]) < 4.0 * _blur(weights) * float(weights.sum())


def _slack(kernel: FloatArray, weights: FloatArray, covered: FloatArray, full: FloatArray) -> FloatArray:
    """What rounding may do to gains, given what it may do to all that a row covers (``full``).

    Nothing exceeds 1, so that targets which are covered by 1 are left out; unless a row covers them as well,
    when it may do so better by what rounding makes of 1.
    """
    most, eps = int(full.argmax()), _EPS[weights.dtype]
    rounding = full[most] / (kernel[most] @ weights)
    done = (covered >= 1.0).nonzero()[0]
    left = weights.copy()
    left[done] = 0.0
    slack: FloatArray = kernel @ left
    slack *= rounding
    as_well = kernel.take(done, axis=1) >= 1.0 - 4.0 * eps
    slack += eps * (as_well * weights[done]).sum(axis=1)
    return slack


def _blur(weights: FloatArray) -> float:
    """What the difference of two totals may be off by, as a share of the larger one."""
    return len(weights) * _EPS[weights.dtype]


def _gains(picks: FloatArray, weights: FloatArray, covered: FloatArray, tops: FloatArray) -> FloatArray:
    """What picks added one after the other, by what was covered before them and after each."""
    picks[0] -= covered
    picks[1:] -= tops[: len(picks) - 1]
    gains: FloatArray = np.maximum(picks, _ZERO[picks.dtype], out=picks) @ weights
    return gains


def _largest(bounds: FloatArray, count: int) -> tuple[IntArray, float]:
    """The ``count`` rows with the largest bounds, in no order, and the largest bound of the others."""
    if count >= len(bounds):
        return np.arange(len(bounds)), -np.inf
    order = bounds.argpartition(len(bounds) - count - 1)
    cut = len(bounds) - count
    return order[cut:], float(bounds[order[cut - 1]])
