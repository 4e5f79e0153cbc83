"""Kernels of several sources side by side."""

import pytest

from dartboard.evaluation import jaccard as evaluated
from dartboard.mining.kernels import compare_kernels, jaccard


def test_jaccard_is_that_of_evaluations():
    for first, second in ([["a", "b"], ["b", "c"]], [["a"], ["a"]], [["a"], ["b"]]):
        assert jaccard(first, second) == pytest.approx(evaluated(first, second))
    assert jaccard([], []) == 1.0


def test_every_two_sources_are_compared_where_both_found_something():
    sources = {
        "finder": {"1": ["a", "b"], "2": ["c"], "3": [], "4": ["d"]},
        "imports": {"1": ["a", "b"], "2": ["c", "d"], "3": ["e"]},
        "agent": {"1": ["b"]},
    }
    one, two, three = compare_kernels(sources, seed=1)
    assert (one.first, one.second, one.cases, one.equal) == ("finder", "imports", 2, 1)
    assert one.jaccard == pytest.approx(0.75)
    assert (one.low, one.high) == (0.5, 1.0)
    assert (one.first_more, one.second_more, one.only_first, one.only_second) == (0, 1, 1, 1)
    assert (two.cases, two.jaccard, two.low, two.high) == (1, 0.5, 0.5, 0.5)
    assert (three.first, three.second) == ("imports", "agent")


def test_nothing_in_common_to_compare():
    (found,) = compare_kernels({"a": {"1": ["x"]}, "b": {"2": ["x"]}})
    assert (found.cases, found.jaccard, found.low, found.high) == (0, 0.0, 0.0, 0.0)
