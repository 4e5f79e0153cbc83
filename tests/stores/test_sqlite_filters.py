"""Filters compiled to SQL mean what the filters themselves say."""

import json
import sqlite3

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dartboard.stores.filters import Compare, Equal, In, Or
from dartboard.stores.sqlite.filter_sql import filter_sql
from tests.examples import examples
from tests.stores.filter_strategies import filters_of, leaves_of

NAMES = st.sampled_from(
    ["a", "b.c", "d e", 'q"u', "ba\\ck", "l\nine", "日本", "$", "[0]", "#", "a'b", "\u2028"]
)
TEXTS = st.sampled_from(
    ["", "a", "b", "A", "ab", "ä", "日本", "🙂", "\uffff", '"', "\\", "\n", "1", "true", "null"]
)
NUMBERS = st.one_of(
    st.integers(-3, 3),
    st.sampled_from([2**53, -(2**53), 2**53 - 1, 0.1, 0.30000000000000004, 0.3, 1e300, -1e-300, -0.0]),
    st.floats(allow_nan=False, allow_infinity=False),
    st.floats(-3, 3).map(lambda value: round(value, 1)),
)
FLOATS = st.floats(allow_nan=False, allow_infinity=False)
RANGES = st.sampled_from(["<", "<=", ">", ">="])
SCALARS = st.one_of(st.booleans(), TEXTS, NUMBERS)
LISTS = st.lists(st.one_of(SCALARS, st.none(), st.lists(SCALARS, max_size=2)), max_size=4)
OBJECTS = st.dictionaries(st.sampled_from(["a", "x"]), SCALARS, max_size=2)
METADATA = st.dictionaries(NAMES, st.one_of(SCALARS, st.none(), LISTS, OBJECTS), max_size=6)
BOUNDS = st.one_of(NUMBERS, st.sampled_from([1e30, -1e30, 2.0**70, 2.0**63]))
VALUES = st.one_of(st.booleans(), TEXTS, BOUNDS)
FILTERS = filters_of(leaves_of(NAMES, VALUES, st.one_of(TEXTS, BOUNDS)))


@pytest.fixture(scope="module")
def database():
    connection = sqlite3.connect(":memory:")
    yield connection
    connection.close()


def holds(database, where, metadata):
    condition, parameters = filter_sql(where)
    row = {**parameters, "m": json.dumps(metadata, ensure_ascii=False)}
    (found,) = database.execute(f"SELECT {condition} FROM (SELECT :m AS metadata)", row).fetchone()
    assert found in (0, 1), "a filter is true or false, never unknown"
    return bool(found)


@examples(400)
@given(where=FILTERS, metadata=METADATA)
def test_sql_says_what_the_filter_says(database, where, metadata):
    assert holds(database, where, metadata) == where.matches(metadata)


@examples(200)
@given(
    number=st.floats(allow_nan=False, allow_infinity=False), operator=st.sampled_from(["<", "<=", ">", ">="])
)
def test_numbers_with_fractions_are_compared_exactly(database, number, operator):
    assert holds(database, Equal("a", number), {"a": number})
    assert holds(database, Compare("a", operator, number), {"a": number}) == ("=" in operator)


def test_long_filters(database):
    many = Or(tuple(Equal("a", number) for number in range(256)))
    assert holds(database, many, {"a": 255}) and not holds(database, many, {"a": 256})
    listed = In("a", tuple(str(number) for number in range(30_000)))
    assert holds(database, listed, {"a": ["x", "29999"]}) and not holds(database, listed, {"a": 29999})
