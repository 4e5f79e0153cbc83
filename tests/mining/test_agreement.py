"""Intervals and agreement, against scikit-learn and SciPy."""

import math
import warnings

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest
from sklearn.metrics import cohen_kappa_score

from dartboard.errors import ConfigError, InvalidInputError
from dartboard.mining.agreement import LABELS, agree, cohen_kappa, wilson

PAIRS = st.lists(st.tuples(st.sampled_from(LABELS), st.sampled_from(LABELS)), min_size=1, max_size=60)


@settings(deadline=None)
@given(st.integers(0, 400), st.integers(1, 400), st.sampled_from([0.8, 0.95, 0.99]))
def test_wilson_is_that_of_scipy(errors, trials, level):
    errors = min(errors, trials)
    theirs = binomtest(errors, trials).proportion_ci(level, method="wilson")
    assert wilson(errors, trials, level=level) == pytest.approx((theirs.low, theirs.high), abs=1e-12)


def test_wilson_at_the_ends():
    assert wilson(0, 0) == (0.0, 1.0)
    assert wilson(0, 20)[0] == 0.0 and wilson(20, 20)[1] == 1.0
    for wrong in ((-1, 3), (4, 3)):
        with pytest.raises(InvalidInputError, match="between 0 and the 3 trials"):
            wilson(*wrong)
    with pytest.raises(ConfigError, match="level"):
        wilson(1, 3, level=1.0)


@settings(deadline=None)
@given(PAIRS)
def test_kappa_is_that_of_scikit_learn(pairs):
    first, second = zip(*pairs, strict=True)
    ours = cohen_kappa(first, second)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # theirs divides by zero where kappa is undefined
        theirs = cohen_kappa_score(first, second)
    if ours is None:
        assert math.isnan(theirs)
    else:
        assert ours == pytest.approx(theirs, abs=1e-12)


def test_undefined_where_both_say_one_thing_only():
    found = agree(["NO"] * 9, ["NO"] * 9)
    assert (found.kappa, found.low, found.high, found.observed) == (None, None, None, 1.0)
    assert cohen_kappa([], []) is None


def test_judges_who_never_differ_have_no_interval_of_kappa():
    """Every resample of equal labels agrees: that would be a certainty which twelve cases do not give."""
    labels = ["YES", "NO", "NO"] * 12
    found = agree(labels, labels, groups=[at // 3 for at in range(36)])
    assert (found.kappa, found.low, found.high) == (1.0, None, None)
    assert (found.pairs, found.cases) == (36, 12)
    assert found.most_apart == pytest.approx(wilson(0, 12)[1]) and 0.2 < found.most_apart < 0.3
    constant = agree(labels, ["NO"] * 36)
    assert (constant.kappa, constant.low, constant.high) == (0.0, None, None)


def test_the_interval_covers_and_repeats():
    first = ["YES"] * 30 + ["NO"] * 70
    second = ["YES"] * 22 + ["NO"] * 70 + ["UNSURE"] * 8
    found = agree(first, second, names=("a", "b"), seed=4)
    assert found == agree(first, second, names=("a", "b"), seed=4)
    assert found != agree(first, second, names=("a", "b"), seed=5)
    assert found.kappa == pytest.approx(cohen_kappa_score(first, second))
    assert found.low < found.kappa < found.high
    assert found.table == ((22, 8, 0), (0, 62, 8), (0, 0, 0))
    assert (found.pairs, found.observed) == (100, 0.84)


def test_the_interval_covers_the_truth_as_often_as_it_says():
    """Two judges that each err on one pair in ten: kappa = 1 - .18 / .5 = .64, in 95 of 100 intervals."""
    import numpy as np

    rng = np.random.default_rng(0)
    covered = 0
    for run in range(200):
        truth = rng.random(120) < 0.5
        one, two = (np.where(truth ^ (rng.random(120) < 0.1), "YES", "NO").tolist() for _ in range(2))
        found = agree(one, two, resamples=400, seed=run)
        covered += found.low <= 0.64 <= found.high
    assert 0.89 <= covered / 200 <= 0.99


def test_verdicts_of_one_case_are_drawn_together():
    first = (["YES"] * 10 + ["NO"] * 10) * 6
    second = (["YES"] * 20) * 3 + (["YES"] * 10 + ["NO"] * 10) * 3
    cases = [at // 20 for at in range(120)]
    alone, together = agree(first, second), agree(first, second, groups=cases)
    assert alone.kappa == together.kappa
    assert together.high - together.low > alone.high - alone.low


def test_bad_input_is_told():
    with pytest.raises(InvalidInputError, match="same pairs"):
        cohen_kappa(["YES"], [])
    with pytest.raises(InvalidInputError, match="'MAYBE': one of YES, NO, UNSURE"):
        agree(["MAYBE"], ["YES"])
    with pytest.raises(InvalidInputError, match="1 groups for 2"):
        agree(["YES", "NO"], ["YES", "NO"], groups=["a"])
    with pytest.raises(ConfigError, match="resamples"):
        agree(["YES"], ["YES"], resamples=0)
    assert agree([], []).kappa is None
