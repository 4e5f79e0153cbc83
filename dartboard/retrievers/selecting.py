"""Dartboard on top of any retriever: its order, on the scale of the embeddings.

σ is a spread of distances between embeddings. Scores of BM25, MaxSim or a fusion live on other scales, and
so would the query's side of the objective. Quantile matching keeps the retriever's *order* and the
embeddings' *scale*: of the cosines between the query and the pool, the largest goes to the retriever's
first candidate, the second largest to its second, and so on.

    relevance   d_i of the candidate at rank i
    rank        the i-th smallest of the pool's distances (what a dense retriever has anyway)
    distance    its own distance: the retriever only says who is in the pool
    score       log softmax(scores / their standard deviation): no scale but the scores' own
"""

from typing import Any, Literal

import numpy as np

from dartboard.errors import ConfigError, InvalidInputError
from dartboard.retrievers.base import Candidates
from dartboard.selection import Limits, Method, Pool, Selection, from_embeddings, log_softmax
from dartboard.selection.door import method_of
from dartboard.selection.kernels import log_kernel
from dartboard.types import FloatArray

Relevance = Literal["rank", "distance", "score"]
RELEVANCES: tuple[Relevance, ...] = ("rank", "distance", "score")


def pool_of(candidates: Candidates, *, relevance: str = "rank", **building: Any) -> Pool:
    """The candidates as a pool to select from; ``building`` goes to :func:`from_embeddings` (σ …)."""
    if relevance not in RELEVANCES:
        raise ConfigError(f"unknown relevance {relevance!r}: choose one of {', '.join(RELEVANCES)}")
    if not candidates.found:
        raise InvalidInputError("there are no candidates to select from")
    if candidates.query_vector is None:
        raise InvalidInputError(
            "the candidates come without the query's vector: give their retriever the embedding model"
        )
    vectors = np.stack([candidate.chunk.embedding for candidate in candidates.found])
    pool = from_embeddings(candidates.query_vector, vectors, **building)
    if relevance == "distance":
        return pool
    scores = np.array([candidate.score for candidate in candidates.found])
    if relevance == "score":
        return pool.reweighted(log_softmax(scores))
    return pool.reweighted(log_kernel(_matched(pool, scores), pool.sigma.value))


def select_from(
    candidates: Candidates,
    limits: Limits,
    *,
    method: str | Method = "dartboard",
    relevance: str = "rank",
    **building: Any,
) -> Selection:
    """Select from a retriever's candidates; positions are those of ``candidates.found``."""
    return method_of(method).select(pool_of(candidates, relevance=relevance, **building), limits)


def _matched(pool: Pool, scores: FloatArray) -> FloatArray:
    """``(n,)``: the pool's distances to the query, the smallest to the best; equal scores share theirs."""
    ordered = np.sort((1.0 - np.clip(pool.similarity, -1.0, 1.0)) / 2.0)
    _, place, count = np.unique(-scores, return_inverse=True, return_counts=True)
    shared = np.add.reduceat(ordered, np.cumsum(count) - count) / count
    matched: FloatArray = shared[place]
    return matched
