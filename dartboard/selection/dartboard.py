"""Dartboard: the set of guesses that most probably lands on what the query means (arXiv 2407.12101).

The first pick is the most probable target; each further pick is the candidate with the largest gain
(:mod:`dartboard.selection.greedy`). Under a token budget the first pick, too, is chosen by gain, and the
better of two walks is kept, one by gain and one by gain per token: together they reach at least
½(1 - 1/e) of the best set within the budget (Leskovec et al., 2007).
"""

from dataclasses import dataclass

import numpy as np

from dartboard.deadline import check
from dartboard.selection import shortlist
from dartboard.selection.coverage import VectorKernel
from dartboard.selection.explain import explain, explain_answer
from dartboard.selection.greedy import State, Uncertain, Walk
from dartboard.selection.limits import Gate, Limits
from dartboard.selection.pool import Pool
from dartboard.selection.referee import Referee
from dartboard.selection.result import Selection
from dartboard.selection.states import LinearState
from dartboard.types import FloatArray, IntArray


@dataclass(frozen=True, slots=True)
class Dartboard:
    """Greedy selection by gain. σ belongs to the pool."""

    name = "dartboard"

    def select(self, pool: Pool, limits: Limits) -> Selection:
        """The picks of one query."""
        with np.errstate(under="ignore"):  # what underflows is not proved, and worked out otherwise
            return self._select(limits.apply(pool).without_copies(), limits)

    def _select(self, pool: Pool, limits: Limits) -> Selection:
        referee = Referee(pool)
        start = _start(pool, limits, referee)
        if start is not None and isinstance(pool.kernel, VectorKernel):
            found = shortlist.answer(pool.kernel, pool.log_weights, *start)
            if found is not None:
                return explain_answer(pool, found, method=self.name)
        for make_state in pool.states(referee):
            check()
            try:
                state = make_state()
                if start is not None and isinstance(state, LinearState):
                    found = state.answer(*start)
                    if found is not None:
                        return explain_answer(pool, found, method=self.name)
                trail = best_trail(pool, limits, state, referee)
            except Uncertain:
                continue
            return explain(pool, limits, trail.picks, trail.walk, method=self.name)
        if pool.refine is None:
            raise AssertionError("a walk on logarithms is never uncertain")
        return self._select(pool.refine(), limits)


def _start(pool: Pool, limits: Limits, referee: Referee) -> tuple[int, int, int, float] | None:
    """Where a plain walk begins, its picks at most, the size of the sets it is compared with, when it stops.

    None where the walk is not plain, or its beginning not clear.
    """
    if limits.k is None or not _is_plain(pool, limits):
        return None
    leaders = pool.leaders()
    try:
        first = most_relevant(pool, pool.relevance[leaders], leaders, referee)
    except Uncertain:
        return None
    return int(pool.row_of[first]), min(limits.k, len(pool)), limits.k, limits.min_gain_share


def _is_plain(pool: Pool, limits: Limits) -> bool:
    """Whether k distinct candidates are asked for, whichever they are, of a pool that covers itself."""
    return (
        limits.k is not None
        and limits.token_budget is None
        and limits.sources is None
        and not limits.must_include
        and pool.targets_are == "rows"
        and min(limits.k, len(pool)) <= len(pool.log_weights)
    )


def most_relevant(pool: Pool, relevance: FloatArray, leaders: IntArray, referee: Referee) -> int:
    """The most probable of the candidates ``leaders``, given the relevance of each."""
    first = int(relevance.argmax())
    if pool.rounding:
        close = relevance >= relevance[first] - pool.rounding
        if np.count_nonzero(close) > 1:
            return referee.most_relevant(leaders[close])
    return int(leaders[first])


class _Trail:
    """A walk over rows told as picks of candidates, within limits."""

    def __init__(
        self, pool: Pool, limits: Limits, state: State, referee: Referee, *, per_cost: bool = False
    ) -> None:
        self.picks: list[int] = []
        self._pool, self._limits, self._per_cost = pool, limits, per_cost
        self._gate = Gate(pool, limits)
        self._leaders = self._gate.leaders()
        self._most = len(pool) if limits.k is None else min(limits.k, len(pool))
        relevance = pool.relevance[self._leaders]
        self.walk = Walk(state, relevance)
        for candidate in pool.find(limits.must_include):
            self._pick(candidate, None)
        if not self.picks and limits.token_budget is None:
            self._pick(most_relevant(pool, relevance, self._leaders, referee), None)
        if self._gate.selective or not self.picks:
            while len(self.picks) < self._most and self._step():
                pass
        else:
            self._run()
        if limits.min_gain_share == 0.0 and (limits.token_budget is None or pool.aside):
            self._fill()

    def covered(self) -> float:
        """The share of the pool's targets that the picks cover."""
        return float(self.walk.state.shares(np.array(self.walk.gains)).sum())

    def _pick(self, candidate: int, gain: float | None) -> None:
        row = int(self._pool.row_of[candidate])
        if gain is None:
            self.walk.add_any(row)
        else:
            self.walk.add(row, gain)
        self._gate.admit(candidate)
        self.picks.append(candidate)

    def _run(self) -> None:
        """All further picks, where nothing closes rows on the way."""
        made = len(self.walk.picks)
        self.walk.run(self._most - made, self._limits.min_gain_share)
        for candidate in self._leaders[self.walk.picks[made:]].tolist():
            self._gate.admit(candidate)
            self.picks.append(candidate)

    def _step(self) -> bool:
        closed, costs = None, None
        if self._gate.selective:
            self._leaders = self._gate.leaders()
            closed = self._leaders < 0
            costs = self._gate.costs(self._leaders) if self._per_cost else None
        best = self.walk.best(closed, costs)
        if best is None:
            return False
        row, gain = best
        share = self._limits.min_gain_share
        if share and self.picks and gain < self.walk.state.share(self.walk.gains[0], share):
            return False
        self._pick(int(self._leaders[row]), gain)
        return True

    def _fill(self) -> None:
        """Nothing adds anything any more, but k is asked for, or a budget has room for copies set aside.

        The most relevant of the rest follow, gaining 0.
        """
        if len(self.picks) == self._most:
            return
        for candidate in self._pool.by_relevance():
            check()
            if len(self.picks) == self._most:
                return
            if self._gate.open_candidates()[candidate]:
                self._gate.admit(int(candidate))
                self.picks.append(int(candidate))


def best_trail(pool: Pool, limits: Limits, state: State, referee: Referee) -> _Trail:
    """The walk, or under a budget the better of two."""
    if limits.token_budget is None:
        return _Trail(pool, limits, state, referee)
    by_price = _Trail(pool, limits, state, referee, per_cost=True)
    state.restart()
    by_gain = _Trail(pool, limits, state, referee)
    if by_gain.covered() > by_price.covered():
        return by_gain
    state.restart()
    for row in by_price.walk.picks:
        state.absorb(row)
    return by_price
