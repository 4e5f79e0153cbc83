"""Selection from a few rows of the kernel: those of the heaviest targets.

The kernel is symmetric and nowhere above 1. Its rows S of the heaviest targets, ``(m, n)`` instead of
``(n, n)``, tell the gain of a candidate in S in full, and that of any other candidate c to within what it
covers outside S:

    gain(c)  <=  Σ_{t∈S} w_t max(0, K[t,c] - m_t)  +  Σ_{t∉S} w_t K[t,c].

The walk is made on S alone. It stands if no candidate outside S can have been ahead at any of its picks;
those that can have been join S, and the walk is made again. What it reports is no estimate: the rows of
the picks are complete. Where S would grow too large to save anything, all rows are walked instead.

Where a few targets carry nearly all the weight, the last sum is below ``Σ_{t∉S} w_t`` and is not worked out.
The default σ mostly makes weights that steep: of 1,000 candidates for real questions, 99.99 % of the weight
lies on 13 to 68 (medians of four data sets; in a fifth, where nearly every passage repeats another, on
nearly all). At σ = .09 it is spread over nearly all in every set. There the sums are worked out, once, before
any pick (:mod:`dartboard.selection.sums`): half of the kernel, of which nothing is kept.
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

_FEWEST_SUMS = 2000
"""The same where all of it has to be made, and added up."""

_MOST_PICKS = 20
"""Of more picks, one is too often too close to call, and all has been added up for nothing."""

_LARGEST_SHARE = 0.3
"""More rows than this share of all cost as much as half of a symmetric matrix."""

_LARGEST_SHARE_SUMMED = 0.5
"""The same once that half has been added up."""

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
    sorted_already = bool((log_weights[1:] <= log_weights[:-1]).all())
    order = np.arange(n) if sorted_already else np.argsort(-log_weights, kind="stable")
    weights = np.exp(log_weights[order] - log_weights[order[0]])
    # The last pick will gain about as much as a target of its rank weighs: the rest must not matter to it.
    few = _until(weights, float(weights[3 * count]) / 8.0, at_least=2 * count)
    steep = few < _LARGEST_SHARE * n
    summable = n >= _FEWEST_SUMS and count <= _MOST_PICKS and kernel.is_fast
    place = int((order == first).nonzero()[0][0])
    if place >= _LARGEST_SHARE * n or not (steep or summable):
        return None
    board = _Board(kernel if sorted_already else kernel.subset(order, None), weights)
    if steep:
        board.admit(np.arange(max(few, place + 1)))
    else:
        board.sum_up(max(6 * count, n // 6, place + 1))
    for _ in range(_ROUNDS):
        if place >= len(board.rows):
            return None
        trail = board.walk(place, count, stop_share)
        if trail is None:
            return None
        newcomers = board.rivals(trail, size)
        if not len(newcomers):
            return board.explained(trail, order, size)
        most = _LARGEST_SHARE_SUMMED if board.summed else _LARGEST_SHARE
        if len(board.rows) + len(newcomers) <= most * n:
            board.admit(newcomers)
        elif summable and not board.summed:
            board.sum_up(len(board.rows))
        else:
            return None
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


class _Complete:
    """Candidates outside the board whose rows are worked out after all, to spare another walk."""

    def __init__(self, kernel: VectorKernel, weights: FloatArray) -> None:
        self._kernel, self._weights = kernel, weights
        self._candidates = np.empty(0, dtype=np.intp)
        self._rows = np.empty((0, len(weights)), weights.dtype)
        self._slack = np.empty(0, weights.dtype)

    def has(self, candidates: IntArray) -> bool:
        """Whether any of the candidates is one of these."""
        return bool(np.isin(candidates, self._candidates).any())

    def add(self, candidates: IntArray) -> None:
        """Work out the rows of more candidates."""
        news = np.setdiff1d(candidates, self._candidates)
        rows = self._kernel.plain(news)
        slack = rows @ self._weights * self._weights.dtype.type(self._kernel.rounding)
        self._candidates = np.concatenate((self._candidates, news))
        self._rows = np.concatenate((self._rows, rows))
        self._slack = np.concatenate((self._slack, slack))

    def tighten(self, ceilings: FloatArray, covered: FloatArray, lowest: float) -> None:
        """Lower the ceilings of those above ``lowest`` to what they may gain where targets are covered."""
        high = (ceilings[self._candidates] >= lowest).nonzero()[0]
        gains = np.maximum(self._rows[high] - covered, 0.0) @ self._weights
        ceilings[self._candidates[high]] = gains + self._slack[high]


class _Board:
    """Complete rows of the kernel for some candidates; candidates stand in order of weight."""

    def __init__(self, kernel: VectorKernel, weights: FloatArray) -> None:
        self.rows = np.empty(0, dtype=np.intp)
        self._kernel = kernel
        self._exact_weights = weights
        self._weights: FloatArray = weights.astype(kernel.vectors.dtype)
        self._board: FloatArray = np.empty((0, len(weights)), self._weights.dtype)
        self._rounding = self._weights.dtype.type(kernel.rounding)
        self._sums: FloatArray | None = None

    def admit(self, newcomers: IntArray) -> None:
        """Complete the rows of more candidates."""
        self.rows = np.concatenate((self.rows, newcomers))
        self._take(np.concatenate((self._board, self._kernel.plain(newcomers))))

    def sum_up(self, count: int) -> None:
        """Work out what every candidate covers; the board is then that of the ``count`` heaviest."""
        self._sums, board = self._kernel.sums(self._weights, count)
        self.rows = np.arange(len(board))  # fewer where a panel of the kernel has fewer
        self._take(board)

    @property
    def summed(self) -> bool:
        """Whether it is known what every candidate covers."""
        return self._sums is not None

    def _take(self, board: FloatArray) -> None:
        self._board = board
        self._known = self._weights[self.rows]
        self._of_known = self._known @ board
        self._outside = np.ones(len(self._weights), dtype=bool)
        self._outside[self.rows] = False
        if self._sums is None:
            self._alone = board @ self._weights
            most = _CAUTION * float(self._exact_weights[self._outside].sum())
            self._beyond = np.full(len(self._weights), most)
        else:
            self._alone = self._sums[self.rows].astype(board.dtype)
            rounding = self._sums * float(self._rounding)
            self._beyond = np.maximum(self._sums - self._of_known, 0.0) + 2.0 * rounding

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
        engine.refresh(board, weights, covered, bounds, slack, bounds.argsort()[-dense.TIGHT :])
        picks, gains = picks[: made + 1], gains[: made + 1]
        levels = gains - slack[picks]
        if made + 1 < count:
            levels = np.append(levels, stop_below)
        ceilings = np.empty_like(weights)
        ceilings[self.rows] = bounds
        return _Trail(picks, gains, levels, covered, ceilings)

    def rivals(self, trail: _Trail, size: int) -> IntArray:
        """Candidates outside the board that can have been ahead at a pick; completes the ceilings."""
        lowest = float(trail.levels[1:].min(initial=np.inf))
        if not self.summed and self._beyond[0] > lowest / 2.0:
            others: IntArray = self._outside.nonzero()[0]
            return others[: max(1, _until(self._exact_weights[others], lowest / 4.0))]
        ceilings = self._ceilings(self._of_known, slice(None))
        ceilings[self.rows] = -np.inf
        if ceilings.max() < min(lowest, np.partition(trail.ceilings[self.rows], -size)[-size]):
            trail.ceilings[self._outside] = ceilings[self._outside]
            return np.empty(0, dtype=np.intp)
        covered = np.maximum.accumulate(self._board[trail.picks], axis=0)
        complete = _Complete(self._kernel, self._weights)
        step, judged = 1, 0
        while len(behind := (trail.levels[step:] <= ceilings.max()).nonzero()[0]):
            step += int(behind[0])
            some = (ceilings >= lowest).nonzero()[0]
            if step != judged:
                ceilings[some] = self._gain_at_most(some, covered[step - 1])
                complete.tighten(ceilings, covered[step - 1], lowest)
                judged = step
                continue
            close: IntArray = (ceilings >= trail.levels[step]).nonzero()[0]
            if complete.has(close):
                return close
            if 16 * len(some) > len(ceilings):
                some = np.union1d(close, some[self._gain_at_most(some, covered[-1]) >= lowest])
            complete.add(some)
            judged = 0
        some = ceilings.argsort()[-dense.TIGHT :]
        some = some[self._outside[some]]
        ceilings[some] = np.minimum(ceilings[some], self._gain_at_most(some, covered[-1]))
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

    def _gain_at_most(self, candidates: IntArray, covered: FloatArray) -> FloatArray:
        """What candidates outside may gain at most where targets are covered already."""
        machine = compiled()
        if machine and self._board.dtype == np.float32:
            gains = machine.gain_at_most(self._board, self._known, covered[self.rows], candidates)
            return self._ceilings(gains, candidates)
        rise = self._board[:, candidates]
        rise -= covered[self.rows, None]
        np.maximum(rise, 0.0, out=rise)
        return self._ceilings(self._known @ rise, candidates)

    def _ceilings(self, gains: FloatArray, candidates: IntArray | slice) -> FloatArray:
        """The most that gains on the board's targets may be on all targets, given rounding."""
        slack = self._rounding * self._of_known[candidates] + self._beyond[candidates]
        ceilings: FloatArray = gains + slack
        return ceilings


def _until(weights: FloatArray, remainder: float, at_least: int = 0) -> int:
    """How many of the weights, heaviest first, leave no more than ``remainder`` to the others."""
    left = weights[::-1].cumsum()[::-1]
    return max(at_least, int(np.searchsorted(-left, -remainder)))
