"""Pools from what people have: vectors, distances, log-probabilities, and any retriever's scores."""

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from dartboard.errors import ConfigError, InvalidInputError
from dartboard.selection.auto_sigma import DIVISOR, SAMPLE, auto_sigma
from dartboard.selection.kernel_matrix import MatrixKernel, VectorKernel
from dartboard.selection.kernels import (
    LARGEST_COMPONENT,
    Auto,
    Distance,
    check_distance,
    check_sigma,
    cosines_to,
    distances,
    log_kernel,
    log_sum_exp,
    prepared,
    row_dots,
    unit_rows,
)
from dartboard.selection.pool import LARGEST_LOG, Pool, check_log_probs, summed
from dartboard.selection.questions import check_queries, check_weights, mixed_relevance
from dartboard.selection.result import Origin, Sigma
from dartboard.types import FloatArray, IntArray, as_matrix, check_matrix, refuse_masked

_LARGEST_SCORE = 1e100


def from_embeddings(
    query: npt.ArrayLike,
    embeddings: npt.ArrayLike,
    *,
    weights: npt.ArrayLike | None = None,
    sigma: float | Auto = "auto",
    distance: str = "scaled_cosine",
    targets: npt.ArrayLike | None = None,
    target_distances: FloatArray | None = None,
    model_sigma: float | None = None,
    divisor: float = DIVISOR,
    groups: npt.ArrayLike | None = None,
    ranking: npt.ArrayLike | None = None,
    prefer: npt.ArrayLike | None = None,
) -> Pool:
    """Candidates by their vectors, ``(n, d)``, float32 or float64, of any length.

    Args:
        query: ``(d,)``, or several questions, ``(m, d)``: P(t|q) is then the mixture of theirs
            (:func:`mixture`), with ``weights``, ``(m,)``, equal by default.
        targets: ``(T, d)`` a vocabulary to cover instead of the candidates. ``target_distances``, ``(n, T)``,
            saves working out the candidates' distances to it.
        model_sigma: the σ of the model that made the vectors, for pools too small to tell; ``divisor`` is
            that of the rule for ``"auto"``.
        groups: ``(n,)`` numbers: candidates with equal ones are near-duplicates, of which one is kept.
        ranking: ``(n,)``, or ``(m, n)`` for several questions, scores of a retriever whose order counts, not
            the distances to the query. Their scale is the retriever's own, so only the order is taken: the
            best candidate gets the largest query probability of the pool, the next one the second largest …
            Equal scores share their mean.
        prefer: ``(n,)`` numbers: of near-duplicates, the one with the largest is picked, not the most
            relevant one.
    """
    kind = check_distance(distance)
    vectors = as_matrix(embeddings)
    asked = check_queries(query, vectors.shape[1])
    shares = check_weights(weights, len(asked))
    given = None if sigma == "auto" else Sigma(check_sigma(sigma), "given")
    scores = None if ranking is None else check_rankings(ranking, len(asked), len(vectors))
    group_of = None if groups is None else _check_groups(groups, len(vectors))
    rows, to_query, similarity, order, row_of = _distinct_rows(vectors, asked, kind)
    apart = None
    if given is None:
        near = prepared(rows[:SAMPLE], kind, rows.dtype.type)
        between = distances(near, near, kind)
        apart = between if len(rows) <= SAMPLE else None
        if group_of is not None:
            best = None if scores is None else scores.max(axis=0)[order]
            kept = _representatives(group_of[order][:SAMPLE], best)
            between = between[np.ix_(kept, kept)]
        given = auto_sigma(between, kind, model_sigma=model_sigma, divisor=divisor)
    by_question = log_kernel(to_query, given.value).take(row_of, axis=1)
    if scores is not None:
        by_question = np.stack([in_order_of(*pair) for pair in zip(scores, by_question, strict=True)])
    relevance, questions = mixed_relevance(by_question, shares, row_of if group_of is None else group_of)
    pool = Pool(
        positions=np.arange(len(vectors)),
        similarity=similarity[row_of],
        relevance=relevance,
        questions=questions,
        row_of=row_of,
        target_of=row_of,
        log_weights=summed(relevance, row_of),
        kernel=VectorKernel(rows, kind, given.value, apart),
        sigma=given,
        origin=Origin(query, embeddings, kind),
        groups=group_of,
        preference=None if prefer is None else _check_scores(prefer, len(vectors), "prefer"),
    )
    if targets is None:
        return pool
    words = prepared(check_matrix(targets, name="targets", dim=vectors.shape[1]), kind)
    by_word = log_kernel(distances(words, prepared(asked, kind), kind).T, given.value)
    log_weights, questions = mixed_relevance(by_word, shares)
    by_row = None if target_distances is None else target_distances[order]
    covered = distances(prepared(vectors[order], kind), words, kind) if by_row is None else by_row
    unit = unit_rows(rows, np.float64)
    return replace(
        pool,
        target_of=None,
        log_weights=log_weights,
        questions=questions,
        kernel=MatrixKernel(log_kernel(covered, given.value), unit @ unit.T, np.arange(len(rows))),
    )


def from_distances(
    query_distances: npt.ArrayLike,
    pairwise_distances: npt.ArrayLike,
    *,
    sigma: float | Auto = "auto",
    distance: str = "scaled_cosine",
    weights: npt.ArrayLike | None = None,
    groups: npt.ArrayLike | None = None,
) -> Pool:
    """Candidates by their distances to the query, ``(n,)``, and to one another, ``(n, n)``.

    Distances to several questions are ``(m, n)``, with ``weights``, ``(m,)``, equal by default.
    ``groups`` are near-duplicates, as in :func:`from_embeddings`. Similarities are reported as ``1 - 2d`` for
    the scaled cosine and ``-d`` for the Euclidean distance.
    """
    kind = check_distance(distance)
    pairwise = _check_distances(pairwise_distances, "pairwise_distances")
    if pairwise.ndim != 2 or pairwise.shape[0] != pairwise.shape[1]:
        raise InvalidInputError(f"pairwise_distances must be a square matrix, got shape {pairwise.shape}")
    to_query: FloatArray = _check_distances(query_distances, "query_distances")
    if to_query.shape[-1:] != (len(pairwise),) or to_query.ndim > 2:
        raise InvalidInputError(
            f"query_distances has shape {to_query.shape}: pairwise_distances asks for ({len(pairwise)},)"
        )
    to_query = np.atleast_2d(to_query)
    shares, closest = check_weights(weights, len(to_query)), to_query.min(axis=0)
    if sigma == "auto":
        near = np.argsort(closest, kind="stable")[:SAMPLE]
        between = pairwise[np.ix_(near, near)]
        between = (between + between.T) / 2.0  # pair scores need not be symmetric
        distinct = ~np.triu(between == 0.0, 1).any(axis=0)
        found = auto_sigma(between[np.ix_(distinct, distinct)], kind)
    else:
        found = Sigma(check_sigma(sigma), "given")
    closeness = (lambda d: 1.0 - 2.0 * d) if kind == "scaled_cosine" else np.negative
    kernel = MatrixKernel(log_kernel(pairwise, found.value), closeness(pairwise), np.arange(len(pairwise)))
    origin = Origin(query_distances, pairwise_distances, kind, vectors=False)
    group_of = None if groups is None else _check_groups(groups, len(pairwise))
    relevance, questions = mixed_relevance(log_kernel(to_query, found.value), shares, group_of)
    pool = _matrix_pool(kernel, relevance, closeness(closest), found, origin)
    return replace(pool, questions=questions, groups=group_of)


def from_log_probs(query_log_probs: npt.ArrayLike, pairwise_log_probs: npt.ArrayLike) -> Pool:
    """Candidates by log P(t|q), ``(n,)``, and log P(t|c) as ``pairwise_log_probs[c, t]``, ``(n, n)``.

    ``-inf`` is a probability of 0. Similarities are reported as these log-probabilities.
    """
    relevance = check_log_probs(query_log_probs, (np.size(query_log_probs),), "query_log_probs")
    pairwise = check_log_probs(pairwise_log_probs, (relevance.size,) * 2, "pairwise_log_probs")
    kernel = MatrixKernel(pairwise, pairwise, np.arange(len(pairwise)))
    return _matrix_pool(kernel, relevance, relevance, Sigma(float("nan"), "none"))


def log_softmax(scores: npt.ArrayLike, temperature: float | Auto = "auto") -> FloatArray:
    """Log target weights from any retriever's scores: ``log softmax(scores / temperature)``.

    The scale of scores is the retriever's own, so the default temperature is their standard deviation.
    """
    refuse_masked(scores, "scores")
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
    with np.errstate(over="ignore"):  # scores too far below the best get a probability of 0
        logits: FloatArray = (values - values.max()) / temperature
    logits[logits < -LARGEST_LOG] = -np.inf
    logits -= log_sum_exp(logits[None])[0]
    return logits


def in_order_of(scores: npt.ArrayLike, values: FloatArray) -> FloatArray:
    """The same values, dealt out so that a higher score has a larger one; equal scores share their mean."""
    given = _check_scores(scores, len(values))
    _, group, size = np.unique(given, return_inverse=True, return_counts=True)
    total = np.zeros(len(size))
    np.add.at(total, np.sort(group), np.sort(values))
    dealt: FloatArray = (total / size)[group]
    return dealt


def with_lowest(scores: npt.ArrayLike, count: int) -> FloatArray:
    """Scores, ``(n,)`` or ``(m, n)``, and ``count`` more candidates that score as the lowest."""
    given = np.asarray(scores, dtype=np.float64)
    lowest = given.min(axis=-1, keepdims=True).repeat(count, axis=-1)
    return np.concatenate([given, lowest], axis=-1)


def distinct_rows(vectors: FloatArray, closeness: FloatArray) -> tuple[IntArray, IntArray]:
    """One of each distinct row, the closest first, and for every row which of these it equals.

    The order depends on content alone, not on where rows stood, so the same candidates in another order give
    the same rows.
    """
    order = np.argsort(-closeness, kind="stable")
    ordered = closeness[order]
    starts = np.ones(len(order), dtype=bool)
    level = np.flatnonzero(ordered[1:] == ordered[:-1]) + 1
    if len(level):
        starts[level] = (vectors[order[level]] != vectors[order[level - 1]]).any(axis=1)
    if starts[level].any():  # as close as another, and not equal: by content
        keys = [(vectors[i] + 0.0).tobytes() for i in range(len(vectors))]  # -0.0 equals 0.0
        order = np.array(sorted(range(len(keys)), key=lambda i: (-closeness[i], keys[i])), dtype=np.intp)
        starts[1:] = [keys[one] != keys[other] for one, other in zip(order[1:], order[:-1], strict=True)]
    row_of = np.empty(len(order), dtype=np.intp)
    row_of[order] = np.cumsum(starts) - 1
    return order[starts], row_of


def _distinct_rows(
    vectors: FloatArray, queries: FloatArray, distance: Distance
) -> tuple[FloatArray, FloatArray, FloatArray, IntArray, IntArray]:
    """Distinct vectors, the closest to any of the questions first.

    Then their distances to the m questions, ``(m, rows)`` float64, their cosines to the closest question,
    a candidate of each row, and the row of each candidate.
    """
    cosines = np.array([cosines_to(vectors, query) for query in queries])
    similarity: FloatArray = cosines.max(axis=0)
    if not np.isfinite(similarity).all():
        check_matrix(vectors)  # names the row that is NaN, infinite or zero
    if distance == "scaled_cosine":
        order, row_of = distinct_rows(vectors, similarity)
        return vectors[order], 0.5 - 0.5 * cosines.take(order, axis=1), similarity[order], order, row_of
    check_matrix(vectors)
    rows, targets = prepared(vectors, distance), prepared(queries, distance)
    to_query = np.stack([np.sqrt(row_dots(rows - target, rows - target)) for target in targets])
    order, row_of = distinct_rows(rows, -to_query.min(axis=0))
    return rows[order], to_query[:, order], similarity[order], order, row_of


def _representatives(groups: IntArray, scores: FloatArray | None) -> IntArray:
    """The best row of each group, by score where there are any, else the first; in order."""
    order = np.arange(len(groups))
    if scores is not None:
        order = np.argsort(-scores[: len(groups)], kind="stable")
    return np.sort(order[np.unique(groups[order], return_index=True)[1]])


def _matrix_pool(
    kernel: MatrixKernel,
    relevance: FloatArray,
    similarity: FloatArray,
    sigma: Sigma,
    origin: Origin | None = None,
) -> Pool:
    if len(relevance) == 0:
        raise InvalidInputError("a pool needs at least one candidate")
    rows, row_of = distinct_rows(kernel.log_matrix, relevance)
    return Pool(
        positions=np.arange(len(relevance)),
        similarity=similarity,
        relevance=relevance,
        row_of=row_of,
        target_of=np.arange(len(relevance)),
        log_weights=relevance,
        kernel=kernel.subset(rows, None),
        sigma=sigma,
        origin=origin,
    )


def _check_scores(scores: npt.ArrayLike, n: int, name: str = "scores") -> FloatArray:
    refuse_masked(scores, name)
    given = np.asarray(scores, dtype=np.float64)
    if given.shape != (n,) or not np.isfinite(given).all():
        raise InvalidInputError(f"{name} must be {n} finite numbers, one a candidate")
    return given


def check_rankings(ranking: npt.ArrayLike, questions: int, n: int) -> FloatArray:
    """``(m, n)`` scores of a retriever: for one question also as ``(n,)``."""
    if questions == 1 and np.ndim(ranking) != 2:
        return _check_scores(ranking, n)[None]
    if np.shape(ranking) != (questions, n):
        raise InvalidInputError(
            f"scores have shape {np.shape(ranking)}: {questions} questions need ({questions}, {n})"
        )
    return np.stack([_check_scores(one, n) for one in np.asarray(ranking, dtype=np.float64)])


def _check_groups(groups: npt.ArrayLike, n: int) -> IntArray:
    given = np.asarray(groups)
    if given.shape != (n,) or given.dtype.kind not in "iu":
        raise InvalidInputError(f"groups must be {n} whole numbers, equal for near-duplicates")
    return given.astype(np.intp)


def _check_distances(values: npt.ArrayLike, name: str) -> FloatArray:
    array = np.asarray(values, dtype=np.float64)
    if array.size == 0 or not np.isfinite(array).all() or array.min() < 0:
        raise InvalidInputError(f"{name} must be finite numbers >= 0, got shape {array.shape}")
    if array.max() > LARGEST_COMPONENT:
        raise InvalidInputError(f"{name} must be at most {LARGEST_COMPONENT:g}: scale them")
    return array
