"""Many threads on one engine: the same answers as one after another, also while somebody writes."""

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from dartboard.api import engines as engines_module
from dartboard.api.engines import Engines
from dartboard.api.metrics import Metrics
from dartboard.api.settings import ServiceSettings
from dartboard.datasets import demo
from dartboard.errors import CollectionError, StoreLockedError
from dartboard.stores import Record, open_store

THREADS, SEARCHES = 8, 20


@pytest.fixture(params=["memory", "file"])
def engines(request, tmp_path):
    url = "memory://" if request.param == "memory" else str(tmp_path / "index.dartboard")
    opened = Engines(ServiceSettings(store=url), Metrics())
    source = opened.get("demo").collection
    made = opened.new("default").create()
    for batch in source.iterate():
        made.upsert(batch)
    yield opened
    opened.close()


def queries() -> list[str]:
    texts = demo.texts()
    return [question.text for question in demo.questions()] + [text[:80] for text in texts[: SEARCHES - 5]]


def search(engine, query: str):
    found = engine.search(query, k=5)
    return [chunk.id for chunk in found.chunks], np.round(found.scores, 9).tolist()


def test_threads_find_what_one_after_another_finds(engines):
    asked = queries()
    expected = {query: search(engines.get(None), query) for query in asked}

    def work(offset: int) -> list[bool]:
        order = asked[offset:] + asked[:offset]
        return [search(engines.get(None), query) == expected[query] for query in order[:SEARCHES]]

    with ThreadPoolExecutor(THREADS) as pool:
        done = list(pool.map(work, range(0, 5 * THREADS, 5)))
    assert sum(map(len, done)) == THREADS * len(asked[:SEARCHES])
    assert all(map(all, done))


def test_threads_search_while_another_writes(engines):
    """What is written is excluded by a filter, so the answers must stay as they were."""
    asked = queries()[:20]
    engine = engines.get(None)

    def old(query):
        found = engine.search(query, k=5, where="base exists")
        return [chunk.id for chunk in found.chunks]

    def dense(query):
        return [
            hit.id for hit in engine.collection.search_vector(engine.model.encode_query(query), 5, where=None)
        ]

    near = {
        query: {each.chunk.id for each in engine.candidates(query, 60, where="base exists").found}
        for query in asked
    }
    stop, wanted = threading.Event(), threading.Semaphore(THREADS)
    written = []

    def write():
        vector = engine.model.encode_documents(["a new passage about gardens"])[0]
        number = 0
        while wanted.acquire() and not stop.is_set():
            noise = np.random.default_rng(number).standard_normal(vector.size).astype(np.float32) * 0.01
            engine.collection.upsert(
                [Record(f"new-{number}", f"gardens {number}", vector + noise, {"source": "new"})]
            )
            written.append(f"new-{number}")
            number += 1

    def ask(query):
        wanted.release(2)  # writing keeps step, so that the collection does not outgrow the test
        return query, set(old(query)), dense(query)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        with ThreadPoolExecutor(THREADS) as pool:
            found = list(pool.map(ask, asked * 4))
    finally:
        stop.set()
        wanted.release()
        writer.join()
    assert written
    assert all(len(hits) == 5 for _, _, hits in found)
    for query, picked, _ in found:
        assert len(picked) == 5
        assert picked <= near[query]  # BM25's statistics move with the collection, and with them the picks
    last = engine.search("a new passage about gardens", k=5, where='source = "new"')
    assert {chunk.id for chunk in last.chunks} <= set(written)
    assert engine.collection.count() == 150 + len(written)


def test_models_are_loaded_once(engines):
    with ThreadPoolExecutor(THREADS) as pool:
        found = list(pool.map(lambda _: engines.get("default"), range(50)))
    assert len({id(engine) for engine in found}) == 1
    assert engines.get("default").model is engines.get("demo").model is engines.model


def test_a_demo_of_the_store_goes_first(tmp_path):
    opened = Engines(ServiceSettings(store="memory://"), Metrics())
    assert opened.is_demo("demo")
    assert opened.names() == ["demo"]
    opened.new("demo").create()
    assert not opened.is_demo("demo")
    assert opened.get("demo").stats().records == 0
    with pytest.raises(CollectionError):
        opened.get("nothing")
    opened.close()


def test_a_store_that_is_locked_is_opened_for_reading(monkeypatch, tmp_path, caplog):
    url = str(tmp_path / "index.dartboard")
    open_store(url).close()
    tried = []

    def locked(url, *, read_only=False):
        tried.append(read_only)
        if not read_only:
            raise StoreLockedError("taken")
        return open_store(url, read_only=True)

    monkeypatch.setattr(engines_module, "open_store", locked)
    opened = Engines(ServiceSettings(store=f"file://{url}", demo=False), Metrics())
    assert opened.names() == []
    assert tried == [False, True]
    assert "reading only" in caplog.text
    opened.close()


def test_the_demo_needs_no_cache(tmp_path, monkeypatch, caplog):
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("DARTBOARD_CACHE", str(tmp_path / "file"))
    few = demo.passages()[:12]
    monkeypatch.setattr(demo, "passages", lambda: few)
    opened = Engines(ServiceSettings(store="memory://"), Metrics())
    assert opened.get("demo").stats().records == 12
    assert "encoded at every start" in caplog.text
    opened.close()
