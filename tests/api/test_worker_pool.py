"""Bounded work: places, the queue, time limits that free places, clients that leave, stopping."""

import asyncio
import dataclasses
import threading
import time
from contextvars import ContextVar

import httpx
import pytest

from dartboard.api.errors import Busy, Stopping, TimedOut
from dartboard.api.metrics import Metrics
from dartboard.api.service import Service
from dartboard.api.settings import ServiceSettings
from dartboard.api.worker_pool import WorkerPool
from dartboard.deadline import check, remaining
from tests.api.small_app import loop, serving, small_app, talk
from tests.waiting import PATIENCE, eventually, wait_until


def workers_of(**options):
    return WorkerPool(ServiceSettings(**{"workers": 2, "queue": 1, **options}), Metrics())


def value(workers, name):
    return workers._metrics.registry.get_sample_value(name)


def test_a_function_runs_in_a_thread_with_its_context_and_a_deadline():
    name = ContextVar("name")

    def work(first, *, second):
        return first, second, name.get(), threading.current_thread().name, remaining()

    async def main():
        workers = workers_of(timeout=700)
        name.set("mine")
        first, second, seen, thread, left = await workers.run(work, 1, second=2)
        assert (first, second, seen) == (1, 2, "mine")
        assert thread.startswith("dartboard-worker") and 0 < left <= 700
        assert (await workers.run(remaining, timeout=300)) <= 300
        await workers.stop()

    asyncio.run(main())


def test_errors_come_through():
    async def main():
        workers = workers_of()
        with pytest.raises(ZeroDivisionError):
            await workers.run(lambda: 1 / 0)
        await eventually(lambda: workers.running == 0)
        await workers.stop()

    asyncio.run(main())


def test_an_error_that_a_future_cannot_carry_comes_through_as_another():
    async def main():
        workers = workers_of()
        with pytest.raises(RuntimeError, match="StopIteration"):
            await workers.run(next, iter(()))
        await workers.stop()

    asyncio.run(main())


def test_beyond_places_and_queue_comes_busy():
    async def main():
        workers, go = workers_of(), threading.Event()
        running = [asyncio.create_task(workers.run(go.wait, 600)) for _ in range(3)]
        await eventually(lambda: (workers.running, workers.waiting) == (2, 1))
        assert value(workers, "dartboard_workers_busy") == 2
        assert value(workers, "dartboard_queue_waiting") == 1
        with pytest.raises(Busy) as refused:
            await workers.run(go.wait, 600)
        assert refused.value.status == 429 and int(refused.value.headers["Retry-After"]) >= 1
        go.set()
        assert await asyncio.gather(*running) == [True] * 3
        await eventually(lambda: (workers.running, workers.waiting) == (0, 0))
        assert await workers.run(int) == 0
        await workers.stop()

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
        await workers.stop()

    asyncio.run(main())


def test_time_is_up_the_client_is_told_and_the_place_comes_free():
    async def main():
        workers, seen = workers_of(workers=1, queue=0), []
        for seconds in (0.05, 5, 500):  # where a thread starts late, time is up before the work begins
            with pytest.raises(TimedOut) as late:
                await workers.run(loop, seen, 6000, timeout=seconds)
            assert late.value.status == 504
            await eventually(lambda: workers.running == 0)
            if seen:
                break
        assert seen == ["began", "DeadlineError"]
        assert await workers.run(int) == 0
        await workers.stop()

    asyncio.run(main())


def test_work_that_does_not_look_at_its_deadline_keeps_its_place_but_not_the_client():
    async def main():
        workers, go = workers_of(workers=1, queue=0), threading.Event()
        with pytest.raises(TimedOut):
            await workers.run(go.wait, 600, timeout=0.05)  # timing: has to run out
        assert workers.running == 1
        with pytest.raises(Busy):
            await workers.run(int)
        go.set()
        await eventually(lambda: workers.running == 0)
        assert await workers.run(int) == 0
        await workers.stop()

    asyncio.run(main())


def test_time_in_the_queue_counts():
    async def main():
        workers, go, seen = workers_of(workers=1, queue=2), threading.Event(), []
        busy = asyncio.create_task(workers.run(go.wait, 600))
        await eventually(lambda: workers.running == 1)
        with pytest.raises(TimedOut):
            await workers.run(loop, seen, 0, timeout=0.05)  # timing: has to run out
        assert workers.waiting == 0
        go.set()
        assert await busy is True
        await eventually(lambda: workers.running == 0)
        assert seen == []
        await workers.stop()

    asyncio.run(main())


def test_stopping_takes_no_longer_than_what_is_left_of_the_grace():
    async def main():
        workers, seen = workers_of(workers=1, grace=600), []
        task = asyncio.create_task(workers.run(loop, seen, 60))
        await eventually(lambda: seen == ["began"])
        await asyncio.wait_for(workers.stop(0.0), 30)
        with pytest.raises(TimedOut):
            await task
        assert seen == ["began", "DeadlineError"]

    asyncio.run(main())


def test_a_service_that_was_told_to_stop_counts_its_grace_from_then(monkeypatch):
    graces = []

    async def main():
        service = Service(ServiceSettings(grace=50.0))

        async def stop(grace):
            graces.append(grace)

        monkeypatch.setattr(service.workers, "stop", stop)
        monkeypatch.setattr(service.answer_workers, "stop", stop)
        assert not service.stopping
        service.told_to_stop()
        assert service.stopping
        service._stop_requested -= 20.0
        await service.stop()

    asyncio.run(main())
    assert len(graces) == 2 and all(0 < grace <= 30.0 for grace in graces)


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
        await workers.stop()

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
        await workers.stop()

    asyncio.run(main())


def test_stopping_finishes_what_runs_and_refuses_what_waits_or_comes():
    async def main():
        workers, go = workers_of(workers=1), threading.Event()
        running = asyncio.create_task(workers.run(go.wait, 600))
        await eventually(lambda: workers.running == 1)
        waiting = asyncio.create_task(workers.run(int))
        await eventually(lambda: workers.waiting == 1)
        stopping = asyncio.create_task(workers.stop())
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


def test_stopping_cancels_what_outlasts_the_grace():
    async def main():
        workers, seen = workers_of(grace=0.05), []
        task = asyncio.create_task(workers.run(loop, seen, 60))
        await eventually(lambda: seen == ["began"])
        await workers.stop()
        with pytest.raises(TimedOut):
            await task
        assert seen == ["began", "DeadlineError"] and workers.running == 0

    asyncio.run(main())


def test_work_may_stop_itself():
    def work():
        wait_until(lambda: remaining() == 0)
        check()

    async def main():
        workers = workers_of()
        with pytest.raises(TimedOut):
            await workers.run(work, timeout=0.01)  # timing: has to run out
        await eventually(lambda: workers.running == 0)
        await workers.stop()

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
        wait_until(lambda: service.workers.running == 0)
        assert httpx.get(f"http://127.0.0.1:{port}/work?seconds=0").json() == "done"
    assert 'reason="client_gone"' in service.metrics.render().decode()


def test_over_http_the_time_limit_answers_504_and_the_next_request_works():
    app = small_app(workers=1, queue=0, timeout=0.1)  # timing: has to run out
    workers = app.state.service.workers
    with serving(app) as port:
        late = httpx.post(f"http://127.0.0.1:{port}/work", json={})
        assert late.status_code == 504 and late.json()["code"] == "timed_out"
        wait_until(lambda: workers.running == 0)
        workers._settings = dataclasses.replace(workers._settings, timeout=PATIENCE)
        assert httpx.post(f"http://127.0.0.1:{port}/work", json={"seconds": 0}).json() == "done"
