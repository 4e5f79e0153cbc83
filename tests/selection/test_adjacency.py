"""Probable targets spread to neighbours."""

import numpy as np
import pytest

from dartboard.selection import from_embeddings
from dartboard.selection.pool import spread_to_neighbours
from tests.selection.pools import topical

QUERY, VECTORS = topical(6, seed=3, copies=1)


def probabilities(pool):
    weights = np.exp(pool.relevance - pool.relevance.max())
    return weights / weights.sum()


def test_a_share_goes_evenly_to_the_neighbours():
    pool = from_embeddings(QUERY, VECTORS)
    pairs = [(0, 1), (1, 2), (5, 9)]
    before, after = (probabilities(one) for one in (pool, spread_to_neighbours(pool, pairs, 0.3)))
    graph = np.zeros((12, 12))
    for one, other in pairs:
        graph[one, other] = graph[other, one] = 1.0
    degree = graph.sum(axis=1)
    given = np.where(degree > 0, 0.3, 0.0) * before
    expected = before - given + (given / np.maximum(degree, 1)) @ graph
    assert after == pytest.approx(expected, rel=1e-9)


def test_far_targets_keep_their_order():
    """Probabilities that no float can hold are spread all the same."""
    pool = from_embeddings(QUERY, VECTORS, sigma=1e-3)
    spread = spread_to_neighbours(pool, [(int(pool.relevance.argmin()), int(pool.relevance.argmax()))])
    assert np.isfinite(spread.relevance).all()
    assert spread.relevance[pool.relevance.argmin()] > pool.relevance.max() - 2


def test_without_neighbours_nothing_changes():
    pool = from_embeddings(QUERY, VECTORS)
    assert spread_to_neighbours(pool, []) is pool
