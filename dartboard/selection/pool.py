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
    log_similarity,
    unit_rows,
)
from dartboard.types import FloatArray, IntArray, as_matrix, check_matrix, check_vector

Auto = Literal["auto"]

_FAST_FROM_ROWS = 64
FAST_FROM_SIGMA = 0.03
"""Below either, float32 saves nothing or proves nothing."""

_ROUNDING_64 = 1e-13


def rounding_32(sigma: float | FloatArray) -> FloatArray:
    """What float32 may get wrong: in a gain, as a share of what the candidate covers alone; in a log-probability.

    A cosine is rounded by some 1e-7, which moves ``exp(-d²/2σ²)`` by up to ``1e-7 · d/2σ²``. The worst
    error seen over a hundred pools of 32 to 1024 dimensions was 5e-8/σ²; this is four times that.
    """
    return 2e-6 + 2e-7 / np.asarray(sigma) ** 2


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
    """Rows by their vectors, as the distance wants them: unit length for the cosine.

    The targets are the rows themselves unless ``to_targets``, ``(rows, T)``, gives distances to others.
    The kernel is Gaussian with spread ``sigma``, or ``1 - d`` itself where that is None. Unit float32 rows
    walk fast, and are certain of a pick only where its lead exceeds their rounding.
    """

    vectors: FloatArray
    distance: Distance
    sigma: float | None
    to_targets: FloatArray | None = None

    def states(self, log_weights: FloatArray) -> list[Callable[[], State]]:
        sigma = self.sigma
        if self.vectors.dtype == np.float32 and sigma is not None:
            rounding = float(rounding_32(sigma))
            return [lambda: LinearState(log_weights, fast_kernel(self.vectors, sigma), rounding)]
        return [lambda: self._linear(log_weights), lambda: self._log(log_weights)]

    def rows(self, rows: IntArray) -> FloatArray:
        if self.to_targets is not None:
            return self._log_kernel(self.to_targets[rows])
        exact = self.vectors.astype(np.float64, copy=False)
        return self._log_kernel(distances(exact[rows], exact, self.distance))

    def similarities(self, row: int) -> FloatArray:
        unit = self.vectors if self.distance == "scaled_cosine" else unit_rows(self.vectors)
        return (unit @ unit[row]).astype(np.float64)

    def subset(self, rows: IntArray, targets: IntArray | None) -> "VectorKernel":
        to_targets = None if self.to_targets is None else self.to_targets[rows]
        return replace(self, vectors=self.vectors[rows], to_targets=to_targets)

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
        return self._log_kernel(distances(self.vectors, self.vectors, self.distance))

    def _log_kernel(self, distance: FloatArray) -> FloatArray:
        return log_similarity(distance) if self.sigma is None else log_kernel(distance, self.sigma)


@dataclass(frozen=True, slots=True)
class MatrixKernel:
    """Rows by a given matrix of log-probabilities, with the similarities that MMR compares."""

    log_matrix: FloatArray
    similarity: FloatArray

    def states(self, log_weights: FloatArray) -> list[Callable[[], State]]:
        peaks = self.log_matrix.max(axis=0)
        shift = peaks.max() if np.isfinite(peaks.max()) else 0.0

        def linear() -> State:
            kernel = _exp(self.log_matrix - shift)
            return LinearState(log_weights, kernel, _ROUNDING_64, kernel.max(axis=0))

        return [linear, lambda: LogState(log_weights, self.log_matrix, peaks)]

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
    them. ``row_of`` leads from candidate to kernel row. A pool in float32 knows its ``relevance`` to
    within ``rounding`` and can be made again in float64 by ``refine``.
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

    def log_total(self) -> float:
        """The log of the objective of all candidates together."""
        if self.targets_are == "rows":
            return float(log_sum_rows(self.log_weights[None])[0])
        peaks = self.kernel.rows(np.arange(int(self.row_of.max()) + 1)).max(axis=0)
        return float(log_sum_rows((self.log_weights + peaks)[None])[0])

    def reweighted(self, relevance: npt.ArrayLike) -> "Pool":
        """The same candidates with log P(c|q), ``(n,)``, from elsewhere (:func:`log_softmax` of scores)."""
        given = _check_log_probs(relevance, (len(self),), "relevance")
        weights = {"rows": lambda: _summed(given, self.row_of), "candidates": lambda: given}
        return replace(
            self,
            relevance=given,
            log_weights=weights.get(self.targets_are, lambda: self.log_weights)(),
            rounding=0.0,
            refine=None if self.refine is None else lambda refine=self.refine: refine().reweighted(given),
        )

    def with_cosine_kernel(self, sigma: Sigma) -> "Pool":
        """The same candidates, covering one another by ``(1 + cos) / 2``; ``sigma`` is what made the relevance."""
        exact = self if self.refine is None else self.refine()
        if not isinstance(exact.kernel, VectorKernel) or exact.kernel.distance != "scaled_cosine":
            raise ConfigError("a cosine kernel needs a pool of vectors under the scaled cosine distance")
        return replace(exact, kernel=replace(exact.kernel, sigma=None), sigma=sigma)

    def retargeted(self, query_distances: FloatArray, target_distances: FloatArray) -> "Pool":
        """The same candidates with other targets, by distances: to the query ``(T,)``, to candidates ``(n, T)``."""
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
            refine=None if self.refine is None else lambda refine=self.refine: refine().restrict(keep),
        )


def from_embeddings(
    query: npt.ArrayLike,
    embeddings: npt.ArrayLike,
    *,
    sigma: float | Auto = "auto",
    distance: str = "scaled_cosine",
    targets: npt.ArrayLike | None = None,
    target_distances: FloatArray | None = None,
    model_sigma: float | None = None,
) -> Pool:
    """Candidates by their vectors, ``(n, d)``, float32 or float64, of any length.

    ``targets``, ``(T, d)``, is a vocabulary to cover instead of the candidates; ``target_distances``,
    ``(n, T)``, saves working out the candidates' distances to it. ``model_sigma`` is the σ of the model
    that made the vectors, for pools too small to tell.
    """
    kind = check_distance(distance)
    vectors = as_matrix(embeddings)
    asked = check_vector(query, name="query", dim=vectors.shape[1])
    spread = None if sigma == "auto" else Sigma(check_sigma(sigma), "given")
    if targets is not None:
        vocabulary = direct(check_matrix(targets, name="targets", dim=vectors.shape[1]), kind)
        pool = _vector_pool(asked, vectors, kind, spread, model_sigma, np.float64)
        if target_distances is None:
            target_distances = distances(direct(vectors, kind), vocabulary, kind)
        return pool.retargeted(distances(vocabulary, direct(asked[None], kind), kind)[:, 0], target_distances)

    def build(dtype: type, refine: Callable[[], Pool] | None = None) -> Pool:
        return _vector_pool(asked, vectors, kind, spread, model_sigma, dtype, refine)

    if (
        len(vectors) < _FAST_FROM_ROWS
        or vectors.dtype != np.float32
        or kind != "scaled_cosine"
        or (spread is not None and spread.value < FAST_FROM_SIGMA)
    ):
        return build(np.float64)
    fast = build(np.float32, lambda: build(np.float64))
    return fast if fast.sigma.value >= FAST_FROM_SIGMA else build(np.float64)


def _vector_pool(
    query: FloatArray,
    embeddings: FloatArray,
    distance: Distance,
    sigma: Sigma | None,
    model_sigma: float | None,
    dtype: type,
    refine: Callable[[], Pool] | None = None,
) -> Pool:
    if dtype == np.float32:
        rows, row_of = _by_content(embeddings)
        vectors = direct(embeddings[rows], distance, dtype)
    else:
        vectors = direct(embeddings, distance, dtype)
        rows, row_of = _by_content(vectors)
        vectors = vectors[rows]
    # A row that has no direction is NaN throughout once it is scaled to unit length.
    if not np.isfinite((vectors[:, 0] if distance == "scaled_cosine" else vectors).sum()):
        check_matrix(embeddings)
    sigma = sigma or bandwidth.from_candidates(vectors, distance, model_sigma)
    asked = direct(query[None], distance, dtype)
    to_query = distances(vectors, asked, distance)[:, 0]
    cosine = 1.0 - 2.0 * to_query if distance == "scaled_cosine" else unit_rows(vectors) @ unit_rows(asked)[0]
    relevance = log_kernel(to_query, sigma.value)[row_of]
    return Pool(
        positions=np.arange(len(embeddings)),
        similarity=cosine[row_of].astype(np.float64),
        relevance=relevance,
        row_of=row_of,
        log_weights=_summed(relevance, row_of),
        kernel=VectorKernel(vectors, distance, sigma.value),
        sigma=sigma,
        targets_are="rows",
        rounding=0.0 if dtype == np.float64 else float(rounding_32(sigma.value)),
        refine=refine,
    )


def from_distances(
    query_distances: npt.ArrayLike,
    pairwise_distances: npt.ArrayLike,
    *,
    sigma: float | Auto = "auto",
    distance: str = "scaled_cosine",
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
    directed = unit_rows(vectors, dtype) if distance == "scaled_cosine" else vectors.astype(dtype)
    directed += 0.0  # -0.0 becomes 0.0: equal numbers, equal bits
    return directed


def _exp(log_values: FloatArray) -> FloatArray:
    with np.errstate(under="ignore"):
        return np.exp(log_values, out=log_values)


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
    keys = fingerprints(matrix)
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


def fingerprints(matrix: FloatArray) -> npt.NDArray[np.uint64]:
    """``(n,)`` 64-bit fingerprints of rows, the same wherever a row stands."""
    words = np.ascontiguousarray(matrix)
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
