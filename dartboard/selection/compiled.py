"""The walk on plain numbers, compiled by numba: switched on by :func:`accelerate` (extra ``fast``).

It makes the same picks with the same proof as :class:`dartboard.selection.greedy.Walk`, and hands a pick that
it cannot prove back to it: a walk that stops after m picks returns ``-m - 1``. What it saves is
the price of a dozen NumPy calls a pick, which is most of the time on small pools. Importing numba takes
half a second and compiling, the first time on a machine, a few more; hence on request.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from dartboard.errors import MissingExtraError
from dartboard.types import FloatArray, IntArray

CompiledWalk = Callable[
    [FloatArray, FloatArray, FloatArray, FloatArray, FloatArray, float, float, IntArray, FloatArray], int
]

_compiled: CompiledWalk | None = None


def accelerate() -> None:
    """Compile the walk, or load it compiled; selections from then on use it."""
    global _compiled
    if _compiled is not None:
        return
    try:
        import numba
    except ImportError as error:
        raise MissingExtraError("numba", "fast", "accelerate()") from error
    # Sums may be reordered, so that they use the whole width of the processor; NaN and infinity stay.
    gain = numba.njit(cache=True, nogil=True, fastmath={"reassoc", "contract", "nsz"})(_gain)
    walk = numba.njit(cache=True, nogil=True)(_walk_with(gain))
    for dtype in (np.float32, np.float64):
        one, row = np.ones((1, 1), dtype), np.ones(1, dtype)
        walk(one, row, row * 0, row.copy(), row, 0.0, 0.0, np.empty(1, np.intp), np.empty(1))
    _compiled = walk


def compiled_walk() -> CompiledWalk | None:
    """The compiled walk where :func:`accelerate` was called."""
    return _compiled


def _gain(kernel: Any, weights: Any, covered: Any, row: Any) -> Any:
    total = kernel.dtype.type(0.0)
    for t in range(kernel.shape[1]):
        rise = kernel[row, t] - covered[t]
        total += weights[t] * (rise if rise > 0 else kernel.dtype.type(0.0))
    return total


def _walk_with(gain: Any) -> Callable[..., int]:
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
        n = len(bounds)
        checked = np.full(n, -1)
        for step in range(len(rows)):
            while True:
                best = 0
                for row in range(1, n):
                    if bounds[row] > bounds[best]:
                        best = row
                if checked[best] == step:
                    break
                if bounds[best] == -np.inf:
                    return -step - 1
                bounds[best] = gain(kernel, weights, covered, best) + slack[best]
                checked[best] = step
            found = bounds[best] - slack[best]
            level = found - slack[best]
            if found < stop_below:
                return step
            if found < smallest:
                return -step - 1
            level = max(level, smallest)
            for row in range(n):
                if row != best and bounds[row] >= level:
                    if checked[row] != step:
                        bounds[row] = gain(kernel, weights, covered, row) + slack[row]
                        checked[row] = step
                    if bounds[row] >= level:
                        return -step - 1
            rows[step] = best
            gains[step] = found
            bounds[best] = -np.inf
            for t in range(kernel.shape[1]):
                covered[t] = max(covered[t], kernel[best, t])
        return len(rows)

    return walk
