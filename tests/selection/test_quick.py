"""What is answered at once is what the long way says; whatever is odd goes the long way."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dartboard.errors import InvalidInputError
from dartboard.selection import door, from_embeddings, quick, select
from dartboard.selection.quick import select_quickly
from tests.selection.pools import topical

pytestmark = pytest.mark.usefixtures("engine")


def the_long_way(*of, **options):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(door, "select_quickly", lambda *_: None)
        return select(*of, **options)


@settings(max_examples=80, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    n=st.integers(64, 160),
    k=st.integers(1, 20),
    sigma=st.sampled_from(["auto", 0.03, 0.06, 0.09, 0.3, 5.0]),
    dim=st.sampled_from([12, 33, 128]),
    length=st.sampled_from([None, 1e-3, 7.0, 1e30]),
)
def test_the_same_in_every_field(seed, n, k, sigma, dim, length):
    query, vectors = topical(n, seed=seed, dim=dim)
    if length is not None:
        rng = np.random.default_rng(seed)
        vectors = (vectors * (length * rng.uniform(0.5, 2, (n, 1)))).astype(np.float32)
    found, wanted = select(vectors, query, k, sigma=sigma), the_long_way(vectors, query, k, sigma=sigma)
    assert found.indices.tolist() == wanted.indices.tolist()
    np.testing.assert_allclose(found.gains, wanted.gains, atol=5e-6)
    np.testing.assert_allclose(np.exp(found.log_gains), found.gains)
    np.testing.assert_allclose(found.coverage, wanted.coverage, atol=1e-5)
    np.testing.assert_allclose(found.similarity, wanted.similarity, atol=1e-6)
    np.testing.assert_allclose(found.relevance, wanted.relevance, rtol=1e-3, atol=1e-2)
    np.testing.assert_array_equal(found.targets, wanted.targets)
    assert (found.owners != wanted.owners).mean() <= 0.02
    assert found.bound == pytest.approx(wanted.bound, abs=0.02)
    assert found.sigma.value == pytest.approx(wanted.sigma.value, rel=1e-5)
    assert (found.sigma.source, found.method, found.parameters) == (wanted.sigma.source, "dartboard", {})
    assert found.origin.candidates is vectors and found.origin.query is query


def test_most_pools_are_answered_at_once():
    answered = [select_quickly(*topical(100, seed=seed)[::-1], 10, 0.09) for seed in range(40)]
    assert sum(answer is not None for answer in answered) > 30


def test_order_changes_nothing():
    query, vectors = topical(120, seed=3)
    order = np.random.default_rng(1).permutation(120)
    here, there = (select_quickly(v, query, 8, 0.09) for v in (vectors, vectors[order]))
    assert here.indices.tolist() == order[there.indices].tolist()
    assert here.log_gains.tolist() == there.log_gains.tolist() and here.bound == there.bound


def test_equal_cosines_of_different_rows():
    """Then rows stand in the order of their content, and the closest is anywhere."""
    for seed in range(20):
        query, vectors = topical(100, seed=seed, dim=16)
        query = np.eye(16, dtype=np.float32)[0]
        vectors[:, 0] = np.abs(vectors[:, 0])
        vectors[70] = vectors[20]
        vectors[70, 1:] = vectors[20, :0:-1]
        exact = select(vectors.astype(np.float64), query, 6, sigma=0.09)
        assert select(vectors, query, 6, sigma=0.09).indices.tolist() == exact.indices.tolist()


QUERY, VECTORS = topical(100, dim=24)
ODD = {
    "lists": (VECTORS.tolist(), QUERY, 5, 0.09),
    "double precision": (VECTORS.astype(np.float64), QUERY, 5, 0.09),
    "a masked array": (np.ma.masked_array(VECTORS), QUERY, 5, 0.09),
    "few candidates": (VECTORS[:20], QUERY, 5, 0.09),
    "many candidates": (np.concatenate([VECTORS, -VECTORS]), QUERY, 5, 0.09),
    "k of another kind": (VECTORS, QUERY, 5.0, 0.09),
    "no k": (VECTORS, QUERY, None, 0.09),
    "k below 1": (VECTORS, QUERY, 0, 0.09),
    "a small sigma": (VECTORS, QUERY, 5, 0.002),
    "a sigma that is no number": (VECTORS, QUERY, 5, float("nan")),
    "a word": (VECTORS, QUERY, 5, "wide"),
    "another dimension": (VECTORS, QUERY[:5], 5, 0.09),
    "a query that is no number": (VECTORS, QUERY * np.float32(np.nan), 5, 0.09),
    "a query of zeros": (VECTORS, QUERY * 0, 5, 0.09),
    "copies": (np.concatenate([VECTORS, VECTORS[:1]]), QUERY, 5, 0.09),
    "two first picks": (np.concatenate([VECTORS, 2 * QUERY[None], 3.0001 * QUERY[None]]), QUERY, 5, 0.09),
    "picks too close to call": (np.tile(np.eye(12, 24, dtype=np.float32), (6, 1)), QUERY, 5, 0.09),
}


@pytest.mark.parametrize("odd", ODD.values(), ids=ODD)
def test_what_is_odd_goes_the_long_way(odd):
    assert quick.select_quickly(*odd) is None


def test_a_row_without_direction_is_named():
    vectors = VECTORS.copy()
    vectors[17] = 0.0
    with pytest.raises(InvalidInputError, match="row 17"):
        select(vectors, QUERY, 5, sigma=0.09)


def test_a_pool_made_again_in_double_precision_keeps_its_sigma():
    query, vectors = topical(700, dim=24)
    pool = from_embeddings(query, vectors)
    assert pool.refine().sigma == pool.sigma
