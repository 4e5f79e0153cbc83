"""The kernel of a pool: ``K[c,t]`` for rows c (distinct candidates) and targets t, from vectors or as given.

``log_rows`` is log K in float64; ``screen`` is K in ``dtype``, as a share of ``peaks``, off by ``rounding``.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from dartboard.lazy import lazy
from dartboard.selection.kernels import Distance, distances, log_kernel, prepared, row_dots, unit_rows
from dartboard.types import FloatArray, IntArray

CACHED = 32_768
"""Kernel entries that are worked on together: they stay in the processor's cache."""

_SINGLE_FROM_SIGMA, _SINGLE_FROM_ROWS = 0.03, 64
"""At a smaller σ between vectors float32 leaves too much undecided; with fewer rows it saves nothing."""

_NEAR, _SAME = 0.98, 1e-30  # cosines worked out from differences; squared differences that are rounding

_KEPT = 25_000_000
"""Larger kernels are not kept: their rows are worked out again when they are asked for."""


def error_bounds(
    dtype: type, terms: int, moved: Callable[[float], float], largest: float = np.inf
) -> tuple[float, float]:
    """Bounds of the error of a gain: relative to what its row covers alone, and an absolute one on top.

    A kernel entry exp(-x) is relatively off by what x is: ``moved(x)`` from the distance, 2ε·x from its own
    rounding; a sum of T terms adds (16 + √T)·ε. A gain is a difference of two entries, hence twice. Entries
    with x > 7 are off by more, as far as underflow or ``largest``, but count less than exp(-7) together.
    """
    limits = np.finfo(dtype)
    most = min(largest, -1.2 * math.log(float(limits.tiny)))
    summed = 16.0 + math.sqrt(terms)
    near, far = (moved(x) + (2.0 * x + summed) * float(limits.eps) for x in (min(7.0, most), most))
    return 2.0 * near, 2.0 * math.exp(-7.0) * far


@dataclass(frozen=True)
class VectorKernel:
    """The Gaussian kernel between vectors, ``(n, d)``, which are the rows and the targets alike.

    ``apart``, ``(n, n)``, are their distances in the precision of ``vectors``, where they are known already.
    """

    vectors: FloatArray
    distance: Distance
    sigma: float
    apart: FloatArray | None = None

    @lazy
    def dtype(self) -> type:
        """The screen's precision."""
        single = self.vectors.dtype == np.float32 and self.distance == "scaled_cosine"
        large = len(self.vectors) >= _SINGLE_FROM_ROWS and self.sigma >= _SINGLE_FROM_SIGMA
        return np.float32 if single and large else np.float64

    @lazy
    def rounding(self) -> tuple[float, float]:
        """How far rounding may move a gain of the screen (:func:`error_bounds`).

        A cosine in n dimensions is off by some 0.6 ε√n (measured, not proved: ``benchmarks/rounding.py``),
        which moves x = d²/2σ² by ``0.6 ε√n · √(x/2) / σ``; a Euclidean d² by ε times the squared lengths.
        """
        eps, terms = float(np.finfo(self.dtype).eps), len(self.vectors)
        if self.distance == "euclidean":
            longest = float(row_dots(self._exact, self._exact).max())
            return error_bounds(self.dtype, terms, lambda x: 16.0 * eps * longest / self.sigma**2)
        off = 0.6 * eps * math.sqrt(self.vectors.shape[1] / 2.0) / self.sigma
        return error_bounds(self.dtype, terms, lambda x: off * math.sqrt(x), 0.5 / self.sigma**2)

    @property
    def peaks(self) -> FloatArray:
        """``(T,)`` log of the largest entry of each target."""
        return np.zeros(len(self.vectors))

    def log_rows(self, rows: IntArray) -> FloatArray:
        """``(len(rows), T)`` exact log kernel, float64."""
        exact, found = self._exact, np.empty((len(rows), len(self.vectors)))
        if self.distance == "euclidean":
            for place, row in enumerate(exact[rows]):
                found[place] = np.sqrt(row_dots(exact - row, exact - row))
        else:
            # BLAS rounds a row by where it stands. At a small σ that matters, and a row must stay the same.
            if self.sigma >= _SINGLE_FROM_SIGMA:
                np.matmul(exact[rows], exact.T, out=found)
            for place, row in enumerate(exact[rows]):
                dots = found[place] if self.sigma >= _SINGLE_FROM_SIGMA else row_dots(exact, row)
                near = np.flatnonzero(dots > _NEAR)  # 1 - cos cancels there: d = ‖a - b‖² / 4
                squares = row_dots(exact[near] - row, exact[near] - row)
                found[place] = 0.5 - 0.5 * dots
                found[place, near] = np.where(squares > _SAME, squares / 4.0, 0.0)
        found[np.arange(len(rows)), rows] = 0.0
        return log_kernel(found, self.sigma)

    def screen(self, rows: IntArray) -> FloatArray:
        """``(len(rows), T)`` kernel as a share of each target's largest entry; a copy."""
        if self._whole is not None:
            return self._whole.take(rows, axis=0)
        found = self._gaussian(self._fast[rows], self._fast)
        found[np.arange(len(rows)), rows] = 1.0
        return found

    def sums(self, weights: FloatArray) -> FloatArray:
        """``(rows,)`` the screen of all rows times the weights of the targets."""
        if self._whole is not None:
            return self._whole @ weights
        # The kernel is symmetric: only blocks on and above the diagonal are worked out.
        n, fast = len(self.vectors), self._fast
        sums = np.zeros(n, fast.dtype)
        for start in range(0, n, 256):
            end = min(start + 256, n)
            block = self._gaussian(fast[start:end], fast[start:])
            np.fill_diagonal(block, 1.0)
            sums[start:end] += block @ weights[start:]
            sums[end:] += weights[start:end] @ block[:, end - start :]
        return sums

    def similarities(self, row: int) -> FloatArray:
        """``(rows,)`` similarity of one row to every row, higher is closer."""
        unit = unit_rows(self._exact)
        similarities: FloatArray = unit @ unit[row]
        return similarities

    def subset(self, rows: IntArray, targets: IntArray | None) -> "VectorKernel":
        """The kernel of some rows, which stay the targets."""
        apart = None if self.apart is None else self.apart[np.ix_(rows, rows)]
        return replace(self, vectors=self.vectors[rows], apart=apart)

    def distances(self) -> FloatArray:
        """``(n, n)`` distances between the rows, float64."""
        return distances(self._exact, self._exact, self.distance)

    @lazy
    def _exact(self) -> FloatArray:
        return prepared(self.vectors, self.distance)

    @lazy
    def _fast(self) -> FloatArray:
        return prepared(self.vectors, self.distance, np.float32) if self.dtype is np.float32 else self._exact

    @lazy
    def _whole(self) -> FloatArray | None:
        """The screen of all rows, unless it is too large to keep."""
        if self.apart is not None and self.apart.dtype == self.dtype:
            kernel = np.square(self.apart)
            kernel *= -0.5 / self.sigma**2
            return np.exp(kernel, out=kernel)
        if len(self.vectors) ** 2 > _KEPT:
            return None
        kernel = self._gaussian(self._fast, self._fast)
        np.fill_diagonal(kernel, 1.0)
        return kernel

    def _gaussian(self, rows: FloatArray, others: FloatArray) -> FloatArray:
        if self.dtype is np.float64:
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
    """A given matrix of log-probabilities, ``(rows, T)``; methods as those of :class:`VectorKernel`.

    ``similarity``, a square matrix, is what MMR compares; row c stands at ``places[c]`` in it.
    """

    log_matrix: FloatArray
    similarity: FloatArray
    places: IntArray

    @property
    def dtype(self) -> type:
        return np.float32 if len(self.log_matrix) >= _SINGLE_FROM_ROWS else np.float64

    @property
    def rounding(self) -> tuple[float, float]:
        return error_bounds(self.dtype, self.log_matrix.shape[1], lambda x: 0.0)

    @lazy
    def peaks(self) -> FloatArray:
        peaks: FloatArray = self.log_matrix.max(axis=0)
        return peaks

    def log_rows(self, rows: IntArray) -> FloatArray:
        return self.log_matrix[rows]

    def screen(self, rows: IntArray) -> FloatArray:
        return self._whole.take(rows, axis=0)

    def sums(self, weights: FloatArray) -> FloatArray:
        return self._whole @ weights

    def similarities(self, row: int) -> FloatArray:
        similarities: FloatArray = self.similarity[self.places[row], self.places]
        return similarities

    def subset(self, rows: IntArray, targets: IntArray | None) -> "MatrixKernel":
        """The kernel of some rows and, where targets are given, of those targets only."""
        matrix = self.log_matrix[rows] if targets is None else self.log_matrix[np.ix_(rows, targets)]
        return MatrixKernel(matrix, self.similarity, self.places[rows])

    @lazy
    def _whole(self) -> FloatArray:
        screen: FloatArray = np.empty(self.log_matrix.shape, self.dtype)
        peaks = np.where(self.peaks > -np.inf, self.peaks, 0.0)
        with np.errstate(over="ignore"):  # float32 takes what is far below for -inf
            np.subtract(self.log_matrix, peaks, out=screen, casting="same_kind")
        np.exp(screen, out=screen)
        return screen


Kernel = VectorKernel | MatrixKernel
