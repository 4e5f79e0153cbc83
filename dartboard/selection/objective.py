"""Dartboard's objective: how much of the probable targets a set of candidates covers.

With target weights ``w_t = P(t|q)`` and kernel ``K[c,t]``, the objective of a set G and the marginal gain of
one more candidate are

    f(G) = Σ_t w_t · max_{g∈G} K[g,t]
    gain(c) = Σ_t w_t · max(0, K[c,t] - m_t),        m_t = max_{g∈G} K[g,t].

Gains are computed twice. The *screen* works on plain numbers, in float32 where it can, and knows how far
rounding may have moved a gain (``slack``). Where that does not decide, the exact gain of a few rows is worked
out in float64 on logarithms, which neither underflows nor cancels:

    log gain(c) = logsumexp_{t: P > M} (log w_t + P[c,t] + log(1 - exp(M_t - P[c,t]))),    P = log K.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol

import numpy as np

from dartboard.selection.kernels import (
    Distance,
    distances,
    log_kernel,
    log_sum_exp,
    prepared,
    row_dots,
    unit_rows,
)
from dartboard.types import FloatArray, IntArray

CACHED = 32_768
"""Kernel entries that are worked on together: they stay in the processor's cache."""

_KEPT = 25_000_000
"""Larger kernels are not kept: their rows are worked out again when they are asked for."""

_STRIP = 256
"""Rows of such a kernel that are worked out together."""


class Kernel(Protocol):
    """``K[c,t]`` for rows c (distinct candidates) and targets t."""

    @property
    def dtype(self) -> type:
        """The screen's precision."""

    @property
    def rounding(self) -> float:
        """What rounding may do to a gain of the screen, as a share of what its row covers alone."""

    def peaks(self) -> FloatArray:
        """``(T,)`` log of the largest entry of each target."""

    def log_rows(self, rows: IntArray) -> FloatArray:
        """``(len(rows), T)`` exact log kernel, float64."""

    def screen(self, rows: IntArray) -> FloatArray:
        """``(len(rows), T)`` kernel as a share of each target's largest entry, as fast as it can be had."""

    def screen_sums(self, weights: FloatArray) -> tuple[FloatArray, FloatArray | None]:
        """``(rows,)`` the screen times the weights, and the whole screen where it is small enough to keep."""

    def similarities(self, row: int) -> FloatArray:
        """``(rows,)`` similarity of one row to every row, higher is closer."""

    def subset(self, rows: IntArray, targets: IntArray | None) -> "Kernel":
        """The kernel of some rows and, where targets are given, of those targets only."""


@dataclass(frozen=True)
class VectorKernel:
    """The Gaussian kernel between vectors, ``(n, d)``, which are the rows and the targets alike.

    ``float32`` is whether the screen works in single precision; ``apart`` are the distances between the rows,
    in the screen's precision, where they are known already.
    """

    vectors: FloatArray
    distance: Distance
    sigma: float
    float32: bool = False
    apart: FloatArray | None = None

    @property
    def dtype(self) -> type:
        return np.float32 if self.float32 else np.float64

    @property
    def rounding(self) -> float:
        """A float32 cosine is off by about 1e-7, which moves ``exp(-d²/2σ²)`` by up to ``1e-7 · d/2σ²``.

        The worst error that ``benchmarks/rounding.py`` finds is 3e-7 + 4e-8/σ²; this is 2.5 times as much.
        """
        return 1e-6 + 1e-7 / self.sigma**2 if self.float32 else 1e-13 + 1e-15 / self.sigma**2

    def peaks(self) -> FloatArray:
        return np.zeros(len(self.vectors))

    def log_rows(self, rows: IntArray) -> FloatArray:
        # Not a matrix product: BLAS rounds a row by where it stands, and a row must always be the same.
        exact, found = self._exact, np.empty((len(rows), len(self.vectors)))
        for place, row in enumerate(exact[rows]):
            if self.distance == "scaled_cosine":
                found[place] = np.maximum(0.5 - 0.5 * row_dots(exact, row), 0.0)
            else:
                apart = exact - row
                found[place] = np.sqrt(row_dots(apart, apart))
        found[np.arange(len(rows)), rows] = 0.0
        return log_kernel(found, self.sigma)

    def screen(self, rows: IntArray) -> FloatArray:
        found = self._gaussian(self._fast[rows], self._fast)
        found[np.arange(len(rows)), rows] = 1.0
        return found

    def screen_sums(self, weights: FloatArray) -> tuple[FloatArray, FloatArray | None]:
        if self.apart is not None:
            kernel = np.square(self.apart)
            kernel *= -0.5 / self.sigma**2
            np.exp(kernel, out=kernel)
            return kernel @ weights, kernel
        n, fast = len(self.vectors), self._fast
        if n * n <= _KEPT:
            kernel = self._gaussian(fast, fast)
            np.fill_diagonal(kernel, 1.0)
            return kernel @ weights, kernel
        # Too large to keep. It is symmetric: only blocks on and above the diagonal are worked out.
        sums = np.zeros(n, fast.dtype)
        for start in range(0, n, _STRIP):
            end = min(start + _STRIP, n)
            block = self._gaussian(fast[start:end], fast[start:])
            np.fill_diagonal(block, 1.0)
            sums[start:end] += block @ weights[start:]
            sums[end:] += weights[start:end] @ block[:, end - start :]
        return sums, None

    def similarities(self, row: int) -> FloatArray:
        unit = unit_rows(self._exact)
        similarities: FloatArray = unit @ unit[row]
        return similarities

    def subset(self, rows: IntArray, targets: IntArray | None) -> "VectorKernel":
        apart = None if self.apart is None else self.apart[np.ix_(rows, rows)]
        return replace(self, vectors=self.vectors[rows], apart=apart)

    def distances(self) -> FloatArray:
        """``(n, n)`` distances between the rows, float64."""
        return distances(self._exact, self._exact, self.distance)

    @cached_property
    def _exact(self) -> FloatArray:
        return prepared(self.vectors, self.distance)

    @cached_property
    def _fast(self) -> FloatArray:
        return prepared(self.vectors, self.distance, np.float32) if self.float32 else self._exact

    def _gaussian(self, rows: FloatArray, others: FloatArray) -> FloatArray:
        if not self.float32:
            return np.exp(log_kernel(distances(rows, others, self.distance), self.sigma))
        # -d² / 2σ² with d = (1 - cos) / 2, in the fewest passes, on strips that stay in the cache.
        kernel: FloatArray = rows @ others.T
        scale = np.float32(-1.0 / (8.0 * self.sigma**2))
        at_once = max(1, CACHED // kernel.shape[1])
        for start in range(0, len(kernel), at_once):
            strip = kernel[start : start + at_once]
            strip -= np.float32(1.0)
            strip *= strip
            strip *= scale
            np.exp(strip, out=strip)
        return kernel


@dataclass(frozen=True)
class MatrixKernel:
    """A given matrix of log-probabilities, ``(rows, T)``, with the similarities that MMR compares."""

    log_matrix: FloatArray
    similarity: FloatArray
    dtype = np.float64
    rounding = 1e-13

    def peaks(self) -> FloatArray:
        peaks: FloatArray = self.log_matrix.max(axis=0)
        return peaks

    def log_rows(self, rows: IntArray) -> FloatArray:
        return self.log_matrix[rows]

    def screen(self, rows: IntArray) -> FloatArray:
        return self._screen[rows]

    def screen_sums(self, weights: FloatArray) -> tuple[FloatArray, FloatArray | None]:
        return self._screen @ weights, self._screen

    def similarities(self, row: int) -> FloatArray:
        similarities: FloatArray = self.similarity[row]
        return similarities

    def subset(self, rows: IntArray, targets: IntArray | None) -> "MatrixKernel":
        matrix = self.log_matrix[rows]
        return MatrixKernel(
            matrix if targets is None else matrix[:, targets], self.similarity[np.ix_(rows, rows)]
        )

    @cached_property
    def _screen(self) -> FloatArray:
        peaks = self.peaks()
        return np.exp(self.log_matrix - np.where(peaks > -np.inf, peaks, 0.0))


class Objective:
    """Gains of rows given the picks so far, as shares of what all rows together cover."""

    def __init__(self, log_weights: FloatArray, kernel: Kernel) -> None:
        self._kernel, self._log_weights, self.targets = kernel, log_weights, len(log_weights)
        reach = log_weights + kernel.peaks()
        self._log_total = float(log_sum_exp(reach[None])[0])
        weights = np.exp(reach - self._log_total) if self._log_total > -np.inf else np.zeros(len(reach))
        self._weights: FloatArray = weights.astype(kernel.dtype)
        sums, self._kept = kernel.screen_sums(self._weights)
        self.alone: FloatArray = sums.astype(np.float64)
        """``(rows,)`` the objective of each row by itself."""
        underflow = len(reach) * float(np.finfo(kernel.dtype).tiny)  # what the screen may have lost
        self.slack: FloatArray = kernel.rounding * self.alone + underflow
        """``(rows,)`` how far rounding may have moved a gain of the screen."""
        self.restart()

    def restart(self) -> None:
        """Forget the picks."""
        self.picks: list[int] = []
        self._covered = np.zeros_like(self._weights)
        self._log_covered = np.full(len(self._log_weights), -np.inf)
        self._log_absorbed = 0

    def add(self, row: int) -> None:
        """Count ``row`` among the picks."""
        self.picks.append(row)
        values = self._kernel.screen(np.array([row]))[0] if self._kept is None else self._kept[row]
        np.maximum(self._covered, values, out=self._covered)

    def rows(self, rows: IntArray) -> FloatArray:
        """``(len(rows), T)`` how well rows cover each target, as a share of its best; by the screen."""
        return self._kernel.screen(rows) if self._kept is None else self._kept.take(rows, axis=0)

    def gains(self, rows: IntArray) -> FloatArray:
        """``(len(rows),)`` gains by the screen, float64; exact to within ``slack[rows]``."""
        if not self.picks:
            return self.alone[rows]
        block = self.rows(rows)
        np.maximum(block, self._covered, out=block)
        block -= self._covered
        gains: FloatArray = (block @ self._weights).astype(np.float64)
        return gains

    def rehearse(self, rows: IntArray, count: int, floor: float) -> tuple[list[int], FloatArray]:
        """Up to ``count`` greedy picks among ``rows`` by the screen, as long as they gain more than ``floor``.

        None of them is added. Returns their places in ``rows``, and all gains before each pick and after the
        last, ``(picks + 1, rows)``, or one line less after ``count`` picks.
        """
        block, covered = self.rows(rows), self._covered.copy()
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
