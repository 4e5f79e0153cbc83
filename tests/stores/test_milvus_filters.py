"""Filters as Milvus expressions: what they say, and that Milvus finds just what the filter matches."""

import math
import random
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dartboard.stores import Manifest, Record, SparseVector, parse_filter
from dartboard.stores.filters import And, Compare, Equal, Exists, Filter, In, Not, Or
from dartboard.stores.milvus import MilvusStore, schema
from dartboard.stores.milvus import store as store_module
from dartboard.stores.milvus.collection import MilvusCollection
from dartboard.stores.milvus.filter_expressions import (
    EVERYTHING,
    NOTHING,
    Expression,
    compile_filter,
    equal_term,
    quoted,
    ranges_of,
    terms_of,
)
from tests.examples import examples
from tests.stores.filter_strategies import filters_of, leaves_of
from tests.stores.milvus_server import MilvusServer, milvus_server

__all__ = ["milvus_server"]

FIELDS = ("a", "b", "year", 'odd "name" \\ $meta["x"]', "日本", "a.b")
TEXTS = ("", "a", "b", "B", "it's", 'x"y\\z\n\t%_', "日本", "🙂", "\x01", "true", "1")
NUMBERS = (0, 0.0, -0.0, 1, 1.0, -1, 2.5, -2.5, 2**53, -(2**53), 1e300, 5e-324, 0.1, 2021)
VALUES = (*TEXTS, *NUMBERS, True, False)
MANIFEST = Manifest(model="m", dimension=2, sparse=("s",))


def some_records(count: int) -> list[Record]:
    chance = random.Random(7)

    def value() -> object:
        kind = chance.random()
        if kind < 0.15:
            return chance.choice([None, {"a": 1}, [], [None], [{"a": 1}, [1]]])
        if kind < 0.35:
            return chance.choices(VALUES, k=chance.randint(1, 4))
        return chance.choice(VALUES)

    return [
        Record(
            f"r{number:03d}",
            "word",
            np.array([1.0, number]),
            {field: value() for field in FIELDS if chance.random() < 0.7},
            sparse={"s": SparseVector.of([number], [1.0])},
        )
        for number in range(count)
    ]


RECORDS = some_records(150)
fields = st.sampled_from((*FIELDS, "missing"))
values = st.sampled_from((*VALUES, 2**53 + 1, -(2**53) - 1, 10**300, 3, "zz"))
ranged = st.sampled_from(
    [value for value in (*VALUES, 2**53 + 1, -(2**53) - 1, 2**60 + 1) if not isinstance(value, bool)]
)
filters = filters_of(leaves_of(fields, values, ranged), max_leaves=8)


@pytest.fixture(scope="module", params=["text", "array"])
def kept(
    request: pytest.FixtureRequest, milvus_server: MilvusServer
) -> "pytest.Generator[MilvusCollection, None, None]":
    """The records, with terms as Lite and as a server keeps them; those of a server flushed."""

    def layout(name: str, *, is_lite: bool, index: str) -> schema.CollectionLayout:
        return schema.CollectionLayout(name=name, terms=request.param, index="FLAT")

    with pytest.MonkeyPatch.context() as patch, MilvusStore(milvus_server.url) as store:
        patch.setattr(store_module, "choose_layout", layout)
        collection = store.create(f"filters {request.param}", MANIFEST)
        collection.upsert(RECORDS)
        if request.param == "array":
            store._connection.call("flush", collection._stored_name)
        yield collection
        store.drop(collection.name)


@settings(examples(120), suppress_health_check=[HealthCheck.too_slow])
@given(where=filters)
def test_milvus_finds_what_the_filter_matches(kept: MilvusCollection, where: Filter) -> None:
    expected = [record.id for record in RECORDS if where.matches(record.metadata)]
    expression = compile_filter(where, kept._layout.terms)
    assert [id for page in kept._reader.id_pages(expression, 1000) for id in page] == expected


@pytest.mark.parametrize(
    "where",
    [
        Not(Compare("year", "<", 1)),
        Or((Equal("a", "日本"), Compare("b", ">=", "B"))),
        Not(In("日本", (1, True, 'x"y\\z\n\t%_'))),
        And((Exists("a"), Not(Equal("a", False)))),
    ],
    ids=repr,
)
def test_every_kind_of_search_filters_alike(kept: MilvusCollection, where: Filter) -> None:
    expected = [record.id for record in RECORDS if where.matches(record.metadata)]
    query = SparseVector.of(range(150), np.linspace(2, 1, 150))
    searches: list[Callable[[], list[str]]] = [
        lambda: [hit.id for hit in kept.search_vector(np.array([1.0, 2.0]), 150, where=where)],
        lambda: [hit.id for hit in kept.search_vector(np.array([1.0, 2.0]), 150, where=where, exact=True)],
        lambda: [hit.id for hit in kept.search_sparse(query, 150, field="s", where=where)],
        lambda: [hit.id for hit in kept.search_text("words", 150, where=where)],
    ]
    assert expected
    for search in searches:
        assert sorted(search()) == expected
    assert kept.count(where) == len(expected)


def test_deep_filters(kept: MilvusCollection) -> None:
    where: Filter = Compare("year", ">", 1)
    for _ in range(30):
        where = Not(And((Or((where, Equal("a", "no"))), Exists("a"))))
    expected = sum(where.matches(record.metadata) for record in RECORDS)
    assert kept.count(where) == expected


def test_long_lists(kept: MilvusCollection) -> None:
    where = In("a", (*(f"value {number}" for number in range(1000)), "a", 1))
    assert kept.count(where) == sum(where.matches(record.metadata) for record in RECORDS)


def test_constant_filters_ask_nothing() -> None:
    assert compile_filter(None, "text") == EVERYTHING
    assert compile_filter(And(()), "text") == EVERYTHING
    assert compile_filter(Or(()), "text") == NOTHING
    assert compile_filter(In("a", ()), "array") == NOTHING
    assert compile_filter(Not(In("a", ())), "array") == EVERYTHING
    assert compile_filter(Equal("a", 2**53 + 1), "text") == NOTHING
    assert compile_filter(And((Or(()), Exists("a"))), "text") == NOTHING
    assert compile_filter(Or((And(()), Exists("a"))), "text") == EVERYTHING


def test_names_and_values_never_reach_the_expression() -> None:
    hostile = '"] or true or $meta["'
    text = compile_filter(parse_filter("a = 1 and b exists"), "text").text
    assert text is not None and "a" not in text.split('"')
    for where in (Equal(hostile, hostile), Exists(hostile), Compare(hostile, "<", 1), In("x", (hostile,))):
        for layout in ("text", "array"):
            found = compile_filter(where, layout).text
            assert found is not None and "true" not in found
    assert compile_filter(Compare("a", "<", hostile), "text").text.endswith(quoted(hostile))


def test_quoting() -> None:
    assert quoted('a"b\\c\nd') == r'"a\"b\\c\nd"'
    assert Expression("a") & EVERYTHING == Expression("a")
    assert Expression("a") & NOTHING == NOTHING
    assert Expression("a") & Expression("b") == Expression("(a and b)")


def test_equal_values_are_one_term() -> None:
    assert equal_term("a", 1) == equal_term("a", 1.0) != equal_term("a", True)
    assert equal_term("a", 0) == equal_term("a", -0.0) != equal_term("a", False)
    assert len({equal_term("a", value) for value in (1, "1", True, "True", "")}) == 5
    assert equal_term("a", "b=c") != equal_term("a=b", "c")
    assert terms_of({"a": None, "b": [], "c": {"d": 1}}) == terms_of({"b": {}, "c": []})
    assert list(ranges_of({"a": 1, "b": "x", "c": True, "d": [1], "e": None}).values()) == [1.0, "x"]


@pytest.mark.parametrize("value", [2**53 + 1, -(2**53) - 1, 2**60 + 1, -(2**60) + 1, 2**60 + 2**7 + 1])
@pytest.mark.parametrize("operator", ["<", "<=", ">", ">="])
def test_bounds_that_no_double_holds(value: int, operator: str) -> None:
    text = compile_filter(Compare("a", operator, value), "text").text
    assert text is not None
    _, sign, bound = text.split()
    step = math.ulp(float(value))
    for near in (float(value) + steps * step for steps in range(-3, 4)):
        assert Compare("a", operator, value).matches({"a": near}) is Compare("a", sign, float(bound)).matches(
            {"a": near}
        )
