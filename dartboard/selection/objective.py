"""Dartboard's objective: how much of the probable targets a set of candidates covers.

With target weights ``w_t = P(t|q)`` and kernel ``K[c,t]``, the objective of a set G and the marginal gain of
one more candidate are

    f(G) = Σ_t w_t · max_{g∈G} K[g,t]
    gain(c) = Σ_t w_t · max(0, K[c,t] - m_t),        m_t = max_{g∈G} K[g,t].

Gains are computed twice. The *screen* works on plain numbers, in float32 where it can, and knows how far
rounding may have moved a gain (``slack``). Where that does not decide, the exact gain of a few rows is worked
out in float64 on logarithms, which do not underflow and cancel only between near copies:

    log gain(c) = logsumexp_{t: P > M} (log w_t + P[c,t] + log(1 - exp(M_t - P[c,t]))),    P = log K.
"""

import numpy as np

from dartboard.selection.kernel_matrix import Kernel
from dartboard.selection.kernels import log_sum_exp
from dartboard.types import FloatArray, IntArray

TIE = 1e-9
"""Gains that differ by less than this share of themselves are equal."""


class Objective:
    """Gains of rows given the picks so far, as shares of what all rows together cover."""

    def __init__(self, log_weights: FloatArray, kernel: Kernel) -> None:
        self._kernel, self._log_weights, self.targets = kernel, log_weights, len(log_weights)
        reach = log_weights + kernel.peaks
        self._log_total = float(log_sum_exp(reach[None])[0])
        weights = np.exp(reach - self._log_total) if self._log_total > -np.inf else np.zeros(len(reach))
        self._weights: FloatArray = weights.astype(kernel.dtype)
        self.alone: FloatArray = kernel.sums(self._weights).astype(np.float64)
        """``(rows,)`` the objective of each row by itself."""
        underflow = len(reach) * float(np.finfo(kernel.dtype).tiny)  # what the screen may have lost
        relative, absolute = kernel.rounding
        self.slack: FloatArray = (relative + TIE) * self.alone + absolute + underflow
        """``(rows,)`` how far rounding may have moved a gain of the screen."""
        self.picks: list[int] = []
        self.covered: FloatArray = np.zeros_like(self._weights)
        """``(T,)`` how well the picks cover each target, as a share of its best; by the screen."""
        self._log_covered = np.full(len(self._log_weights), -np.inf)
        self._log_absorbed = 0

    @property
    def weights(self) -> FloatArray:
        """``(T,)`` the targets' probabilities, which sum to 1."""
        return self._weights

    def add(self, row: int) -> None:
        """Count ``row`` among the picks."""
        self.picks.append(row)
        np.maximum(self.covered, self.rows(np.array([row]))[0], out=self.covered)

    def rows(self, rows: IntArray) -> FloatArray:
        """``(len(rows), T)`` how well rows cover each target, as a share of its best; by the screen."""
        return self._kernel.screen(rows)

    def gains(self, rows: IntArray) -> FloatArray:
        """``(len(rows),)`` gains by the screen, float64; exact to within ``slack[rows]``."""
        if not self.picks:
            return self.alone[rows]
        block = self.rows(rows)
        np.maximum(block, self.covered, out=block)
        block -= self.covered
        gains: FloatArray = (block @ self._weights).astype(np.float64)
        return gains

    def rehearse(self, rows: IntArray, count: int, floor: float) -> tuple[list[int], FloatArray]:
        """Up to ``count`` greedy picks among ``rows`` by the screen, while they gain more than ``floor``.

        None of them is added. Returns their places in ``rows``, and all gains before each pick and after the
        last, ``(picks + 1, rows)``, or one line less after ``count`` picks.
        """
        block, covered = self.rows(rows), self.covered.copy()
        room, gains = np.empty_like(block), np.empty((count, len(rows)), block.dtype)
        picks: list[int] = []
        for now in gains:
            np.maximum(block, covered, out=room)
            room -= covered
            np.matmul(room, self._weights, out=now)
            best = int(now.argmax())
            if now[best] <= floor:
                break
            picks.append(best)
            np.maximum(covered, block[best], out=covered)
        return picks, gains[: len(picks) + 1].astype(np.float64)

    def log_gains(self, rows: IntArray) -> FloatArray:
        """``(len(rows),)`` log of the exact gains."""
        if self._log_total == -np.inf:  # no row covers any probable target
            return np.full(len(rows), -np.inf)
        if self._log_absorbed < len(self.picks):
            news = self._kernel.log_rows(np.array(self.picks[self._log_absorbed :]))
            np.maximum(self._log_covered, news.max(axis=0), out=self._log_covered)
            self._log_absorbed = len(self.picks)
        block = self._kernel.log_rows(rows)
        better = block > self._log_covered
        below = np.subtract(self._log_covered, block, out=np.full_like(block, -1.0), where=better)
        rise = self._log_weights + np.log(-np.expm1(below))
        return log_sum_exp(np.where(better, block + rise, -np.inf)) - self._log_total
