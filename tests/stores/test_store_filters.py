"""A filter finds in every store just the records that it matches, whatever their metadata are."""

import json
import random

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from dartboard.stores import Manifest, Record, SparseVector
from dartboard.stores.filters import Among, And, Compare, Equal, Exists, In, Not, Or
from dartboard.stores.milvus import MilvusStore, schema
from dartboard.stores.milvus import store as milvus_store
from dartboard.stores.milvus.filter_expressions import compile_filter
from dartboard.stores.postgres.filter_sql import condition
from dartboard.stores.sqlite.filter_sql import filter_sql
from tests.examples import examples
from tests.stores.every_store import KINDS, store_of
from tests.stores.filter_strategies import filters_of, leaves_of
from tests.stores.milvus_server import milvus_server

__all__ = ["milvus_server"]

FIELDS = ("a", "b", "year", 'odd "name" \\ $meta["x"]', "q\"'; --", "%s {x}", "[0]", "日本", "a.b", "l\nine")
TEXTS = ("", "a", "b", "B", "it's", 'x"y\\z\n\t%_', "日本", "🙂", "\uffff", "\x01", "true", "null", "1")
NUMBERS = (
    *(0, 0.0, -0.0, 1, 1.0, -1, 2.5, -2.5, 0.1, 0.3, 0.30000000000000004, 1e16, 1e22, 1e23, 2021),
    *(2**53, -(2**53), 2**53 - 1, 2.0**53 + 2, 1e300, -1e300, 1.7976931348623157e308, 5e-324),
)
VALUES = (*TEXTS, *NUMBERS, True, False)
BEYOND = (2**53 + 1, -(2**53) - 1, 2**60 + 1, 2**60 + 2**7 + 1, 2.0**70, 10**300, -(10**300))
MANIFEST = Manifest(model="m", dimension=2, sparse=("s",))


def some_records(count):
    chance = random.Random(7)

    def value():
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
            {field: value() for field in FIELDS if chance.random() < 0.6},
            sparse={"s": SparseVector.of([number], [1.0])},
        )
        for number in range(count)
    ]


RECORDS = some_records(150)
fields = st.sampled_from((*FIELDS, "missing"))
numbers = st.one_of(st.sampled_from((*NUMBERS, *BEYOND)), st.floats(allow_nan=False, allow_infinity=False))
values = st.one_of(st.sampled_from((*TEXTS, "zz", True, False)), numbers)
ranged = st.one_of(st.sampled_from(TEXTS), numbers)
leaves = st.one_of(
    leaves_of(fields, values, ranged),
    st.builds(In, fields, st.lists(values, min_size=9, max_size=20).map(tuple)),
    st.builds(Among, st.lists(st.sampled_from(("r003", "r100", "no 'such' \"id\"")), max_size=3).map(tuple)),
)
filters = filters_of(leaves, max_leaves=8)


@pytest.fixture(scope="module", params=[*KINDS, "milvus server"])
def kept(request, tmp_path_factory):
    """The records; on a server, with terms as it keeps them."""
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "milvus server":

            def layout(name, *, is_lite, index):
                return schema.CollectionLayout(name=name, terms="array", index="FLAT")

            patch.setattr(milvus_store, "choose_layout", layout)
            store = MilvusStore(request.getfixturevalue("milvus_server").url)
        else:
            store = store_of(request.param, tmp_path_factory.mktemp("filters"))
        with store:
            collection = store.create("filters", MANIFEST)
            collection.upsert(RECORDS)
            yield collection
            store.drop("filters")


def expected(where):
    return [record.id for record in RECORDS if where.matches(record.metadata, record.id)]


def found(collection, where):
    return sorted(hit.id for hit in collection.search_vector([1.0, 2.0], 150, where=where))


@settings(examples(120), suppress_health_check=[HealthCheck.too_slow])
@given(where=filters)
@example(Equal("a", 1e23))
@example(Not(Compare("a", "<", "é")))
@example(In("a", (True,) * 17))
def test_a_filter_finds_what_it_matches(kept, where):
    assert found(kept, where) == expected(where)


def test_every_pair_of_numbers(kept):
    for value in (*NUMBERS, *BEYOND):
        for where in (Equal("a", value), *(Compare("a", sign, value) for sign in ("<", "<=", ">", ">="))):
            assert found(kept, where) == expected(where), where


@pytest.mark.parametrize(
    "where",
    [
        Not(Compare("year", "<", 1)),
        Or((Equal("a", "日本"), Compare("b", ">=", "B"))),
        And((Exists("a"), Not(Equal("a", False)))),
    ],
    ids=repr,
)
def test_every_way_to_read_filters_alike(kept, where):
    query = SparseVector.of(range(150), np.linspace(2, 1, 150))
    wanted = expected(where)
    assert wanted and kept.count(where) == len(wanted)
    assert sorted(hit.id for hit in kept.search_sparse(query, 150, field="s", where=where)) == wanted
    assert sorted(hit.id for hit in kept.search_text("words", 150, where=where)) == wanted
    assert found(kept, where) == wanted
    whole = [record for batch in kept.iterate(where=where, batch_size=7) for record in batch]
    assert [record.id for record in whole] == wanted
    by_id = {record.id: record for record in RECORDS}
    for record, metadata in zip(whole, kept.iterate_metadata(where=where), strict=True):
        assert record.metadata == metadata == by_id[record.id].metadata


def test_numbers_keep_their_types(kept):
    for record in kept.get([record.id for record in RECORDS]):
        assert _typed(record.metadata) == _typed(RECORDS[int(record.id[1:])].metadata)


def _typed(metadata):
    """As JSON, where 1.0 is not 1; a database may lose the sign of 0."""
    return json.dumps(metadata, sort_keys=True).replace("-0.0", "0.0")


def test_deep_and_long_filters(kept):
    deep = Compare("year", ">", 1)
    for _ in range(16):
        deep = Not(And((Or((deep, Equal("a", "no"))), Exists("a"))))
    long = In("a", (*(f"value {number}" for number in range(1000)), "a", 1))
    many = Or(tuple(Equal("a", number) for number in range(256)))
    for where in (deep, long, many):
        assert found(kept, where) == expected(where)


def test_names_and_values_never_reach_the_expression():
    """They are parameters; in Milvus, digests or quoted texts."""
    hostile = '"] or true or $meta["'
    for where in (Equal(hostile, hostile), Exists(hostile), Compare(hostile, "<", 1), In("x", (hostile,))):
        for text in (
            filter_sql(where)[0],
            condition(where)[0],
            compile_filter(where, "text").text,
            compile_filter(where, "array").text,
        ):
            assert hostile not in text and "or true" not in text
