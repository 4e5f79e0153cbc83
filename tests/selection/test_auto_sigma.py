"""σ from the candidates: the median distance between two of them, divided by 4.5."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dartboard.errors import ConfigError
from dartboard.selection import from_distances, from_embeddings, select
from dartboard.selection.kernel import DIVISOR, FALLBACK, SAMPLE, SMALLEST_POOL, distances, prepared
from tests.examples import examples
from tests.selection.pools import topical

SEED, DISTANCE = st.integers(0, 2**16), st.sampled_from(["scaled_cosine", "euclidean"])


def random_pool(seed, n, dim=8, dtype=np.float64):
    rng = np.random.default_rng(seed)
    return rng.standard_normal(dim).astype(dtype), rng.standard_normal((n, dim)).astype(dtype)


@examples(40)
@given(SEED, st.integers(SMALLEST_POOL, 60), DISTANCE)
def test_it_is_the_median_distance_over_a_constant(seed, n, distance):
    query, vectors = random_pool(seed, n)
    ready = prepared(vectors, distance)
    apart = np.sort(distances(ready, ready, distance)[np.triu_indices(n, 1)])
    found = from_embeddings(query, vectors, distance=distance).sigma
    assert found.source == "candidates"
    assert found.value == pytest.approx(apart[len(apart) // 2] / DIVISOR, rel=1e-9)
    wider = from_embeddings(query, vectors, distance=distance, divisor=DIVISOR / 2).sigma
    assert wider.value == pytest.approx(2 * found.value)


@examples(40)
@given(SEED, st.integers(SMALLEST_POOL, 200), DISTANCE, st.sampled_from([np.float32, np.float64]))
def test_it_depends_neither_on_the_order_nor_on_exact_copies(seed, n, distance, dtype):
    query, vectors = random_pool(seed, n, dtype=dtype)
    rng = np.random.default_rng(seed + 1)
    found = from_embeddings(query, vectors, distance=distance).sigma.value
    assert from_embeddings(query, rng.permutation(vectors), distance=distance).sigma.value == found
    copied = rng.permutation(np.concatenate([vectors, vectors[rng.integers(n, size=n)]]))
    assert from_embeddings(query, copied, distance=distance).sigma.value == found


@examples(40)
@given(SEED, st.integers(SMALLEST_POOL, 150), st.floats(1e-6, 1e6))
def test_it_is_free_of_scale(seed, n, scale):
    """Cosines do not see the length of vectors; under Euclid σ grows with them."""
    query, vectors = random_pool(seed, n)
    for distance, factor in (("scaled_cosine", 1.0), ("euclidean", scale)):
        before = from_embeddings(query, vectors, distance=distance).sigma.value
        after = from_embeddings(scale * query, scale * vectors, distance=distance).sigma.value
        assert after == pytest.approx(factor * before, rel=1e-6)


@pytest.mark.parametrize("distance", ["scaled_cosine", "euclidean"])
@pytest.mark.parametrize("copies", [1, 3])
def test_a_small_pool_takes_what_is_known_of_the_model(distance, copies):
    query, vectors = random_pool(0, SMALLEST_POOL - 1)
    vectors = np.repeat(vectors, copies, axis=0)
    assert from_embeddings(query, vectors, distance=distance).sigma[:2] == (FALLBACK[distance], "fallback")
    known = from_embeddings(query, vectors, distance=distance, model_sigma=0.2).sigma
    assert known[:2] == (0.2, "model")
    enough = from_embeddings(query, random_pool(0, SMALLEST_POOL)[1], distance=distance, model_sigma=0.2)
    assert enough.sigma.source == "candidates"


@pytest.mark.parametrize("distance", ["scaled_cosine", "euclidean"])
def test_in_a_large_pool_the_nearest_count(distance):
    query, vectors = topical(3 * SAMPLE, dtype=np.float64)
    ready, asked = prepared(vectors, distance), prepared(query[None], distance)
    near = np.argsort(distances(ready, asked, distance)[:, 0])[:SAMPLE]
    found = from_embeddings(query, vectors, distance=distance).sigma.value
    assert found == pytest.approx(from_embeddings(query, vectors[near], distance=distance).sigma.value)


@examples(30)
@given(SEED, st.integers(SMALLEST_POOL, 50), st.booleans())
def test_near_duplicates_do_not_narrow_it(seed, n, ranked):
    """Of a group counts the one that selection keeps: the most relevant by the scores in use."""
    query, vectors = random_pool(seed, n)
    rng = np.random.default_rng(seed + 1)
    more = np.concatenate([vectors, vectors + 0.01 * rng.standard_normal((n, 8))])
    groups, scores = np.tile(np.arange(n), 2), rng.random(2 * n) if ranked else None
    pool = from_embeddings(query, more, groups=groups, ranking=scores)
    order = pool.by_relevance()
    kept = order[np.unique(groups[order], return_index=True)[1]]
    assert pool.sigma.value == pytest.approx(from_embeddings(query, more[kept]).sigma.value, rel=1e-9)


def test_from_distances_that_are_not_symmetric():
    rng = np.random.default_rng(0)
    between = rng.random((12, 12))
    np.fill_diagonal(between, 0.0)
    one, other = (from_distances(rng.random(12), matrix).sigma for matrix in (between, between.T))
    assert one == other and one.source == "candidates"


def test_distances_of_zero_are_one_candidate_twice():
    points = np.concatenate([np.random.default_rng(0).random((10, 3)), np.full((30, 3), 0.5)])
    between = np.linalg.norm(points[:, None] - points, axis=2)
    assert np.median(between[np.triu_indices(40, 1)]) == 0
    assert from_distances(between[0], between, distance="euclidean").sigma.value > 0.05


def test_distances_of_copies_count_once():
    rng = np.random.default_rng(3)
    points = rng.random((20, 4))
    apart = np.linalg.norm(points[:, None] - points, axis=2)
    to_query = np.linalg.norm(points - rng.random(4), axis=1)
    twice = np.tile(np.arange(20), 2)
    once = from_distances(to_query, apart, distance="euclidean").sigma
    assert from_distances(to_query[twice], apart[np.ix_(twice, twice)], distance="euclidean").sigma == once


def test_select_takes_the_range_of_sigma_of_every_door():
    with pytest.raises(ConfigError, match=r"sigma must be in \[1e-05, 10\] or 'auto', got 100"):
        select(np.eye(4), np.ones(4), 2, sigma=100)


def test_a_limit_by_another_name_is_named():
    with pytest.raises(TypeError, match="takes no 'must_includes', did you mean 'must_include'"):
        select(np.eye(4), np.ones(4), must_includes=[2])
