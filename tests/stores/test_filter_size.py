"""Filters that are too large are refused while they are read, and by every store; large lists are quick."""

import pytest

from dartboard.errors import InvalidInputError
from dartboard.stores.filter_parser import LONGEST_TEXT, parse_filter
from dartboard.stores.filters import (
    MOST_COMPARISONS,
    MOST_VALUES,
    Among,
    And,
    Compare,
    Equal,
    Exists,
    In,
    Not,
    Or,
    check_filter,
    filter_from_json,
    filter_to_json,
)
from dartboard.stores.manifest import Manifest
from dartboard.stores.memory import MemoryStore
from dartboard.stores.milvus.filter_expressions import compile_filter
from dartboard.stores.postgres.filter_sql import condition
from dartboard.stores.sqlite.filter_sql import filter_sql

ONE = {"field": "a", "op": "=", "value": 1}
TERMS = {
    "equal": "a{} = 1",
    "exists": "a{} exists",
    "not": "not a{} != 1",
    "in": "a{} in [1, 2]",
    "bracket": "(a{} < 1)",
}


@pytest.mark.parametrize("term", TERMS.values(), ids=TERMS)
@pytest.mark.parametrize("word", [" and ", " or "])
def test_so_many_comparisons_and_no_more(term, word):
    terms = [term.format(number) for number in range(MOST_COMPARISONS + 1)]
    where = parse_filter(word.join(terms[:-1]))
    check_filter(where)
    assert filter_from_json(filter_to_json(where)) == where
    with pytest.raises(InvalidInputError, match=r"more than 256 comparisons.*in \[…\]"):
        parse_filter(word.join(terms))


def test_so_many_values_and_no_more():
    values = tuple(range(MOST_VALUES))
    check_filter(In("a", values))
    assert parse_filter(f"a in {list(values)}") == In("a", values)
    assert filter_from_json({"ids": list(map(str, values))}) == Among(tuple(map(str, values)))
    for make in (
        lambda: check_filter(In("a", (*values, 1))),
        lambda: check_filter(Among((*map(str, values), "x"))),
        lambda: parse_filter(f"a in {[*values, 1]}"),
        lambda: parse_filter(f"a in {list(values)} or b in [1]"),
        lambda: filter_from_json({"field": "a", "op": "in", "value": [*values, 1]}),
        lambda: filter_from_json({"ids": ["x"] * (MOST_VALUES + 1)}),
        lambda: check_filter(And((In("a", values), Not(Among(("x",)))))),
    ):
        with pytest.raises(InvalidInputError, match="more than 30,000 values"):
            make()


@pytest.mark.parametrize(
    "parts", [[ONE] * 300, [{"and": [ONE, ONE]}] * 150, [{"and": []}] * 300, [{"not": {"or": []}}] * 300]
)
def test_json_counts_what_is_nested_and_what_is_empty(parts):
    with pytest.raises(InvalidInputError, match="comparisons"):
        filter_from_json({"or": parts})


def test_a_long_text_is_refused_before_it_is_read():
    with pytest.raises(InvalidInputError, match="5,000,000 characters are more than the 1,000,000 allowed"):
        parse_filter("~" * 5_000_000)


@pytest.mark.parametrize(
    "text",
    [
        "a = " + "1" * 900_000 + "x",
        "a = " + "1" * 900_000,
        "a = 1." + "1" * 900_000 + "x",
        "a = 1e" + "1" * 900_000,
        'a = "' + "\\" * 900_000,
        "a" + " " * 900_000 + "~",
        "a" * LONGEST_TEXT,
        "`" * LONGEST_TEXT,
    ],
    ids=lambda text: text[:7],
)
def test_hostile_texts_are_read_in_one_go(text):
    """Each would take hours if any part were read again and again."""
    with pytest.raises(InvalidInputError, match="filter"):
        parse_filter(text)


TOO_LARGE = [
    Or(tuple(Equal("a", number) for number in range(300))),
    And((Or(tuple(Compare("a", "<", number) for number in range(200))), *[Not(Exists("b"))] * 100)),
    Or((In("a", tuple(range(20_000))), In("b", tuple(range(20_000))))),
]


@pytest.mark.parametrize("where", TOO_LARGE)
def test_every_store_refuses_what_is_too_large(where):
    collection = MemoryStore().create("c", Manifest(dimension=2, model="m"))
    for ask in (
        filter_sql,
        condition,
        lambda where: compile_filter(where, "text"),
        lambda where: compile_filter(where, "array"),
        collection.count,
        lambda where: list(collection.iterate(where=where)),
        lambda where: collection.delete(where=where),
    ):
        with pytest.raises(InvalidInputError, match="filter: more than"):
            ask(where)


def test_lists_are_sets():
    """The hash of a value decides: no value is compared with all of a list."""

    class Counted(str):
        compared = 0
        __hash__ = str.__hash__

        def __eq__(self, other):
            Counted.compared += 1
            return str.__eq__(self, other)

    where = In("a", tuple(Counted(number) for number in range(MOST_VALUES)))
    Counted.compared = 0
    assert (
        where.matches({"a": "29999"}) and where.matches({"a": ["x", "7"]}) and not where.matches({"a": "x"})
    )
    assert Counted.compared < 10
    among = Among(tuple(Counted(number) for number in range(MOST_VALUES)))
    Counted.compared = 0
    assert among.matches({}, "29999") and not among.matches({}, "x")
    assert Counted.compared < 10


def test_values_of_different_kinds_are_kept_apart_in_lists():
    assert not In("a", (1, "x")).matches({"a": True})
    assert not In("a", (True,)).matches({"a": 1})
    assert In("a", (1.0,)).matches({"a": 1}) and In("a", (True,)).matches({"a": [1, True]})
    assert not In("a", (1,)).matches({"a": [[1], {"a": 1}, None]})
