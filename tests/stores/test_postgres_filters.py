"""Filters in SQL mean what ``Filter.matches`` means, and metadata comes back as it went in."""

import json
import math

import numpy as np
import psycopg
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dartboard.errors import InvalidInputError
from dartboard.stores.filters import And, Compare, Equal, Exists, In, Not, Or
from dartboard.stores.manifest import Manifest
from dartboard.stores.postgres import PostgresStore
from dartboard.stores.postgres.filter_sql import condition, to_json
from dartboard.stores.records import LARGEST_INTEGER, Record
from tests.examples import examples
from tests.stores.filter_strategies import filters_of, leaves_of
from tests.stores.postgres_server import address, fresh


@pytest.fixture(scope="module")
def connection():
    with psycopg.connect(address(), autocommit=True) as connection:
        yield connection


NUMBERS = (
    *(
        0,
        -0.0,
        1,
        1.0,
        0.1,
        0.30000000000000004,
        0.3,
        1e16,
        1e22,
        1e23,
        5e-324,
        1.7976931348623157e308,
        -1e300,
    ),
    *(LARGEST_INTEGER, LARGEST_INTEGER - 1, float(LARGEST_INTEGER), 2.0**53 + 2, 2.5),
)
text = st.text(max_size=3).filter(lambda text: "\x00" not in text)
names = st.one_of(
    st.sampled_from(["a", "b", "0", "a.b", "$", "q\"'", "%s", "{x}"]), text.filter(lambda name: name != "")
)
numbers = st.one_of(
    st.sampled_from(NUMBERS), st.integers(-5, 5), st.floats(allow_nan=False, allow_infinity=False)
)
scalars = st.one_of(st.booleans(), numbers, text)
values = st.one_of(
    scalars,
    st.none(),
    st.lists(st.one_of(scalars, st.none(), st.lists(scalars, max_size=2)), max_size=3),
    st.dictionaries(text.filter(bool), scalars, max_size=2),
)
ranges = st.one_of(numbers, text)
long_lists = st.builds(In, names, st.lists(scalars, min_size=17, max_size=20).map(tuple))
filters = filters_of(st.one_of(leaves_of(names, scalars, ranges), long_lists), max_leaves=5)
records = st.lists(st.dictionaries(names, values, max_size=4), min_size=1, max_size=12)


def by_sql(connection, where, metadata):
    text, parameters = condition(where)
    rows = connection.execute(
        f"SELECT {text} FROM unnest(%(all)s::jsonb[]) WITH ORDINALITY AS t (metadata, at) ORDER BY at",
        {**parameters, "all": [to_json(each) for each in metadata]},
    ).fetchall()
    return [found for (found,) in rows]


@examples(200)
@given(filters, records)
@example(Equal("a", 1e23), [{"a": 1e23}, {"a": 1e22}])
@example(Not(Compare("a", "<", "é")), [{"a": "z"}, {"a": "\uffff"}, {"a": "\U0001f642"}, {"a": ["z"]}])
@example(In("a", (True,) * 17), [{"a": 1}, {"a": True}, {"a": [True]}, {"a": [[True]]}, {"a": None}, {}])
@example(Equal("a", 1), [{"a": True}, {"a": 1.0}, {"a": "1"}, {"a": [1]}, {"a": [[1]]}, {"a": {"a": 1}}])
def test_same_rows_as_in_python(connection, where, metadata):
    assert by_sql(connection, where, metadata) == [where.matches(each) for each in metadata]


def test_every_pair_of_numbers(connection):
    metadata = [{"n": number} for number in NUMBERS]
    for value in (*NUMBERS, -(2**53), 1e15, 10**15):
        for where in (Equal("n", value), *(Compare("n", sign, value) for sign in ("<", "<=", ">", ">="))):
            assert by_sql(connection, where, metadata) == [where.matches(each) for each in metadata], where


def test_deep_filters(connection):
    where = Exists("a")
    for _ in range(201):
        where = Not(And((where, Or((Exists("b"), where)))) if _ % 40 == 0 else where)
    metadata = [{"a": 1}, {}, {"b": 1}]
    assert by_sql(connection, where, metadata) == [where.matches(each) for each in metadata]
    for _ in range(5000):
        where = Not(where)
    with pytest.raises(InvalidInputError, match="too deep"):
        condition(where)


@examples(100)
@given(values)
def test_jsonb_keeps_values_and_their_types(connection, value):
    text = to_json({"v": value})
    (found,) = connection.execute("SELECT %s::jsonb", (text,)).fetchone()
    assert found == {"v": value}
    assert json.dumps(found).replace("-0.0", "0.0") == json.dumps({"v": value}, sort_keys=True).replace(
        "-0.0", "0.0"
    ) or isinstance(value, dict)


@pytest.mark.parametrize("number", [1e16, -1e22, 1e23, 1.5e300, 5e-324, 2.0])
def test_floats_stay_floats(connection, number):
    (found,) = connection.execute("SELECT %s::jsonb", (to_json({"e+9": [number]}),)).fetchone()
    assert isinstance(found["e+9"][0], float) and found["e+9"][0] == number and math.isfinite(number)


def test_an_index_answers_equality():
    metadata = [{"source": f"file-{at % 500}", "year": at} for at in range(5000)]
    with PostgresStore(fresh()) as store:
        collection = store.create("c", Manifest(model="m", dimension=250))
        collection.upsert(
            [Record(f"{at:05d}", "text", np.ones(250), each) for at, each in enumerate(metadata)]
        )
        for where, kind in (
            (Equal("source", "file-7"), "Bitmap"),
            (In("source", ("file-7", "file-8")), "Bitmap"),
            (Compare("year", ">", 3), "Seq Scan"),
        ):
            text, parameters = condition(where)
            with store._connections.reading() as connection:
                connection.execute("ANALYZE c1_records")
                plan = connection.execute(
                    f"EXPLAIN SELECT count(*) FROM c1_records WHERE {text}", parameters
                ).fetchall()
            assert kind in str(plan)
            matching = sum(map(where.matches, metadata))
            assert collection.count(where) == matching
        assert collection.delete(where=where) == matching


def test_half_a_surrogate_pair_is_refused():
    with PostgresStore(fresh()) as store:
        collection = store.create("c", Manifest(model="m", dimension=2))
        for name, value in (("text", "half \ud800"), ("metadata", {"k": "\udc00"}), ("id", "\ud800")):
            bad = Record("a", "text", np.ones(2))
            setattr(bad, name, value)  # spoilt after it was checked
            with pytest.raises(InvalidInputError, match="Unicode"):
                collection.upsert([Record("b", "text", np.ones(2)), bad])
        for ask in (
            lambda: collection.search_text("half \ud800", 3),
            lambda: collection.get(["\ud800"]),
            lambda: collection.delete(["\ud800"]),
        ):
            with pytest.raises(InvalidInputError, match="Unicode"):
                ask()
        assert collection.count() == 0
