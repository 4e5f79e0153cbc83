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
precision up; on logarithms, gains that are all but equal are a tie, which the caller's preference decides.
"""

from typing import Protocol

import numpy as np
import numpy.typing as npt

from dartboard.deadline import check
from dartboard.types import FloatArray, IntArray

LARGEST_BLOCK = 64
"""So many rows are evaluated together at most."""

ALL_AT_ONCE = 160
"""Of fewer rows than this, all are."""

_SMALLEST_BLOCK = 8
_LOWEST = -float(np.finfo(np.float32).max)


class Uncertain(Exception):
    """This walk's precision cannot prove its next pick."""


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
        check()
        search = self._search_all if len(self.bounds) <= ALL_AT_ONCE else self._search
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
        for start in range(0, len(rows), LARGEST_BLOCK):
            block = rows[start : start + LARGEST_BLOCK]
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
            if len(rows) > LARGEST_BLOCK:
                rows = rows[_largest(waiting[rows], LARGEST_BLOCK)]
        self._block = min(max(evaluated // 2, _SMALLEST_BLOCK), LARGEST_BLOCK)
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


def _largest(values: FloatArray, count: int) -> IntArray:
    """Positions of the ``count`` largest values, in no order."""
    if count >= len(values):
        return np.arange(len(values))
    return values.argpartition(len(values) - count)[len(values) - count :]
