"""Tests of significance against SciPy and against what must be so."""

import numpy as np
import pytest
from scipy import special, stats

from dartboard.evaluation.significance import (
    bootstrap,
    compare,
    holm,
    incomplete_beta,
    paired_t_test,
    permutation_test,
    student_t_tails,
)


@pytest.mark.parametrize("freedom", [1, 2, 5, 30, 199, 6979])
@pytest.mark.parametrize("t", [0.0, 1e-3, 0.5, -1.96, 4.0, 40.0])
def test_student_t_is_scipys(t, freedom):
    assert student_t_tails(t, freedom) == pytest.approx(2 * stats.t.sf(abs(t), freedom), rel=1e-9, abs=1e-300)


def test_incomplete_beta_is_scipys():
    rng = np.random.default_rng(0)
    for a, b, x in zip(*rng.uniform(0.01, 50, (2, 200)), rng.random(200), strict=True):
        assert incomplete_beta(a, b, x) == pytest.approx(special.betainc(a, b, x), rel=1e-9, abs=1e-300)
    assert incomplete_beta(2, 3, 0.0) == 0.0
    assert incomplete_beta(2, 3, 1.0) == 1.0


def test_t_test_is_scipys():
    rng = np.random.default_rng(1)
    for size in (2, 10, 200):
        left, right = rng.random((2, size))
        assert paired_t_test(left - right) == pytest.approx(stats.ttest_rel(left, right).pvalue, rel=1e-9)


def test_t_test_without_spread():
    assert paired_t_test(np.zeros(5)) == 1.0
    assert paired_t_test(np.ones(5)) == 0.0
    assert paired_t_test(np.ones(1)) == 1.0


def test_few_differences_are_permuted_exactly():
    differences = np.array([0.3, 0.1, -0.2, 0.5, 0.0, 0.0])
    oracle = stats.permutation_test(
        (differences[:4],), np.sum, permutation_type="samples", n_resamples=np.inf
    ).pvalue
    assert permutation_test(differences) == pytest.approx(oracle)
    assert permutation_test(np.zeros(4)) == 1.0


def test_many_differences_are_sampled_near_the_exact_value():
    rng = np.random.default_rng(2)
    differences = rng.normal(0.15, 1, 150)
    assert permutation_test(differences, resamples=20_000) == pytest.approx(
        paired_t_test(differences), abs=0.02
    )
    assert permutation_test(rng.normal(2, 1, 100)) == pytest.approx(1 / 10_001)


def test_the_same_seed_gives_the_same_numbers():
    left, right = np.random.default_rng(3).random((2, 60))
    assert compare(left, right, seed=5) == compare(left, right, seed=5)
    assert compare(left, right, seed=5) != compare(left, right, seed=6)


def test_false_alarms_are_as_rare_as_promised():
    rng = np.random.default_rng(4)
    trials = rng.normal(size=(400, 30))
    assert np.mean([permutation_test(row, resamples=400) < 0.05 for row in trials]) == pytest.approx(
        0.05, abs=0.03
    )


def test_holm_by_hand():
    # Sorted: .01 x 3 = .03, .02 x 2 = .04, .5 x 1 = .5
    assert holm({"a": 0.5, "b": 0.01, "c": 0.02}) == pytest.approx({"a": 0.5, "b": 0.03, "c": 0.04})
    assert holm({"a": 0.4, "b": 0.4}) == pytest.approx({"a": 0.8, "b": 0.8})
    assert holm({"a": 0.02, "b": 0.021}) == pytest.approx({"a": 0.04, "b": 0.04})
    assert holm({}) == {}


def test_bootstrap_is_near_the_normal_interval():
    values = np.random.default_rng(5).normal(1.0, 2.0, (500, 2))
    low, high = bootstrap(values, seed=1)
    wide = 1.96 * values.std(axis=0, ddof=1) / np.sqrt(500)
    np.testing.assert_allclose(low, values.mean(axis=0) - wide, atol=0.02)
    np.testing.assert_allclose(high, values.mean(axis=0) + wide, atol=0.02)
    assert [side.tolist() for side in bootstrap(np.empty((0, 2)))] == [[0.0, 0.0], [0.0, 0.0]]


def test_wins_ties_and_losses():
    found = compare(np.array([1.0, 0.5, 0.5 + 1e-12, 0.0]), np.array([0.0, 0.5, 0.5, 0.5]))
    assert (found.wins, found.ties, found.losses) == (1, 2, 1)
    assert found.difference == pytest.approx(0.125)
    assert found.low <= found.difference <= found.high
