"""A query's candidates as arrays: who is relevant, and who covers whom.

A pool has ``n`` candidates and a set of targets ``t``, any of which the query may mean. ``log_weights``
is log P(t|q) up to a constant, and the kernel's entry (c, t) is how well candidate c stands in for
target t. The targets are the candidates themselves, as in the paper, or a vocabulary.

Candidates whose vectors are equal to the bit share one *row* of the kernel, so that a copy of a pick has
a gain of exactly zero. Rows stand in an order that depends on content and query alone: the same candidates in
another order give the same numbers, to the bit.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import numpy.typing as npt

from dartboard.errors import ConfigError, InvalidInputError
from dartboard.selection.bandwidth import Sigma
from dartboard.selection.coverage import Kernel, VectorKernel
from dartboard.selection.greedy import Settler, State
from dartboard.selection.kernels import log_kernel
from dartboard.selection.origin import Origin
from dartboard.selection.states import log_sum_rows
from dartboard.types import FloatArray, IntArray

LARGEST_LOG = 1e300
"""Sums of log-probabilities beyond would leave the number format."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """Candidates of one query. Built by :func:`from_embeddings` and its sisters, not by hand.

    ``positions`` are the candidates' places in the arrays that the caller gave; all other arrays follow
    them. ``row_of`` leads from candidate to kernel row. A pool in float32 knows its ``relevance`` to
    within ``rounding`` and can be made again in float64 by ``refine``. ``origin`` is what the caller gave.
    ``groups`` tells near-copies, which share a number; ``aside`` counts those that no row is left of.
    """

    positions: IntArray
    similarity: FloatArray
    relevance: FloatArray
    row_of: IntArray
    log_weights: FloatArray
    kernel: Kernel
    sigma: Sigma
    targets_are: Literal["rows", "candidates", "vocabulary"]
    rounding: float = 0.0
    refine: Callable[[], "Pool"] | None = None
    origin: Origin | None = None
    groups: IntArray | None = None
    aside: int = 0

    def __len__(self) -> int:
        return len(self.positions)

    def states(self, referee: Settler | None = None) -> list[Callable[[], State]]:
        """Ways to walk, the fastest first."""
        return self.kernel.states(self.log_weights, referee)

    def by_row(self) -> tuple[IntArray, IntArray]:
        """Candidates row by row, the most relevant of each first; and where each row starts."""
        rows = len(self.log_weights) if self.targets_are == "rows" else int(self.row_of.max()) + 1
        if rows == len(self):
            order = np.empty(rows, dtype=np.intp)
            order[self.row_of] = np.arange(rows)
            return order, np.arange(rows)
        order = np.lexsort((self.positions, -self.relevance, self.row_of))
        return order, np.searchsorted(self.row_of[order], np.arange(rows))

    def leaders(self) -> IntArray:
        """``(rows,)`` the most relevant candidate of each row."""
        order, starts = self.by_row()
        leaders: IntArray = order if len(order) == len(starts) else order[starts]
        return leaders

    def by_relevance(self) -> IntArray:
        """Candidates, the most relevant first, then by row, then in the caller's order."""
        return np.lexsort((self.positions, self.row_of, -self.relevance))

    def find(self, positions: Sequence[int]) -> list[int]:
        """Candidates by their places in the caller's arrays."""
        return [int(np.flatnonzero(self.positions == position)[0]) for position in positions]

    def log_total(self) -> float:
        """The log of the objective of all candidates together."""
        if self.targets_are == "rows":
            return float(log_sum_rows(self.log_weights[None])[0])
        peaks = self.kernel.rows(np.arange(int(self.row_of.max()) + 1)).max(axis=0)
        return float(log_sum_rows((self.log_weights + peaks)[None])[0])

    def reweighted(self, relevance: npt.ArrayLike) -> "Pool":
        """The same candidates with log P(c|q), ``(n,)``, from elsewhere (:func:`log_softmax` of scores)."""
        given = check_log_probs(relevance, (len(self),), "relevance")
        weights = {"rows": lambda: summed(given, self.row_of), "candidates": lambda: given}
        return replace(
            self,
            relevance=given,
            log_weights=weights.get(self.targets_are, lambda: self.log_weights)(),
            rounding=0.0,
            refine=self._refined(lambda pool: pool.reweighted(given)),
        )

    def with_cosine_kernel(self, sigma: Sigma) -> "Pool":
        """The same, covering one another by ``(1 + cos) / 2``; ``sigma`` is what made the relevance."""
        exact = self if self.refine is None else self.refine()
        if not isinstance(exact.kernel, VectorKernel) or exact.kernel.distance != "scaled_cosine":
            raise ConfigError("a cosine kernel needs a pool of vectors under the scaled cosine distance")
        return replace(exact, kernel=replace(exact.kernel, sigma=None), sigma=sigma, groups=None)

    def retargeted(self, query_distances: FloatArray, target_distances: FloatArray) -> "Pool":
        """The same with other targets, by distances to the query ``(T,)`` and to candidates ``(n, T)``."""
        if not isinstance(self.kernel, VectorKernel):
            raise InvalidInputError("only a pool of vectors can take other targets")
        leaders = np.empty(len(self.kernel.vectors), dtype=np.intp)
        leaders[self.row_of] = np.arange(len(self))
        return replace(
            self,
            log_weights=log_kernel(query_distances, self.sigma.value),
            kernel=replace(self.kernel, to_targets=target_distances[leaders]),
            targets_are="vocabulary",
        )

    def restrict(self, keep: npt.NDArray[np.bool_]) -> "Pool":
        """The pool without some candidates: they are neither picked nor targets. σ stays."""
        if keep.all():
            return self
        if not keep.any():
            raise InvalidInputError(
                "no candidate is left: every one is excluded or below the relevance floor"
            )
        rows, row_of = np.unique(self.row_of[keep], return_inverse=True)
        log_weights, kernel = self.log_weights, self.kernel.subset(rows, None)
        if self.targets_are == "rows":
            log_weights = summed(self.relevance[keep], row_of)
        elif self.targets_are == "candidates":
            log_weights = log_weights[keep]
            kernel = self.kernel.subset(rows, np.flatnonzero(keep))
        return replace(
            self,
            positions=self.positions[keep],
            similarity=self.similarity[keep],
            relevance=self.relevance[keep],
            row_of=row_of,
            log_weights=log_weights,
            kernel=kernel,
            refine=self._refined(lambda pool: pool.restrict(keep)),
            groups=None if self.groups is None else self.groups[keep],
        )

    def without_copies(self, leaders: IntArray | None = None) -> "Pool":
        """The same candidates, near-copies in one row with the most relevant of them, weighing as much as it.

        ``leaders``, ``(n,)``, are the candidates that stand for each; by default ``groups`` tells.
        """
        if leaders is None:
            if self.groups is None:
                return self
            leaders = self._leaders(self.groups)
        rows, row_of = np.unique(self.row_of[leaders], return_inverse=True)
        log_weights, kernel = self.log_weights, self.kernel.subset(rows, None)
        if self.targets_are == "rows":
            log_weights = np.empty(len(rows))
            log_weights[row_of] = self.relevance[leaders]
        elif self.targets_are == "candidates":
            log_weights = np.where(leaders == np.arange(len(self)), self.log_weights, -np.inf)
        return replace(
            self,
            row_of=row_of,
            log_weights=log_weights,
            kernel=kernel,
            refine=self._refined(lambda pool: pool.without_copies(leaders)),
            groups=None,
            aside=int(np.count_nonzero(self.row_of != self.row_of[leaders])),
        )

    def _leaders(self, groups: IntArray) -> IntArray:
        """``(n,)`` the most relevant candidate of each one's group."""
        order = self.by_relevance()
        _, firsts, members = np.unique(groups[order], return_index=True, return_inverse=True)
        leaders = np.empty(len(self), dtype=np.intp)
        leaders[order] = order[firsts[members]]
        return leaders

    def _refined(self, change: Callable[["Pool"], "Pool"]) -> Callable[[], "Pool"] | None:
        """The same change, made to the pool in double precision."""
        refine = self.refine
        return None if refine is None else lambda: change(refine())


def summed(relevance: FloatArray, row_of: IntArray) -> FloatArray:
    """Log weight of each row: the sum over its candidates."""
    count = int(row_of.max()) + 1
    if count == len(relevance):
        total = np.empty(count)
        total[row_of] = relevance
        return total
    total = np.full(count, -np.inf)
    np.logaddexp.at(total, row_of, relevance)
    return total


def check_log_probs(values: npt.ArrayLike, shape: tuple[int, ...], name: str) -> FloatArray:
    """Log-probabilities as float64: finite or ``-inf``, not all ``-inf``."""
    array = np.asarray(values, dtype=np.float64)
    if array.shape != shape:
        raise InvalidInputError(f"{name} has shape {array.shape} where {shape} is expected")
    if np.isnan(array).any() or (array == np.inf).any():
        raise InvalidInputError(f"{name} contains NaN or +infinity: log-probabilities are finite or -inf")
    if ((array < -LARGEST_LOG) & (array > -np.inf)).any() or (array > LARGEST_LOG).any():
        raise InvalidInputError(
            f"{name} must lie between -{LARGEST_LOG:g} and {LARGEST_LOG:g}, or be -inf: a probability of 0"
        )
    if array.size and array.max() == -np.inf:
        raise InvalidInputError(f"{name} gives every entry a probability of 0")
    return array
