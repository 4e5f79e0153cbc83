"""Scores that keep the order of the picks, whatever clients do with them."""

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import isotonic_regression

from dartboard.api.endpoints.rerank_scores import decreasing, novelty

numbers = st.lists(st.floats(-1, 2, allow_nan=False), min_size=1, max_size=40)


@given(numbers)
def test_scores_decrease_strictly_and_stay_inside(raw):
    scores = decreasing(np.array(raw))
    assert all(0 < score < 1 for score in scores)
    assert all(before > after for before, after in pairwise(scores))
    narrow = np.array(scores, np.float32)
    assert (np.diff(narrow) < 0).all(), "clients with single precision see the same order"


@given(numbers)
def test_scores_are_the_nearest_decreasing_ones(raw):
    nearest = isotonic_regression(np.clip(raw, 0, 1), increasing=False).x
    np.testing.assert_allclose(decreasing(np.array(raw)), nearest, atol=1.1e-3)


def test_thousands_of_equal_scores_stay_apart():
    for value in (0.0, 1.0):
        narrow = np.array(decreasing(np.full(2000, value)), np.float32)
        assert (np.diff(narrow) < 0).all()


def test_novelty_is_what_nobody_before_covers():
    rows = np.array([[1.0, 0.0], [3.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    sigma = 0.2
    at_45 = np.exp(-(((1 - np.sqrt(0.5)) / 2) ** 2) / (2 * sigma**2))
    at_90 = np.exp(-(0.5**2) / (2 * sigma**2))
    np.testing.assert_allclose(novelty(rows, sigma), [1, 0, 1 - at_90, 1 - at_45], atol=1e-6)
    assert novelty(np.empty((0, 2)), sigma).shape == (0,)
