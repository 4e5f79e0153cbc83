"""Permutation tests, Holm and the bootstrap, against SciPy and against what must be so."""

import numpy as np
import pytest
from scipy import stats

from dartboard.statistics import bootstrap, compare, holm, permutation_tests


def permuted(differences, **options):
    return permutation_tests(np.asarray(differences, dtype=float)[:, None], **options)[0]


@pytest.mark.parametrize("size", [2, 5, 9, 12])
def test_few_differences_are_permuted_exactly(size):
    differences = np.random.default_rng(size).choice([-0.5, 0.25, 0.5], size)
    oracle = stats.permutation_test(
        (differences,), np.sum, permutation_type="samples", n_resamples=np.inf
    ).pvalue
    assert permuted([*differences, 0.0, 0.0]) == pytest.approx(oracle)
    assert permuted(np.zeros(4)) == 1.0


def test_many_differences_are_sampled_near_the_exact_value():
    differences = np.random.default_rng(2).normal(0.15, 1, 150)
    oracle = stats.permutation_test(
        (differences,), np.sum, permutation_type="samples", n_resamples=20_000, rng=np.random.default_rng(0)
    ).pvalue
    assert permuted(differences, resamples=20_000) == pytest.approx(oracle, abs=0.02)
    assert permuted(np.abs(differences) + 2) == pytest.approx(1 / 10_001)


def test_false_alarms_are_as_rare_as_promised():
    trials = np.random.default_rng(4).normal(size=(30, 400))
    p_values = np.array(permutation_tests(trials, resamples=400))
    assert (p_values < 0.05).mean() == pytest.approx(0.05, abs=0.03)


def test_holm_by_hand():
    # Sorted: .01 x 3 = .03, .02 x 2 = .04, .5 x 1 = .5
    assert holm({"a": 0.5, "b": 0.01, "c": 0.02}) == pytest.approx({"a": 0.5, "b": 0.03, "c": 0.04})
    assert holm({"a": 0.4, "b": 0.4}) == pytest.approx({"a": 0.8, "b": 0.8})
    assert holm({"a": 0.02, "b": 0.021}) == pytest.approx({"a": 0.04, "b": 0.04})
    assert holm({}) == {}


def test_the_bootstrap_is_scipys():
    values = np.random.default_rng(5).exponential(2.0, 200)
    low, high = bootstrap(values[:, None], seed=1)
    oracle = stats.bootstrap((values,), np.mean, method="percentile", rng=np.random.default_rng(0))
    assert low[0] == pytest.approx(oracle.confidence_interval.low, abs=0.03)
    assert high[0] == pytest.approx(oracle.confidence_interval.high, abs=0.03)
    assert [side.tolist() for side in bootstrap(np.empty((0, 2)))] == [[0.0, 0.0], [0.0, 0.0]]


def test_comparisons_count_wins_and_repeat_with_their_seed():
    left = np.array([[1.0], [0.5], [0.5 + 1e-12], [0.0]])
    (found,) = compare(left, np.array([[0.0], [0.5], [0.5], [0.5]]))
    assert (found.wins, found.ties, found.losses) == (1, 2, 1)
    assert found.difference == pytest.approx(0.125) and found.low <= found.difference <= found.high
    ours, theirs = np.random.default_rng(3).random((2, 60, 1))
    assert compare(ours, theirs, seed=5) == compare(ours, theirs, seed=5)
    assert compare(ours, theirs, seed=5) != compare(ours, theirs, seed=6)
