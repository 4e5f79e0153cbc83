"""Several questions at once: the probable targets of their mixture.

A question with parts is asked as m questions. With weights λ_j that sum to 1,

    P(t|q) = Σ_j λ_j · P(t|q_j),        Σ_t P(t|q_j) = 1,

and nothing else changes: the objective, its greedy loop and its bound are those of one question. Each
question's probabilities sum to 1 before they are mixed, so that one whose passages are all far away counts
as much as the others. Near-duplicates count once, as the closest of their group.

The share of question j in a target, ``λ_j · P(t|q_j) / P(t|q)``, splits each gain between the questions.
"""

import math

import numpy as np
import numpy.typing as npt

from dartboard.errors import ConfigError, InvalidInputError
from dartboard.selection.kernels import log_sum_exp
from dartboard.types import FloatArray, IntArray, as_matrix, check_vector

MOST_QUESTIONS = 16


def check_queries(query: npt.ArrayLike, dim: int) -> FloatArray:
    """One question, ``(d,)``, or several, ``(m, d)``, as a matrix whose rows are usable vectors.

    Raises:
        InvalidInputError: a row is unusable, or there are more than ``MOST_QUESTIONS``.
    """
    if dimensions_of(query) != 2:
        return check_vector(query, name="query", dim=dim)[None]
    asked = as_matrix(query, name="queries", dim=dim)
    if len(asked) > MOST_QUESTIONS:
        raise InvalidInputError(f"{len(asked)} questions at once: at most {MOST_QUESTIONS} are allowed")
    for place, one in enumerate(asked):
        check_vector(one, name=f"query {place}" if len(asked) > 1 else "query")
    return asked


def dimensions_of(values: npt.ArrayLike) -> int:
    """How many dimensions an array has; 1 for a ragged list, which later checks name."""
    try:
        return np.ndim(values)
    except ValueError:
        return 1


def check_weights(weights: npt.ArrayLike | None, questions: int) -> FloatArray:
    """``(m,)`` weights of questions that sum to 1; equal ones where none are given.

    Raises:
        ConfigError: not one a question, or one is not a finite number above 0.
    """
    if weights is None:
        return np.full(questions, 1.0 / questions)
    try:
        given = np.asarray(weights, dtype=np.float64)
    except (TypeError, ValueError):
        given = np.array(np.nan)
    if given.shape != (questions,):
        count = given.size if given.ndim == 1 else f"an array of shape {given.shape}"
        raise ConfigError(f"weights must be one number per question: got {count} for {questions}")
    if not (np.isfinite(given).all() and (given > 0).all()):
        raise ConfigError(f"weights must be finite numbers > 0, got {given.tolist()}")
    shares: FloatArray = given / given.max()
    shares /= shares.sum()
    return shares


def mixed_relevance(
    relevance: FloatArray, weights: FloatArray, groups: IntArray | None = None
) -> tuple[FloatArray, FloatArray | None]:
    """:func:`mixture`; of one question the row itself, and no shares."""
    return (relevance[0], None) if len(relevance) == 1 else mixture(relevance, weights, groups)


def mixture(
    relevance: FloatArray, weights: FloatArray, groups: IntArray | None = None
) -> tuple[FloatArray, FloatArray]:
    """Mix log P(c|q_j), ``(m, n)``, each up to a constant.

    Args:
        relevance: a row a question, a column a candidate.
        weights: ``(m,)``, sum to 1.
        groups: ``(n,)``: candidates with equal numbers count once, as the most probable of them.

    Returns:
        log P(c|q), ``(n,)``, and each question's share in it, ``(m, n)``, whose columns sum to 1.
    """
    distinct = relevance
    if groups is not None:
        _, group_of = np.unique(groups, return_inverse=True)
        distinct = np.full((len(relevance), int(group_of.max()) + 1), -math.inf)
        for best, values in zip(distinct, relevance, strict=True):
            np.maximum.at(best, group_of, values)
    totals = log_sum_exp(distinct)
    totals = np.where(totals > -math.inf, totals, 0.0)  # of a question that no candidate answers
    parts = relevance - totals[:, None] + np.log(weights)[:, None]
    mixed = log_sum_exp(parts.T)
    with np.errstate(under="ignore"):
        shares = np.exp(parts - np.where(mixed > -math.inf, mixed, 0.0))
    shares[:, mixed == -math.inf] = weights[:, None]
    return mixed, shares
