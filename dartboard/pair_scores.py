"""Pools whose closeness comes from a pair scorer: the crossencoder and hybrid variants.

Each distinct text is scored once, so that passages with the same words are the same to the scorer, whatever
it makes of a text paired with itself.
"""

from collections.abc import Sequence

import numpy as np

from dartboard.config import ScoreScaling
from dartboard.embeddings.base import PAPER_BOUNDS, PairScorer
from dartboard.errors import InvalidInputError
from dartboard.selection import Pool, from_distances, log_softmax
from dartboard.selection.kernel import Auto, Sigma
from dartboard.types import FloatArray, IntArray


def crossencoder_pool(
    scorer: PairScorer,
    questions: Sequence[str],
    texts: Sequence[str],
    sigma: float | Auto,
    scaling: ScoreScaling,
    weights: FloatArray,
    groups: IntArray,
) -> Pool:
    """Pair scores on both sides, made distances: ``1 - score`` brought to [0, 1]."""
    distinct, places = _distinct(texts)
    between = 1.0 - rescaled(scorer.score_matrix(distinct), scorer, scaling)
    np.fill_diagonal(between, 0.0)  # a passage stands in for itself, whatever the scorer says
    to_query = [1.0 - rescaled(scorer.score(one, distinct), scorer, scaling)[places] for one in questions]
    return from_distances(
        np.stack(to_query), between[np.ix_(places, places)], sigma=sigma, weights=weights, groups=groups
    )


def hybrid_pool(
    scorer: PairScorer,
    questions: Sequence[str],
    texts: Sequence[str],
    sigma: float | Auto,
    by_vector: Pool,
    weights: FloatArray,
) -> Pool:
    """``softmax(score / σ)`` on the query's side, the scaled cosine similarity between passages.

    Where the targets are a vocabulary, which no pair scorer knows, the scores say which pick is first.
    """
    distinct, places = _distinct(texts)
    scores = [_finite(scorer.score(one, distinct))[places] for one in questions]
    if by_vector.target_of is None:
        return by_vector.reweighted(np.stack([log_softmax(one) for one in scores]), weights)
    spread = by_vector.sigma._replace(automatic=None)  # a temperature on the scale of the scores
    if sigma == "auto":
        spread = Sigma(float(np.mean([one.std() for one in scores])) or 1.0, "scores")
    log_probs = np.stack([log_softmax(one, spread.value) for one in scores])
    return by_vector.with_cosine_kernel(spread).reweighted(log_probs, weights)


def rescaled(scores: FloatArray, scorer: PairScorer, scaling: ScoreScaling) -> FloatArray:
    """Pair scores brought to [0, 1]."""
    scores = _finite(scores)
    if scaling == "sigmoid":
        sigmoid: FloatArray = 1.0 / (1.0 + np.exp(-np.clip(scores, -500.0, 500.0)))
        return sigmoid
    low, high = scores.min(), scores.max()
    if scaling == "bounds":
        low, high = getattr(scorer, "bounds", PAPER_BOUNDS)
    if high <= low:
        return np.full_like(scores, 0.5)
    clipped: FloatArray = np.clip((scores - low) / (high - low), 0.0, 1.0)
    return clipped


def _distinct(texts: Sequence[str]) -> tuple[list[str], IntArray]:
    """Each text once, in order, and for every text which of these it is."""
    number = {text: i for i, text in enumerate(dict.fromkeys(texts))}
    return list(number), np.array([number[text] for text in texts], dtype=np.intp)


def _finite(scores: FloatArray) -> FloatArray:
    scores = np.asarray(scores, dtype=np.float64)
    if not np.isfinite(scores).all():
        raise InvalidInputError("the pair scorer gave NaN or infinity: check its model and the texts")
    return scores
