"""What a search is asked for is checked when it is said, and one type says it everywhere."""

from dataclasses import fields

import numpy as np
import pytest

from dartboard.errors import ConfigError, InvalidInputError
from dartboard.search_options import SearchKeywords, SearchOptions, declared_options, option_name
from dartboard.selection import MMR, Dartboard
from dartboard.stores import parse_filter


@pytest.mark.parametrize(
    "wrong",
    [
        {"k": 0},
        {"k": 2.5},
        {"token_budget": -1},
        {"sigma": 0},
        {"sigma": 1e-6},
        {"sigma": "wide"},
        {"method": "best"},
        {"method": 7},
        {"min_gain_share": 2},
        {"min_similarity": "high"},
        {"max_per_source": 0},
        {"triage_k": 0},
        {"triage_k": 1001},
        {"reranker": "magic"},
        {"where": "year >"},
        {"where": 3},
        {"must_include": "abc"},
        {"exclude": [1]},
        {"must_include": ["a"], "exclude": ["a"]},
        {"must_include": ["a", "a"]},
        {"must_include": None},
        {"exclude": 5},
        {"sigma": np.array([0.1, 0.2])},
        {"sigma_min": "a"},
        {"sigma_min": 0},
        {"source_field": None},
        {"method": Dartboard},
    ],
    ids=str,
)
def test_options_are_checked_when_they_are_set(wrong):
    with pytest.raises((ConfigError, InvalidInputError)) as raised:
        SearchOptions(**wrong)
    assert raised.value.field in wrong


def test_a_door_finds_in_the_declaration_what_it_needs():
    options = declared_options()
    assert list(options) == [field.name for field in fields(SearchOptions)]
    assert all(option.help for option in options.values())
    assert (options["k"].low, options["k"].high, options["k"].default) == (1, 1000, None)
    assert option_name("filter") == "where" and option_name("top_k") == "k" and option_name("nothing") is None


def test_k_is_five_unless_a_budget_stands_in():
    assert SearchOptions().k == 5 and SearchOptions(token_budget=9).k is None
    assert SearchOptions(k=3, token_budget=9).k == 3


def test_options_are_kept_as_they_are_used():
    kept = SearchOptions(method="mmr", must_include=["a"], where="year > 1")
    assert SearchOptions(exclude=(id for id in "ab")).exclude == ("a", "b")
    assert kept.must_include == ("a",) and kept.where == parse_filter("year > 1")
    assert isinstance(kept.method, MMR) and isinstance(SearchOptions().method, Dartboard)


def test_single_options_are_changed_by_name():
    given = SearchOptions(k=3, where="year > 1")
    assert SearchOptions.of(given, {}) is given
    assert SearchOptions.of(given, {"sigma": 0.2}) == SearchOptions(k=3, where="year > 1", sigma=0.2)
    assert SearchOptions.of(given, {"token_budget": 50}).k == 3, "both hold"
    assert SearchOptions.of(None, {"token_budget": 50}).k is None
    for wrong in (5, {"k": 3}):
        with pytest.raises(TypeError, match="options must be SearchOptions"):
            SearchOptions.of(wrong, {})
    with pytest.raises(TypeError, match=r"search\(\) takes no 'top_k': did you mean 'k'\?"):
        SearchOptions.of(given, {"top_k": 3})


def test_keyword_arguments_are_the_same_options():
    assert list(SearchKeywords.__annotations__) == [field.name for field in fields(SearchOptions)]
