"""Who stands in for whom: the kernel of a pool, and how precisely it is known.

A kernel has a row for each distinct candidate and a column for each target. It offers ways to walk
(:mod:`dartboard.selection.greedy`), the fastest first.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol, TypeVar

import numpy as np

from dartboard.selection.greedy import Settler, State
from dartboard.selection.kernels import (
    Distance,
    distances,
    fast_kernel,
    log_kernel,
    log_similarity,
    unit_rows,
)
from dartboard.selection.states import LinearState, LogState
from dartboard.selection.sums import kernel_sums
from dartboard.types import FloatArray, IntArray

_ROUNDING_64 = 1e-13
_Spread = TypeVar("_Spread", float, FloatArray)


def rounding_32(sigma: _Spread) -> _Spread:
    """What float32 may get wrong: of a gain, as a share of what the row covers alone; of a log-probability.

    A cosine is rounded by some 1e-7, which moves ``exp(-d²/2σ²)`` by up to ``1e-7 · d/2σ²``. The worst
    error that ``benchmarks/rounding.py`` finds is 3e-7 + 4e-8/σ²; this is two and a half times that.
    """
    return 1e-6 + 1e-7 / sigma**2


class Kernel(Protocol):
    """How well each row stands in for each target."""

    def states(self, log_weights: FloatArray, referee: Settler | None) -> list[Callable[[], State]]:
        """Ways to walk, the fastest first, each more precise than the one before."""

    def rows(self, rows: IntArray) -> FloatArray:
        """``(len(rows), T)`` log kernel, float64."""

    def similarities(self, row: int) -> FloatArray:
        """``(rows,)`` similarity of one row to every row, higher is closer."""

    def subset(self, rows: IntArray, targets: IntArray | None) -> "Kernel":
        """The kernel of some rows and, where targets are given, of those targets only."""


@dataclass(frozen=True, slots=True)
class VectorKernel:
    """Rows by their vectors, as the distance wants them: unit length for the cosine.

    The targets are the rows themselves unless ``to_targets``, ``(rows, T)``, gives distances to others.
    The kernel is Gaussian with spread ``sigma``, or ``1 - d`` itself where that is None. Unit float32 rows
    walk fast, and are certain of a pick only where its lead exceeds their rounding. ``apart`` has the
    distances of rows to one another where somebody has worked them out already.
    """

    vectors: FloatArray
    distance: Distance
    sigma: float | None
    to_targets: FloatArray | None = None
    apart: FloatArray | None = None

    def states(self, log_weights: FloatArray, referee: Settler | None) -> list[Callable[[], State]]:
        if self.is_fast:
            return [lambda: LinearState(log_weights, self.fast_rows(), self.rounding, referee=referee)]
        return [lambda: self._linear(log_weights), lambda: self._log(log_weights)]

    @property
    def rounding(self) -> float:
        """What rounding may do to a gain, as a share of what its row covers alone."""
        sigma = self.sigma or 1.0
        return rounding_32(sigma) if self.is_fast else _ROUNDING_64 + 1e-15 / sigma**2

    def plain(self, rows: IntArray) -> FloatArray:
        """``(len(rows), n)`` the kernel of some rows with all rows, in the precision of the vectors."""
        some = self.vectors[rows]
        if self.is_fast:
            return self._fast(some)
        kernel = _exp(self._log_kernel(distances(some, self.vectors, self.distance)))
        kernel[np.arange(len(rows)), rows] = 1.0
        return kernel

    def sums(self, weights: FloatArray, keep: int) -> tuple[FloatArray, FloatArray]:
        """What every row covers, and the first ``keep`` rows or fewer; only where ``is_fast``."""
        return kernel_sums(self.vectors, weights, self.sigma or 1.0, keep)

    def rows(self, rows: IntArray) -> FloatArray:
        if self.to_targets is not None:
            return self._log_kernel(self.to_targets[rows])
        exact = self.vectors.astype(np.float64, copy=False)
        return self._log_kernel(distances(exact[rows], exact, self.distance))

    def similarities(self, row: int) -> FloatArray:
        unit = self.vectors if self.distance == "scaled_cosine" else unit_rows(self.vectors)
        closeness: FloatArray = (unit @ unit[row]).astype(np.float64)
        return closeness

    def subset(self, rows: IntArray, targets: IntArray | None) -> "VectorKernel":
        to_targets = None if self.to_targets is None else self.to_targets[rows]
        return replace(self, vectors=self.vectors[rows], to_targets=to_targets, apart=None)

    @property
    def is_fast(self) -> bool:
        """Whether rows are worked out in float32."""
        return self.vectors.dtype == np.float32 and self.sigma is not None

    def _fast(self, some: FloatArray) -> FloatArray:
        return fast_kernel(some, self.vectors, self.sigma or 1.0)

    def fast_rows(self) -> FloatArray:
        """The kernel of all rows with one another, where ``is_fast``."""
        if self.apart is None:
            return self._fast(self.vectors)
        kernel = np.multiply(self.apart, self.apart)
        kernel *= np.float32(-0.5 / (self.sigma or 1.0) ** 2)
        return np.exp(kernel, out=kernel)

    def _linear(self, log_weights: FloatArray) -> State:
        kernel = _exp(self._all_rows())
        return LinearState(log_weights, kernel, _ROUNDING_64, self._peaks(kernel))

    def _log(self, log_weights: FloatArray) -> State:
        log_kernel = self._all_rows()
        return LogState(log_weights, log_kernel, self._peaks(log_kernel))

    def _peaks(self, kernel: FloatArray) -> FloatArray | None:
        return None if self.to_targets is None else kernel.max(axis=0)

    def _all_rows(self) -> FloatArray:
        """The whole log kernel; with one array on both sides the matrix product costs half."""
        if self.to_targets is not None:
            return self._log_kernel(self.to_targets)
        apart = self.apart
        if apart is None:
            apart = distances(self.vectors, self.vectors, self.distance)
        return self._log_kernel(apart)

    def _log_kernel(self, distance: FloatArray) -> FloatArray:
        return log_similarity(distance) if self.sigma is None else log_kernel(distance, self.sigma)


@dataclass(frozen=True, slots=True)
class MatrixKernel:
    """Rows by a given matrix of log-probabilities, with the similarities that MMR compares."""

    log_matrix: FloatArray
    similarity: FloatArray

    def states(self, log_weights: FloatArray, referee: Settler | None) -> list[Callable[[], State]]:
        peaks = self.log_matrix.max(axis=0)
        shift = peaks.max() if np.isfinite(peaks.max()) else 0.0

        def linear() -> State:
            kernel = _exp(self.log_matrix - shift)
            return LinearState(log_weights, kernel, _ROUNDING_64, kernel.max(axis=0))

        return [linear, lambda: LogState(log_weights, self.log_matrix, peaks)]

    def rows(self, rows: IntArray) -> FloatArray:
        return self.log_matrix[rows]

    def similarities(self, row: int) -> FloatArray:
        closeness: FloatArray = self.similarity[row]
        return closeness

    def subset(self, rows: IntArray, targets: IntArray | None) -> "MatrixKernel":
        matrix = self.log_matrix[rows]
        return MatrixKernel(
            matrix if targets is None else matrix[:, targets], self.similarity[np.ix_(rows, rows)]
        )


def _exp(log_values: FloatArray) -> FloatArray:
    with np.errstate(under="ignore"):
        return np.exp(log_values, out=log_values)
