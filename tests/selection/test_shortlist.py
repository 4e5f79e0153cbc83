"""A walk on few rows makes the picks of the walk on all rows, or leaves them to it."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dartboard.selection import Dartboard, Limits, from_embeddings, select, shortlist
from dartboard.selection.dense import sum_of_largest
from tests.selection.pools import topical, unit

pytestmark = pytest.mark.usefixtures("engine")

N = 300


def pool(seed, *, dim=32, near=0.1, noise=0.3, dtype=np.float64):
    """Candidates of which a few lie near the query, so that these carry the weight."""
    rng = np.random.default_rng(seed)
    query = unit(rng.standard_normal(dim))
    vectors = unit(rng.standard_normal((N, dim)))
    few = int(near * N)
    vectors[:few] = unit(query + noise * unit(rng.standard_normal((few, dim))))
    return query.astype(dtype), vectors[rng.permutation(N)].astype(dtype)


class Spy:
    """Counts answers, and can keep the shortlist out of the way."""

    def __init__(self, monkeypatch):
        self.real, self.on, self.asked, self.answered = shortlist.answer, True, 0, 0
        monkeypatch.setattr(shortlist, "answer", self)

    def __call__(self, *of):
        if not self.on:
            return None
        found = self.real(*of)
        self.asked += 1
        self.answered += found is not None
        return found

    def both(self, *of, **options):
        results = []
        for self.on in (True, False):
            results.append(select(*of, **options))
        self.on = True
        return results


@pytest.fixture
def spy(monkeypatch):
    return Spy(monkeypatch)


def assert_same(few, every, dtype=np.float64):
    """To what the precision of the walk tells apart; the bound may lose the weight outside the few rows."""
    assert few.indices.tolist() == every.indices.tolist()
    np.testing.assert_allclose(
        few.gains, every.gains, **({"rtol": 1e-6, "atol": 1e-13} if dtype == np.float64 else {"atol": 2e-6})
    )
    np.testing.assert_allclose(few.coverage, every.coverage, atol=1e-5)
    np.testing.assert_array_equal(few.similarity, every.similarity)
    assert (few.owners != every.owners).mean() <= (0 if dtype == np.float64 else 0.01)
    assert every.bound - 0.03 <= few.bound <= 1.0


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("sigma", ["auto", 0.01, 0.03, 0.045, 0.06])
def test_few_rows_answer_and_agree(spy, dtype, sigma):
    for seed in range(6):
        query, vectors = pool(seed, dtype=dtype)
        for k in (1, 4, 10):
            assert_same(*spy.both(vectors, query, k, sigma=sigma), dtype)
    if sigma != "auto":  # the σ of these crowded pools is wide
        assert spy.answered >= spy.asked / 2


@pytest.mark.parametrize("sigma", [0.2, 1.0, 10.0])
def test_flat_weights_are_left_to_all_rows(spy, sigma):
    assert_same(*spy.both(*reversed(topical(N)), 10, sigma=sigma), np.float32)
    assert spy.asked and not spy.answered


@pytest.mark.parametrize("sigma", ["auto", 0.05, 0.09, 0.2, 1.0])
def test_flat_weights_are_added_up_where_that_is_worth_it(spy, monkeypatch, sigma):
    monkeypatch.setattr(shortlist, "_FEWEST_SUMS", 0)
    for seed in range(8):
        query, vectors = topical(N, seed=seed, dim=(16, 64)[seed % 2])
        for k in (1, 4, 10, 20):
            few, every = spy.both(vectors, query, k, sigma=sigma)
            assert few.indices.tolist() == every.indices.tolist()
            np.testing.assert_allclose(few.gains, every.gains, atol=5e-6)
            assert every.bound - 0.03 <= few.bound <= worked_out(vectors, query, few)[1] * (1 + 1e-4)
    assert spy.answered >= spy.asked / (4 if sigma == 1.0 else 2)


def worked_out(vectors, query, result):
    """The coverage and the bound of a selection, worked out from all rows in double precision."""
    vectors, query = vectors.astype(np.float64), query.astype(np.float64)
    kernel, weights = (
        np.exp(-((1 - cosines) ** 2) / (8 * result.sigma.value**2))
        for cosines in (vectors @ vectors.T, vectors @ query)
    )
    picks, k = kernel[result.indices].max(axis=0), len(result)
    still, reached = np.maximum(kernel - picks, 0) @ weights, picks @ weights
    most = min(weights.sum(), sum_of_largest(kernel @ weights, k), reached + sum_of_largest(still, k))
    return reached / weights.sum(), reached / most


def test_an_order_that_weights_do_not_have_changes_nothing(spy, monkeypatch):
    monkeypatch.setattr(shortlist, "_FEWEST_SUMS", 0)
    query, vectors = topical(N, seed=4, dim=48)
    scores = np.random.default_rng(0).standard_normal(N) / 4
    assert_same(*spy.both(vectors, query, 5, sigma=0.09, scores=scores), np.float32)
    assert spy.answered == 1


OPTIONS = {
    "plain": {},
    "scores": {"scores": np.linspace(-9, 9, N) ** 3},
    "stop": {"min_gain_share": 0.02},
    "exclude": {"exclude": list(range(0, N, 7))},
    "must": {"must_include": [5, 9]},
    "cap": {"max_per_source": 1, "sources": [i % 11 for i in range(N)]},
    "budget": {"token_budget": 90, "costs": [10 + i % 13 for i in range(N)]},
    "floor": {"min_similarity": -0.2},
    "euclidean": {"distance": "euclidean"},
}


@settings(max_examples=120, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    near=st.sampled_from([0.02, 0.1, 0.5]),
    noise=st.sampled_from([1e-4, 0.1, 0.6, 1.5]),
    copies=st.booleans(),
    dtype=st.sampled_from([np.float32, np.float64]),
    sigma=st.sampled_from(["auto", 1e-5, 0.004, 0.02, 0.04, 0.07, 0.3, 10.0]),
    k=st.sampled_from([1, 2, 7, 30]),
    option=st.sampled_from(sorted(OPTIONS)),
)
def test_every_pool_and_every_limit(seed, near, noise, copies, dtype, sigma, k, option):
    query, vectors = pool(seed, near=near, noise=noise, dtype=dtype)
    k = max(k, len(OPTIONS[option].get("must_include", ())))
    if copies:
        vectors[1::2] = vectors[::2]
    with pytest.MonkeyPatch.context() as patch:
        few, every = Spy(patch).both(vectors, query, k, sigma=sigma, **OPTIONS[option])
    assert_same(few, every, dtype)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 12), st.sampled_from([0.02, 0.04, 0.06]))
def test_the_bound_is_below_what_all_rows_allow(seed, k, sigma):
    """No k candidates cover more than their k largest objectives, worked out for all of them."""
    query, vectors = pool(seed)
    result = select(vectors, query, k, sigma=sigma)
    coverage, bound = worked_out(vectors, query, result)
    assert bound - 0.05 <= result.bound <= bound * (1 + 1e-9)
    assert result.coverage[-1] == pytest.approx(coverage, rel=1e-9)


def test_order_changes_nothing(spy):
    query, vectors = pool(3, dtype=np.float32)
    order = np.random.default_rng(1).permutation(N)
    here, there = (select(v, query, 8, sigma=0.06) for v in (vectors, vectors[order]))
    assert spy.answered == 2
    assert here.indices.tolist() == order[there.indices].tolist()
    assert here.log_gains.tolist() == there.log_gains.tolist() and here.bound == there.bound


def test_rivals_outside_join(monkeypatch):
    """The heaviest candidates all say the same, and many light ones each say something else."""
    rng = np.random.default_rng(2)
    query = unit(rng.standard_normal(48))
    aside = rng.standard_normal((100, 48))
    aside = unit(aside - (aside @ query)[:, None] * query)
    close = unit(query + 0.02 * unit(rng.standard_normal((60, 48))))
    cosine = np.linspace(0.74, 0.79, 100)[:, None]
    light = cosine * query + np.sqrt(1 - cosine**2) * aside
    far = unit(-query + 0.5 * unit(rng.standard_normal((600, 48))))
    sizes = []
    admit = shortlist._Board.admit
    monkeypatch.setattr(
        shortlist._Board, "admit", lambda self, rows: sizes.append(len(rows)) or admit(self, rows)
    )
    spy = Spy(monkeypatch)
    few, every = spy.both(np.concatenate([close, light, far]), query, 4, sigma=0.03)
    assert_same(few, every)
    assert spy.answered == 1 and len(sizes) == 2
    assert few.indices[0] < 60 <= few.indices[1]


def test_a_kernel_that_is_a_cosine(spy):
    """Covering by (1 + cos) / 2 is symmetric and at most 1 as well."""
    query, vectors = pool(4)
    cosine = from_embeddings(query, vectors, sigma=0.03).with_cosine_kernel(
        from_embeddings(query, vectors, sigma=0.03).sigma
    )
    results = []
    for spy.on in (True, False):
        results.append(Dartboard().select(cosine, Limits(k=5)))
    assert_same(*results)
