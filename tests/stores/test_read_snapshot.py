"""One state of a collection for several calls, whoever writes meanwhile."""

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dartboard.errors import StoreError
from dartboard.stores import Manifest, Record, arrays, derived, open_store, parse_filter
from dartboard.stores.base import Collection
from tests.examples import examples

RNG = np.random.default_rng(5)
VECTORS = RNG.standard_normal((40, 8)).astype(np.float32)


def records(word="old", count=40):
    return [Record(f"r{n:02d}", f"{word} passage {n}", VECTORS[n], {"n": n}) for n in range(count)]


@pytest.fixture(params=["memory", "small", "with saved arrays"])
def collection(request, tmp_path, monkeypatch):
    if request.param == "with saved arrays":
        monkeypatch.setattr(derived, "SAVED_FROM", 1)
        monkeypatch.setattr(arrays, "_LEAST_CHANGES", 3)
    with open_store("memory://" if request.param == "memory" else str(tmp_path / "a.dartboard")) as store:
        made = store.create("default", Manifest(model="m", dimension=8))
        made.upsert(records())
        if request.param == "with saved arrays":
            made.prepare()
            with open_store(store.url) as again:
                yield again.open()
        else:
            yield made


def test_all_answers_belong_to_one_state(collection):
    with collection.read_snapshot() as held:
        assert isinstance(held, Collection)
        first = held.search_text("old", 40)
        collection.upsert(records("new", 20))
        collection.delete(["r39"])
        assert held.search_text("old", 40) == first and not held.search_text("new", 40)
        assert {record.text.split()[0] for record in held.get([hit.id for hit in first])} == {"old"}
        assert held.count() == 40 and held.count(parse_filter("n = 39")) == 1
        assert len(held.search_vector(VECTORS[39], 40)) == 40
        assert sum(map(len, held.iterate(batch_size=7))) == 40
    assert collection.count() == 39 and len(collection.search_text("new", 40)) == 20
    for change in (
        lambda: held.upsert(records()),
        lambda: held.delete(["r01"]),
        lambda: held.configure({}),
        held.stats,
    ):
        with pytest.raises(StoreError, match="open as a read snapshot"):
            change()


@pytest.mark.parametrize("warm", [True, False])
def test_it_stays_at_its_state_however_often_others_go_on(collection, warm):
    """Other searches move the indexes on to newer states; those of a snapshot stay, loaded or not."""
    if warm:
        collection.search_vector(VECTORS[0], 3)
        collection.search_text("more", 3)
    seen = []
    for turn in range(5):
        with collection.read_snapshot() as held:
            seen.append(held.count())
            collection.upsert([Record(f"more{turn}", "more", VECTORS[0])])
            collection.delete(["r39"])
            assert len(collection.search_vector(VECTORS[0], 100)) == 40 + turn
            assert len(collection.search_text("more", 100)) == turn + 1
            assert len(held.search_vector(VECTORS[0], 100)) == seen[-1]
            assert len(held.search_text("more", 100)) == turn
            ids, vectors = held.unit_vectors(["r39", f"more{turn}", "r00"])
            assert ids == (["r39", "r00"] if turn == 0 else ["r00"]) and len(vectors) == len(ids)
    assert seen == [40, 40, 41, 42, 43]
    assert collection.count() == 44 and len(collection.search_text("more", 100)) == 5


def test_an_index_behind_two_writes_serves_both_readers(collection):
    """The index in memory is older than either snapshot, and the newer one is searched first."""
    collection.search_text("old", 3)
    collection.search_vector(VECTORS[0], 3)
    collection.upsert([Record("first", "more", VECTORS[0])])
    with collection.read_snapshot() as early:
        collection.upsert([Record("second", "more", VECTORS[0])])
        with collection.read_snapshot() as late:
            for held, expected in (
                (late, ["first", "second"]),
                (early, ["first"]),
                (late, ["first", "second"]),
            ):
                assert [hit.id for hit in held.search_text("more", 9)] == expected
                assert len(held.search_vector(VECTORS[0], 99)) == 40 + len(expected)
    assert len(collection.search_text("more", 9)) == 2


@given(st.lists(st.sampled_from(["write", "delete", "search", "look", "begin", "end"]), max_size=30))
@examples(25)
def test_whatever_another_thread_does_meanwhile(tmp_path_factory, steps):
    """Several snapshots are open while a thread writes and searches: each answers from its own revision."""
    path = tmp_path_factory.mktemp("threads") / "a.dartboard"
    with open_store(str(path)) as store, ThreadPoolExecutor(1) as other, ExitStack() as open_views:
        made = store.create("default", Manifest(model="m", dimension=8))
        made.upsert(records(count=6))
        there = {record.id: record.text for record in records(count=6)}
        views = []

        def check(view, expected):
            ids = sorted(expected)
            assert view.count() == len(ids)
            assert sorted(hit.id for hit in view.search_vector(VECTORS[0], 99)) == ids
            assert sorted(hit.id for hit in view.search_text("passage", 99)) == ids
            assert view.unit_vectors([*ids, "nobody"])[0] == ids
            assert {record.id: record.text for record in view.get(ids)} == expected

        for number, step in enumerate(steps):
            if step == "write":
                new = [
                    Record(f"r{n:02d}", f"passage {number}", VECTORS[number]) for n in (number % 7, number)
                ]
                other.submit(made.upsert, new).result()
                there = there | {record.id: record.text for record in new}
            elif step == "delete" and there:
                gone = max(there)
                other.submit(made.delete, [gone]).result()
                there = {id: text for id, text in there.items() if id != gone}
            elif step == "search":
                other.submit(check, made, there).result()
            elif step == "begin":
                views.append((open_views.enter_context(made.read_snapshot()), there))
            elif step == "look" and views:
                check(*views[number % len(views)])
            elif step == "end":
                for view in views:
                    check(*view)
        for view in views:
            check(*view)


def test_threads_that_write_and_search_leave_a_snapshot_alone(collection):
    """Without turns: one thread writes, two search, and every snapshot agrees with itself."""
    done, wrong = threading.Event(), []

    def write():
        for turn in range(30):
            collection.upsert([Record(f"r{n:02d}", f"turn{turn} passage", VECTORS[n]) for n in range(40)])

    def read():
        try:
            while not done.is_set():
                with collection.read_snapshot() as held:
                    hits = held.search_text("passage", 50)
                    texts = {record.text.split()[0] for record in held.get([hit.id for hit in hits])}
                    assert len(hits) == held.count() == len(held.search_vector(VECTORS[3], 50)) == 40
                    assert len(texts) == 1, texts
                    assert len(held.search_text(texts.pop(), 50)) == 40
        except BaseException as error:  # noqa: BLE001 - a thread's failure must reach the test
            wrong.append(error)

    threads = [threading.Thread(target=read) for _ in range(2)]
    for thread in threads:
        thread.start()
    write()
    done.set()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_unit_vectors_are_those_of_what_exists(collection):
    units = VECTORS / np.linalg.norm(VECTORS, axis=1, keepdims=True)
    ids, found = collection.unit_vectors(["r07", "nobody", "r00", "r39"])
    assert ids == ["r07", "r00", "r39"]
    np.testing.assert_allclose(found, units[[7, 0, 39]], atol=1e-6)
    collection.upsert([Record("r00", "replaced", VECTORS[1]), Record("new", "new", VECTORS[2])])
    collection.delete(["r07"])
    ids, found = collection.unit_vectors(["new", "r07", "r39", "r00"])
    assert ids == ["new", "r39", "r00"]
    np.testing.assert_allclose(found, units[[2, 39, 1]], atol=1e-6)
    ids, found = collection.unit_vectors([])
    assert ids == [] and len(found) == 0


@pytest.mark.parametrize("url", ["memory://", "{}/a.dartboard"])
def test_a_store_that_can_hands_out_another(tmp_path, url):
    with open_store(url.format(tmp_path)) as store:
        made = store.create("default", Manifest(model="m", dimension=8))
        with made.read_snapshot() as view, view.read_snapshot() as inner:
            assert view is not made and view.name == made.name and inner is view


def test_a_view_ends_with_its_block(tmp_path):
    with open_store(str(tmp_path / "a.dartboard")) as store:
        made = store.create("default", Manifest(model="m", dimension=8))
        made.upsert(records())
        with made.read_snapshot() as view:
            assert view.get(["r00"])
        for ask in (lambda: view.get(["r01"]), view.count, lambda: view.search_text("tea", 3)):
            with pytest.raises(StoreError, match="ended"):
                ask()


def test_blobs_are_those_of_the_snapshot(collection):
    def noted(word, ids):
        return [Record(id, word, VECTORS[0], {}, blobs={"note": word.encode()}) for id in ids]

    ids = ["r01", "r02", "r03"]
    collection.upsert(noted("old", ids))
    with collection.read_snapshot() as held:
        old = held.read_blobs([*ids, "r04", "nobody"], "note")
        assert old == dict.fromkeys(ids, b"old") and held.read_blobs(ids, "other") == {}
        collection.upsert(noted("new", ids[:2]))
        collection.delete(ids[2:])
        assert collection.read_blobs(ids, "note") == dict.fromkeys(ids[:2], b"new")
        assert held.read_blobs(ids, "note") == old
