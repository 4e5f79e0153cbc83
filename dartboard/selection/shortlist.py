"""Selection from a few rows of the kernel, where a few targets carry nearly all the weight.

The kernel is symmetric and nowhere above 1. Its rows S of the heaviest targets, ``(m, n)`` instead of
``(n, n)``, tell the gain of a candidate in S in full, and that of any other candidate c to within the
weight that lies outside S:

    gain(c)  <=  Σ_{t∈S} w_t max(0, K[t,c] - m_t)  +  Σ_{t∉S} w_t.

The walk is made on S alone. It stands if no candidate outside S can have been ahead at any of its picks;
those that can have been join S, and the walk is made again. What it reports is no estimate: the rows of
the picks are complete. Where S would grow too large to save anything, all rows are walked instead.

The default σ mostly makes weights that steep: of 1,000 candidates for real questions, 99.99 % of the weight
lies on 13 to 68 (medians of four data sets; in a fifth, where nearly every passage repeats another, on
nearly all). At σ = .09 it is spread over nearly all in every set, and nothing is tried here.
"""

from dataclasses import dataclass

import numpy as np

from dartboard.selection import dense
from dartboard.selection.compiled import compiled
from dartboard.selection.coverage import VectorKernel
from dartboard.selection.states import SMALLEST, Answer
from dartboard.types import FloatArray, IntArray

_FEWEST = 256
"""A smaller kernel is cheaper to make than to think about."""

_LARGEST_SHARE = 0.3
"""More rows than this share of all cost as much as half of a symmetric matrix."""

_ROUNDS = 4
_CAUTION = 1.0 + 1e-6
"""Sums of float32 weights may be off by that factor."""


def answer(
    kernel: VectorKernel, log_weights: FloatArray, first: int, count: int, size: int, stop_share: float
) -> Answer | None:
    """The walk of up to ``count`` picks from row ``first`` on, explained; None where few rows prove nothing.

    The targets are the kernel's rows. ``size`` is that of the sets which the bound is about.
    """
    n = len(log_weights)
    if n < _FEWEST or 8 * count > n:
        return None
    order = np.argsort(-log_weights, kind="stable")
    weights = np.exp(log_weights[order] - log_weights[order[0]])
    # The last pick will gain about as much as a target of its rank weighs: the rest must not matter to it.
    few = _until(weights, float(weights[3 * count]) / 8.0, at_least=2 * count)
    place = int((order == first).nonzero()[0][0])
    if max(few, place) >= _LARGEST_SHARE * n:
        return None
    board = _Board(kernel.subset(order, None), weights)
    newcomers = np.arange(max(few, place + 1))
    for _ in range(_ROUNDS):
        if len(board.rows) + len(newcomers) > _LARGEST_SHARE * n:
            return None
        board.admit(newcomers)
        trail = board.walk(place, count, stop_share)
        if trail is None:
            return None
        newcomers = board.rivals(trail)
        if not len(newcomers):
            return board.explained(trail, order, size)
    return None


@dataclass(slots=True)
class _Trail:
    """A walk on the board: picks are places among its rows; ``levels`` is the least that each gained.

    ``ceilings`` is the most that any row, on the board or not, may still gain after the last pick.
    """

    picks: IntArray
    gains: FloatArray
    levels: FloatArray
    covered: FloatArray
    ceilings: FloatArray


class _Board:
    """Complete rows of the kernel for some candidates; candidates stand in order of weight."""

    def __init__(self, kernel: VectorKernel, weights: FloatArray) -> None:
        self.rows = np.empty(0, dtype=np.intp)
        self._kernel = kernel
        self._exact_weights = weights
        self._weights: FloatArray = weights.astype(kernel.vectors.dtype)
        self._board: FloatArray = np.empty((0, len(weights)), self._weights.dtype)
        self._rounding = self._weights.dtype.type(kernel.rounding)

    def admit(self, newcomers: IntArray) -> None:
        """Complete the rows of more candidates."""
        self.rows = np.concatenate((self.rows, newcomers))
        self._board = np.concatenate((self._board, self._kernel.plain(newcomers)))
        self._outside = np.ones(len(self._weights), dtype=bool)
        self._outside[self.rows] = False
        self._beyond = _CAUTION * float(self._exact_weights[self._outside].sum())
        self._known = self._weights[self.rows]
        self._of_known = self._known @ self._board
        self._alone = self._board @ self._weights

    def walk(self, first: int, count: int, stop_share: float) -> _Trail | None:
        """The walk from row ``first`` on among the rows of the board; None where a pick is unclear."""
        board, weights, smallest = self._board, self._weights, SMALLEST[self._weights.dtype]
        slack = self._alone * self._rounding
        picks, gains = np.zeros(count, dtype=np.intp), np.empty(count)
        picks[0] = first
        gains[0] = self._alone[first]
        if gains[0] - slack[first] < smallest:
            return None
        stop_below = stop_share * gains[0] if stop_share > 0.0 else -np.inf
        covered, bounds = board[first].copy(), self._alone + slack
        bounds[first] = -np.inf
        engine = compiled() or dense
        made = engine.walk(board, weights, covered, bounds, slack, smallest, stop_below, picks[1:], gains[1:])
        if made < 0:
            return None
        dense.refresh(board, weights, covered, bounds, slack, bounds.argsort()[-dense.TIGHT :])
        picks, gains = picks[: made + 1], gains[: made + 1]
        levels = gains - slack[picks]
        if made + 1 < count:
            levels = np.append(levels, stop_below)
        ceilings = np.empty_like(weights)
        ceilings[self.rows] = bounds
        return _Trail(picks, gains, levels, covered, ceilings)

    def rivals(self, trail: _Trail) -> IntArray:
        """Candidates outside the board that can have been ahead at a pick; completes the ceilings."""
        lowest = float(trail.levels[1:].min(initial=np.inf))
        if self._beyond > lowest / 2.0:
            others: IntArray = self._outside.nonzero()[0]
            return others[: max(1, _until(self._exact_weights[others], lowest / 4.0))]
        ceilings = self._ceilings(np.where(self._outside, self._of_known, -np.inf), slice(None))
        reached = np.maximum.accumulate(self._board[np.ix_(trail.picks, self.rows)], axis=0)
        step, judged = 1, 0
        while len(behind := (trail.levels[step:] <= ceilings.max()).nonzero()[0]):
            step += int(behind[0])
            if step == judged:
                return np.flatnonzero(ceilings >= trail.levels[step])
            some = (ceilings >= lowest).nonzero()[0]
            ceilings[some] = self._gain_at_most(some, reached[step - 1])
            judged = step
        some = ceilings.argsort()[-dense.TIGHT :]
        some = some[self._outside[some]]
        ceilings[some] = self._gain_at_most(some, reached[-1])
        trail.ceilings[self._outside] = ceilings[self._outside]
        return np.empty(0, dtype=np.intp)

    def explained(self, trail: _Trail, order: IntArray, size: int) -> Answer:
        """The answer of a walk that stands, in the numbers that rows had before they were ordered."""
        total = float(self._exact_weights.sum())
        alone = self._ceilings(self._of_known, slice(None))
        alone[self.rows] = self._alone * (1 + self._rounding)
        owners = self._board[trail.picks].argmax(axis=0)
        owners[trail.covered < dense.HALF] = -1
        of_row = np.empty_like(owners)
        of_row[order] = owners
        return Answer(
            order[self.rows[trail.picks]],
            trail.gains / total,
            of_row,
            dense.sum_of_largest(alone, size) / total,
            dense.sum_of_largest(trail.ceilings, size) / total,
        )

    def _gain_at_most(self, candidates: IntArray, reached: FloatArray) -> FloatArray:
        """What candidates outside may gain at most where the board's targets are covered by ``reached``."""
        rise = self._board[:, candidates]
        rise -= reached[:, None]
        np.maximum(rise, 0.0, out=rise)
        return self._ceilings(self._known @ rise, candidates)

    def _ceilings(self, gains: FloatArray, candidates: IntArray | slice) -> FloatArray:
        """The most that gains on the board's targets may be on all targets, given rounding."""
        ceilings: FloatArray = gains + (self._rounding * self._of_known[candidates] + self._beyond)
        return ceilings


def _until(weights: FloatArray, remainder: float, at_least: int = 0) -> int:
    """How many of the weights, heaviest first, leave no more than ``remainder`` to the others."""
    left = weights[::-1].cumsum()[::-1]
    return max(at_least, int(np.searchsorted(-left, -remainder)))
