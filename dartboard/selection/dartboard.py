"""Dartboard: the set of guesses that most probably contains what the query is after (arXiv 2407.12101).

The first pick is the most probable target; each further pick is the candidate with the largest marginal gain
(:mod:`dartboard.selection.objective`, :mod:`dartboard.selection.greedy`).

Under a token budget the first pick, too, is chosen by gain, and the better of two greedy runs is kept, one by
gain and one by gain per token: together they reach at least ½(1 - 1/e) of the best set within the budget
(Leskovec et al., 2007), where no other limit applies.
"""

import math
from dataclasses import dataclass

import numpy as np

from dartboard.deadline import check
from dartboard.selection.explain import explain
from dartboard.selection.greedy import LazyGreedy
from dartboard.selection.limits import Limits, LimitTracker
from dartboard.selection.objective import Objective
from dartboard.selection.pool import Pool
from dartboard.selection.result import Selection


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

    @np.errstate(under="ignore")
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
        return explain(pool, limits, run.picks, run.greedy, method=self.name)


class _GreedyRun:
    """Greedy picks of candidates within limits. A row's candidate is the most relevant one still allowed."""

    def __init__(self, pool: Pool, limits: Limits, *, per_token: bool = False) -> None:
        self._pool, self._limits, self._per_token = pool, limits, per_token
        self._tracker = LimitTracker(pool, limits)
        self._leaders = self._tracker.leaders()
        self._most = limits.most(len(pool))
        relevance = self._tracker.row_relevance(pool.relevance)
        self.greedy = LazyGreedy(Objective(pool.log_weights, pool.kernel), relevance)
        self.greedy.absorb(pool.rows_of(limits.seen))
        self.picks: list[int] = []
        for candidate in pool.find(limits.must_include):
            self._pick(candidate)
        if not self.picks and limits.token_budget is None and not limits.seen:
            self._pick(int(self._leaders[np.argmax(relevance)]))
        while len(self.picks) < self._most and (self._steps() or self._step()):
            pass
        fills = limits.token_budget is None or pool.near_copies
        fills = fills and limits.min_gain_share == 0.0 and not limits.seen
        if len(self.picks) < self._most and fills:
            self._fill()

    def covered(self) -> float:
        """The share of the probable targets that the picks cover."""
        return float(np.exp(self.greedy.log_gains).sum())

    def _pick(self, candidate: int, log_gain: float | None = None) -> None:
        self.greedy.add(int(self._pool.row_of[candidate]), log_gain)
        self._tracker.admit(candidate)
        self.picks.append(candidate)

    def _steps(self) -> bool:
        """Several picks at one go, where no limit depends on the picks before."""
        if self._tracker.selective or not self.picks:
            return False
        least = math.exp(self.greedy.first_log_gain or 0.0) * self._limits.min_gain_share
        block = self.greedy.best_block(self._most - len(self.picks), least)
        for row, gain in block:
            self._pick(int(self._leaders[row]), self.greedy.log_gain(row, gain))
        return bool(block)

    def _step(self) -> bool:
        allowed, costs = None, None
        if self._tracker.selective:
            self._leaders = self._tracker.leaders()
            allowed = self._leaders >= 0
            costs = self._tracker.costs(self._leaders) if self._per_token else None
        best = self.greedy.best(allowed, costs)
        if best is None:
            return False
        row, log_gain = best
        if self._limits.stops(log_gain, self.greedy.first_log_gain):
            return False
        self._pick(int(self._leaders[row]), log_gain)
        return True

    def _fill(self) -> None:
        """Where nothing gains anything any more, the most relevant of the rest follow, gaining 0.

        That is, up to k, or as far as the budget has room for near-duplicates.
        """
        for candidate in self._pool.by_relevance():
            check()
            if len(self.picks) == self._most:
                return
            if self._tracker.open_candidates()[candidate]:
                self._tracker.admit(int(candidate))
                self.picks.append(int(candidate))
