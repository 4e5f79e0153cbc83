"""Pools from what people have: vectors, distances, log-probabilities, and any retriever's scores."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Literal

import numpy as np
import numpy.typing as npt

from dartboard.errors import ConfigError, InvalidInputError
from dartboard.selection import bandwidth, neighbourhood
from dartboard.selection.bandwidth import Sigma
from dartboard.selection.content import by_content
from dartboard.selection.coverage import MatrixKernel, VectorKernel, rounding_32
from dartboard.selection.kernels import (
    LARGEST_COMPONENT,
    Distance,
    check_distance,
    check_sigma,
    direct,
    distances,
    log_kernel,
)
from dartboard.selection.origin import Origin
from dartboard.selection.pool import LARGEST_LOG, Pool, check_log_probs, summed
from dartboard.selection.rows import FAST_FROM_ROWS, FAST_FROM_SIGMA, exact_rows, fast_rows
from dartboard.selection.states import log_sum_rows
from dartboard.selection.wording import Texts
from dartboard.types import FloatArray, as_matrix, check_matrix, check_vector

Auto = Literal["auto"]

_LARGEST_SCORE = 1e100


def from_embeddings(
    query: npt.ArrayLike,
    embeddings: npt.ArrayLike,
    *,
    sigma: float | Auto = "auto",
    distance: str = "scaled_cosine",
    targets: npt.ArrayLike | None = None,
    target_distances: FloatArray | None = None,
    model_sigma: float | None = None,
    divisor: float = bandwidth.DIVISOR,
    texts: Sequence[str] | Texts | None = None,
) -> Pool:
    """Candidates by their vectors, ``(n, d)``, float32 or float64, of any length.

    ``targets``, ``(T, d)``, is a vocabulary to cover instead of the candidates; ``target_distances``,
    ``(n, T)``, saves working out the candidates' distances to it. ``model_sigma`` is the σ of the model
    that made the vectors, for pools too small to tell; ``divisor`` is that of the rule for ``"auto"``.
    ``texts`` are the candidates' own, or a function that gives those at some positions: the rule then knows
    near-copies by their words instead of by their distances.
    """
    kind = check_distance(distance)
    vectors = as_matrix(embeddings)
    asked = check_vector(query, name="query", dim=vectors.shape[1])
    spread = None if sigma == "auto" else Sigma(check_sigma(sigma), "given")
    origin = Origin(query, embeddings, kind)
    read = _readable(texts, len(vectors))
    if targets is not None:
        vocabulary = direct(check_matrix(targets, name="targets", dim=vectors.shape[1]), kind)
        pool = _vector_pool(
            asked, vectors, kind, spread, model_sigma, divisor, np.float64, origin, sharpen=False
        )
        if target_distances is None:
            target_distances = distances(direct(vectors, kind), vocabulary, kind)
        return pool.retargeted(distances(vocabulary, direct(asked[None], kind), kind)[:, 0], target_distances)

    def build(dtype: type, spread: Sigma | None, refine: Callable[[], Pool] | None = None) -> Pool:
        return _vector_pool(
            asked, vectors, kind, spread, model_sigma, divisor, dtype, origin, refine, texts=read
        )

    if (
        len(vectors) < FAST_FROM_ROWS
        or vectors.dtype != np.float32
        or kind != "scaled_cosine"
        or (spread is not None and spread.value < FAST_FROM_SIGMA)
    ):
        return build(np.float64, spread)
    made: list[Pool] = []

    def refine() -> Pool:
        if not made:
            made.append(replace(build(np.float64, fast.sigma), groups=fast.groups))
        return made[0]

    fast = build(np.float32, spread, refine)
    return fast if fast.sigma.value >= FAST_FROM_SIGMA else refine()


def _vector_pool(
    query: FloatArray,
    embeddings: FloatArray,
    distance: Distance,
    sigma: Sigma | None,
    model_sigma: float | None,
    divisor: float,
    dtype: type,
    origin: Origin,
    refine: Callable[[], Pool] | None = None,
    *,
    sharpen: bool = True,
    texts: Texts | None = None,
) -> Pool:
    if dtype == np.float32:
        # The sample that tells σ is not to depend on the query.
        by_query = sigma is not None or len(embeddings) <= neighbourhood.SAMPLE
        rows = fast_rows(query, embeddings, by_query=by_query)
    else:
        rows = exact_rows(query, embeddings, distance)
    vectors, to_query, similarity, order, row_of = rows
    apart, groups = None, None
    if sigma is None:
        if len(vectors) <= neighbourhood.SAMPLE:
            apart = distances(vectors, vectors, distance)
        sigma, groups = bandwidth.from_candidates(
            vectors,
            distance,
            model_sigma,
            divisor,
            to_query=to_query if sharpen else None,
            apart=apart,
            texts=None if texts is None else lambda rows: texts(order[rows]),
        )
    log_weights = log_kernel(to_query, sigma.value)
    relevance = log_weights[row_of]
    return Pool(
        positions=np.arange(len(embeddings)),
        similarity=similarity[row_of],
        relevance=relevance,
        row_of=row_of,
        log_weights=log_weights if len(vectors) == len(row_of) else summed(relevance, row_of),
        kernel=VectorKernel(vectors, distance, sigma.value, apart=apart),
        sigma=sigma,
        targets_are="rows",
        rounding=0.0 if dtype == np.float64 else rounding_32(sigma.value),
        refine=refine,
        origin=origin,
        groups=None if groups is None else groups[row_of],
    )


def _readable(texts: Sequence[str] | Texts | None, n: int) -> Texts | None:
    """A function that gives the texts at some positions."""
    if texts is None or callable(texts):
        return texts
    if not isinstance(texts, (str, list, tuple)):
        # A column of a data frame is read by its labels, not by position.
        texts = tuple(texts)
    if isinstance(texts, str) or len(texts) != n or not all(isinstance(text, str) for text in texts):
        raise InvalidInputError(
            f"texts must be {n} strings, one a candidate: leave them out where you have none"
        )
    return lambda positions: [texts[at] for at in positions.tolist()]


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
    to_query: FloatArray = _check_distances(query_distances, "query_distances")
    if to_query.shape != (len(pairwise),):
        raise InvalidInputError(
            f"query_distances has shape {to_query.shape}: pairwise_distances asks for ({len(pairwise)},)"
        )
    spread, groups = (
        bandwidth.from_distances(pairwise, kind, to_query=to_query)
        if sigma == "auto"
        else bandwidth.Judged(Sigma(check_sigma(sigma), "given"))
    )
    closeness = (lambda d: 1.0 - 2.0 * d) if kind == "scaled_cosine" else np.negative
    relevance = log_kernel(to_query, spread.value)
    kernel = MatrixKernel(log_kernel(pairwise, spread.value), closeness(pairwise))
    origin = Origin(query_distances, pairwise_distances, kind, vectors=False)
    return replace(_matrix_pool(kernel, relevance, closeness(to_query), spread, origin), groups=groups)


def from_log_probs(query_log_probs: npt.ArrayLike, pairwise_log_probs: npt.ArrayLike) -> Pool:
    """Candidates by log P(t|q), ``(n,)``, and log P(t|c) as ``pairwise_log_probs[c, t]``, ``(n, n)``.

    ``-inf`` is a probability of 0. Similarities are reported as these log-probabilities.
    """
    relevance = check_log_probs(query_log_probs, (np.size(query_log_probs),), "query_log_probs")
    pairwise = check_log_probs(pairwise_log_probs, (relevance.size,) * 2, "pairwise_log_probs")
    return _matrix_pool(MatrixKernel(pairwise, pairwise), relevance, relevance, Sigma(float("nan"), "none"))


def log_softmax(scores: npt.ArrayLike, temperature: float | Auto = "auto") -> FloatArray:
    """Log target weights from any retriever's scores: ``log softmax(scores / temperature)``.

    The scale of scores is the retriever's own, so the default temperature is their standard deviation.
    """
    try:
        values = np.asarray(scores, dtype=np.float64)
    except (TypeError, ValueError):
        values = np.empty(0)
    if values.ndim != 1 or values.size == 0 or not (np.abs(values) < _LARGEST_SCORE).all():
        raise InvalidInputError(f"scores must be a vector of finite numbers below {_LARGEST_SCORE:g} in size")
    if temperature == "auto":
        temperature = float(values.std()) or 1.0
    elif not isinstance(temperature, (int, float, np.number)) or not 0 < temperature < np.inf:
        raise ConfigError(f"temperature must be a finite number > 0 or 'auto', got {temperature!r}")
    with np.errstate(over="ignore"):  # what is too far below the best has no probability
        logits: FloatArray = (values - values.max()) / temperature
    logits[logits < -LARGEST_LOG] = -np.inf
    logits -= log_sum_rows(logits[None])[0]
    return logits


def in_order_of(scores: npt.ArrayLike, values: FloatArray) -> FloatArray:
    """The same values, dealt out so that a higher score has a larger one; equal scores share their mean."""
    given = np.asarray(scores, dtype=np.float64)
    if given.shape != values.shape or not np.isfinite(given).all():
        raise InvalidInputError(f"scores must be {len(values)} finite numbers, one a candidate")
    _, group, size = np.unique(given, return_inverse=True, return_counts=True)
    total = np.zeros(len(size))
    np.add.at(total, np.sort(group), np.sort(values))
    dealt: FloatArray = (total / size)[group]
    return dealt


def _matrix_pool(
    kernel: MatrixKernel,
    relevance: FloatArray,
    similarity: FloatArray,
    sigma: Sigma,
    origin: Origin | None = None,
) -> Pool:
    if len(relevance) == 0:
        raise InvalidInputError("a pool needs at least one candidate")
    rows, row_of = by_content(kernel.log_matrix, keep_order=True)
    return Pool(
        positions=np.arange(len(relevance)),
        similarity=similarity,
        relevance=relevance,
        row_of=row_of,
        log_weights=relevance,
        kernel=kernel.subset(rows, None),
        sigma=sigma,
        targets_are="candidates",
        origin=origin,
    )


def _check_distances(values: npt.ArrayLike, name: str) -> FloatArray:
    array = np.asarray(values, dtype=np.float64)
    if array.size == 0 or not np.isfinite(array).all() or array.min() < 0:
        raise InvalidInputError(f"{name} must be finite numbers >= 0, got shape {array.shape}")
    if array.max() > LARGEST_COMPONENT:
        raise InvalidInputError(f"{name} must be at most {LARGEST_COMPONENT:g}: scale them")
    return array
