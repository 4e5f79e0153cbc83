"""Lazy greedy maximisation of a submodular objective, with every pick proved.

The objective is submodular: a gain never grows while the set grows. So an old gain is an upper bound of
today's, and only the rows whose bound could still win are evaluated again (Minoux, 1978).

A pick is taken from the screen's gains if its lead over every other row is larger than rounding. Otherwise
the rows in question are compared by their exact gains. Exact gains that differ by less than ``TIE`` of
themselves are a tie, which goes to the more relevant row, then to the lower one.
"""

import math

import numpy as np
import numpy.typing as npt

from dartboard.deadline import check
from dartboard.selection.kernel_matrix import CACHED
from dartboard.selection.objective import Objective
from dartboard.types import FloatArray, IntArray

TIE = 1e-9
ROUGH = 1e-3


class LazyGreedy:
    """Greedy picks of rows. ``relevance``, ``(rows,)``, breaks ties."""

    def __init__(self, objective: Objective, relevance: FloatArray) -> None:
        self.objective = objective
        self.log_gains: list[float] = []
        self._relevance = relevance
        self._upper = objective.alone + objective.slack
        self._log_upper = np.full(len(relevance), np.inf)
        self._block = max(16, CACHED // objective.targets)

    def add(self, row: int, log_gain: float | None = None) -> None:
        """Pick ``row``; its gain is worked out where it is not given."""
        if log_gain is None:
            log_gain = self.log_gain(row, float(self.objective.gains(np.array([row]))[0]))
        self.log_gains.append(log_gain)
        self.objective.add(row)
        self._upper[row] = 0.0
        self._log_upper[row] = -np.inf

    def best_block(self, count: int) -> list[tuple[int, float]]:
        """The next picks and their gains by the screen, up to ``count``: as many as it proves at one go.

        The rows with the largest bounds are picked from by the screen alone, as long as a pick gains more
        than any row that does not take part can. Then the proof follows for all of these picks together;
        it fails at the first whose lead is within rounding.
        """
        check()
        rows = _largest(np.arange(len(self._upper)), self._upper, self._block)
        floor = float(np.delete(self._upper, rows).max(initial=0.0))
        picks, gains = self.objective.rehearse(rows, min(count, len(rows)), floor)
        slack = self.objective.slack[rows]
        found = gains[np.arange(len(picks)), picks]
        least = found - slack[picks]
        rivals = np.count_nonzero(gains[: len(picks)] + slack >= least[:, None], axis=1)
        unproved = np.flatnonzero((rivals > 1) | (least <= floor))
        made = int(unproved[0]) if len(unproved) else len(picks)
        self._upper[rows] = gains[min(made, len(gains) - 1)] + slack
        return list(zip(rows[picks[:made]].tolist(), found[:made].tolist(), strict=True))

    def best(
        self, allowed: npt.NDArray[np.bool_] | None = None, costs: FloatArray | None = None
    ) -> tuple[int, float] | None:
        """The allowed row with the largest gain (per cost) and its log gain; None where none gains anything.

        Gains are shares of what all rows together cover.
        """
        check()
        stale = self._log_upper > -np.inf
        if allowed is not None:
            stale &= allowed
        open_rows = stale.copy()
        price = np.ones(len(stale)) if costs is None else costs
        leader, lead, gain = -1, 0.0, 0.0
        while True:
            rivals = np.flatnonzero(stale & (self._upper >= lead * price))
            if not len(rivals):
                break
            rows = _largest(rivals, self._upper / price, self._block)
            gains = self._evaluate(rows)
            stale[rows] = False
            lowest = (gains - self.objective.slack[rows]) / price[rows]
            first = int(lowest.argmax())
            if lowest[first] > lead:
                leader, lead, gain = int(rows[first]), float(lowest[first]), float(gains[first])
        rivals = np.flatnonzero(open_rows & (self._upper >= lead * price))
        if leader >= 0 and len(rivals) == 1:
            return leader, self.log_gain(leader, gain)
        return self._exact_best(rivals, np.log(price))

    def refresh(self, count: int) -> FloatArray:
        """Upper bounds of all gains, ``(rows,)``, the ``count`` largest of them up to date."""
        rows = _largest(np.flatnonzero(self._upper > 0), self._upper, count)
        for start in range(0, len(rows), self._block):
            self._evaluate(rows[start : start + self._block])
        return self._upper

    def _evaluate(self, rows: IntArray) -> FloatArray:
        gains = self.objective.gains(rows)
        self._upper[rows] = np.minimum(self._upper[rows], gains + self.objective.slack[rows])
        return gains

    def log_gain(self, row: int, gain: float) -> float:
        """The log of a gain by the screen, worked out exactly where rounding may matter (``ROUGH``)."""
        if self.objective.slack[row] < ROUGH * gain:
            return math.log(gain)
        return float(self.objective.log_gains(np.array([row]))[0])

    def _exact_best(self, rivals: IntArray, log_price: FloatArray) -> tuple[int, float] | None:
        """The best of a few rows by exact gains, lazily."""
        with np.errstate(divide="ignore"):
            bound = np.minimum(self._log_upper[rivals], np.log(self._upper[rivals])) - log_price[rivals]
        order = rivals[np.argsort(-bound, kind="stable")]
        bound = np.sort(-bound)
        best = -np.inf
        done: list[IntArray] = []
        start, size = 0, 4
        while start < len(order) and -bound[start] >= best - TIE:
            check()
            rows = order[start : start + size]
            self._log_upper[rows] = self.objective.log_gains(rows)
            best = max(best, float((self._log_upper[rows] - log_price[rows]).max()))
            done.append(rows)
            start, size = start + size, min(2 * size, max(16, self._block // 4))
        if best == -np.inf:
            return None
        seen = np.concatenate(done)
        keys = self._log_upper[seen] - log_price[seen]
        level = seen[keys >= best - max(TIE, 1e-15 * abs(best))]
        winner = int(level[np.lexsort((level, -self._relevance[level]))[0]])
        return winner, float(self._log_upper[winner])


def _largest(rows: IntArray, values: FloatArray, count: int) -> IntArray:
    """Those of ``rows`` with the ``count`` largest values, in no particular order."""
    if count >= len(rows):
        return rows
    return rows[np.argpartition(values[rows], len(rows) - count)[-count:]]
