"""What numba compiles. Imported by :func:`dartboard.selection.compiled.accelerate` alone: numba is heavy.

The functions stand at the top of the module, so that numba finds them in its cache the next time. Those
that add up may reorder their sums, to use the whole width of the processor; NaN and infinity stay.
"""

from typing import Any

import numpy as np
from numba import njit

_SUMS = {"reassoc", "contract", "nsz"}
_TILE = 64
_BLOCK = 32
_HALF = 0.5
_f = np.float32
_i = np.int32


@njit(cache=True, nogil=True, fastmath={"contract"})  # type: ignore[untyped-decorator]
def exp(x: Any) -> Any:
    """``exp(x)`` of a float32 ``x <= 0``, to 1e-7 of itself: ``2^n p(r)`` with ``x = n log 2 + r``.

    The polynomial is that of Cephes. 2^n goes in by two halves, so that values below 1e-38 fade gradually.
    """
    x = max(x, _f(-104.0))
    n = np.floor(x * _f(1.4426950408889634) + _f(0.5))
    r = x - n * _f(0.693359375)
    r = r - n * _f(-2.12194440e-4)
    p = _f(1.9875691500e-4)
    p = p * r + _f(1.3981999507e-3)
    p = p * r + _f(8.3334519073e-3)
    p = p * r + _f(4.1665795894e-2)
    p = p * r + _f(1.6666665459e-1)
    p = p * r + _f(5.0000001201e-1)
    p = p * (r * r) + r + _f(1.0)
    power = _i(n)
    half = power >> _i(1)
    rest = power - half
    low = _i((half + _i(127)) << _i(23)).view(np.float32)
    high = _i((rest + _i(127)) << _i(23)).view(np.float32)
    return p * low * high


@njit(cache=True, nogil=True, fastmath={"contract"})  # type: ignore[untyped-decorator]
def fill(kernel: Any, scale: Any) -> None:
    """Cosines below and on the diagonal become ``exp(scale · (1 - cos)²)`` on both sides of it, in place."""
    n = len(kernel)
    for top in range(0, n, _TILE):
        end = min(top + _TILE, n)
        for i in range(top, end):
            row = kernel[i]
            for j in range(i + 1):
                apart = row[j] - _f(1.0)
                row[j] = exp(apart * apart * scale)
        for left in range(0, top, _TILE):
            for j in range(left, left + _TILE):
                for i in range(top, end):
                    kernel[j, i] = kernel[i, j]
        for i in range(top, end):
            for j in range(top, i):
                kernel[j, i] = kernel[i, j]


@njit(cache=True, nogil=True, fastmath={"contract"})  # type: ignore[untyped-decorator]
def gaussian(cosines: Any, start: int, scale: Any, kernel: Any) -> None:
    """``exp(scale · (1 - cos)²)`` of the rows from ``start`` on, as many and as wide as ``kernel``."""
    for i in range(len(kernel)):
        row = cosines[start + i]
        for j in range(kernel.shape[1]):
            apart = row[j] - _f(1.0)
            kernel[i, j] = exp(apart * apart * scale)


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def prints(bits: Any, multipliers: Any, found: Any) -> None:
    """Fingerprints of rows of 64-bit words, by as many words as there are multipliers."""
    for i in range(len(bits)):
        total = np.uint64(0)
        for j in range(len(multipliers)):
            total += bits[i, j] * multipliers[j]
        found[i] = total


@njit(cache=True, nogil=True, fastmath=_SUMS)  # type: ignore[untyped-decorator]
def prepare(kernel: Any, log_weights: Any, rounding: float, weights: Any, alone: Any, slack: Any) -> float:
    """Weights, what each row covers alone and what rounding may do to it; returns the sum of weights."""
    peak = log_weights.max()
    for t in range(len(weights)):
        weights[t] = np.exp(log_weights[t] - peak)
    total = 0.0
    for t in range(len(weights)):
        total += weights[t]
    share = kernel.dtype.type(rounding)
    for row in range(len(kernel)):
        covers = kernel.dtype.type(0.0)
        for t in range(len(weights)):
            covers += kernel[row, t] * weights[t]
        alone[row] = covers
        slack[row] = covers * share
    return total


@njit(cache=True, nogil=True, fastmath=_SUMS)  # type: ignore[untyped-decorator]
def gain(kernel: Any, weights: Any, covered: Any, row: Any) -> Any:
    """``Σ_t w_t max(0, K[row,t] - covered_t)``."""
    zero = kernel.dtype.type(0.0)
    total = zero
    for t in range(kernel.shape[1]):
        rise = kernel[row, t] - covered[t]
        total += weights[t] * (rise if rise > 0 else zero)
    return total


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _top(bounds: Any, block: Any) -> Any:
    highest = bounds[block * _BLOCK]
    for row in range(block * _BLOCK + 1, min((block + 1) * _BLOCK, len(bounds))):
        highest = max(highest, bounds[row])
    return highest


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _highest(bounds: Any, tops: Any) -> Any:
    """The first row with the largest bound, by the largest of each block."""
    block = 0
    for other in range(1, len(tops)):
        if tops[other] > tops[block]:
            block = other
    row = block * _BLOCK
    while bounds[row] != tops[block]:
        row += 1
    return row


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _tops(bounds: Any) -> Any:
    tops = np.empty((len(bounds) + _BLOCK - 1) // _BLOCK, bounds.dtype)
    for block in range(len(tops)):
        tops[block] = _top(bounds, block)
    return tops


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def walk(
    kernel: Any,
    weights: Any,
    covered: Any,
    bounds: Any,
    slack: Any,
    smallest: float,
    stop_below: float,
    rows: Any,
    gains: Any,
) -> int:
    """The next picks and their gains, with ``covered`` and ``bounds`` kept; ``-m - 1`` if unclear after m."""
    tops = _tops(bounds)
    checked = np.full(len(bounds), -1)
    for step in range(len(rows)):
        while True:
            best = _highest(bounds, tops)
            if checked[best] == step:
                break
            if bounds[best] == -np.inf:
                return -step - 1
            bounds[best] = gain(kernel, weights, covered, best) + slack[best]
            checked[best] = step
            tops[best // _BLOCK] = _top(bounds, best // _BLOCK)
        found = bounds[best] - slack[best]
        if found < stop_below:
            return step
        if found < smallest:
            return -step - 1
        level = max(found - slack[best], smallest)
        for block in range(len(tops)):
            if tops[block] >= level:
                for row in range(block * _BLOCK, min((block + 1) * _BLOCK, len(bounds))):
                    if row != best and bounds[row] >= level:
                        if checked[row] != step:
                            bounds[row] = gain(kernel, weights, covered, row) + slack[row]
                            checked[row] = step
                        if bounds[row] >= level:
                            return -step - 1
                tops[block] = _top(bounds, block)
        rows[step] = best
        gains[step] = found
        bounds[best] = -np.inf
        tops[best // _BLOCK] = _top(bounds, best // _BLOCK)
        for t in range(kernel.shape[1]):
            covered[t] = max(covered[t], kernel[best, t])
    return len(rows)


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _most(values: Any, size: int) -> float:
    """The sum of the ``size`` largest values."""
    left, tops, total = values.copy(), _tops(values), 0.0
    for _ in range(min(size, len(values))):
        row = _highest(left, tops)
        if left[row] <= 0.0:
            break
        total += left[row]
        left[row] = -np.inf
        tops[row // _BLOCK] = _top(left, row // _BLOCK)
    return total


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def answer(
    kernel: Any,
    weights: Any,
    alone: Any,
    slack: Any,
    smallest: float,
    stop_share: float,
    size: int,
    rows: Any,
    gains: Any,
    owners: Any,
    most: Any,
) -> int:
    """The whole walk from the pick ``rows[0]`` on, and what explains it, as in :mod:`.dense`."""
    first = rows[0]
    if alone[first] - slack[first] < smallest:
        return -1
    gains[0] = alone[first]
    covered, bounds = kernel[first].copy(), alone + slack
    most[0] = _most(bounds, size)
    bounds[first] = -np.inf
    stop_below = stop_share * gains[0] if stop_share > 0.0 else -np.inf
    further = walk(kernel, weights, covered, bounds, slack, smallest, stop_below, rows[1:], gains[1:])
    if further < 0:
        return -1
    made = int(further) + 1
    tops = _tops(bounds)
    waiting = bounds.copy()
    for _ in range(min(2 * size, len(bounds) - made)):
        row = _highest(waiting, tops)
        bounds[row] = gain(kernel, weights, covered, row) + slack[row]
        waiting[row] = -np.inf
        tops[row // _BLOCK] = _top(waiting, row // _BLOCK)
    most[1] = _most(bounds, size)
    nearest = kernel[first].copy()
    owners[:] = 0
    for pick in range(1, made):
        row = rows[pick]
        for t in range(len(owners)):
            if kernel[row, t] > nearest[t]:
                nearest[t] = kernel[row, t]
                owners[t] = pick
    for t in range(len(owners)):
        if nearest[t] < _HALF:
            owners[t] = -1
    return made


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def answers(
    kernels: Any,
    relevance: Any,
    scales: Any,
    rounding: Any,
    smallest: float,
    rows: Any,
    gains: Any,
    owners: Any,
    most: Any,
    totals: Any,
    sure: Any,
) -> None:
    """:func:`answer` for the queries of a block that are ``sure``, from their cosines on, and stay so."""
    n = kernels.shape[1]
    weights = np.empty(n, kernels.dtype)
    alone = np.empty(n, kernels.dtype)
    slack = np.empty(n, kernels.dtype)
    for i in range(len(kernels)):
        if not sure[i]:
            continue
        sure[i] = False
        fill(kernels[i], scales[i])
        totals[i] = prepare(kernels[i], relevance[i], rounding[i], weights, alone, slack)
        first = relevance[i].argmax()
        close = 0
        for t in range(n):
            if relevance[i, t] >= relevance[i, first] - rounding[i]:
                close += 1
        if close != 1:
            continue
        rows[i, 0] = first
        size = rows.shape[1]
        made = answer(
            kernels[i], weights, alone, slack, smallest, 0.0, size, rows[i], gains[i], owners[i], most[i]
        )
        sure[i] = made == size
