"""Many queries at once give what each gives alone."""

import numpy as np
import pytest

from dartboard.errors import ConfigError
from dartboard.selection import select, select_many
from tests.selection.pools import topical


def stacked(count, n, **options):
    pools = [topical(n, seed=seed, **options) for seed in range(count)]
    return np.stack([query for query, _ in pools]), np.stack([vectors for _, vectors in pools])


@pytest.mark.parametrize("sigma", ["auto", 0.09, 0.3, 0.005])
@pytest.mark.parametrize("options", [{}, {"copies": 1, "noise": 0.05}, {"copies": 1}])
def test_together_is_the_same_as_alone(sigma, options):
    queries, pools = stacked(25, 60, dim=64, **options)
    for together, vectors, query in zip(
        select_many(pools, queries, 8, sigma=sigma), pools, queries, strict=True
    ):
        alone = select(vectors, query, 8, sigma=sigma)
        assert together.indices.tolist() == alone.indices.tolist()
        assert together.sigma.value == pytest.approx(alone.sigma.value, rel=1e-4)
        np.testing.assert_allclose(together.gains, alone.gains, atol=1e-5)
        np.testing.assert_allclose(together.similarity, alone.similarity, atol=1e-6)
        assert together.bound == pytest.approx(alone.bound, abs=0.05)
        assert [s.tolist() for s in together.stands_for] == [s.tolist() for s in alone.stands_for]


def test_pools_of_different_sizes_and_options():
    pools = [topical(n, seed=n)[1] for n in (5, 90, 17)]
    queries = np.stack([topical(n, seed=n)[0] for n in (5, 90, 17)])
    results = select_many(pools, queries, 3, method="mmr")
    assert [r.method for r in results] == ["mmr"] * 3
    for result, vectors, query in zip(results, pools, queries, strict=True):
        assert result.indices.tolist() == select(vectors, query, 3, method="mmr").indices.tolist()


def test_a_bad_pool_is_an_error_as_it_is_alone():
    queries, pools = stacked(3, 60)
    pools[1, 4] = np.nan
    with pytest.raises(ValueError, match="embeddings row 4"):
        select_many(pools, queries, 3)
    with pytest.raises(ValueError, match="need a matrix with one row a pool"):
        select_many(pools, queries[0], 3)


def test_a_pool_of_copies_among_others():
    queries, pools = stacked(3, 70, dim=16)
    pools[1] = pools[1, :1]
    for together, vectors, query in zip(select_many(pools, queries, 3), pools, queries, strict=True):
        alone = select(vectors, query, 3)
        assert (
            together.indices.tolist() == alone.indices.tolist()
            and together.sigma.source == alone.sigma.source
        )


def test_no_queries():
    assert select_many([], np.empty((0, 4))) == []


@pytest.mark.parametrize("k", [0, -1, 2.5, True, "3"])
def test_k_is_checked_as_it_is_alone(k):
    queries, pools = stacked(2, 60)
    with pytest.raises(ConfigError, match="k must be a whole number >= 1"):
        select_many(pools, queries, k)
    with pytest.raises(ConfigError, match="threads must be a whole number"):
        select_many(pools, queries, 3, threads=-1)


def test_large_pools_take_sigma_by_content():
    queries, pools = stacked(3, 300, dim=32)
    order = np.random.default_rng(0).permutation(300)
    here, there = select_many(pools, queries, 5), select_many(pools[:, order], queries, 5)
    for a, b, vectors, query in zip(here, there, pools, queries, strict=True):
        assert a.indices.tolist() == order[b.indices].tolist() == select(vectors, query, 5).indices.tolist()
        assert a.sigma == b.sigma
