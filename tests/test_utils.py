"""The specification's numerics against SciPy and against their definitions."""

import math

import numpy as np
import pytest
import scipy.spatial.distance
import scipy.special
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from dartboard.utils import (
    cosine_distance,
    cosine_similarity,
    log_gaussian_kernel,
    logsumexp_stable,
    unit_rows,
)

FINITE = st.floats(-1e3, 1e3)


@given(
    hnp.arrays(
        np.float64, hnp.array_shapes(min_dims=1, max_dims=3, max_side=6), elements=st.floats(-1e4, 1e4)
    )
)
def test_logsumexp_equals_scipy(values):
    assert logsumexp_stable(values) == pytest.approx(scipy.special.logsumexp(values), rel=1e-12, abs=1e-12)
    for axis in range(values.ndim):
        np.testing.assert_allclose(
            logsumexp_stable(values, axis=axis),
            scipy.special.logsumexp(values, axis=axis),
            rtol=1e-12,
            atol=1e-12,
        )


def test_logsumexp_at_the_edges():
    assert logsumexp_stable([-np.inf, -np.inf]) == -np.inf
    assert logsumexp_stable([]) == -np.inf
    assert logsumexp_stable([1e308, 1e308]) == pytest.approx(1e308)
    assert logsumexp_stable([-1e308, 0.0]) == 0.0
    assert logsumexp_stable([np.inf, 0.0]) == np.inf


@given(
    hnp.arrays(np.float64, 5, elements=FINITE),
    hnp.arrays(np.float64, 5, elements=FINITE),
    st.floats(0.01, 10),
)
def test_log_gaussian_kernel_is_the_log_density(a, b, sigma):
    value = log_gaussian_kernel(a, b, sigma)
    squared = float(((a - b) ** 2).sum())
    assert value == pytest.approx(-math.log(sigma) - 0.5 * math.log(2 * math.pi) - squared / (2 * sigma**2))
    assert value == log_gaussian_kernel(b, a, sigma)
    assert value <= log_gaussian_kernel(a, a, sigma)


def test_log_gaussian_kernel_integrates_to_one_in_one_dimension():
    x = np.linspace(-20, 20, 40001)
    density = np.exp([log_gaussian_kernel([v], [0.0], 1.7) for v in x])
    assert np.trapezoid(density, x) == pytest.approx(1.0, abs=1e-9)


def test_log_gaussian_kernel_stays_finite_at_sigma_zero():
    assert math.isfinite(log_gaussian_kernel([0.0], [1.0], 0.0))
    assert log_gaussian_kernel([1.0], [1.0], 0.0) == pytest.approx(
        -math.log(1e-10) - 0.5 * math.log(2 * math.pi)
    )


@pytest.mark.parametrize(
    ("a", "b", "sigma", "says"),
    [
        ([1.0], [1.0, 2.0], 1.0, "different dimensions"),
        ([math.nan], [1.0], 1.0, "finite"),
        ([1.0], [1.0], -1.0, "sigma must be a finite number >= 0"),
        ([1.0], [1.0], math.nan, "sigma must be a finite number >= 0"),
    ],
)
def test_log_gaussian_kernel_refuses(a, b, sigma, says):
    with pytest.raises(ValueError, match=says):
        log_gaussian_kernel(a, b, sigma)


@given(st.integers(0, 10_000))
def test_cosine_equals_scipy(seed):
    a, b = np.random.default_rng(seed).standard_normal((2, 7))
    assert cosine_distance(a, b) == pytest.approx(scipy.spatial.distance.cosine(a, b), abs=1e-12)
    assert cosine_similarity(a, b) == pytest.approx(1 - cosine_distance(a, b))


def test_cosine_range_and_extremes():
    assert cosine_distance([1.0, 2.0], [2.0, 4.0]) == pytest.approx(0.0, abs=1e-15)
    assert cosine_distance([1.0, 0.0], [-3.0, 0.0]) == 2.0
    assert cosine_similarity([1e-200, 0.0], [1e200, 1e200]) == pytest.approx(math.sqrt(0.5))


@pytest.mark.parametrize(
    ("a", "says"), [([0.0, 0.0], "all zeros"), ([1.0], "different dimensions"), ([math.inf, 1], "NaN")]
)
def test_cosine_refuses(a, says):
    with pytest.raises(ValueError, match=says):
        cosine_similarity(a, [1.0, 1.0])


def test_unit_rows_from_any_magnitude_and_each_by_itself():
    rows = np.array([[3e38, 3e38], [1e-40, 0], [3, 4], [0, 0], [np.inf, 1]], np.float32)
    unit = unit_rows(rows)
    assert unit.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(unit[:3], axis=1), 1, atol=1e-6)
    assert unit[3].tolist() == [0, 0] and np.isnan(unit[4]).any()
    assert np.array_equal(unit_rows(rows[2:3])[0], unit[2]) and rows[0, 0] == np.float32(3e38)
