"""Settle in double precision what float32 cannot: which of a few rivals gains most.

A walk in float32 that finds two gains within rounding of each other need not begin again. Only the rivals,
and the picks that cover targets already, are worked out in float64.
"""

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from dartboard.selection.greedy import Uncertain
from dartboard.types import FloatArray, IntArray

if TYPE_CHECKING:
    from dartboard.selection.pool import Pool

_MOST_RIVALS = 32
"""With more, working out all rows is as quick."""

_ROUNDING = 1e-12


class Referee:
    """Knows the exact pool behind a pool in float32; rows are numbered as in the latter."""

    def __init__(self, pool: "Pool") -> None:
        self._pool = pool
        self._judged = 0

    def settle(self, rivals: IntArray, picks: list[int]) -> int:
        """The rival that gains most on top of ``picks``, by more than double precision may get wrong."""
        if len(rivals) > _MOST_RIVALS:
            raise Uncertain
        if self._judged < len(picks):
            news = self._kernel(np.array(picks[self._judged :]))
            np.maximum(self._covered, news.max(axis=0), out=self._covered)
            self._judged = len(picks)
        kernel = self._kernel(rivals)
        gains = np.maximum(kernel - self._covered, 0.0) @ self._weights
        doubt = _ROUNDING * (kernel @ self._weights)
        best = int(gains.argmax())
        level = gains[best] - doubt[best]
        if level <= 1e-290 or np.count_nonzero(gains + doubt >= level) > 1:
            raise Uncertain
        return int(rivals[best])

    def restart(self) -> None:
        """Forget the picks of a walk that has ended."""
        self._judged = 0
        self.__dict__.pop("_covered", None)

    def most_relevant(self, candidates: IntArray) -> int:
        """The candidate that is most probable, exactly."""
        relevance = self._exact.relevance[candidates]
        if np.count_nonzero(relevance >= relevance.max() - _ROUNDING) > 1:
            raise Uncertain
        return int(candidates[relevance.argmax()])

    @cached_property
    def _exact(self) -> "Pool":
        if self._pool.refine is None:
            raise Uncertain
        return self._pool.refine()

    @cached_property
    def _rows(self) -> IntArray:
        """The exact pool's row for each row."""
        order, starts = self._pool.by_row()
        return self._exact.row_of[order[starts]]

    @cached_property
    def _weights(self) -> FloatArray:
        log_weights = self._exact.log_weights
        with np.errstate(under="ignore"):
            weights: FloatArray = np.exp(log_weights - log_weights.max())
        return weights

    @cached_property
    def _covered(self) -> FloatArray:
        return np.zeros(len(self._exact.log_weights))

    def _kernel(self, rows: IntArray) -> FloatArray:
        with np.errstate(under="ignore"):
            return np.exp(self._exact.kernel.rows(self._rows[rows]))
