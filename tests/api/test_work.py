"""Bounded work: places, the line, time limits that free places, clients that leave, stopping, writes."""

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar

import httpx
import pytest

from dartboard.api.engines import Engines
from dartboard.api.errors import Busy, Stopping, TimedOut
from dartboard.api.metrics import Metrics
from dartboard.api.work import Work
from dartboard.deadline import check, remaining
from dartboard.errors import DeadlineError
from dartboard.stores.sqlite import SqliteStore
from tests.api.core_app import BASE, LEAVE, ids, refused, retrieve, running, upsert
from tests.api.small_app import loop, serving, small_app, talk
from tests.waiting import PATIENCE, eventually, wait_until

METRICS = Metrics()


def workers_of(workers=2, queue=1, timeout=PATIENCE):
    return Work("tests", threads=workers, waiting=queue, seconds=timeout, metrics=METRICS)


def value(name):
    return METRICS.registry.get_sample_value(name, {"work": "tests"})


def test_a_function_runs_in_a_thread_with_its_context_and_a_deadline():
    name = ContextVar("name")

    def work(first, second):
        return first, second, name.get(), threading.current_thread().name, remaining()

    async def main():
        workers = workers_of(timeout=700)
        name.set("mine")
        first, second, seen, thread, left = await workers.run(work, 1, 2)
        assert (first, second, seen) == (1, 2, "mine")
        assert thread.startswith("dartboard-tests") and 0 < left <= 700
        await workers.stop(PATIENCE)

    asyncio.run(main())


def test_errors_come_through():
    async def main():
        workers = workers_of()
        with pytest.raises(ZeroDivisionError):
            await workers.run(lambda: 1 / 0)
        await eventually(lambda: workers.running == 0)
        await workers.stop(PATIENCE)

    asyncio.run(main())


def test_beyond_places_and_queue_comes_busy():
    async def main():
        workers, go = workers_of(), threading.Event()
        running = [asyncio.create_task(workers.run(go.wait, 600)) for _ in range(3)]
        await eventually(lambda: (workers.running, workers.waiting) == (2, 1))
        assert (value("dartboard_work_running"), value("dartboard_work_waiting")) == (2, 1)
        with pytest.raises(Busy) as refused:
            await workers.run(go.wait, 600)
        assert refused.value.status == 429 and int(refused.value.headers["Retry-After"]) >= 1
        go.set()
        assert await asyncio.gather(*running) == [True] * 3
        await eventually(lambda: (workers.running, workers.waiting) == (0, 0))
        assert await workers.run(int) == 0
        await workers.stop(PATIENCE)

    asyncio.run(main())


def test_never_more_at_a_time_than_places_and_in_order_of_arrival():
    async def main():
        workers = workers_of(workers=3, queue=200)
        lock, now, most, order = threading.Lock(), [0], [0], []

        def work(number):
            with lock:
                now[0] += 1
                most[0] = max(most[0], now[0])
                order.append(number)
            time.sleep(0.001)  # timing: a step of work, of any length
            with lock:
                now[0] -= 1
            return number

        results = await asyncio.gather(*(workers.run(work, number) for number in range(100)))
        assert results == list(range(100))
        assert most[0] <= 3
        assert all(abs(place - number) <= 3 for place, number in enumerate(order))
        await workers.stop(PATIENCE)

    asyncio.run(main())


def test_time_is_up_the_client_is_told_and_the_place_comes_free():
    async def main():
        for seconds in (0.05, 5, 500):  # where a thread starts late, time is up before the work begins
            workers, seen = workers_of(workers=1, queue=0, timeout=seconds), []
            with pytest.raises(TimedOut) as late:
                await workers.run(loop, seen, 6000)
            assert late.value.status == 504
            await eventually(lambda workers=workers: workers.running == 0)
            if seen:
                break
        assert seen == ["began", "DeadlineError"]
        assert await workers.run(int) == 0
        await workers.stop(PATIENCE)

    asyncio.run(main())


def test_work_that_does_not_look_at_its_deadline_keeps_its_place_but_not_the_client():
    async def main():
        workers, go = (
            workers_of(workers=1, queue=0, timeout=0.05),
            threading.Event(),
        )  # timing: has to run out
        with pytest.raises(TimedOut):
            await workers.run(go.wait, 600)
        assert workers.running == 1
        with pytest.raises(Busy):
            await workers.run(int)
        go.set()
        await eventually(lambda: workers.running == 0)
        await workers.stop(PATIENCE)

    asyncio.run(main())


def test_time_in_the_queue_counts():
    async def main():
        workers, go, seen = workers_of(workers=1, queue=2, timeout=0.3), threading.Event(), []
        busy = asyncio.create_task(workers.run(go.wait, 600))
        with pytest.raises(TimedOut):
            await asyncio.gather(workers.run(loop, seen, 0), busy)  # timing: has to run out
        await eventually(lambda: workers.waiting == 0)
        go.set()
        await eventually(lambda: workers.running == 0)
        assert seen == []
        await workers.stop(PATIENCE)

    asyncio.run(main())


def test_stopping_takes_no_longer_than_what_is_left_of_the_grace():
    async def main():
        workers, seen = workers_of(workers=1), []
        task = asyncio.create_task(workers.run(loop, seen, 60))
        await eventually(lambda: seen == ["began"])
        await asyncio.wait_for(workers.stop(0.0), 30)
        with pytest.raises(TimedOut):
            await task
        assert seen == ["began", "DeadlineError"]

    asyncio.run(main())


@pytest.mark.parametrize("queued", [False, True])
def test_cancelling_the_task_cancels_the_work(queued):
    async def main():
        workers, go, seen = workers_of(workers=1), threading.Event(), []
        if queued:
            first = asyncio.create_task(workers.run(go.wait, 600))
            await eventually(lambda: workers.running == 1)
        task = asyncio.create_task(workers.run(loop, seen, 60))
        await eventually(lambda: workers.waiting == 1 if queued else seen == ["began"])
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        go.set()
        if queued:
            await first
        await eventually(lambda: (workers.running, workers.waiting) == (0, 0))
        assert seen == ([] if queued else ["began", "DeadlineError"])
        await workers.stop(PATIENCE)

    asyncio.run(main())


def test_a_place_given_to_a_task_that_was_cancelled_in_the_same_moment_is_not_lost():
    async def main():
        workers = workers_of(workers=1, queue=5)
        for _ in range(20):
            go = threading.Event()
            first = asyncio.create_task(workers.run(go.wait, 600))
            await eventually(lambda: workers.running == 1)
            second = asyncio.create_task(workers.run(int))
            await eventually(lambda: workers.waiting == 1)
            go.set()
            while workers.waiting:
                await asyncio.sleep(0)
            second.cancel()
            await asyncio.gather(first, second, return_exceptions=True)
            await eventually(lambda: workers.running == 0)
        assert await workers.run(int) == 0
        await workers.stop(PATIENCE)

    asyncio.run(main())


def test_stopping_finishes_what_runs_and_refuses_what_waits_or_comes():
    async def main():
        workers, go = workers_of(workers=1), threading.Event()
        running = asyncio.create_task(workers.run(go.wait, 600))
        await eventually(lambda: workers.running == 1)
        waiting = asyncio.create_task(workers.run(int))
        await eventually(lambda: workers.waiting == 1)
        stopping = asyncio.create_task(workers.stop(PATIENCE))
        with pytest.raises(Stopping) as refused:
            await waiting
        assert refused.value.status == 503
        with pytest.raises(Stopping):
            await workers.run(int)
        assert not stopping.done()
        go.set()
        assert await running is True
        await stopping

    asyncio.run(main())


def test_work_may_stop_itself():
    def work():
        wait_until(lambda: remaining() == 0)
        check()

    async def main():
        workers = workers_of(timeout=0.01)  # timing: has to run out
        with pytest.raises(TimedOut):
            await workers.run(work)
        await eventually(lambda: workers.running == 0)
        await workers.stop(PATIENCE)

    asyncio.run(main())


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_client_that_leaves_frees_its_place(method):
    app = small_app(workers=1, queue=0)
    service = app.state.service
    body = b'{"seconds": 60}'
    head = f"{method} /work HTTP/1.1\r\nHost: 127.0.0.1\r\n".encode()
    if method == "POST":
        head += b"Content-Type: application/json\r\nContent-Length: %d\r\n" % len(body)
    with serving(app) as port:
        whole = head + b"\r\n" + (body if method == "POST" else b"")
        talk(port, whole, read=False, before_leaving=lambda: service.seen == ["began"])
        wait_until(lambda: service.seen == ["began", "DeadlineError"])
        wait_until(lambda: service.searches.running == 0)
        assert httpx.get(f"http://127.0.0.1:{port}/work?seconds=0").json() == "done"
    assert 'reason="client_gone"' in service.metrics.render().decode()


def test_over_http_the_time_limit_answers_504_and_the_next_request_works():
    app = small_app(workers=1, queue=0, timeout=0.1)  # timing: has to run out
    workers = app.state.service.searches
    with serving(app) as port:
        late = httpx.post(f"http://127.0.0.1:{port}/work", json={})
        assert late.status_code == 504 and late.json()["code"] == "timed_out"
        wait_until(lambda: workers.running == 0)


WRITERS = 2
WAITING = 3


@contextmanager
def storm(tmp_path, monkeypatch, **options):
    """A service whose every writer is blocked and whose write queue is full, and the requests in it."""
    given = {"collection": "docs", "demo": False, "write_queue": WAITING} | options
    with running(tmp_path, **given) as client, ThreadPoolExecutor(WRITERS + WAITING) as senders:
        assert upsert(client, "docs", {"id": "leave", "text": LEAVE}).status_code == 200
        service, go = client.app.state.service, threading.Event()
        collection = type(service.engines.get("docs").collection)
        monkeypatch.setattr(collection, "upsert", lambda *_: go.wait(PATIENCE))  # it does not come to an end
        try:
            sent = [
                senders.submit(upsert, client, "docs", {"id": f"new {number}", "text": f"Rule {number}."})
                for number in range(WRITERS + WAITING)
            ]
            writers = service.writes
            wait_until(lambda: (writers.running, writers.waiting) == (WRITERS, WAITING))
            yield client, service, sent
        finally:
            go.set()


def test_searches_and_health_answer_while_every_writer_is_blocked(tmp_path, monkeypatch):
    with storm(tmp_path, monkeypatch, workers=1, queue=0) as (client, _, sent):
        assert ids(retrieve(client, "How much leave do I earn?", collection="docs"))
        assert client.get(f"{BASE}/collections/docs").json()["passages"] == 1
        assert client.get(f"{BASE}/health").json()["status"] == "healthy"
        assert client.get("/healthz").json() == {"status": "ok"}
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
def test_beyond_the_line_every_write_is_told_to_come_back(tmp_path, monkeypatch, method, path, options):
    with storm(tmp_path, monkeypatch) as (client, _, sent):
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
        busy = client.portal.start_task_soon(service.searches.run, go.wait, 60)
        wait_until(lambda: service.searches.running == 1)

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
