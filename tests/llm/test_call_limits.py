"""Budgets, rates and pauses: what every request passes."""

from threading import Event, Thread

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dartboard.deadline import deadline
from dartboard.errors import BudgetError, ConfigError, DeadlineError
from dartboard.llm.call_limits import CallLimiter, CallLimits, current_limiter, limited_by
from dartboard.llm.usage import Usage, spending
from tests.examples import examples


class Clock:
    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now

    def sleep(self, seconds):
        self.now += seconds


def usage(tokens):
    return Usage(calls=1, input_tokens=tokens)


@examples(25)
@given(
    st.lists(st.tuples(st.integers(1, 400), st.floats(0, 1)), min_size=1, max_size=40), st.integers(1, 900)
)
def test_spent_and_reserved_stay_within_the_budget(calls, most):
    limiter = CallLimiter(CallLimits(budget_tokens=most))
    open_calls, spent = [], 0
    for bound, share in calls:
        usage = Usage(calls=1, input_tokens=bound)
        try:
            if spent + sum(reserved.input_tokens for reserved, _ in open_calls) + bound > most and open_calls:
                reserved, actual = open_calls.pop(0)
                limiter.settle(reserved, actual)
                spent += actual.input_tokens
                continue
            limiter.admit(usage)
        except BudgetError:
            assert spent + bound > most
        else:
            open_calls.append((usage, Usage(calls=1, input_tokens=int(bound * share))))
        assert spent + sum(reserved.input_tokens for reserved, _ in open_calls) <= most


def test_a_call_that_may_not_fit_waits_for_those_under_way():
    """Two calls of at most 60 tokens each and 100 to spend: one after the other, or not at all."""
    for actual, fits in ((30, True), (60, False)):
        limiter = CallLimiter(CallLimits(budget_tokens=100))
        limiter.admit(usage(60))
        outcome: list[object] = []

        def second(limiter=limiter, outcome=outcome):
            try:
                limiter.admit(usage(60))
                outcome.append(True)
            except BudgetError:
                outcome.append(False)

        thread = Thread(target=second)
        thread.start()
        thread.join(0.2)  # timing: nothing may happen meanwhile
        assert outcome == [], "60 + 60 is more than 100"
        limiter.settle(usage(60), usage(actual))
        thread.join(60)
        assert outcome == [fits]


def test_an_unanswered_request_counts_as_if_it_had_been_charged_in_full():
    limiter = CallLimiter(CallLimits(budget_tokens=100))
    limiter.admit(usage(60))
    limiter.settle(usage(60), Usage(unanswered=1))
    with pytest.raises(BudgetError, match="60 of 100 tokens"):
        limiter.admit(usage(60))
    assert limiter.usage == Usage(unanswered=1)


def test_a_cancelled_wait_gives_its_reservation_back():
    cancelled = Event()
    cancelled.set()
    limiter = CallLimiter(CallLimits(budget_tokens=100, requests_per_minute=1))
    limiter.admit(usage(10))
    with pytest.raises(DeadlineError), deadline(60, cancelled=cancelled):
        limiter.admit(usage(60))
    limiter.settle(usage(10), usage(10))
    assert limiter.usage == usage(10)


@pytest.mark.parametrize("per_minute", [5, 10, 60, 600])
def test_no_minute_sees_more_requests_than_its_limit(per_minute):
    clock = Clock()
    limiter = CallLimiter(CallLimits(requests_per_minute=per_minute), clock=clock, sleep=clock.sleep)
    times = []
    for _ in range(3 * per_minute):
        limiter.admit(usage(1))
        times.append(clock.now)
    allowed = per_minute
    for start in times:
        assert sum(start <= moment < start + 59.99 for moment in times) <= allowed
    assert times[-1] - times[0] < 60 * 3.5


def test_a_pause_holds_for_all():
    clock = Clock()
    limiter = CallLimiter(clock=clock, sleep=clock.sleep)
    limiter.hold(5)
    limiter.admit(usage(1))
    assert clock.now == pytest.approx(105)


def test_a_meter_holds_inside_only_and_sums_what_is_spent():
    limiter = CallLimiter()
    with limited_by(limiter):
        assert current_limiter() is limiter
        with spending() as outer, spending() as inner:
            limiter.settle(usage(5), usage(3))
    assert current_limiter() is not limiter
    assert inner.usage == outer.usage == limiter.usage == usage(3)


@pytest.mark.parametrize(
    "knobs",
    [
        {"concurrency": 0},
        {"requests_per_minute": 0},
        {"requests_per_minute": float("inf")},
        {"budget_tokens": -1},
    ],
)
def test_bad_limits_are_refused(knobs):
    with pytest.raises(ConfigError, match=next(iter(knobs))):
        CallLimits(**knobs)
