"""Dartboard: the set of guesses that most probably contains what the query is after (arXiv 2407.12101).

With target weights ``w_t = P(t|q)`` and kernel ``K[c,t]``, the objective of a set G and the marginal gain of
one more candidate are

    f(G) = Σ_t w_t · max_{g∈G} K[g,t]
    gain(c) = Σ_t w_t · max(0, K[c,t] - m_t),        m_t = max_{g∈G} K[g,t].

The first pick is the most probable target; each further pick has the largest gain. A gain never grows while
the set grows, so an old one is an upper bound, and only rows whose bound could still win are evaluated again
(Minoux, 1978).

Gains are plain double-precision numbers, off by at most ``_ROUNDING`` of what the row covers alone. Where
that leaves several rows, these are compared on logarithms, which do not underflow:

    log gain(c) = logsumexp_{t: P > M} (log w_t + P[c,t] + log(1 - exp(M_t - P[c,t]))),    P = log K.

Log gains that differ by less than ``TIE`` are equal, and the more relevant row wins, then the lower one.

Where no gain reaches the share ``relevance_below`` of P(t|q), nothing new is left, and relevance decides.

Under a token budget the first pick, too, is chosen by gain, and the better of two greedy runs is kept, one by
gain and one by gain per token: together they reach at least ½(1 - 1/e) of the best set within the budget
(Leskovec et al., 2007), where no other limit applies and ``relevance_below`` is 0.
"""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dartboard.deadline import check
from dartboard.selection.kernel import log_sum_exp
from dartboard.selection.limits import Limits, LimitTracker
from dartboard.selection.pool import Pool
from dartboard.selection.result import HALF, Selection, explain
from dartboard.types import FloatArray, IntArray

TIE = 1e-9
"""Gains that differ by less than this share of themselves are equal."""

_ROUNDING = 1e-13
_ROUGH = 1e-4  # a gain whose error may be a larger share of it is worked out on logarithms
_REPEATED = 0.99  # a candidate that is covered better than this is not picked for its relevance
_BLOCK = 32_768  # kernel entries that are worked on together: they stay in the processor's cache


class Objective:
    """Gains of rows given the picks so far, as shares of what all rows together cover.

    ``relevance``, ``(rows,)``, breaks ties.
    """

    def __init__(
        self, log_weights: FloatArray, log_kernel: FloatArray, relevance: FloatArray | None = None
    ) -> None:
        peaks = log_kernel.max(axis=0)  # 0 where every target is a candidate
        if peaks.any():
            log_kernel = log_kernel - np.where(peaks > -np.inf, peaks, 0.0)
        reach = log_weights + peaks
        total = float(log_sum_exp(reach[None])[0])
        self._log_kernel = log_kernel
        self._log_weights: FloatArray = reach - total if total > -np.inf else np.full(len(reach), -np.inf)
        self.weights: FloatArray = np.exp(self._log_weights)
        """``(T,)`` the targets' probabilities, which sum to 1."""
        self.kernel: FloatArray = np.exp(log_kernel)
        """``(rows, T)`` how well rows cover each target, as a share of its best."""
        self.alone: FloatArray = self.kernel @ self.weights
        """``(rows,)`` the objective of each row by itself."""
        self.covered: FloatArray = np.zeros(len(reach))
        """``(T,)`` how well the picks cover each target."""
        self._log_covered = np.full(len(reach), -np.inf)
        self._fuzz = _ROUNDING * self.alone + len(reach) * np.finfo(np.float64).tiny
        self._upper = self.alone.copy()  # gains that were right once: never below today's, but for _fuzz
        self._log_upper = np.full(len(log_kernel), np.inf)
        self._open = np.ones(len(log_kernel), dtype=bool)
        self._relevance = np.zeros(len(log_kernel)) if relevance is None else relevance
        self._block = max(16, _BLOCK // len(reach))

    def add(self, row: int) -> None:
        """Count ``row`` as covered."""
        np.maximum(self.covered, self.kernel[row], out=self.covered)
        np.maximum(self._log_covered, self._log_kernel[row], out=self._log_covered)
        self._open[row] = False
        self._upper[row] = 0.0

    def log_gains(self, rows: IntArray) -> FloatArray:
        """``(len(rows),)`` log of the gains, exact at any magnitude."""
        block = self._log_kernel[rows]
        better = block > self._log_covered
        below = np.subtract(self._log_covered, block, out=np.full_like(block, -1.0), where=better)
        rise = self._log_weights + np.log(-np.expm1(below))
        return log_sum_exp(np.where(better, block + rise, -np.inf))

    def log_gain(self, row: int) -> float:
        """The log gain of one row."""
        self._evaluate(np.array([row]))
        return self._log_gain(row)

    def best(
        self,
        allowed: npt.NDArray[np.bool_] | None = None,
        costs: FloatArray | None = None,
        least: float = 0.0,
    ) -> tuple[int, float] | None:
        """The allowed row that gains most (per cost), and its log gain; None where none gains ``least``."""
        rivals = self._open if allowed is None else self._open & allowed
        while True:
            check()
            able = rivals if not least else rivals & (self._upper + self._fuzz >= least)
            found = self._best(able, costs)
            if found is None or not least or found[1] >= math.log(least):
                return found
            if costs is None:
                return None
            rivals = rivals.copy()  # worth the most per cost, and too little: the next one
            rivals[found[0]] = False

    def open_rows(self) -> npt.NDArray[np.bool_]:
        """``(rows,)`` which rows are not covered by :meth:`add`; a copy."""
        return self._open.copy()

    def upper_bounds(self, count: int) -> FloatArray:
        """Upper bounds of all gains, ``(rows,)``, the ``count`` largest of them up to date."""
        rows = _largest(np.flatnonzero(self._open), self._upper, count)
        for start in range(0, len(rows), self._block):
            self._evaluate(rows[start : start + self._block])
        return self._upper + np.where(self._open, self._fuzz, 0.0)

    def _best(self, rivals: npt.NDArray[np.bool_], costs: FloatArray | None) -> tuple[int, float] | None:
        if len(self._upper) <= self._block:
            self._evaluate(None)
        else:
            self._evaluate_lazily(rivals, costs)
        worth, slack = self._upper, self._fuzz + TIE * self._upper
        if costs is not None:
            worth, slack = worth / costs, slack / costs
        worth = np.where(rivals, worth, -1.0)
        top = int(worth.argmax())
        level = np.flatnonzero(worth + slack >= worth[top] - slack[top])
        if len(level) == 1 and worth[top] > 0.0:
            return top, self._log_gain(top)
        level = level[rivals[level]]
        return self._exact_best(level, costs) if len(level) else None

    def _evaluate_lazily(self, rivals: npt.NDArray[np.bool_], costs: FloatArray | None) -> None:
        """Bring the gains up to date of those rows that could win."""
        price = 1.0 if costs is None else costs
        stale, best = rivals.copy(), 0.0
        while len(rows := np.flatnonzero(stale & ((self._upper + self._fuzz) / price >= best))):
            rows = _largest(rows, self._upper / price, self._block)
            self._evaluate(rows)
            stale[rows] = False
            best = max(best, float(((self._upper - self._fuzz) / price)[rows].max()))

    def _evaluate(self, rows: IntArray | None) -> None:
        """Gains of some rows, or of all open ones, as they are now."""
        # Not max(K, covered) @ w - covered @ w: it subtracts two totals, and small gains would vanish.
        room = self.kernel - self.covered if rows is None else self.kernel[rows] - self.covered
        np.maximum(room, 0.0, out=room)
        if rows is None:
            np.matmul(room, self.weights, out=self._upper)
            self._upper[~self._open] = 0.0
        else:
            self._upper[rows] = np.where(self._open[rows], room @ self.weights, 0.0)

    def _log_gain(self, row: int) -> float:
        gain = float(self._upper[row])
        if self._fuzz[row] < _ROUGH * gain:
            return math.log(gain)
        return float(self.log_gains(np.array([row]))[0])

    def _exact_best(self, rivals: IntArray, costs: FloatArray | None) -> tuple[int, float] | None:
        """The best of a few rows by exact gains; those with the largest bounds first."""
        log_costs = np.zeros(len(self._upper)) if costs is None else np.log(costs)
        upper = np.minimum(self._log_upper, np.log(self._upper + self._fuzz))[rivals] - log_costs[rivals]
        order = np.argsort(-upper, kind="stable")
        rivals, upper = rivals[order], upper[order]
        found = np.full(len(rivals), -np.inf)
        best, done, size = -math.inf, 0, 16
        while done < len(rivals) and upper[done] >= best - _tie(best):
            check()
            rows = rivals[done : done + size]
            self._log_upper[rows] = self.log_gains(rows)
            found[done : done + size] = self._log_upper[rows] - log_costs[rows]
            best = max(best, float(found[done : done + size].max()))
            done, size = done + size, min(2 * size, 64)
        if best == -math.inf:
            return None
        tied = rivals[found >= best - _tie(best)]
        winner = int(tied[np.lexsort((tied, -self._relevance[tied]))[0]])
        return winner, float(self._log_upper[winner])


def _tie(log_gain: float) -> float:
    return max(TIE, 1e-15 * abs(log_gain))


def _largest(rows: IntArray, values: FloatArray, count: int) -> IntArray:
    """Those of ``rows`` with the ``count`` largest values, in no particular order."""
    if count >= len(rows):
        return rows
    return rows[np.argpartition(values[rows], len(rows) - count)[-count:]]


@dataclass(frozen=True, slots=True)
class Dartboard:
    """Greedy selection by marginal gain, the default method. It has no parameters: σ belongs to the pool.

    Example:
        >>> from dartboard import select
        >>> vectors = [[1.0, 0.1], [1.0, 0.11], [0.5, 1.0]]
        >>> select(vectors, [1.0, 0.4], k=2, method=Dartboard(), sigma=0.1).indices
        array([1, 2])
    """

    name = "dartboard"

    @np.errstate(all="ignore")
    def select(self, pool: Pool, limits: Limits) -> Selection:
        """Select from one query's pool.

        Args:
            pool: the candidates of the query.
            limits: k, budget, caps.

        Returns:
            The picks in order, with gains and coverage.

        Raises:
            ConfigError: the limits do not fit the pool.
        """
        pool = limits.apply(pool).without_near_duplicates()
        run = _GreedyRun(pool, limits)
        if limits.token_budget is not None:
            per_token = _GreedyRun(pool, limits, per_token=True)
            run = per_token if per_token.covered() > run.covered() + 1e-6 else run
        return explain(
            pool,
            limits,
            run.picks,
            run.objective,
            log_gains=run.log_gains,
            by_relevance=run.by_relevance,
            seen_cover=run.seen_cover,
            method=self.name,
        )


class _GreedyRun:
    """Greedy picks of candidates within limits. A row's candidate is the most relevant one still allowed."""

    def __init__(self, pool: Pool, limits: Limits, *, per_token: bool = False) -> None:
        self._pool, self._limits, self._per_token = pool, limits, per_token
        self._tracker = LimitTracker(pool, limits)
        self._leaders = self._tracker.leaders()
        relevance = self._tracker.row_relevance(pool.relevance)
        self.objective = Objective(pool.log_weights, pool.log_kernel, relevance)
        self.picks: list[int] = []
        self.log_gains: list[float] = []
        self.by_relevance: list[bool] = []
        self._turned = False  # whether no gain reaches relevance_below any more
        for row in (seen := pool.rows_of(limits.seen)):
            self.objective.add(row)
        self.seen_cover = self.objective.covered.copy() if seen else None
        self._first = float(np.log(self.objective.alone.max())) if seen else None
        questions = 1 if pool.questions is None else len(pool.questions)
        self._least = limits.relevance_below / questions
        for candidate in pool.find(limits.must_include):
            self._pick(candidate)
        if not self.picks and limits.token_budget is None and not limits.seen:
            self._pick(int(self._leaders[np.argmax(relevance)]))
        most = limits.most(len(pool))
        while len(self.picks) < most and (self._pick_by_gain() or self._pick_by_relevance()):
            pass
        if limits.token_budget is None and limits.min_gain_share == 0.0 and not limits.seen:
            self._fill(most)

    def covered(self) -> float:
        """The share of the probable targets that the picks cover."""
        return float(np.exp(self.log_gains).sum())

    def _pick(self, candidate: int, log_gain: float | None = None, *, by_relevance: bool = False) -> None:
        row = int(self._pool.row_of[candidate])
        if log_gain is None:
            log_gain = self.objective.log_gain(row)
        if self._first is None:
            self._first = log_gain
        self.log_gains.append(log_gain)
        self.by_relevance.append(by_relevance)
        self.objective.add(row)
        self._tracker.admit(candidate)
        self.picks.append(candidate)

    def _allowed(self) -> npt.NDArray[np.bool_] | None:
        """``(rows,)`` which rows the limits leave open; None for all."""
        if not self._tracker.selective:
            return None
        self._leaders = self._tracker.leaders()
        allowed: npt.NDArray[np.bool_] = self._leaders >= 0
        return allowed

    def _pick_by_gain(self) -> bool:
        if self._turned:
            return False
        allowed = self._allowed()
        costs = self._tracker.costs(self._leaders) if self._per_token else None
        best = self.objective.best(allowed, costs, self._least)
        if best is None or self._limits.stops(best[1], self._first):
            self._turned = not self._tracker.selective  # gains only fall
            return False
        self._pick(int(self._leaders[best[0]]), best[1])
        return True

    def _pick_by_relevance(self) -> bool:
        """Once no gain reaches ``relevance_below``: the most relevant row that repeats nothing.

        It must not be all but the same as a pick, nor represented by what was seen. Where only such rows are
        left, they go on by gain; under a token budget none is picked.
        """
        if not self._least:
            return False
        limits, allowed, best = self._limits, self._allowed(), None
        if limits.min_gain_share or limits.token_budget or limits.seen or self._pool.target_of is None:
            best = self.objective.best(allowed)  # who gains nothing at all is not picked
            if best is None or limits.stops(best[1], self._first):
                return False
        left = self.objective.open_rows() if allowed is None else self.objective.open_rows() & allowed
        if self._pool.target_of is not None:
            own = self._pool.target_of[self._leaders]
            left &= self.objective.covered[own] <= _REPEATED
            if self.seen_cover is not None:
                left &= self.seen_cover[own] < HALF
        if limits.token_budget is not None and limits.relevance_floor is not None:
            left &= self._pool.similarity[self._leaders] >= limits.relevance_floor
        if left.any():
            row = int(np.where(left, self._pool.relevance[self._leaders], -np.inf).argmax())
            self._pick(int(self._leaders[row]), by_relevance=True)
            return True
        best = best or self.objective.best(allowed)
        if limits.token_budget is not None or best is None:
            return False
        self._pick(int(self._leaders[best[0]]), best[1])
        return True

    def _fill(self, most: int) -> None:
        """Up to k, where nothing gains anything any more, the most relevant of the rest follow, gaining 0."""
        for candidate in self._pool.by_relevance():
            check()
            if len(self.picks) == most:
                return
            if self._tracker.open_candidates()[candidate]:
                self._tracker.admit(int(candidate))
                self.picks.append(int(candidate))
                self.log_gains.append(-math.inf)
                self.by_relevance.append(True)
