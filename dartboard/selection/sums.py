"""What every row of a Gaussian kernel adds up to, and its first rows, without keeping the rest.

``Σ_t w_t K[c,t]`` for all rows c takes every entry of the kernel, but only once, and K is symmetric: an entry
below the diagonal counts for its row and for its column. Products are made panel by panel; strips of a panel
that fit into the processor's cache become kernel values, are added up both ways and forgotten, but for their
first columns. The work is half a matrix product and an exponential for each pair, the memory that of a panel.
"""

from itertools import pairwise

import numpy as np

from dartboard.deadline import check
from dartboard.selection.compiled import compiled
from dartboard.selection.halves import lower_product
from dartboard.selection.kernels import gaussian
from dartboard.types import FloatArray

PANEL = 1536
"""Rows of a panel at most: of smaller ones, products are slower."""

_STRIP = 96
_TRIANGLE = np.tri(_STRIP, dtype=np.float32) - 0.5 * np.eye(_STRIP, dtype=np.float32)
"""Entries above the diagonal do not count, those on it by half for their row and by half for their column."""


def kernel_sums(
    unit: FloatArray, weights: FloatArray, sigma: float, keep: int
) -> tuple[FloatArray, FloatArray]:
    """The sums of ``exp(-d² / 2σ²)`` between unit float32 rows, ``(n,)`` float64, by float32 weights.

    With them come the first rows of the kernel, ``(m, n)``: ``keep`` of them, or as many as a panel has.
    """
    n = len(unit)
    count = -(-n // PANEL)
    edges = [n * place // count for place in range(count + 1)]
    panels = [slice(start, end) for start, end in pairwise(edges)]
    adder = _Adder(weights, sigma, largest=-(-n // count), keep=min(keep, edges[1]))
    for place, panel in enumerate(panels):
        adder.add_triangle(unit[panel], panel)
        for other in panels[:place]:
            adder.add_square(unit[panel], unit[other], panel, other)
    return adder.sums, adder.kept


class _Adder:
    """Adds panels to the sums of their rows and of their columns."""

    def __init__(self, weights: FloatArray, sigma: float, *, largest: int, keep: int) -> None:
        self.sums = np.zeros(len(weights))
        self.kept = np.empty((keep, len(weights)), np.float32)
        self._weights, self._scale = weights, np.float32(-1.0 / (8.0 * sigma**2))
        self._cosines = np.empty((largest, largest), np.float32)
        self._strip, self._room = np.empty(_STRIP * largest, np.float32), np.empty(largest, np.float32)

    def add_triangle(self, rows: FloatArray, panel: slice) -> None:
        """Rows with themselves: only what stands on and below the diagonal is made."""
        check()
        size = len(rows)
        cosines = self._cosines[:size, :size]
        for start in range(0, size, _STRIP):
            cosines[start : start + _STRIP, start : start + _STRIP] = 1.0  # what is not made is a number
        lower_product(rows, cosines)
        weights, sums = self._weights[panel], self.sums[panel]
        for start in range(0, size, _STRIP):
            end = min(start + _STRIP, size)
            strip = self._add(
                start, start, (weights[start:end], weights[:end]), (sums[start:end], sums[:end])
            )
            if panel.start == 0:
                self._keep_corner(strip, start, end)

    def add_square(self, rows: FloatArray, others: FloatArray, panel: slice, other: slice) -> None:
        """Rows with others."""
        check()
        np.matmul(rows, others.T, out=self._cosines[: len(rows), : len(others)])
        ours, theirs = self._weights[panel], self._weights[other]
        for start in range(0, len(rows), _STRIP):
            end = min(start + _STRIP, len(rows))
            sums = (self.sums[panel][start:end], self.sums[other])
            strip = self._add(start, None, (ours[start:end], theirs), sums)
            if other.start == 0:
                self.kept[:, panel][:, start:end] = strip[:, : len(self.kept)].T

    def _add(
        self,
        start: int,
        diagonal: int | None,
        weights: tuple[FloatArray, FloatArray],
        sums: tuple[FloatArray, FloatArray],
    ) -> FloatArray:
        """The kernel of rows of the panel from ``start`` on, added to the sums of its rows and columns.

        Rows that begin on the diagonal count up to it: what stands on it becomes one half, what stands
        above 0.
        """
        rows, columns = len(weights[0]), len(weights[1])
        strip = self._strip[: rows * columns].reshape(rows, columns)
        cosines = self._cosines[start : start + rows, :columns]
        if machine := compiled():
            machine.add_strip(cosines, diagonal, self._scale, weights, sums, strip, self._room)
            return strip
        gaussian(cosines, self._scale, strip)
        if diagonal is not None:
            strip[:, diagonal:] *= _TRIANGLE[:rows, :rows]
        for ours, added in zip(sums, (strip @ weights[1], weights[0] @ strip), strict=True):
            ours += added
        return strip

    def _keep_corner(self, strip: FloatArray, start: int, end: int) -> None:
        """What a strip of the first panel says of the rows to keep, on both sides of the diagonal."""
        above = min(start, len(self.kept))
        self.kept[:above, start:end] = strip[:, :above].T
        if start < len(self.kept):
            tile = strip[:, start:]
            self.kept[start:end, :start] = strip[: len(self.kept) - start, :start]
            self.kept[start:end, start:end] = (tile + tile.T)[: len(self.kept) - start]
