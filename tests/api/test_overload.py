"""Bursts wait, crowds do not: on paper, and with real workers."""

import asyncio
import math
import time

from hypothesis import given
from hypothesis import strategies as st

from dartboard.api.errors import Busy
from dartboard.api.guards.admission_control import OverloadDetector
from dartboard.api.metrics import Metrics
from dartboard.api.settings import ServiceSettings
from dartboard.api.worker_pool import WorkerPool


def test_a_burst_may_wait():
    overload = OverloadDetector()
    assert overload.patience(0.0, 0.02) == math.inf
    for _ in range(50):
        overload.refused(5.0)
    assert overload.patience(5.01, 0.02) == math.inf


def test_a_crowd_may_not_until_it_is_gone():
    overload = OverloadDetector()
    for step in range(25):
        overload.refused(step / 100)
    assert overload.patience(0.25, 0.08) == 0.02
    assert overload.patience(1.0, 0.08) == 0.02
    assert overload.patience(1.3, 0.02) == math.inf, "a second without a refusal"
    overload.refused(9.0)
    assert overload.patience(9.0, 0.02) == math.inf, "a new burst is a burst again"


def test_patience_is_never_shorter_than_a_few_milliseconds():
    overload = OverloadDetector()
    overload.refused(0.0)
    overload.refused(0.5)
    assert overload.patience(0.5, 1e-6) == 0.005


@given(st.lists(st.floats(0, 0.19), max_size=30))
def test_refusals_within_a_fifth_of_a_second_are_a_burst(times):
    overload = OverloadDetector()
    for at in sorted(times):
        overload.refused(at)
    assert overload.patience(0.19, 0.01) == math.inf


def test_few_refusals_are_no_crowd():
    overload = OverloadDetector()
    for step in range(1000):
        now = step / 100
        overload.admitted(now)
        if step % 4 == 0:
            overload.refused(now)
        assert not overload.overloaded(now)


def test_a_crowd_is_over_when_few_are_refused():
    overload = OverloadDetector()
    for step in range(50):
        overload.refused(step / 100)
    assert overload.overloaded(0.5)
    assert overload.places(0.5, 64) < 64
    for step in range(50, 300):
        overload.admitted(step / 100)
        if step % 5 == 0:
            overload.refused(step / 100)
    assert not overload.overloaded(3.0)
    assert overload.places(3.0, 64) == 64


def test_in_a_crowd_those_let_in_have_hardly_waited():
    """Twice as many requests as two workers can do: the rest is refused, the others hardly wait."""
    seconds, waits, refused = 0.02, [], []

    async def offered() -> None:
        workers = WorkerPool(ServiceSettings(workers=2, queue=16), Metrics())

        async def one(number: int) -> None:
            await asyncio.sleep(number * seconds / 4)
            asked = time.monotonic()
            try:
                began = await workers.run(_work, seconds)
                waits.append((number, began - asked))
            except Busy as error:
                assert int(error.headers["Retry-After"]) >= 1
                refused.append(number)

        await asyncio.gather(*(one(number) for number in range(300)))
        assert not workers._queue
        await workers.stop()

    asyncio.run(offered())
    assert len(waits) + len(refused) == 300
    assert len(waits) > 30
    assert len(refused) > 30
    late = [waited for number, waited in waits if number > 150]
    early = [waited for number, waited in waits if number < 100]
    assert sorted(late)[len(late) // 2] < max(early), "in a crowd one waits less than in the queue before it"


def _work(seconds: float) -> float:
    began = time.monotonic()
    time.sleep(seconds)
    return began
