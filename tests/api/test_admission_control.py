"""Bursts wait, overload does not: searches are refused before they are read, all else still comes in."""

import asyncio
import math
import threading
import time
from collections import deque

import pytest
from fastapi.testclient import TestClient
from hypothesis import given
from hypothesis import strategies as st

from dartboard.api import create_app, worker_pool
from dartboard.api.errors import Busy
from dartboard.api.guards.admission_control import CONTROLLED, OverloadDetector
from dartboard.api.metrics import Metrics
from dartboard.api.settings import ServiceSettings
from dartboard.api.worker_pool import WorkerPool
from tests.waiting import PATIENCE, eventually

NONSENSE = b"{ this is no JSON"


@pytest.fixture(scope="module")
def client():
    with TestClient(create_app(ServiceSettings(queue=0)), base_url="http://127.0.0.1") as client:
        yield client


def overload(client) -> None:
    """Half a second in which everybody is refused."""
    now = time.monotonic()
    for step in range(50):
        client.app.state.service.workers._overload.refused(now - 0.5 + step / 100)


def test_every_controlled_path_is_an_operation(client):
    known = client.get("/openapi.json").json()["paths"]
    assert all("post" in known[path] for path in CONTROLLED)


def test_in_overload_a_search_is_refused_before_it_is_read(client):
    calm = [client.post(path, content=NONSENSE).status_code for path in sorted(CONTROLLED)]
    assert set(calm) == {415}, "read, and found to be no JSON"
    for path in sorted(CONTROLLED):
        overload(client)
        refused = client.post(path, content=NONSENSE)
        assert refused.status_code == 429
        assert int(refused.headers["Retry-After"]) >= 1
        assert refused.json()["code"] == "busy"
        assert refused.headers["X-Request-Id"]
        assert refused.headers["X-Content-Type-Options"] == "nosniff"


def test_what_is_no_search_comes_in(client):
    overload(client)
    assert client.get("/healthz").status_code == 200
    assert client.get("/api/dartboard/datasets").status_code == 200
    assert 'dartboard_rejected_total{reason="busy"}' in client.get("/metrics").text


def test_a_burst_may_wait():
    detector = OverloadDetector()
    assert detector.patience(0.0, 0.02) == math.inf
    for _ in range(50):
        detector.refused(5.0)
    assert detector.patience(5.01, 0.02) == math.inf


def test_overload_may_not_until_it_is_gone():
    detector = OverloadDetector()
    for step in range(25):
        detector.refused(step / 100)
    assert detector.patience(0.25, 0.08) == 0.02
    assert detector.patience(1.0, 0.08) == 0.02
    assert detector.patience(1.3, 0.02) == math.inf, "a second without a refusal"
    detector.refused(9.0)
    assert detector.patience(9.0, 0.02) == math.inf, "a new burst is a burst again"


def test_patience_is_never_shorter_than_a_few_milliseconds():
    detector = OverloadDetector()
    detector.refused(0.0)
    detector.refused(0.5)
    assert detector.patience(0.5, 1e-6) == 0.005


@given(st.lists(st.floats(0, 0.19), max_size=30))
def test_refusals_within_a_fifth_of_a_second_are_a_burst(times):
    detector = OverloadDetector()
    for at in sorted(times):
        detector.refused(at)
    assert detector.patience(0.19, 0.01) == math.inf


def test_few_refusals_are_no_overload():
    detector = OverloadDetector()
    for step in range(1000):
        now = step / 100
        detector.admitted(now)
        if step % 4 == 0:
            detector.refused(now)
        assert not detector.overloaded(now)


def test_overload_is_over_when_few_are_refused():
    detector = OverloadDetector()
    for step in range(50):
        detector.refused(step / 100)
    assert detector.overloaded(0.5)
    assert detector.places(0.5, 64) < 64
    for step in range(50, 300):
        detector.admitted(step / 100)
        if step % 5 == 0:
            detector.refused(step / 100)
    assert not detector.overloaded(3.0)
    assert detector.places(3.0, 64) == 64


class Steps:
    """A clock that the test moves, and work that ends when the test says so."""

    def __init__(self) -> None:
        self.now, self.running, self.ended = 0.0, deque(), 0

    def monotonic(self) -> float:
        return self.now

    def work(self) -> float:
        began, end = self.now, threading.Event()
        self.running.append(end)
        assert end.wait(PATIENCE)
        self.ended += 1
        return began

    def end_one(self) -> None:
        self.running.popleft().set()


def test_in_overload_those_let_in_have_hardly_waited(monkeypatch):
    """Twice as many requests as two workers can do: the rest is refused, the others hardly wait."""
    seconds, waits, refused, steps = 0.02, [], [], Steps()
    monkeypatch.setattr(worker_pool, "time", steps)

    async def offered() -> None:
        workers = WorkerPool(ServiceSettings(workers=2, queue=16), Metrics())

        async def one(number: int) -> None:
            asked = steps.now
            try:
                began = await workers.run(steps.work)
                waits.append((number, began - asked))
            except Busy as error:
                assert int(error.headers["Retry-After"]) >= 1
                refused.append(number)

        async def at_work() -> None:
            """Wait until as many work as can."""
            await eventually(lambda: len(steps.running) == min(2, sum(not task.done() for task in tasks)))

        tasks: list[asyncio.Task[None]] = []
        for number in range(300):
            steps.now += seconds / 4
            tasks.append(asyncio.create_task(one(number)))
            await asyncio.sleep(0)
            await at_work()
            if number % 2:
                steps.end_one()
                await at_work()
        while steps.running:
            steps.now += seconds / 2
            steps.end_one()
            await at_work()
        await asyncio.gather(*tasks)
        assert not workers._queue
        await workers.stop()

    asyncio.run(offered())
    assert len(waits) + len(refused) == 300
    assert len(waits) > 30
    assert len(refused) > 30
    late = [waited for number, waited in waits if number > 150]
    early = [waited for number, waited in waits if number < 100]
    assert sorted(late)[len(late) // 2] < max(early), "in overload one waits less than in the queue before it"
