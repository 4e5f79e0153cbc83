"""Token buckets: what they let through, what they say, and how much they remember."""

import math
from threading import Thread

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dartboard.api.rate_limit import RateLimits, client_address


class Clock:
    now = 100.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


def test_a_second_at_once_then_the_rate(clock):
    limits = RateLimits(clock=clock)
    assert [limits.take("a", 3) for _ in range(3)] == [0, 0, 0]
    assert limits.take("a", 3) == pytest.approx(1 / 3)
    assert limits.take("b", 3) == 0
    clock.now += 0.34
    assert limits.take("a", 3) == 0 and limits.take("a", 3) > 0
    clock.now += 1000
    assert [limits.take("a", 3) > 0 for _ in range(4)] == [False, False, False, True]


def test_who_waits_as_told_is_let_in(clock):
    limits = RateLimits(clock=clock)
    limits.take("a", 0.1)
    assert limits.take("a", 0.1) == pytest.approx(10)
    clock.now += 9.9
    assert limits.take("a", 0.1) > 0
    clock.now += 0.2
    assert limits.take("a", 0.1) == 0


def test_a_clock_that_goes_back_takes_nothing(clock):
    limits = RateLimits(clock=clock)
    limits.take("a", 5)
    clock.now -= 50
    assert [limits.take("a", 5) > 0 for _ in range(5)] == [False] * 4 + [True]


@given(rate=st.floats(0.1, 100), steps=st.lists(st.floats(0, 2), min_size=1, max_size=60))
def test_never_more_than_a_second_at_once_and_the_rate_over_time(rate, steps):
    clock = Clock()
    limits, began, passed = RateLimits(clock=clock), clock.now, 0
    for step in steps:
        clock.now += step
        passed += limits.take("a", rate) == 0
        assert passed <= max(1, math.ceil(rate)) + rate * (clock.now - began) + 1e-6


def test_the_longest_unused_is_forgotten(clock):
    limits = RateLimits(size=10, clock=clock)
    assert limits.take("busy", 1) == limits.take("idle", 1) == 0
    for number in range(1000):
        limits.take(f"client {number}", 1)
        assert limits.take("busy", 1) > 0
    assert limits.take("idle", 1) == 0


def test_threads_share_a_bucket(clock):
    limits, passed = RateLimits(clock=clock), []

    def ask():
        for _ in range(200):
            passed.append(limits.take("a", 100) == 0)

    threads = [Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(passed) == 100


@pytest.mark.parametrize(
    ("host", "name"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("testclient", "unknown"),
        (None, "unknown"),
    ],
)
def test_one_name_for_one_client(host, name):
    assert client_address(host) == name
