"""Lazy greedy maximisation of a submodular objective, with every pick certified.

The objective is submodular: a gain never grows while the set grows. So an old gain is an upper bound of
today's, and only the rows whose bound could still win are evaluated again (Minoux, 1978).

The screen's gain g of a row is off by at most its ``slack``: the true gain lies in [g - slack, g + slack]. A
row is picked if its lower end is above the upper end of every other row. Where no row's is, those that could
win are compared by their exact gains. Exact gains that differ by less than ``TIE`` of themselves are a tie,
which goes to the more relevant row, then to the lower one. ``slack`` includes ``TIE``, so that the screen
decides no tie. When to stop (``min_gain_share``) goes by gains that are exact to within ``ROUGH``.
"""

import math

import numpy as np
import numpy.typing as npt

from dartboard.deadline import check
from dartboard.selection.kernel_matrix import CACHED
from dartboard.selection.objective import TIE, Objective
from dartboard.types import FloatArray, IntArray

ROUGH = 0.01


class LazyGreedy:
    """Greedy picks of rows. ``relevance``, ``(rows,)``, breaks ties."""

    def __init__(self, objective: Objective, relevance: FloatArray) -> None:
        self.objective = objective
        self.log_gains: list[float] = []
        self.covered_before: FloatArray | None = None
        """``(T,)`` how well the targets were covered before the first pick, where something was absorbed."""
        self._relevance = relevance
        self._upper = objective.alone + objective.slack  # never below a row's gain; falls as picks are made
        self._log_upper = np.full(len(relevance), np.inf)  # an exact log gain once; inf: none yet; -inf: done
        self._block = max(16, CACHED // objective.targets)

    def absorb(self, rows: list[int]) -> None:
        """Count rows as covered that are no picks: the reader has them already. Before the first pick."""
        for row in rows:
            self.objective.add(row)
            self._upper[row] = 0.0
            self._log_upper[row] = -np.inf
        if rows:
            self.covered_before = self.objective.covered.copy()

    @property
    def share_before(self) -> float:
        """The share of the probable targets that was covered before the first pick."""
        if self.covered_before is None:
            return 0.0
        return min(float(self.covered_before @ self.objective.weights), 1.0)

    @property
    def first_log_gain(self) -> float | None:
        """What later gains are compared with: the first gain, or what it was before rows were absorbed."""
        if self.covered_before is not None:
            return float(np.log(self.objective.alone.max()))
        return self.log_gains[0] if self.log_gains else None

    def add(self, row: int, log_gain: float | None = None) -> None:
        """Pick ``row``; its gain is worked out where it is not given."""
        if log_gain is None:
            log_gain = self.log_gain(row, float(self.objective.gains(np.array([row]))[0]))
        self.log_gains.append(log_gain)
        self.objective.add(row)
        self._upper[row] = 0.0
        self._log_upper[row] = -np.inf

    def best_block(self, count: int, least: float) -> list[tuple[int, float]]:
        """The next picks and their gains by the screen, up to ``count``: as many as it certifies at one go.

        The rows with the largest bounds are picked from by the screen alone, while a pick gains more than
        ``least`` and than any other row can. Then these are certified, up to the first that fails.
        """
        check()
        rows = _largest(np.arange(len(self._upper)), self._upper, self._block)
        floor = float(np.delete(self._upper, rows).max(initial=least))
        picks, gains = self.objective.rehearse(rows, min(count, len(rows)), floor)
        slack = self.objective.slack[rows]
        found = gains[np.arange(len(picks)), picks]
        lower = found - slack[picks]
        rivals = np.count_nonzero(gains[: len(picks)] + slack >= lower[:, None], axis=1)
        unproved = np.flatnonzero((rivals > 1) | (lower <= floor))
        made = int(unproved[0]) if len(unproved) else len(picks)
        self._upper[rows] = gains[min(made, len(gains) - 1)] + slack
        return list(zip(rows[picks[:made]].tolist(), found[:made].tolist(), strict=True))

    def best(
        self, allowed: npt.NDArray[np.bool_] | None = None, costs: FloatArray | None = None
    ) -> tuple[int, float] | None:
        """The allowed row of the largest gain (per cost) and its log gain; None where none gains anything."""
        check()
        open_rows = self._log_upper > -np.inf
        if allowed is not None:
            open_rows &= allowed
        unevaluated = open_rows.copy()
        costs = np.ones(len(open_rows)) if costs is None else costs
        winner, lower, gain = -1, 0.0, 0.0  # the row with the largest lower end so far
        while len(rivals := np.flatnonzero(unevaluated & (self._upper >= lower * costs))):
            rows = _largest(rivals, self._upper / costs, self._block)
            gains = self._evaluate(rows)
            unevaluated[rows] = False
            lowers = (gains - self.objective.slack[rows]) / costs[rows]
            first = int(lowers.argmax())
            if lowers[first] > lower:
                winner, lower, gain = int(rows[first]), float(lowers[first]), float(gains[first])
        rivals = np.flatnonzero(open_rows & (self._upper >= lower * costs))
        if winner >= 0 and len(rivals) == 1:
            return winner, self.log_gain(winner, gain)
        return self._exact_best(rivals, np.log(costs))

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

    def _exact_best(self, rivals: IntArray, log_costs: FloatArray) -> tuple[int, float] | None:
        """The best of a few rows by exact gains, lazily."""
        with np.errstate(divide="ignore"):
            upper = np.minimum(self._log_upper[rivals], np.log(self._upper[rivals])) - log_costs[rivals]
        order = np.argsort(-upper, kind="stable")
        rivals, upper = rivals[order], upper[order]
        best, done, size = -np.inf, 0, 4
        while done < len(rivals) and upper[done] >= best - max(TIE, 1e-15 * abs(best)):
            check()
            rows = rivals[done : done + size]
            self._log_upper[rows] = self.objective.log_gains(rows)
            best = max(best, float((self._log_upper[rows] - log_costs[rows]).max()))
            done, size = done + size, min(2 * size, max(16, self._block // 4))
        if best == -np.inf:
            return None
        rows = rivals[:done]
        tied = rows[self._log_upper[rows] - log_costs[rows] >= best - max(TIE, 1e-15 * abs(best))]
        winner = int(tied[np.lexsort((tied, -self._relevance[tied]))[0]])
        return winner, float(self._log_upper[winner])


def _largest(rows: IntArray, values: FloatArray, count: int) -> IntArray:
    """Those of ``rows`` with the ``count`` largest values, in no particular order."""
    if count >= len(rows):
        return rows
    return rows[np.argpartition(values[rows], len(rows) - count)[-count:]]
