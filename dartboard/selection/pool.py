"""A query's candidates as arrays: how relevant each is, and how well it covers each target.

A pool has n candidates and T targets, any of which may be what the query is after. ``log_weights`` is
log P(t|q) up to a constant; the kernel's entry (c, t) is how well candidate c covers target t. The targets
are the candidates themselves, as in the paper, or a vocabulary.

Candidates with equal vectors share one *row* of the kernel, so that a copy of a pick has a gain of exactly
zero. Near-duplicates share one as well once they are removed (:meth:`Pool.without_near_duplicates`).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from dartboard.errors import ConfigError, InvalidInputError
from dartboard.selection.kernel_matrix import Kernel, MatrixKernel, VectorKernel
from dartboard.selection.questions import mixed_relevance
from dartboard.selection.result import Origin, Sigma
from dartboard.types import FloatArray, IntArray

LARGEST_LOG = 1e300
"""Sums of log-probabilities beyond would leave the number format."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """Candidates of one query. Built by :func:`from_embeddings` and its sisters, not by hand.

    ``positions`` are the candidates' places in the arrays that the caller gave. ``similarity``, ``relevance``
    (log P(c|q) up to a constant), ``row_of`` (kernel row) and ``target_of`` (kernel column, None where the
    targets are a vocabulary) run along the candidates, ``log_weights`` along the targets. ``groups`` are
    the near-duplicate groups, ``near_copies`` how many near-duplicates were removed; ``content`` then orders
    the candidates of a row that are equally relevant: by their vectors, not by their places.

    ``preference``, ``(n,)``, says which of several near-duplicates to pick: the largest instead of the most
    relevant. ``questions``, ``(m, n)``, are the shares of several questions in each candidate's probability
    (:mod:`dartboard.selection.questions`); ``(m, T)`` where the targets are a vocabulary.
    """

    positions: IntArray
    similarity: FloatArray
    relevance: FloatArray
    row_of: IntArray
    target_of: IntArray | None
    log_weights: FloatArray
    kernel: Kernel
    sigma: Sigma
    origin: Origin | None = None
    groups: IntArray | None = None
    near_copies: int = 0
    content: IntArray | None = None
    preference: FloatArray | None = None
    questions: FloatArray | None = None

    def __len__(self) -> int:
        return len(self.positions)

    @property
    def rows(self) -> int:
        """How many distinct candidates there are."""
        return int(self.row_of.max()) + 1

    def by_row(self) -> tuple[IntArray, IntArray]:
        """Candidates row by row, the preferred or most relevant of each first; and where each row starts."""
        if self.rows == len(self):
            order = np.empty(len(self), dtype=np.intp)
            order[self.row_of] = np.arange(len(self))
            return order, np.arange(len(self))
        first = () if self.preference is None else (-self.preference,)
        order = np.lexsort((*self._ties(), -self.relevance, *first, self.row_of))
        return order, np.searchsorted(self.row_of[order], np.arange(self.rows))

    def by_relevance(self) -> IntArray:
        """Candidates, the most relevant first, then by row, then by content."""
        return np.lexsort((*self._ties(), self.row_of, -self.relevance))

    def _ties(self) -> tuple[IntArray, ...]:
        return (self.positions,) if self.content is None else (self.positions, self.content)

    def find(self, positions: Sequence[int]) -> list[int]:
        """Candidates by their places in the caller's arrays."""
        return [int(np.flatnonzero(self.positions == position)[0]) for position in positions]

    def rows_of(self, positions: Sequence[int]) -> list[int]:
        """The kernel rows of candidates by their places in the caller's arrays, each row once."""
        return list(dict.fromkeys(int(self.row_of[candidate]) for candidate in self.find(positions)))

    def reweighted(self, relevance: npt.ArrayLike, weights: FloatArray | None = None) -> "Pool":
        """The same candidates with log P(c|q), ``(n,)``, from elsewhere (:func:`log_softmax` of scores).

        For several questions it is ``(m, n)``, and ``weights``, ``(m,)``, are theirs.
        """
        questions = self.questions
        if weights is not None:
            given = check_log_probs(relevance, (len(weights), len(self)), "relevance")
            relevance, mixed = mixed_relevance(given, weights, self.units)
            questions = questions if self.target_of is None else mixed
        given = check_log_probs(relevance, (len(self),), "relevance")
        log_weights = self.log_weights if self.target_of is None else summed(given, self.target_of)
        return replace(self, relevance=given, log_weights=log_weights, questions=questions)

    @property
    def units(self) -> IntArray:
        """``(n,)`` which candidates count once: near-duplicates where these are known, else equal vectors."""
        return self.row_of if self.groups is None else self.groups

    def with_cosine_kernel(self, sigma: Sigma) -> "Pool":
        """The same, covering one another by ``(1 + cos) / 2``; ``sigma`` is what made the relevance."""
        kernel = self.kernel
        if not isinstance(kernel, VectorKernel) or kernel.distance != "scaled_cosine":
            raise ConfigError("a cosine kernel needs a pool of vectors under the scaled cosine distance")
        apart = kernel.distances()
        with np.errstate(divide="ignore"):
            cosine_kernel = MatrixKernel(np.log1p(-apart), 1.0 - 2.0 * apart, np.arange(len(apart)))
        return replace(self, kernel=cosine_kernel, sigma=sigma)

    def restrict(self, keep: npt.NDArray[np.bool_]) -> "Pool":
        """The pool without some candidates: they are neither picked nor targets. σ stays."""
        if keep.all():
            return self
        if not keep.any():
            raise InvalidInputError("no candidate is left: all are excluded or below the relevance floor")
        kept, by_word = np.flatnonzero(keep), self.target_of is None
        return replace(
            self._merged(kept, np.arange(len(kept))),
            positions=self.positions[kept],
            similarity=self.similarity[kept],
            relevance=self.relevance[kept],
            preference=None if self.preference is None else self.preference[kept],
            questions=self.questions if self.questions is None or by_word else self.questions[:, kept],
            groups=None if self.groups is None else self.groups[kept],
        )

    def without_near_duplicates(self) -> "Pool":
        """The same candidates, each near-duplicate in one row with the most relevant of its group.

        The others are no targets. They can still be picked, gaining nothing, when nothing else is left.
        """
        if self.groups is None:
            return self
        order = self.by_relevance()
        _, firsts, members = np.unique(self.groups[order], return_index=True, return_inverse=True)
        if len(firsts) == len(self):
            return replace(self, groups=None)
        group_of = members[np.argsort(order)]
        merged = self._merged(order[firsts], group_of)
        return replace(merged, groups=None, near_copies=len(self) - len(firsts), content=self.row_of)

    def _merged(self, some: IntArray, place_of: IntArray) -> "Pool":
        """Rows and targets of the candidates ``some``; ``place_of`` says which of these replaces each."""
        rows, row_of = np.unique(self.row_of[some], return_inverse=True)
        if self.target_of is None:
            return replace(self, row_of=row_of[place_of], kernel=self.kernel.subset(rows, None))
        targets, target_of = np.unique(self.target_of[some], return_inverse=True)
        return replace(
            self,
            row_of=row_of[place_of],
            target_of=target_of[place_of],
            log_weights=summed(self.relevance[some], target_of),
            kernel=self.kernel.subset(rows, targets),
        )


def summed(relevance: FloatArray, target_of: IntArray) -> FloatArray:
    """Log weight of each target: the sum over its candidates."""
    count = int(target_of.max()) + 1
    if count == len(relevance):
        total = np.empty(count)
        total[target_of] = relevance
        return total
    total = np.full(count, -np.inf)
    np.logaddexp.at(total, target_of, relevance)
    return total


def check_log_probs(values: npt.ArrayLike, shape: tuple[int, ...], name: str) -> FloatArray:
    """Log-probabilities as float64: finite or ``-inf``, not all ``-inf``."""
    array = np.asarray(values, dtype=np.float64)
    if array.shape != shape:
        raise InvalidInputError(f"{name} has shape {array.shape} where {shape} is expected")
    lowest, highest = (array.min(), array.max()) if array.size else (0.0, 0.0)  # NaN where there is any
    if not highest < np.inf:
        raise InvalidInputError(f"{name} contains NaN or +infinity: log-probabilities are finite or -inf")
    if highest == -np.inf:
        raise InvalidInputError(f"{name} gives every entry a probability of 0")
    if highest > LARGEST_LOG or (
        lowest < -LARGEST_LOG and ((array < -LARGEST_LOG) & (array > -np.inf)).any()
    ):
        raise InvalidInputError(
            f"{name} must lie between -{LARGEST_LOG:g} and {LARGEST_LOG:g}, or be -inf: a probability of 0"
        )
    return array
