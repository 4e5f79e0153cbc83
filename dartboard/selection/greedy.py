"""Lazy greedy maximisation of Dartboard's objective, exact at any σ.

With target weights ``w_t = P(t|q)`` and kernel ``K[c,t]``, the objective of a set G is
``f(G) = Σ_t w_t max_{g∈G} K[g,t]`` and the gain of one more candidate is

    gain(c) = Σ_t w_t · max(0, K[c,t] - m_t),        m_t = max_{g∈G} K[g,t].

Two things make it fast and right:

* **Lazy evaluation.** f is submodular: a gain never grows while G grows, so an old gain is an upper
  bound of today's, and only the few candidates whose bound could still win are evaluated.
* **Gains, not totals.** Totals lose every gain below 1e-16 of the total. Gains stay right down to the
  range of the number format, and where even that ends the same walk is made on logarithms:
  ``log gain(c) = logsumexp_{t: P > M} (q_t + P[c,t] + log1p(-exp(M_t - P[c,t])))``.

A walk on plain numbers proves each of its picks: it stops with ``Uncertain`` where a gain leaves the
number format, or where the lead over the runner-up is within rounding. The caller then walks again one
precision up; on logarithms, gains closer than ``TIE`` are a tie, which the caller's preference decides.
"""

from types import ModuleType
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from dartboard.selection import dense
from dartboard.selection.compiled import compiled
from dartboard.types import FloatArray, IntArray

TIE = 1e-9
"""Gains that differ by less than this share of the larger one are the same gain."""

_SMALLEST_BLOCK, _LARGEST_BLOCK = 8, 64
_ALL_AT_ONCE = 160
_SMALLEST = {np.dtype(t): float(np.finfo(t).tiny) * 1e8 for t in (np.float32, np.float64)}
_LOWEST = -float(np.finfo(np.float32).max)


class Uncertain(Exception):
    """This walk's precision cannot prove its next pick."""


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


class State(Protocol):
    """What a walk needs to know of the objective; gains may be plain numbers or logarithms."""

    def alone(self) -> FloatArray:
        """``(n,)`` the objective of each row by itself: a bound of its gain ever after."""

    def gains(self, rows: IntArray | slice) -> FloatArray:
        """``(len(rows),)`` gains, given what has been absorbed."""

    def gain(self, row: int) -> float:
        """The gain of one row."""

    def absorb(self, row: int) -> None:
        """Count ``row`` among the picks."""

    def ceilings(self, gains: FloatArray, rows: IntArray | slice) -> FloatArray:
        """The most that the gains of ``rows`` can be, given what rounding may have done."""

    def level(self, gain: float, row: int) -> float:
        """The least that the gain of ``row`` can be: rows whose ceilings reach it are its rivals.

        Raises ``Uncertain`` where ``gain`` itself is not to be trusted.
        """

    def settle(self, rows: IntArray, preference: FloatArray, picks: list[int]) -> int:
        """The winner among rows whose gains are level, given what was picked."""

    def per_cost(self, gains: FloatArray, costs: FloatArray) -> FloatArray:
        """Gains divided by costs, in the form in which this state keeps gains."""

    def share(self, gain: float, share: float) -> float:
        """A positive share of a gain."""

    def shares(self, gains: FloatArray) -> FloatArray:
        """Gains as plain numbers, as shares of what all rows together cover."""

    def log_shares(self, gains: FloatArray) -> FloatArray:
        """Natural logarithms of :meth:`shares`, also where those underflow."""

    def kernel(self, rows: IntArray) -> FloatArray:
        """``(len(rows), T)`` kernel values of rows as shares of the target's best, as plain numbers."""

    def restart(self) -> None:
        """Forget what has been absorbed."""

    def run(self, bounds: FloatArray, count: int, stop_below: float) -> tuple[list[int], list[float], bool]:
        """Rows and gains of the next picks, absorbed, with bounds kept; and whether to go on step by step."""


class Settler(Protocol):
    """Who decides between rows that a state cannot tell apart."""

    def settle(self, rivals: IntArray, picks: list[int]) -> int:
        """The winner, or ``Uncertain``."""

    def restart(self) -> None:
        """Forget the picks of a walk that has ended."""


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
        self._smallest = _SMALLEST[kernel.dtype]
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
            at_once = len(self._kernel) if len(self._kernel) <= _ALL_AT_ONCE else _LARGEST_BLOCK
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
        rows, gains = np.empty(count, dtype=np.intp), np.empty(count)
        state = (self._kernel, self._weights, self._covered, bounds, self._slack)
        made = engine.walk(*state, self._smallest, stop_below, rows, gains)
        unclear = made < 0
        made = -made - 1 if unclear else made
        return rows[:made].tolist(), gains[:made].tolist(), unclear

    def answer(self, first: int, count: int, size: int, stop_share: float) -> Answer | None:
        """The walk of up to ``count`` picks from row ``first`` on, explained; None where a pick is unclear.

        Only for a state without peaks. ``size`` is that of the sets which the bound is about.
        """
        engine = self._engine()
        if engine is None:
            return None
        rows, gains, most = np.empty(count, dtype=np.intp), np.empty(count), np.empty(2)
        rows[0] = first
        owners = np.empty(self._kernel.shape[1], dtype=np.intp)
        state = (self._kernel, self._weights, self._alone, self._slack, self._smallest)
        made = engine.answer(*state, stop_share, size, rows, gains, owners, most)
        if made < 0:
            return None
        return Answer(rows[:made], gains[:made] / self._total, owners, *(most / self._total).tolist())

    def _engine(self) -> ModuleType | None:
        """Who walks fast: what is compiled, or bursts where the pool is small."""
        return compiled() or (dense if len(self._kernel) <= _ALL_AT_ONCE else None)


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
        return gains - self._log_total

    def kernel(self, rows: IntArray) -> FloatArray:
        with np.errstate(under="ignore"):
            return np.exp(self._log_kernel[rows] - np.where(self._log_peaks > -np.inf, self._log_peaks, 0.0))

    def restart(self) -> None:
        self._covered[:] = -np.inf

    def run(self, bounds: FloatArray, count: int, stop_below: float) -> tuple[list[int], list[float], bool]:
        return [], [], True


class Walk:
    """A greedy walk over the rows of a state, with a bound of what every row could still add.

    ``preference`` orders rows whose gains tie: larger first, then the lower row. ``picks`` and ``gains``
    are what was added so far, gains in the state's own form.
    """

    def __init__(self, state: State, preference: FloatArray) -> None:
        self.state = state
        self.bounds = state.ceilings(state.alone(), slice(None))
        self.picks: list[int] = []
        self.gains: list[float] = []
        self._preference = preference
        self._block = _SMALLEST_BLOCK

    def add(self, row: int, gain: float) -> None:
        """Count ``row``, which adds ``gain``, among the picks."""
        self.picks.append(row)
        self.gains.append(gain)
        self.state.absorb(row)
        self.bounds[row] = -np.inf

    def add_any(self, row: int) -> None:
        """Add ``row`` whatever it adds."""
        gain = self.state.gain(row)
        self.state.level(gain, row)
        self.add(row, gain)

    def run(self, count: int, stop_share: float = 0.0) -> None:
        """Add up to ``count`` rows, the best first, as long as they add anything.

        Stops before a row that adds less than ``stop_share`` of what the first pick added.
        """
        stop_below = self.state.share(self.gains[0], stop_share) if stop_share else -np.inf
        full = len(self.picks) + count
        while len(self.picks) < full:
            rows, gains, unclear = self.state.run(self.bounds, full - len(self.picks), stop_below)
            self.picks += rows
            self.gains += gains
            if not unclear:
                return
            best = self.best()
            if best is None or best[1] < stop_below:
                return
            self.add(*best)

    def best(
        self, closed: npt.NDArray[np.bool_] | None = None, costs: FloatArray | None = None
    ) -> tuple[int, float] | None:
        """The open row that adds most (per cost) and what it adds; None where none adds anything."""
        search = self._search_all if len(self.bounds) <= _ALL_AT_ONCE else self._search
        found = search(closed, costs)
        if found is None:
            return None
        ceilings, best, gain, level = found
        rivals = (ceilings >= level).nonzero()[0]
        if len(rivals) > 1:
            best = self.state.settle(rivals, self._preference, self.picks)
            gain = self.state.gain(best)
        return best, gain

    def refresh(self, count: int) -> None:
        """Make the ``count`` largest bounds as tight as they can be."""
        rows = _largest(self.bounds, count)
        for start in range(0, len(rows), _LARGEST_BLOCK):
            block = rows[start : start + _LARGEST_BLOCK]
            self.bounds[block] = self.state.ceilings(self.state.gains(block), block)

    def _search_all(
        self, closed: npt.NDArray[np.bool_] | None, costs: FloatArray | None
    ) -> tuple[FloatArray, int, float, float] | None:
        """Ceilings of all rows, the best row, its gain, the level of its rivals; quickest for few rows."""
        gains = self.state.gains(slice(None))
        self.bounds = self.state.ceilings(gains, slice(None))
        keys = self._keys(gains, closed, costs)
        best = int(keys.argmax())
        if keys[best] == -np.inf:
            return None
        gain = float(gains[best])
        return self._keys(self.bounds, closed, costs), best, gain, self._level(gain, best, costs)

    def _search(
        self, closed: npt.NDArray[np.bool_] | None, costs: FloatArray | None
    ) -> tuple[FloatArray, int, float, float] | None:
        """The same, evaluating no more rows than could win."""
        ceilings = self._keys(self.bounds, closed, costs)
        waiting = ceilings.copy()
        rows = _largest(waiting, self._block)
        rows = rows[waiting[rows] > -np.inf]
        best, best_key, gain, level, evaluated = -1, -np.inf, 0.0, _LOWEST, 0
        while len(rows):
            gains = self.state.gains(rows)
            self.bounds[rows] = self.state.ceilings(gains, rows)
            waiting[rows] = -np.inf
            evaluated += len(rows)
            priced = None if costs is None else costs[rows]
            keys = self._keys(gains, None, priced)
            ceilings[rows] = self._keys(self.bounds[rows], None, priced)
            leader = keys.argmax()
            if keys[leader] > best_key:
                best, best_key, gain = int(rows[leader]), keys[leader], float(gains[leader])
                level = self._level(gain, best, costs)
            rows = (waiting >= level).nonzero()[0]
            if len(rows) > _LARGEST_BLOCK:
                rows = rows[_largest(waiting[rows], _LARGEST_BLOCK)]
        self._block = min(max(evaluated // 2, _SMALLEST_BLOCK), _LARGEST_BLOCK)
        return (ceilings, best, gain, level) if best >= 0 else None

    def _keys(
        self, gains: FloatArray, closed: npt.NDArray[np.bool_] | None, costs: FloatArray | None
    ) -> FloatArray:
        """What rows are compared by; a closed row never wins."""
        keys = gains if costs is None else self.state.per_cost(gains, costs)
        return keys if closed is None else np.where(closed, -np.inf, keys)

    def _level(self, gain: float, row: int, costs: FloatArray | None) -> float:
        level = self.state.level(gain, row)
        return level if costs is None else float(self.state.per_cost(np.array(level), costs[row]))


def log_sum_rows(values: FloatArray) -> FloatArray:
    """``log Σ_t exp(values[c,t])`` for each row; a row of ``-inf`` gives ``-inf``."""
    peak = values.max(axis=1)
    shift = np.where(np.isfinite(peak), peak, 0.0)
    with np.errstate(under="ignore", divide="ignore"):
        total: FloatArray = np.log(np.exp(values - shift[:, None]).sum(axis=1)) + shift
    return total


def _largest(values: FloatArray, count: int) -> IntArray:
    """Positions of the ``count`` largest values, in no order."""
    if count >= len(values):
        return np.arange(len(values))
    return values.argpartition(len(values) - count)[len(values) - count :]
