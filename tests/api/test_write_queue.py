"""Writes have a bounded queue of their own: searches and health never wait behind it."""

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest

from dartboard.api.engines import Engines
from dartboard.api.worker_pool import WRITERS
from dartboard.errors import DeadlineError
from dartboard.stores.sqlite import SqliteStore
from tests.api.core_app import BASE, LEAVE, ids, refused, retrieve, running, upsert
from tests.api.small_app import until

WAITING = 3


@contextmanager
def storm(tmp_path, **options):
    """A service whose every writer is blocked and whose write queue is full, and the requests in it."""
    given = {"collection": "docs", "demo": False, "write_queue": WAITING} | options
    with running(tmp_path, **given) as client, ThreadPoolExecutor(WRITERS + WAITING) as senders:
        assert upsert(client, "docs", {"id": "leave", "text": LEAVE}).status_code == 200
        service = client.app.state.service
        with service.write_lock.held():  # somebody writes and does not come to an end
            sent = [
                senders.submit(upsert, client, "docs", {"id": f"new {number}", "text": f"Rule {number}."})
                for number in range(WRITERS + WAITING)
            ]
            writers = service.writes
            until(lambda: (writers.running, writers.waiting) == (WRITERS, WAITING))
            yield client, service, sent


def test_searches_and_health_answer_while_every_writer_is_blocked(tmp_path):
    with storm(tmp_path, workers=1, queue=0) as (client, service, sent):
        assert ids(retrieve(client, "How much leave do I earn?", collection="docs"))
        assert client.get(f"{BASE}/collections/docs").json()["passages"] == 1
        assert client.get(f"{BASE}/health").json()["status"] == "healthy"
        assert client.get("/healthz").json() == {"status": "ok"}
        sample = service.metrics.registry.get_sample_value
        assert (sample("dartboard_writers_busy"), sample("dartboard_writes_waiting")) == (WRITERS, WAITING)
    assert [one.result().status_code for one in sent] == [200] * (WRITERS + WAITING)


@pytest.mark.parametrize(
    ("method", "path", "options"),
    [
        ("POST", "/collections/docs/documents", {"headers": {"content-type": "application/x-ndjson"}}),
        ("POST", "/collections/docs/documents/delete", {"json": {"ids": ["leave"]}}),
        ("DELETE", "/collections/docs/documents/leave", {}),
        ("PUT", "/collections/more", {}),
        ("DELETE", "/collections/docs", {}),
    ],
)
def test_beyond_the_queue_every_kind_of_write_is_told_to_come_back(tmp_path, method, path, options):
    with storm(tmp_path) as (client, _, sent):
        answer = client.request(method, BASE + path, **options)
        assert refused(answer, 429, "busy")["code"] == "busy"
        assert int(answer.headers["retry-after"]) >= 1
    assert [one.result().status_code for one in sent] == [200] * (WRITERS + WAITING)
    # whoever was refused changed nothing, and the places are free again


def test_places_come_free_when_writes_end_however_they_end(tmp_path):
    with running(tmp_path, collection="docs", demo=False, write_queue=0) as client:
        for _ in range(WRITERS + 1):
            refused(upsert(client, "nowhere", {"text": LEAVE}), 404)
            refused(client.delete(f"{BASE}/collections/docs/documents/none"), 404)
        assert upsert(client, "docs", {"text": LEAVE}).json()["accepted"] == 1


def test_probes_use_neither_threads_nor_the_store(tmp_path, monkeypatch):
    with running(tmp_path, collection="docs", workers=1, queue=0) as client:
        service, go = client.app.state.service, threading.Event()
        busy = client.portal.start_task_soon(service.workers.run, go.wait, 60)
        until(lambda: service.workers.running == 1)

        def out_of_bounds(*_, **__):
            raise AssertionError("a probe asked the store")

        for owner in (Engines, SqliteStore):
            for name in ("store", "get", "names", "open", "collections"):
                if hasattr(owner, name):
                    monkeypatch.setattr(owner, name, out_of_bounds)
        monkeypatch.setattr("anyio.to_thread.run_sync", out_of_bounds)
        try:
            assert client.get("/healthz").json() == {"status": "ok"}
            assert client.get("/readyz").json() == {"status": "ready"}
            assert client.head("/healthz").status_code == 200
            refused(client.get(f"{BASE}/health"), 429)  # which counts passages
        finally:
            go.set()
            assert busy.result() is True
            monkeypatch.undo()


def test_what_was_kept_is_answered_with_200_when_time_ends_with_the_indexes(tmp_path, monkeypatch):
    with running(tmp_path, collection="docs", demo=False) as client:
        collection = type(client.app.state.service.engines.get("docs").collection)

        def late(_):
            raise DeadlineError("time is up")

        monkeypatch.setattr(collection, "prepare", late)
        assert upsert(client, "docs", {"text": LEAVE}).json()["accepted"] == 1
