"""What a walk knows of the objective: gains as plain numbers, or as logarithms where those end.

Plain numbers carry a bound of what rounding may have done to them, by which a walk proves its picks. Ties
between logarithms are decided by the caller's preference.
"""

from typing import Any, NamedTuple

import numpy as np

from dartboard.deadline import check
from dartboard.selection import dense
from dartboard.selection.compiled import compiled
from dartboard.selection.greedy import ALL_AT_ONCE, LARGEST_BLOCK, Settler, Uncertain
from dartboard.types import FloatArray, IntArray

TIE = 1e-9
"""Gains that differ by less than this share of the larger one are the same gain."""

SMALLEST = {np.dtype(t): float(np.finfo(t).tiny) * 1e8 for t in (np.float32, np.float64)}
"""Plain numbers below this have lost digits."""


_AT_ONCE = 256
_LONGEST = 1_000_000
"""So many picks are made between two looks at the deadline, and so many numbers looked through at once."""


class Answer(NamedTuple):
    """A walk that is over: rows, their gains, the pick that stands for each target (or -1), and two bounds.

    ``alone`` is the most that the best rows could cover by themselves; ``still``, what they could still add.
    Gains and bounds are shares of what all rows cover.
    """

    rows: IntArray
    gains: FloatArray
    owners: IntArray
    alone: float
    still: float


class LinearState:
    """Gains as plain numbers, in the dtype of the kernel.

    ``rounding`` bounds the error of a gain as a share of what its row covers alone. ``peaks`` is the
    largest kernel value of each target; without it, they are all 1. ``referee`` settles what is too close.
    """

    def __init__(
        self,
        log_weights: FloatArray,
        kernel: FloatArray,
        rounding: float,
        peaks: FloatArray | None = None,
        referee: Settler | None = None,
    ) -> None:
        self._referee = referee
        self._kernel = np.ascontiguousarray(kernel)
        self._peaks = peaks
        self._smallest = SMALLEST[kernel.dtype]
        self._total: float
        self._weights: FloatArray
        self._alone: FloatArray
        if machine := compiled():
            self._weights, self._alone, self._slack = (
                np.empty(size, kernel.dtype) for size in (kernel.shape[1], len(kernel), len(kernel))
            )
            arrays = (self._weights, self._alone, self._slack)
            self._total = machine.prepare(self._kernel, log_weights, rounding, *arrays)
        else:
            self._weights = np.exp(log_weights - log_weights.max()).astype(kernel.dtype, copy=False)
            self._total = float(self._weights.sum())
            self._alone = kernel @ self._weights
            self._slack = self._alone * kernel.dtype.type(rounding)
        if peaks is not None:
            self._total = float(self._weights @ peaks)
        if self._total < self._smallest:
            raise Uncertain
        self._covered = np.zeros_like(self._weights)
        self._begun = False
        self._room: FloatArray | None = None

    def alone(self) -> FloatArray:
        return self._alone.copy()

    def gains(self, rows: IntArray | slice) -> FloatArray:
        if self._room is None:
            at_once = len(self._kernel) if len(self._kernel) <= ALL_AT_ONCE else LARGEST_BLOCK
            self._room = np.empty((at_once, self._kernel.shape[1]), self._kernel.dtype)
        if isinstance(rows, slice):
            block = np.subtract(self._kernel, self._covered, out=self._room)
        else:
            block = self._kernel.take(rows, axis=0, out=self._room[: len(rows)], mode="clip")
            block -= self._covered
        np.maximum(block, 0.0, out=block)
        gains: FloatArray = block @ self._weights
        return gains

    def gain(self, row: int) -> float:
        return float(self.gains(np.array([row]))[0] if self._begun else self._alone[row])

    def absorb(self, row: int) -> None:
        self._begun = True
        np.maximum(self._covered, self._kernel[row], out=self._covered)

    def ceilings(self, gains: FloatArray, rows: IntArray | slice) -> FloatArray:
        ceilings: FloatArray = gains + self._slack[rows]
        return ceilings

    def level(self, gain: float, row: int) -> float:
        if gain < self._smallest:
            raise Uncertain
        return max(gain - float(self._slack[row]), self._smallest)

    def settle(self, rows: IntArray, preference: FloatArray, picks: list[int]) -> int:
        if self._referee is None:
            raise Uncertain
        return self._referee.settle(rows, picks)

    def per_cost(self, gains: FloatArray, costs: FloatArray) -> FloatArray:
        return gains / costs

    def share(self, gain: float, share: float) -> float:
        return gain * share

    def shares(self, gains: FloatArray) -> FloatArray:
        return np.divide(np.maximum(gains, 0.0), self._total, dtype=np.float64)

    def log_shares(self, gains: FloatArray) -> FloatArray:
        with np.errstate(divide="ignore"):
            return np.log(self.shares(gains))

    def kernel(self, rows: IntArray) -> FloatArray:
        kernel = self._kernel[rows]
        return (
            kernel
            if self._peaks is None
            else np.divide(kernel, self._peaks, where=self._peaks > 0, out=kernel)
        )

    def restart(self) -> None:
        self._covered[:] = 0.0
        self._begun = False
        if self._referee is not None:
            self._referee.restart()

    def run(self, bounds: FloatArray, count: int, stop_below: float) -> tuple[list[int], list[float], bool]:
        engine = self._engine()
        if engine is None:
            return [], [], True
        self._begun = True
        state = (self._kernel, self._weights, self._covered, bounds, self._slack)
        picks: list[int] = []
        found: list[float] = []
        while len(picks) < count:
            check()
            size = min(count - len(picks), _AT_ONCE)
            rows, gains = np.empty(size, dtype=np.intp), np.empty(size)
            made = engine.walk(*state, self._smallest, stop_below, rows, gains)
            unclear = made < 0
            made = -made - 1 if unclear else made
            picks += rows[:made].tolist()
            found += gains[:made].tolist()
            if unclear or made < len(rows):
                return picks, found, unclear
        return picks, found, False

    def answer(self, first: int, count: int, size: int, stop_share: float) -> Answer | None:
        """The walk of up to ``count`` picks from row ``first`` on, explained; None where a pick is unclear.

        Only for a state without peaks. ``size`` is that of the sets which the bound is about.
        """
        engine = self._engine()
        if engine is None or count * len(self._kernel) > _LONGEST:
            return None
        rows, gains, most = np.empty(count, dtype=np.intp), np.empty(count), np.empty(2)
        rows[0] = first
        owners = np.empty(self._kernel.shape[1], dtype=np.intp)
        state = (self._kernel, self._weights, self._alone, self._slack, self._smallest)
        made = engine.answer(*state, stop_share, size, rows, gains, owners, most)
        if made < 0:
            return None
        return Answer(rows[:made], gains[:made] / self._total, owners, *(most / self._total).tolist())

    def _engine(self) -> Any:
        """Who walks fast: what is compiled, or bursts where the pool is small."""
        return compiled() or (dense if len(self._kernel) <= ALL_AT_ONCE else None)


class LogState:
    """The same gains as logarithms: never underflows, slower by the logarithms it takes."""

    def __init__(
        self, log_weights: FloatArray, log_kernel: FloatArray, log_peaks: FloatArray | None = None
    ) -> None:
        self._log_weights = log_weights
        self._log_kernel = log_kernel
        self._log_peaks = np.zeros(len(log_weights)) if log_peaks is None else log_peaks
        self._log_total = float(log_sum_rows((log_weights + self._log_peaks)[None])[0])
        self._covered = np.full(len(log_weights), -np.inf)

    def alone(self) -> FloatArray:
        return log_sum_rows(self._log_kernel + self._log_weights)

    def gains(self, rows: IntArray | slice) -> FloatArray:
        block = self._log_kernel[rows]
        better = block > self._covered
        fall = np.subtract(self._covered, block, out=np.full_like(block, -1.0), where=better)
        with np.errstate(under="ignore"):
            rise = self._log_weights + np.log(-np.expm1(fall))
        return log_sum_rows(np.where(better, block + rise, -np.inf))

    def gain(self, row: int) -> float:
        return float(self.gains(np.array([row]))[0])

    def absorb(self, row: int) -> None:
        np.maximum(self._covered, self._log_kernel[row], out=self._covered)

    def ceilings(self, gains: FloatArray, rows: IntArray | slice) -> FloatArray:
        return gains

    def level(self, gain: float, row: int) -> float:
        return gain - max(TIE, 1e-15 * abs(gain))

    def settle(self, rows: IntArray, preference: FloatArray, picks: list[int]) -> int:
        return int(rows[np.argmax(preference[rows])])

    def per_cost(self, gains: FloatArray, costs: FloatArray) -> FloatArray:
        return gains - np.log(costs)

    def share(self, gain: float, share: float) -> float:
        return gain + float(np.log(share))

    def shares(self, gains: FloatArray) -> FloatArray:
        with np.errstate(under="ignore"):
            return np.exp(self.log_shares(gains))

    def log_shares(self, gains: FloatArray) -> FloatArray:
        if self._log_total == -np.inf:  # what the query may mean is out of everybody's reach
            return np.full_like(gains, -np.inf)
        return gains - self._log_total

    def kernel(self, rows: IntArray) -> FloatArray:
        with np.errstate(under="ignore"):
            return np.exp(self._log_kernel[rows] - np.where(self._log_peaks > -np.inf, self._log_peaks, 0.0))

    def restart(self) -> None:
        self._covered[:] = -np.inf

    def run(self, bounds: FloatArray, count: int, stop_below: float) -> tuple[list[int], list[float], bool]:
        return [], [], True


def log_sum_rows(values: FloatArray) -> FloatArray:
    """``log Σ_t exp(values[c,t])`` for each row; a row of ``-inf`` gives ``-inf``."""
    peak = values.max(axis=1)
    shift = np.where(np.isfinite(peak), peak, 0.0)
    with np.errstate(under="ignore", divide="ignore"):
        total: FloatArray = np.log(np.exp(values - shift[:, None]).sum(axis=1)) + shift
    return total
