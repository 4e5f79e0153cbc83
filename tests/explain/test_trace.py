"""The steps of a selection: the gains of all candidates, beside the selection's own and the definition."""

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dartboard.explain.trace import trace
from dartboard.selection import Dartboard, Limits, explain_picks, from_embeddings, from_log_probs
from tests.examples import examples
from tests.selection.pools import topical


def gains_of(step):
    """``(n,)``, NaN for those that could not be picked."""
    return np.array(step.gains, dtype=float)


@st.composite
def boards(draw, most=24):
    """A pool with near-copies and exact copies, at any σ that a request may name."""
    rng = np.random.default_rng(draw(st.integers(0, 10_000)))
    n, dim = draw(st.integers(1, most)), draw(st.integers(2, 8))
    rows = rng.standard_normal((n, dim))
    for at in range(n):
        other = int(rng.integers(n))
        kind = rng.random()
        if kind < 0.15:
            rows[at] = rows[other]
        elif kind < 0.4:
            rows[at] = rows[other] + draw(st.sampled_from([1e-7, 1e-4, 0.05])) * rng.standard_normal(dim)
    sigma = 10.0 ** draw(st.floats(-5, 1))
    pool = from_embeddings(rng.standard_normal(dim), rows, sigma=sigma)
    if draw(st.booleans()):
        pool = pool.reweighted(np.log(rng.dirichlet(np.ones(n))))
    return pool, draw(st.integers(1, n))


@given(boards())
@examples(250)
def test_gains_and_coverage_are_those_of_the_selection(board):
    pool, k = board
    limits = Limits(relevance_below=0, k=k)
    selection = Dartboard().select(pool, limits)
    found = trace(pool, limits, selection)
    assert [step.pick for step in found.steps] == selection.indices.tolist()
    total = 0.0
    for number, step in enumerate(found.steps):
        assert step.gain == selection.gains[number] and step.coverage == selection.coverage[number]
        assert step.gains[step.pick] == pytest.approx(selection.gains[number], rel=1e-3, abs=1e-300)
        total += step.gains[step.pick]
        assert min(total, 1.0) == pytest.approx(step.coverage, rel=1e-6)
        picked = set(selection.indices[:number].tolist())
        assert {c for c in range(len(pool)) if (step.gains[c] is None)} == picked
        assert (gains_of(step)[~np.isnan(gains_of(step))] >= 0).all()


@given(boards(), st.randoms(use_true_random=False))
@examples(100)
def test_any_picks_can_be_followed(board, chance):
    pool, k = board
    limits = Limits(relevance_below=0, k=k)
    picks = chance.sample(range(len(pool)), k)
    selection = explain_picks(pool, limits, picks, method="dartboard")
    for step, pick, gain in zip(trace(pool, limits, selection).steps, picks, selection.gains, strict=True):
        assert step.pick == pick and step.gain == gain
        assert step.gains[pick] == pytest.approx(gain, rel=1e-6, abs=1e-12)


@given(boards(most=8))
@examples(60)
def test_gains_of_all_candidates_follow_the_definition(board):
    pool, k = board
    limits = Limits(relevance_below=0, k=k)
    found = trace(pool, limits, Dartboard().select(pool, limits))
    with mpmath.workdps(60):
        rows = pool.log_kernel
        kernel = [[mpmath.exp(mpmath.mpf(float(x))) for x in row] for row in rows]
        weights = [mpmath.exp(mpmath.mpf(float(x))) for x in pool.log_weights]
        total = mpmath.fsum(weights)
        covered = [mpmath.mpf(0)] * len(weights)
        for step in found.steps:
            for c in np.flatnonzero(~np.isnan(gains_of(step))):
                row = kernel[pool.row_of[c]]
                true = mpmath.fsum(w * max(0, x - m) for w, x, m in zip(weights, row, covered, strict=True))
                # What near-copies of picks still add is lost in the rounding of what they cover alone.
                alone = float(mpmath.fsum(w * x for w, x in zip(weights, row, strict=True)) / total)
                least = max(1e-9 * step.gain, 1e-15 * alone, 1e-300)
                assert step.gains[c] == pytest.approx(float(true / total), rel=1e-6, abs=least)
            covered = [max(m, x) for m, x in zip(covered, kernel[pool.row_of[step.pick]], strict=True)]


@given(boards())
@examples(100)
def test_a_pick_by_gain_is_never_behind_its_runner_up(board):
    pool, k = board
    limits = Limits(relevance_below=0, k=k)
    for number, step in enumerate(trace(pool, limits, Dartboard().select(pool, limits)).steps):
        assert (step.criterion == "probability") == (number == 0 or step.gains[step.pick] == 0.0) or (
            step.criterion == "gain" and step.gain == 0.0  # too small for a plain number
        )
        if step.runner_up is None:
            continue
        assert step.runner_up.index != step.pick
        assert step.runner_up.behind is None or 0.0 <= step.runner_up.behind <= 1.0
        if step.criterion == "gain" and step.gain > 1e-290:
            others = [
                gain
                for c, gain in enumerate(step.gains)
                if gain is not None and pool.row_of[c] != pool.row_of[step.pick]
            ]
            assert step.runner_up.gain == pytest.approx(max(others), rel=1e-8)
            assert step.runner_up.behind == pytest.approx(
                max(0.0, 1 - step.runner_up.gain / step.gains[step.pick]), abs=1e-7
            )


@given(boards())
@examples(100)
def test_covered_by_the_pick_with_the_largest_kernel(board):
    pool, k = board
    limits = Limits(relevance_below=0, k=k)
    selection = Dartboard().select(pool, limits)
    found = trace(pool, limits, selection)
    logs = pool.log_kernel[pool.row_of[selection.indices]][:, pool.row_of]
    for t in range(len(pool)):
        if found.covered_by[t] < 0:
            assert (logs[:, t] == -np.inf).all()
            continue
        place = selection.indices.tolist().index(found.covered_by[t])
        assert logs[place, t] == logs[:, t].max()
        assert found.cover[t] == pytest.approx(np.exp(logs[place, t]), rel=1e-9)
    assert found.cover[selection.indices] == pytest.approx(1.0)


def test_a_pool_in_single_precision_is_looked_at_in_double():
    query, rows = topical(120, copies=1, noise=0.2)
    limits = Limits(relevance_below=0, k=10)
    pools = [from_embeddings(query, kind, sigma=0.09) for kind in (rows, rows.astype(np.float64))]
    single, double = (trace(pool, limits, Dartboard().select(pool, limits)).steps for pool in pools)
    for one, other in zip(single, double, strict=True):
        np.testing.assert_allclose(gains_of(one), gains_of(other), rtol=1e-9)
        assert one.gain == pytest.approx(other.gain, rel=1e-3)


@pytest.mark.parametrize("seed", range(8))
def test_under_a_budget_rivals_are_those_that_still_fit(seed):
    query, rows = topical(40, seed=seed)
    costs = np.random.default_rng(seed).integers(5, 60, len(rows)).astype(float)
    pool, limits = (
        from_embeddings(query, rows, sigma=0.1),
        Limits(relevance_below=0, token_budget=120, costs=costs),
    )
    selection = Dartboard().select(pool, limits)
    spent = 0.0
    for step in trace(pool, limits, selection).steps:
        assert step.criterion in ("gain", "gain_per_token")
        if step.runner_up is not None:
            assert spent + costs[step.runner_up.index] <= 120
            assert step.runner_up.behind < 1.0
            if step.criterion == "gain":
                assert step.runner_up.gain <= step.gain * (1 + 1e-9)
            else:
                ratio = step.runner_up.gain / costs[step.runner_up.index]
                assert ratio <= step.gain / costs[step.pick] * (1 + 1e-9)
        spent += costs[step.pick]


def test_what_is_required_or_left_out():
    query, rows = topical(20)
    pool, limits = (
        from_embeddings(query, rows, sigma=0.1),
        Limits(relevance_below=0, k=3, must_include=[7], exclude=[2]),
    )
    found = trace(pool, limits, Dartboard().select(pool, limits))
    assert found.steps[0].pick == 7 and found.steps[0].criterion == "required"
    assert all(step.gains[2] is None for step in found.steps)
    assert found.covered_by[2] == -1 and found.cover[2] == 0.0
    assert len(found.steps[0].gains) == 20


def test_nothing_is_covered_where_no_pick_reaches():
    never = -np.inf
    pool = from_log_probs([-0.1, -3.0, -3.0], [[0.0, never, never], [never, 0.0, never], [never, never, 0.0]])
    limits = Limits(relevance_below=0, k=1)
    found = trace(pool, limits, Dartboard().select(pool, limits))
    assert found.covered_by.tolist() == [0, -1, -1] and found.cover.tolist() == [1.0, 0.0, 0.0]


@given(boards(), st.randoms(use_true_random=False))
@examples(100)
def test_after_what_was_seen(board, chance):
    pool, k = board
    seen = chance.sample(range(len(pool)), chance.randint(1, len(pool)))
    limits = Limits(relevance_below=0, k=k, seen=seen)
    selection = Dartboard().select(pool, limits)
    found = trace(pool, limits, selection)
    logs = pool.log_kernel[pool.row_of[seen]][:, pool.row_of]
    np.testing.assert_allclose(found.seen_cover, np.exp(logs.max(axis=0)), rtol=1e-9)
    for step, gain in zip(found.steps, selection.gains, strict=True):
        assert step.criterion == "gain" and step.pick not in seen
        assert step.gains[step.pick] == pytest.approx(gain, rel=1e-3, abs=1e-300)
        assert np.isnan(gains_of(step)[seen]).all()


def test_a_page_is_cut_out_of_the_whole():
    query, rows = topical(40)
    pool, limits = from_embeddings(query, rows, sigma=0.1), Limits(relevance_below=0, k=6, seen=[3])
    selection = Dartboard().select(pool, limits)
    whole, page = (trace(pool, limits, selection, offset=offset) for offset in (0, 2))
    assert [step.pick for step in page.steps] == [step.pick for step in whole.steps[2:]]
    earlier = Limits(relevance_below=0, k=2, seen=[3])
    first = trace(pool, earlier, Dartboard().select(pool, earlier))
    np.testing.assert_allclose(page.seen_cover, np.maximum(first.seen_cover, first.cover))
    np.testing.assert_allclose(
        np.maximum(page.cover, page.seen_cover), np.maximum(whole.cover, whole.seen_cover)
    )


def test_picks_by_relevance_say_so():
    query, rows = topical(40, dim=16)
    pool, limits = from_embeddings(query, rows, sigma=0.3), Limits(k=8, relevance_below=0.05)
    selection = Dartboard().select(pool, limits)
    found = trace(pool, limits, selection)
    turned = selection.by_relevance.tolist()
    assert any(turned[1:]) and not turned[1]
    assert [step.criterion == "probability" for step in found.steps] == [True, *turned[1:]]
