"""A filter on a field that no chunk has: an error that names the fields there are, on every store."""

import pytest

from dartboard.engine import Engine
from dartboard.errors import InvalidInputError
from dartboard.explain.exploration import explore
from dartboard.stores import Record, parse_filter
from dartboard.stores.checks import compared_fields
from dartboard.stores.memory import MemoryStore
from tests.models import WordBag
from tests.stores.every_store import KINDS, store_of
from tests.tea import QUERY, filled

UNKNOWN = ['kindd = "pdf"', 'kindd != "pdf"', "year >= 2020", 'source exists and kindd in ["a", "b"]']


@pytest.fixture(scope="module", params=KINDS)
def engine(request, tmp_path_factory):
    with store_of(request.param, tmp_path_factory.mktemp(request.param)) as store:
        engine = filled(store, retriever="dense")
        rare = Record("z", "a rare tea", engine.model.encode_documents(["a rare tea"])[0], {"rare": 1})
        engine.collection.upsert([rare])
        yield engine


def test_an_unknown_field_names_those_there_are(engine):
    for where in UNKNOWN:
        with pytest.raises(InvalidInputError, match=r"There are number, rare, source, tags$") as caught:
            engine.search(QUERY, where=where)
        assert "filter: no chunk has the field 'kindd'" in str(caught.value) or "'year'" in str(caught.value)
    with pytest.raises(InvalidInputError, match=r"'numbr': did you mean number\? There are"):
        engine.candidates(QUERY, where="numbr = 1")
    with pytest.raises(InvalidInputError, match="no chunk has the field 'kindd'"):
        explore(engine, QUERY, where="kindd = 1")
    before = engine.collection.count()
    with pytest.raises(InvalidInputError, match="no chunk has the field 'kindd'"):
        engine.delete(where='kindd != "pdf"')
    assert engine.collection.count() == before


def test_a_field_that_some_chunks_have_is_known(engine):
    assert [chunk.id for chunk in engine.search(QUERY, where="rare = 1").chunks] == ["z"]
    assert engine.search(QUERY, where="rare = 2").chunks == []
    assert "z" not in [chunk.id for chunk in engine.search(QUERY, k=20, where="rare != 1").chunks]


def test_exists_may_ask_for_what_is_not_there(engine):
    assert engine.search(QUERY, where="draft exists").chunks == []
    assert len(engine.search(QUERY, k=20, where="not (draft exists and draft = true)").chunks) == 11


@pytest.mark.parametrize("kind", ["memory", "embedded", "postgres", "milvus"])
def test_an_empty_collection_knows_no_field_and_refuses_none(kind, tmp_path):
    with store_of(kind, tmp_path) as store:
        engine = Engine(store, model=WordBag(), retriever="dense")
        engine.create()
        assert engine.search(QUERY, where='kindd = "pdf"').chunks == []
        assert engine.delete(where='kindd = "pdf"') == 0
        engine.collection.upsert([Record("a", "tea", engine.model.encode_documents(["tea"])[0])])
        with pytest.raises(InvalidInputError, match="chunks here have no metadata"):
            engine.search(QUERY, where='kindd = "pdf"')


def test_names_are_written_as_filters_write_them_and_long_lists_end():
    engine = Engine(MemoryStore(), model=WordBag(), retriever="dense")
    metadata = {"a b": 1, "x" * 99: 1, "nothing": None} | {f"n{number:02}": 1 for number in range(30)}
    vector = engine.model.encode_documents(["tea"])[0]
    engine.create().upsert([Record("a", "tea", vector, metadata)])
    with pytest.raises(InvalidInputError) as caught:
        engine.search(QUERY, where="nothing = 1")
    said = str(caught.value)
    assert "There are `a b`, n00, n01" in said and said.endswith("n18, …") and "x" * 41 not in said


def test_fields_that_a_filter_compares():
    where = parse_filter('a = 1 and (b < 2 or not c in ["x"]) and d exists and (e exists or e = 1)')
    assert compared_fields(where) == {"a", "b", "c"}
