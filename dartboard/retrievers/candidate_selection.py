"""Dartboard selection from the candidates of any retriever.

σ is on the scale of distances between embeddings. Scores of BM25, MaxSim or a fusion have other scales.
Quantile matching keeps the retriever's *order* and the embeddings' *scale*: the distances to the query give
the pool's probabilities P(t|q), and the retriever's first candidate gets the largest of them, its second the
second largest, and so on.

    relevance   P(t|q) of the candidate at rank i
    rank        the i-th largest of the pool (a dense retriever has this anyway)
    distance    its own: the retriever only decides which chunks are in the pool
    score       softmax(scores / their standard deviation): uses only the scores' scale
"""

from typing import Any, Literal

import numpy as np

from dartboard.errors import ConfigError, InvalidInputError
from dartboard.near_duplicates import candidate_groups
from dartboard.retrievers.candidates import Candidates
from dartboard.selection import (
    Limits,
    Method,
    Pool,
    Selection,
    from_embeddings,
    log_softmax,
)
from dartboard.selection.select import method_of

Relevance = Literal["rank", "distance", "score"]
RELEVANCES: tuple[Relevance, ...] = ("rank", "distance", "score")


def pool_of(candidates: Candidates, *, relevance: str = "rank", **building: Any) -> Pool:
    """The candidates as a pool to select from.

    Args:
        candidates: Candidates with the query's vector.
        relevance: ``rank``, ``distance`` or ``score``: see the module's docstring.
        building: Passed to :func:`dartboard.selection.from_embeddings`: ``sigma=0.1`` …
    """
    if relevance not in RELEVANCES:
        raise ConfigError(f"unknown relevance {relevance!r}: choose one of {', '.join(RELEVANCES)}")
    if not len(candidates):
        raise InvalidInputError("there are no candidates to select from")
    if candidates.query_vector is None:
        raise InvalidInputError(
            "the candidates have no query vector: give their retriever the embedding model"
        )
    groups = candidate_groups(candidates.vectors, read=candidates.fingerprints)
    ranking = candidates.scores if relevance == "rank" else None
    pool = from_embeddings(
        candidates.query_vector, candidates.vectors, groups=groups, ranking=ranking, **building
    )
    return pool.reweighted(log_softmax(np.array(candidates.scores))) if relevance == "score" else pool


def select_from(
    candidates: Candidates,
    limits: Limits,
    *,
    method: str | Method = "dartboard",
    relevance: str = "rank",
    **building: Any,
) -> Selection:
    """Select from a retriever's candidates.

    Args:
        candidates: Candidates with the query's vector.
        limits: Number of chunks, token budget, filters.
        method: ``dartboard``, or another selection method or its name.
        relevance, building: As in :func:`pool_of`.

    Returns:
        The selection; its indices refer to the candidates.

    Example:
        >>> found = BM25Retriever(model).retrieve(collection, "How are keys rotated?", 100)
        >>> [found.ids[i] for i in select_from(found, Limits(k=5)).indices]
    """
    return method_of(method).select(pool_of(candidates, relevance=relevance, **building), limits)
