"""Token buckets: what they let through, what they say, and how much they remember."""

from threading import Thread

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dartboard.api.guards.rate_limit import RateLimits, client_address


class Clock:
    now = 100.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


def test_a_burst_then_the_rate(clock):
    limits = RateLimits(clock=clock)
    first = limits.take("a", rate=2, burst=3)
    assert first.allowed and first.headers() == {
        "RateLimit-Limit": "3",
        "RateLimit-Remaining": "2",
        "RateLimit-Reset": "1",
        "RateLimit-Policy": "3;w=2",
    }
    assert [limits.take("a", rate=2, burst=3).allowed for _ in range(3)] == [True, True, False]
    refused = limits.take("a", rate=2, burst=3)
    assert refused.headers()["Retry-After"] == "1" and refused.remaining == 0 and refused.reset == 2
    assert limits.take("b", rate=2, burst=3).allowed
    clock.now += 0.5
    assert [limits.take("a", rate=2, burst=3).allowed for _ in range(2)] == [True, False]
    clock.now += 1000
    assert [limits.take("a", rate=2, burst=3).allowed for _ in range(4)] == [True, True, True, False]


def test_who_waits_as_told_is_let_in(clock):
    limits = RateLimits(clock=clock)
    for _ in range(2):
        verdict = limits.take("a", rate=0.1, burst=1)
    assert verdict.retry_after == 10
    clock.now += 9.9
    assert not limits.take("a", rate=0.1, burst=1).allowed
    clock.now += 0.2
    assert limits.take("a", rate=0.1, burst=1).allowed


def test_a_clock_that_goes_back_takes_nothing(clock):
    limits = RateLimits(clock=clock)
    limits.take("a", rate=1, burst=5)
    clock.now -= 50
    assert limits.take("a", rate=1, burst=5).remaining == 3


@given(
    rate=st.floats(0.1, 100),
    burst=st.integers(1, 20),
    steps=st.lists(st.floats(0, 2), min_size=1, max_size=60),
)
def test_never_more_than_the_burst_and_the_rate_over_time(rate, burst, steps):
    clock = Clock()
    limits, began, passed = RateLimits(clock=clock), clock.now, 0
    for step in steps:
        clock.now += step
        passed += limits.take("a", rate=rate, burst=burst).allowed
        assert passed <= burst + rate * (clock.now - began) + 1e-6


def test_memory_is_bounded_and_the_longest_unused_goes(clock):
    limits = RateLimits(size=10, clock=clock)
    limits.take("busy", rate=1, burst=2)
    for number in range(1000):
        limits.take(f"client {number}", rate=1, burst=2)
        if number % 5 == 0:
            limits.take("busy", rate=1, burst=2)
    assert len(limits) == 10
    assert not limits.take("busy", rate=1, burst=2).allowed


def test_threads_share_a_bucket(clock):
    limits, passed = RateLimits(clock=clock), []

    def ask():
        for _ in range(200):
            passed.append(limits.take("a", rate=1, burst=100).allowed)

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
