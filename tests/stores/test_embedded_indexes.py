"""Derived indexes answer as the file says at any moment, whatever was written, deleted, saved or lost."""

import logging
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dartboard.errors import install_command
from dartboard.stores import SparseVector, parse_filter
from dartboard.stores.embedded import EmbeddedStore, Tuning, tables
from dartboard.stores.memory import MemoryStore
from dartboard.testing.samples import MANIFEST, PLAIN, WORDS, own_word, sample_queries, sample_records
from dartboard.testing.stores import BEYOND, record, same_hits
from tests.examples import examples

EXACT = Tuning(files_from=0, approximate_from=10**9, tail_least=5, tail_share=0.2)
APPROXIMATE = Tuning(files_from=0, approximate_from=30, tail_least=5, tail_share=0.2, compare_up_to=5)
RECORDS = sample_records(120)
EN = parse_filter("lang = 'en' or year > 2012")


def names(folder):
    return sorted(path.name for path in Path(f"{folder}.derived").iterdir())


def check_same_answers(collection, truth, *, exact):
    """Every kind of search, with and without a filter, against records compared one by one in memory."""
    for where in (None, EN):
        for query in sample_queries(3, seed=7):
            found = collection.search_vector(query, 8, where=where, exact=exact)
            assert same_hits(found, truth.search_vector(query, 8 + BEYOND, where=where), k=8)
        for field, size in (("code", 8), ("pooled", 12)):
            query = np.linspace(-1, 2, size)
            found = collection.search_vector(query, 8, field=field, where=where, exact=exact)
            expected = truth.search_vector(query, 8 + BEYOND, field=field, where=where)
            assert same_hits(found, expected, k=8)
        words = " ".join(WORDS[:4])
        assert same_hits(
            collection.search_text(words, 200, where=where), truth.search_text(words, 200, where=where)
        )
        sparse = SparseVector(np.arange(0, 500, 3), np.ones(167))
        assert same_hits(
            collection.search_sparse(sparse, 200, field="splade", where=where),
            truth.search_sparse(sparse, 200, field="splade", where=where),
        )
    assert collection.count(EN) == truth.count(EN)


STEPS = st.one_of(
    st.tuples(st.just("upsert"), st.integers(0, 119), st.integers(1, 40)),
    st.tuples(st.just("change"), st.integers(0, 119), st.integers(1, 10)),
    st.tuples(st.just("delete"), st.integers(0, 119), st.integers(1, 30)),
    st.tuples(
        st.sampled_from(["search", "prepare", "reopen", "lose files", "another process"]),
        st.just(0),
        st.just(0),
    ),
)


@pytest.mark.parametrize("tuning", [EXACT, APPROXIMATE], ids=["exact", "approximate"])
@examples(12)
@given(steps=st.lists(STEPS, min_size=3, max_size=10))
def test_any_history_gives_the_answers_of_its_records(tuning, steps, tmp_path_factory):
    path = tmp_path_factory.mktemp("history") / "s.dartboard"
    truth = MemoryStore().create("default", MANIFEST)
    store = EmbeddedStore(path, tuning=tuning)
    collection = store.create("default", MANIFEST)
    for what, start, count in [*steps, ("search", 0, 0)]:
        some = RECORDS[start : start + count]
        match what:
            case "upsert":
                collection.upsert(some)
                truth.upsert(some)
            case "change":
                changed = [
                    replace(each, embedding=-each.embedding, text=f"other {own_word(7)}") for each in some
                ]
                collection.upsert(changed)
                truth.upsert(changed)
            case "delete":
                assert collection.delete([each.id for each in some]) == truth.delete(
                    [each.id for each in some]
                )
            case "prepare":
                collection.prepare()
            case "lose files":
                shutil.rmtree(f"{path}.derived", ignore_errors=True)
            case "reopen":
                store.close()
                store = EmbeddedStore(path, tuning=tuning)
                collection = store.open()
            case "another process":
                with EmbeddedStore(path, tuning=tuning, read_only=True) as other:
                    check_same_answers(other.open(), truth, exact=tuning is APPROXIMATE)
            case _:
                check_same_answers(collection, truth, exact=tuning is APPROXIMATE)
                # All records are scored again in so small a collection, so this is exact as well.
                check_same_answers(collection, truth, exact=False)
    store.close()


@pytest.fixture
def path(tmp_path):
    return tmp_path / "s.dartboard"


def test_an_index_is_loaded_and_not_built_again(path, monkeypatch):
    with EmbeddedStore(path, tuning=APPROXIMATE) as store:
        store.create("default", MANIFEST).upsert(RECORDS)
    before = names(path)
    assert len(before) == 5
    with EmbeddedStore(path, tuning=APPROXIMATE) as store:
        monkeypatch.setattr("dartboard.stores.ann.ApproximateIndex.build", None)
        monkeypatch.setattr("dartboard.stores.manifest.BM25Index.build", None)
        store.open().search_vector(sample_queries(1)[0], 5)
        store.open().search_text("broker", 5)
    assert names(path) == before


def test_few_changes_are_not_worth_a_new_index(path):
    with EmbeddedStore(path, tuning=EXACT) as store:
        store.create("default", PLAIN).upsert([record(f"{at:03d}") for at in range(100)])
    (vectors,) = [name for name in names(path) if "vectors" in name]
    with EmbeddedStore(path, tuning=EXACT) as store:
        store.open().upsert([record("new")])
    assert vectors in names(path)
    with EmbeddedStore(path, tuning=EXACT) as store:
        assert store.open().search_vector(record("a").embedding, 200)[-1].id == "new"
        store.open().upsert([record(f"newer {at}") for at in range(50)])
    assert vectors not in names(path)


def test_a_new_index_sweeps_away_the_old_and_only_the_old(path):
    with EmbeddedStore(path, tuning=EXACT) as store:
        collection = store.create("default", PLAIN)
        collection.upsert([record("a")])
        collection.prepare()
        folder = Path(f"{path}.derived")
        stray = folder / f"1-vectors-{'0' * 16}"
        stray.mkdir()
        (folder / "somebody's notes").write_text("not ours")
        draft = folder / f"draft-1-vectors-{'0' * 16}"
        draft.mkdir()
        collection.upsert([record(f"{at}") for at in range(50)])
        collection.prepare()
        assert not stray.exists() and draft.exists() and (folder / "somebody's notes").exists()
        store.drop("default")
        assert names(path) == [draft.name, "somebody's notes"]


def test_a_long_history_of_deletions_is_cut_off(path, monkeypatch):
    monkeypatch.setattr(tables, "_GONE_KEPT", 20)
    with EmbeddedStore(path, tuning=EXACT) as store:
        collection = store.create("default", PLAIN)
        for at in range(60):
            collection.upsert([record("same", text=f"version {at}"), record(f"{at}")])
            assert len(collection.search_vector(record("a").embedding, 100)) == at + 2
        with EmbeddedStore(path, tuning=EXACT, read_only=True) as other:
            sleeper = other.open()
            assert len(sleeper.search_vector(record("a").embedding, 100)) == 61
            for at in range(60):
                collection.delete([f"{at}"])
            assert [hit.id for hit in sleeper.search_vector(record("a").embedding, 100)] == ["same"]


def test_an_index_of_another_file_is_not_taken(tmp_path):
    """The derived folder of one store beside another: its names and checksums do not match."""
    for name, sign in (("a", 1), ("b", -1)):
        with EmbeddedStore(tmp_path / f"{name}.dartboard", tuning=APPROXIMATE) as store:
            store.create("default", MANIFEST).upsert(
                [replace(each, embedding=sign * each.embedding) for each in RECORDS]
            )
    a, b = (tmp_path / f"{name}.dartboard.derived" for name in "ab")
    for ours in list(a.iterdir()):
        (theirs,) = [
            folder for folder in b.iterdir() if folder.name.split("-")[1] == ours.name.split("-")[1]
        ][:1] or [None]
        shutil.rmtree(ours)
        shutil.copytree(theirs, ours)
    with EmbeddedStore(tmp_path / "a.dartboard", tuning=APPROXIMATE) as store:
        truth = MemoryStore().create("default", MANIFEST)
        truth.upsert(RECORDS)
        check_same_answers(store.open(), truth, exact=False)


def test_without_faiss_everything_is_compared(path, monkeypatch, caplog):
    with EmbeddedStore(path, tuning=APPROXIMATE) as store:
        store.create("default", MANIFEST).upsert(RECORDS)
    monkeypatch.setitem(sys.modules, "faiss", None)
    truth = MemoryStore().create("default", MANIFEST)
    truth.upsert(RECORDS)
    with caplog.at_level(logging.WARNING), EmbeddedStore(path, tuning=APPROXIMATE) as store:
        collection = store.open()
        check_same_answers(collection, truth, exact=False)
        collection.upsert(RECORDS[:50])
        check_same_answers(collection, truth, exact=False)
        assert collection.stats().details["indexes"]["embedding"]["kind"] == "exact"
    assert (
        sum(install_command("search") in message for message in caplog.messages) == 3
    )  # once for each field


def test_a_folder_that_cannot_be_written(path, caplog):
    Path(f"{path}.derived").write_text("a file stands where the folder should be")
    truth = MemoryStore().create("default", MANIFEST)
    truth.upsert(RECORDS)
    with EmbeddedStore(path, tuning=APPROXIMATE) as store:
        collection = store.create("default", MANIFEST)
        collection.upsert(RECORDS)
        check_same_answers(collection, truth, exact=False)
    assert any("stay in memory" in message for message in caplog.messages)


def test_lexical_settings_count(path):
    with EmbeddedStore(path, tuning=EXACT) as store:
        collection = store.create("default", PLAIN)
        collection.upsert([record("a", text="running"), record("b", text="runs runs runs runs")])
        assert {hit.id for hit in collection.search_text("run", 5)} == {"a", "b"}
        collection.configure({"lexical": {"stem": False}})
        assert collection.search_text("run", 5) == []
        (term,) = collection.explain_text("runs", "b")
        assert (term["term"], term["tf"]) == ("runs", 4) and collection.explain_text("runs", "nobody") == []


def test_ties_at_the_end_go_by_id(path):
    with EmbeddedStore(path, tuning=EXACT) as store:
        collection = store.create("default", PLAIN)
        collection.upsert([record(f"{at:04d}") for at in reversed(range(500))])
        collection.upsert([record("0007")])
        assert [hit.id for hit in collection.search_vector(record("a").embedding, 10)] == [
            f"{at:04d}" for at in range(10)
        ]
        assert [hit.id for hit in collection.search_text("text", 3)] == ["0000", "0001", "0002"]


def test_indexes_that_are_gone_are_told_once_and_come_back_with_the_next_writer(tmp_path, caplog):
    path = tmp_path / "s.dartboard"
    with EmbeddedStore(path, tuning=EXACT) as store:
        store.create("default", MANIFEST).upsert(RECORDS)
    shutil.rmtree(f"{path}.derived")
    with EmbeddedStore(path, tuning=EXACT, read_only=True) as store:
        assert store.open().search_vector(sample_queries(1)[0], 3)
        assert store.open().search_text("broker", 3)
    (told,) = [entry.getMessage() for entry in caplog.records]
    assert told.startswith("s.dartboard.derived is gone") and "Errno" not in told
    caplog.clear()
    with EmbeddedStore(path, tuning=EXACT) as store:
        store.open().prepare()
    assert names(path) and not caplog.records
    with EmbeddedStore(path, tuning=EXACT, read_only=True) as store:
        assert store.open().search_text("broker", 3) and not caplog.records
