"""What holds for every pool, by hypothesis."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from dartboard.selection import METHODS, Limits, from_embeddings, select
from tests.examples import examples

COMPONENT = st.floats(-1, 1, width=32).map(lambda x: round(x, 3))
SIGMA = st.sampled_from([1e-5, 1e-3, 0.01, 0.05, 0.09, 0.3, 1.0, 10.0])


@st.composite
def pools(draw, max_n=24):
    n, dim = draw(st.integers(1, max_n)), draw(st.integers(1, 6))
    rows = draw(hnp.arrays(np.float64, (n + 1, dim), elements=COMPONENT))
    rows[~rows.any(axis=1)] = 1.0
    if draw(st.booleans()):
        rows = np.concatenate([rows, rows[1:]])
    return rows[0], rows[1:]


@examples(150)
@given(pools(), st.integers(1, 30), SIGMA)
def test_selection_invariants(pool, k, sigma):
    query, embeddings = pool
    result = select(embeddings, query, k, sigma=sigma)
    n = len(embeddings)
    assert len(result) == min(k, n) == len(set(result.indices.tolist()))
    assert ((result.indices >= 0) & (result.indices < n)).all()
    assert (result.gains >= 0).all() and np.isfinite(result.gains).all()
    assert (np.diff(result.coverage) >= 0).all() and (result.coverage <= 1).all()
    by_gain = result.log_gains[~result.by_relevance][1:]
    assert (by_gain[1:] <= by_gain[:-1] + 1e-9).all()
    assert 0 <= result.bound <= 1
    gaining = result.log_gains > -np.inf
    assert len(np.unique(embeddings[result.indices[gaining]], axis=0)) == gaining.sum()
    assert all(
        pick in stands
        for pick, stands, ok in zip(result.indices, result.stands_for, gaining, strict=True)
        if ok
    )


@examples(100)
@given(pools(), st.integers(1, 10), SIGMA, st.randoms(use_true_random=False))
def test_permuting_the_candidates_changes_nothing(pool, k, sigma, random):
    query, embeddings = pool
    order = list(range(len(embeddings)))
    random.shuffle(order)
    here, there = select(embeddings, query, k, sigma=sigma), select(embeddings[order], query, k, sigma=sigma)
    unit = embeddings / np.linalg.norm(embeddings, axis=1, keepdims=True)
    np.testing.assert_allclose(unit[here.indices], unit[order][there.indices], rtol=1e-12)
    assert here.log_gains.tolist() == there.log_gains.tolist()


@examples(60)
@given(pools(max_n=9), st.integers(1, 4), SIGMA)
def test_the_bound_holds_against_exhaustive_search(pool, k, sigma):
    """To a millionth: at σ = 1e-5, log-probabilities are of the order of 1e9 and have 1e-7 of rounding."""
    query, embeddings = pool
    candidates = from_embeddings(query, embeddings, sigma=sigma)
    best = METHODS["exhaustive"]().select(candidates, Limits(k=k)).coverage[-1]
    for name in METHODS:
        result = METHODS[name]().select(candidates, Limits(k=k))
        assert result.coverage[-1] <= best * (1 + 1e-6)
        assert result.coverage[-1] >= result.bound * best * (1 - 1e-6)


@examples(60)
@given(pools(max_n=8), st.lists(st.integers(1, 20), min_size=16, max_size=16), st.integers(5, 60), SIGMA)
def test_a_budget_keeps_its_guarantee(pool, costs, budget, sigma):
    query, embeddings = pool
    limits = Limits(token_budget=budget, costs=costs[: len(embeddings)])
    candidates = from_embeddings(query, embeddings, sigma=sigma)
    ours = METHODS["dartboard"]().select(candidates, limits)
    if min(limits.costs) > budget:
        assert len(ours) == 0
        return
    assert sum(limits.costs[i] for i in ours.indices) <= budget
    if len(embeddings) <= 10:
        best = METHODS["exhaustive"]().select(candidates, limits)
        assert ours.coverage[-1] >= 0.5 * (1 - 1 / np.e) * best.coverage[-1] * (1 - 1e-6)
        assert ours.coverage[-1] >= ours.bound * best.coverage[-1] * (1 - 1e-6)
