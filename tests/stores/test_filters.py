"""The filter language: what it reads, what it means, and how it complains."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dartboard.errors import InvalidInputError
from dartboard.stores.filter_parser import parse_filter
from dartboard.stores.filters import (
    And,
    Equal,
    Exists,
    In,
    Not,
    Or,
    filter_from_json,
    filter_to_json,
)
from tests.stores.filter_strategies import filters_of, leaves_of

RECORD = {"year": 2021, "lang": "en", "tags": ["a", 2, True], "draft": False, "none": None, "score": 0.5}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("year = 2021", True),
        ("year == 2021.0", True),
        ('year = "2021"', False),
        ("year != 2020", True),
        ("year >= 2021 and year < 2022", True),
        ("year > 2021 or lang = 'en'", True),
        ("not year > 2021", True),
        ("lang in ['de', \"en\"]", True),
        ("lang in ('de', 'fr')", False),
        ("lang in []", False),
        ('lang >= "ea"', True),
        ("lang < 5", False),
        ("tags = 'a'", True),
        ("tags in [1, 2]", True),
        ("tags = 1", False),
        ("tags > 1", False),
        ("draft = false", True),
        ("draft = 0", False),
        ("draft exists", True),
        ("none exists", False),
        ("missing exists", False),
        ("missing = 1", False),
        ("missing != 1", True),
        ("not missing > 3", True),
        ("not not year exists", True),
        ("year = 1 or year = 2021 and lang = 'de'", False),
        ("(year = 1 or year = 2021) and lang = 'en'", True),
        ("`year` = 2021", True),
        ("score <= 5e-1", True),
        ("score > -.5", True),
        ("NOT draft = TRUE AND Year = 1", False),
    ],
)
def test_meaning(text, expected):
    assert parse_filter(text).matches(RECORD) is expected


def test_tree():
    assert parse_filter("a = 1 and not (b exists or c in [1, 'x'])") == And(
        (Equal("a", 1), Not(Or((Exists("b"), In("c", (1, "x"))))))
    )
    assert parse_filter(r"a = 'it\'s'") == Equal("a", "it's")


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "empty"),
        ("year", "an operator at the end"),
        ("year =", "a value at the end"),
        ("year = 2021 lang = 1", "expected and, or"),
        ("year ~ 3", r"cannot read at character 6 \(near '~ 3' in 'year ~ 3'\)"),
        ("= 3", "expected a field"),
        ("(year = 1", "expected \\)"),
        ("year in 3", "expected a list"),
        ("year in [1 2]", "expected ,"),
        ("year = en", "expected a value"),
        ("draft > true", "number or text"),
        ("'unended", "cannot read"),
        ("(" * 100 + "a = 1" + ")" * 100, "more than 50 deep"),
    ],
)
def test_complaints(text, complaint):
    with pytest.raises(InvalidInputError, match=complaint):
        parse_filter(text)


@pytest.mark.parametrize(
    "value",
    [
        3,
        {"field": "a"},
        {"field": "a", "op": "like", "value": "b"},
        {"field": "", "op": "=", "value": 1},
        {"field": "a", "op": "=", "value": float("nan")},
        {"field": "a", "op": "=", "value": 10**400},
        {"field": "a", "op": "=", "value": {"b": 1}},
        {"field": "a", "op": "in", "value": "text"},
        {"field": "a", "op": "=", "value": "nul\x00"},
        {"field": "a", "op": "<", "value": "half \ud800"},
        {"field": "a", "op": "in", "value": ["half \ud800"]},
        {"field": "half \ud800", "op": "exists"},
        {"ids": ["half \ud800"]},
        {"field": "a", "op": "exists", "value": False},
        {"and": {}},
        {"and": [], "or": []},
        {"field": "a", "op": "=", "value": 1, "more": 2},
    ],
)
def test_json_complaints(value):
    with pytest.raises(InvalidInputError, match="filter"):
        filter_from_json(value)


def test_deep_json():
    value = {"field": "a", "op": "exists"}
    for _ in range(100):
        value = {"not": value}
    with pytest.raises(InvalidInputError, match="deep"):
        filter_from_json(value)


names = st.text(min_size=1, max_size=5).filter(lambda name: "\x00" not in name)
scalars = st.one_of(
    st.booleans(),
    st.integers(-5, 5),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=4).filter(lambda text: "\x00" not in text),
)
ordered = st.one_of(st.integers(-5, 5), st.text(max_size=3).filter(lambda text: "\x00" not in text))
filters = filters_of(leaves_of(names, scalars, ordered))


@given(filters)
def test_json_round_trip(where):
    assert filter_from_json(filter_to_json(where)) == where


@given(filters, st.dictionaries(names, st.one_of(scalars, st.none(), st.lists(scalars)), max_size=4))
def test_every_filter_is_true_or_false(where, metadata):
    assert where.matches(metadata) is not Not(where).matches(metadata)
