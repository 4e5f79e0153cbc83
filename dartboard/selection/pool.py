"""A query's candidates as arrays: who is relevant, and who covers whom.

A pool has ``n`` candidates and a set of targets ``t``, any of which the query may mean. ``log_weights``
is log P(t|q) up to a constant, and the kernel's entry (c, t) is how well candidate c stands in for
target t. The targets are the candidates themselves, as in the paper, or a vocabulary.

Candidates whose vectors are equal to the bit share one *row* of the kernel, so that a copy of a pick has
a gain of exactly zero. Rows stand in an order that depends on their content alone: the same candidates in
another order give the same numbers, to the bit.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Literal, Protocol

import numpy as np
import numpy.typing as npt

from dartboard.errors import ConfigError, InvalidInputError
from dartboard.selection import bandwidth
from dartboard.selection.bandwidth import Sigma
from dartboard.selection.greedy import LinearState, LogState, State, log_sum_rows
from dartboard.selection.kernels import (
    Distance,
    check_distance,
    check_sigma,
    distances,
    fast_kernel,
    log_kernel,
    unit_rows,
)
from dartboard.types import FloatArray, IntArray, check_matrix, check_vector

Auto = Literal["auto"]

_FAST_FROM_ROWS = 256
_FAST_FROM_SIGMA = 0.02
"""Below either, float32 saves nothing or proves nothing."""

_ROUNDING_32, _ROUNDING_64 = 4e-6, 1e-13
_TYPICAL_SIGMA = 0.09


class Kernel(Protocol):
    """How well each row stands in for each target."""

    def states(self, log_weights: FloatArray) -> list[Callable[[], State]]:
        """Ways to walk, the fastest first, each more precise than the one before."""

    def rows(self, rows: IntArray) -> FloatArray:
        """``(len(rows), T)`` log kernel, float64."""

    def similarities(self, row: int) -> FloatArray:
        """``(rows,)`` similarity of one row to every row, higher is closer."""

    def subset(self, rows: IntArray, targets: IntArray | None) -> "Kernel":
        """The kernel of some rows and, where targets are given, of those targets only."""


@dataclass(frozen=True, slots=True)
class VectorKernel:
    """Rows by their vectors; the targets are the rows themselves unless given.

    ``directed`` are the vectors as the distance wants them (unit length for the cosine), in the precision
    that the first walk uses; ``vectors`` are as they came, for a walk that needs more.
    """

    vectors: FloatArray
    directed: FloatArray
    distance: Distance
    sigma: float
    targets: FloatArray | None = None

    def states(self, log_weights: FloatArray) -> list[Callable[[], State]]:
        exact: list[Callable[[], State]] = [
            lambda: LinearState(log_weights, _exp(self._all_rows()), _ROUNDING_64),
            lambda: LogState(log_weights, self._all_rows()),
        ]
        if self.directed.dtype == np.float32 and self.distance == "scaled_cosine" and self.targets is None:
            rounding = _ROUNDING_32 * max(1.0, _TYPICAL_SIGMA / self.sigma)
            return [lambda: LinearState(log_weights, fast_kernel(self.directed, self.sigma), rounding), *exact]
        return exact

    def rows(self, rows: IntArray) -> FloatArray:
        exact = self._exact()
        right = exact if self.targets is None else self.targets
        return log_kernel(distances(exact[rows], right, self.distance), self.sigma)

    def similarities(self, row: int) -> FloatArray:
        unit = self.directed if self.distance == "scaled_cosine" else unit_rows(self.directed)
        return (unit @ unit[row]).astype(np.float64)

    def subset(self, rows: IntArray, targets: IntArray | None) -> "VectorKernel":
        return replace(self, vectors=self.vectors[rows], directed=self.directed[rows])

    def _exact(self) -> FloatArray:
        return self.directed if self.directed.dtype == np.float64 else direct(self.vectors, self.distance)

    def _all_rows(self) -> FloatArray:
        """The whole log kernel; with one array on both sides the matrix product costs half."""
        exact = self._exact()
        right = exact if self.targets is None else self.targets
        return log_kernel(distances(exact, right, self.distance), self.sigma)


@dataclass(frozen=True, slots=True)
class MatrixKernel:
    """Rows by a given matrix of log-probabilities, with the similarities that MMR compares."""

    log_matrix: FloatArray
    similarity: FloatArray

    def states(self, log_weights: FloatArray) -> list[Callable[[], State]]:
        peak = self.log_matrix.max()
        shift = peak if np.isfinite(peak) else 0.0
        return [
            lambda: LinearState(log_weights + shift, _exp(self.log_matrix - shift), _ROUNDING_64),
            lambda: LogState(log_weights, self.log_matrix),
        ]

    def rows(self, rows: IntArray) -> FloatArray:
        return self.log_matrix[rows]

    def similarities(self, row: int) -> FloatArray:
        return self.similarity[row]

    def subset(self, rows: IntArray, targets: IntArray | None) -> "MatrixKernel":
        matrix = self.log_matrix[rows]
        return MatrixKernel(
            matrix if targets is None else matrix[:, targets], self.similarity[np.ix_(rows, rows)]
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """Candidates of one query. Built by :func:`from_embeddings` and its sisters, not by hand.

    ``positions`` are the candidates' places in the arrays that the caller gave; all other arrays follow
    them. ``row_of`` leads from candidate to kernel row.
    """

    positions: IntArray
    similarity: FloatArray
    relevance: FloatArray
    row_of: IntArray
    log_weights: FloatArray
    kernel: Kernel
    sigma: Sigma
    targets_are: Literal["rows", "candidates", "vocabulary"]

    def __len__(self) -> int:
        return len(self.positions)

    def by_row(self) -> tuple[IntArray, IntArray]:
        """Candidates row by row, in each the most relevant first, then the caller's order; and where rows start."""
        rows = len(self.log_weights) if self.targets_are == "rows" else int(self.row_of.max()) + 1
        if rows == len(self):
            order = np.empty(rows, dtype=np.intp)
            order[self.row_of] = np.arange(rows)
            return order, np.arange(rows)
        order = np.lexsort((self.positions, -self.relevance, self.row_of))
        return order, np.searchsorted(self.row_of[order], np.arange(rows))

    def by_relevance(self) -> IntArray:
        """Candidates, the most relevant first, then by row, then in the caller's order."""
        return np.lexsort((self.positions, self.row_of, -self.relevance))

    def find(self, positions: Sequence[int]) -> list[int]:
        """Candidates by their places in the caller's arrays."""
        return [int(np.flatnonzero(self.positions == position)[0]) for position in positions]

    def restrict(self, keep: npt.NDArray[np.bool_]) -> "Pool":
        """The pool without some candidates: they are neither picked nor targets. σ stays."""
        if keep.all():
            return self
        if not keep.any():
            raise InvalidInputError("no candidate is left: every one is excluded or below the relevance floor")
        rows, row_of = np.unique(self.row_of[keep], return_inverse=True)
        log_weights, kernel = self.log_weights, self.kernel.subset(rows, None)
        if self.targets_are == "rows":
            log_weights = _summed(self.relevance[keep], row_of)
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
        )


def from_embeddings(
    query: npt.ArrayLike,
    embeddings: npt.ArrayLike,
    *,
    sigma: float | Auto = "auto",
    distance: str = "scaled_cosine",
    log_weights: npt.ArrayLike | None = None,
    targets: npt.ArrayLike | None = None,
    model_sigma: float | None = None,
) -> Pool:
    """Candidates by their vectors, ``(n, d)``, float32 or float64, of any length.

    ``log_weights``, ``(n,)``, says how relevant each candidate is where that is known better than by
    distance (:func:`log_softmax` makes it from scores). ``targets``, ``(T, d)``, is a vocabulary to
    cover instead of the candidates.
    """
    kind = check_distance(distance)
    vectors = check_matrix(embeddings)
    asked = check_vector(query, name="query", dim=vectors.shape[1])
    if log_weights is not None and targets is not None:
        raise ConfigError("give log_weights or targets, not both: a vocabulary has its own weights")
    fast = len(vectors) > _FAST_FROM_ROWS and vectors.dtype == np.float32
    fast = fast and (sigma == "auto" or check_sigma(sigma) >= _FAST_FROM_SIGMA)
    directed = direct(vectors, kind, np.float32 if fast else np.float64)
    rows, row_of = _by_content(directed)
    directed = directed[rows]
    unique = vectors[rows] if fast else directed
    spread = (
        bandwidth.from_candidates(directed, kind, model_sigma)
        if sigma == "auto"
        else Sigma(check_sigma(sigma), "given")
    )
    cosine = _cosines(unique, asked)
    if log_weights is not None:
        relevance = _check_log_probs(log_weights, (len(vectors),), "log_weights")
    else:
        apart = (1.0 - cosine) / 2.0
        if kind == "euclidean":
            apart = distances(unique, asked[None], kind)[:, 0]
        relevance = log_kernel(apart, spread.value)[row_of]
    similarity = cosine[row_of]
    if targets is None:
        return Pool(
            positions=np.arange(len(vectors)),
            similarity=similarity,
            relevance=relevance,
            row_of=row_of,
            log_weights=_summed(relevance, row_of),
            kernel=VectorKernel(unique, directed, kind, spread.value),
            sigma=spread,
            targets_are="rows",
        )
    vocabulary = direct(check_matrix(targets, name="targets", dim=vectors.shape[1]), kind)
    return Pool(
        positions=np.arange(len(vectors)),
        similarity=similarity,
        relevance=relevance,
        row_of=row_of,
        log_weights=log_kernel(distances(vocabulary, direct(asked[None], kind), kind)[:, 0], spread.value),
        kernel=VectorKernel(unique, directed, kind, spread.value, vocabulary),
        sigma=spread,
        targets_are="vocabulary",
    )


def from_distances(
    query_distances: npt.ArrayLike,
    pairwise_distances: npt.ArrayLike,
    *,
    sigma: float | Auto = "auto",
    distance: str = "scaled_cosine",
    log_weights: npt.ArrayLike | None = None,
) -> Pool:
    """Candidates by their distances to the query, ``(n,)``, and to one another, ``(n, n)``.

    Similarities are reported as ``1 - 2d`` for the scaled cosine and ``-d`` for the Euclidean distance.
    """
    kind = check_distance(distance)
    pairwise = _check_distances(pairwise_distances, "pairwise_distances")
    if pairwise.ndim != 2 or pairwise.shape[0] != pairwise.shape[1]:
        raise InvalidInputError(f"pairwise_distances must be a square matrix, got shape {pairwise.shape}")
    to_query = _check_distances(query_distances, "query_distances")
    if to_query.shape != (len(pairwise),):
        raise InvalidInputError(
            f"query_distances has shape {to_query.shape}: pairwise_distances asks for ({len(pairwise)},)"
        )
    spread = (
        bandwidth.from_distances(pairwise, kind) if sigma == "auto" else Sigma(check_sigma(sigma), "given")
    )
    closeness = (lambda d: 1.0 - 2.0 * d) if kind == "scaled_cosine" else np.negative
    relevance = log_kernel(to_query, spread.value)
    if log_weights is not None:
        relevance = _check_log_probs(log_weights, to_query.shape, "log_weights")
    kernel = MatrixKernel(log_kernel(pairwise, spread.value), closeness(pairwise))
    return _matrix_pool(kernel, relevance, closeness(to_query), spread)


def from_log_probs(query_log_probs: npt.ArrayLike, pairwise_log_probs: npt.ArrayLike) -> Pool:
    """Candidates by log P(t|q), ``(n,)``, and log P(t|c) as ``pairwise_log_probs[c, t]``, ``(n, n)``.

    ``-inf`` is a probability of 0. Similarities are reported as these log-probabilities.
    """
    relevance = np.asarray(query_log_probs, dtype=np.float64)
    relevance = _check_log_probs(relevance, (relevance.size,), "query_log_probs")
    pairwise = _check_log_probs(pairwise_log_probs, (relevance.size,) * 2, "pairwise_log_probs")
    return _matrix_pool(MatrixKernel(pairwise, pairwise), relevance, relevance, Sigma(float("nan"), "none"))


def log_softmax(scores: npt.ArrayLike, temperature: float | Auto = "auto") -> FloatArray:
    """Log target weights from any retriever's scores: ``log softmax(scores / temperature)``.

    The scale of scores is the retriever's own, so the default temperature is their standard deviation.
    """
    values = np.asarray(scores, dtype=np.float64)
    if values.ndim != 1 or values.size == 0 or not np.isfinite(values).all():
        raise InvalidInputError(f"scores must be a vector of finite numbers, got shape {values.shape}")
    if temperature == "auto":
        temperature = float(values.std()) or 1.0
    elif not (np.isfinite(temperature) and temperature > 0):
        raise ConfigError(f"temperature must be a finite number > 0 or 'auto', got {temperature!r}")
    logits = (values - values.max()) / temperature
    return logits - log_sum_rows(logits[None])[0]


def direct(vectors: FloatArray, distance: Distance, dtype: type = np.float64) -> FloatArray:
    """Vectors as the distance wants them: unit rows for the cosine, as they are otherwise."""
    return unit_rows(vectors, dtype) if distance == "scaled_cosine" else vectors.astype(dtype)


def _exp(log_values: FloatArray) -> FloatArray:
    with np.errstate(under="ignore"):
        return np.exp(log_values, out=log_values)


def _cosines(vectors: FloatArray, query: FloatArray) -> FloatArray:
    """``(n,)`` cosines with the query in float64; the rows themselves are not scaled, which costs less."""
    rows, asked = vectors.astype(np.float64, copy=False), unit_rows(query[None], np.float64)[0]
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        cosine: FloatArray = (rows @ asked) / np.sqrt(np.einsum("ij,ij->i", rows, rows))
    if not np.isfinite(cosine).all():
        cosine = unit_rows(rows) @ asked
    return np.clip(cosine, -1.0, 1.0, out=cosine)


def _matrix_pool(kernel: MatrixKernel, relevance: FloatArray, similarity: FloatArray, sigma: Sigma) -> Pool:
    if len(relevance) == 0:
        raise InvalidInputError("a pool needs at least one candidate")
    rows, row_of = _by_content(kernel.log_matrix, keep_order=True)
    return Pool(
        positions=np.arange(len(relevance)),
        similarity=similarity,
        relevance=relevance,
        row_of=row_of,
        log_weights=relevance,
        kernel=kernel.subset(rows, None),
        sigma=sigma,
        targets_are="candidates",
    )


def _by_content(matrix: FloatArray, keep_order: bool = False) -> tuple[IntArray, IntArray]:
    """Distinct rows by position, and for every row which of these it equals.

    In an order that depends on content alone unless ``keep_order``.
    """
    keys = _fingerprints(matrix)
    order = keys.argsort(kind="stable")
    ordered = keys[order]
    starts = np.concatenate(([True], ordered[1:] != ordered[:-1]))
    first = order[starts]
    row_of = np.empty(len(matrix), dtype=np.intp)
    row_of[order] = starts.cumsum() - 1
    if len(first) < len(matrix) and not np.array_equal(matrix[first][row_of], matrix):
        _, first, row_of = np.unique(matrix, axis=0, return_index=True, return_inverse=True)
        row_of = row_of.reshape(-1)
    if keep_order:
        order = first.argsort()
        row_of = order.argsort()[row_of]
        first = first[order]
    return first, row_of


def _fingerprints(matrix: FloatArray) -> npt.NDArray[np.uint64]:
    """``(n,)`` 64-bit fingerprints of rows, the same wherever a row stands."""
    matrix += 0.0  # -0.0 becomes 0.0: equal numbers, equal bits
    words = matrix
    if words.dtype == np.float32 and words.shape[1] % 2:
        words = np.pad(words, ((0, 0), (0, 1)))
    bits = words.view(np.uint64)
    return np.einsum("ij,j->i", bits, _multipliers(bits.shape[1]))


@cache
def _multipliers(count: int) -> npt.NDArray[np.uint64]:
    return np.random.default_rng(20240712).integers(2**63, size=count, dtype=np.uint64) | np.uint64(1)


def _summed(relevance: FloatArray, row_of: IntArray) -> FloatArray:
    """Log weight of each row: the sum over its candidates."""
    count = int(row_of.max()) + 1
    if count == len(relevance):
        total = np.empty(count)
        total[row_of] = relevance
        return total
    total = np.full(count, -np.inf)
    np.logaddexp.at(total, row_of, relevance)
    return total


def _check_log_probs(values: npt.ArrayLike, shape: tuple[int, ...], name: str) -> FloatArray:
    array = np.asarray(values, dtype=np.float64)
    if array.shape != shape:
        raise InvalidInputError(f"{name} has shape {array.shape} where {shape} is expected")
    if np.isnan(array).any() or (array == np.inf).any():
        raise InvalidInputError(f"{name} contains NaN or +infinity: log-probabilities are finite or -inf")
    if array.size and array.max() == -np.inf:
        raise InvalidInputError(f"{name} gives every entry a probability of 0")
    return array


def _check_distances(values: npt.ArrayLike, name: str) -> FloatArray:
    array = np.asarray(values, dtype=np.float64)
    if array.size == 0 or not np.isfinite(array).all() or array.min() < 0:
        raise InvalidInputError(f"{name} must be finite numbers >= 0, got shape {array.shape}")
    return array
