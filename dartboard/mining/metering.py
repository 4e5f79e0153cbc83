"""The gate that every request passes: rate limits, a common pause after a refusal, the budget, the spend.

A meter holds for the code inside ``with metered(meter): …``, whichever judge is asked there and however it is
wrapped. What is spent goes to the meter and to the innermost open ``spending()``.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Lock

from dartboard.deadline import check
from dartboard.errors import ConfigError
from dartboard.mining.budget import Budget, CallLimits, total_usage
from dartboard.mining.rate import Bucket
from dartboard.mining.streaks import Streaks
from dartboard.mining.verdicts import Usage

_LONGEST_SLEEP = 0.1


class Ledger:
    """A sum of usages."""

    def __init__(self) -> None:
        self.usage = Usage()
        self._lock = Lock()

    def add(self, usage: Usage) -> None:
        """Count one more."""
        with self._lock:
            self.usage = total_usage([self.usage, usage])


class Meter:
    """Shared by all threads of a run, and by several stages that have one budget together.

    ``spent`` is what an earlier part of the run paid, which counts towards the budget.
    """

    def __init__(
        self,
        limits: CallLimits | None = None,
        *,
        spent: Usage | None = None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.limits = limits or CallLimits()
        self._clock, self._sleep = clock, sleep
        self._requests = self._bucket(self.limits.requests_per_minute)
        self._tokens = self._bucket(self.limits.tokens_per_minute)
        self._budget = Budget(self.limits, spent or Usage())
        self._held_until = clock()
        self._ledger = Ledger()
        self.streaks = Streaks(self.limits.most_in_a_row)

    @property
    def usage(self) -> Usage:
        """What was spent through this meter."""
        return self._ledger.usage

    def admit(self, bound: Usage, expected: Usage, *, priced: bool) -> None:
        """Wait until a request may be made, and reserve the most that it can cost."""
        if self.limits.budget_cost is not None and not priced:
            raise ConfigError(
                "a budget in money needs prices, and none are known for this model: give prices"
            )
        self._budget.reserve(bound)
        try:
            self._wait_for_pause()
            self._wait_for(self._requests, 1)
            self._wait_for(self._tokens, expected.input_tokens + expected.output_tokens)
        except BaseException:
            self._budget.settle(bound, Usage())
            raise

    def settle(self, bound: Usage, expected: Usage, actual: Usage) -> None:
        """What a request did cost. One that was not answered keeps its bound: it may have been charged."""
        counted = actual.input_tokens + actual.output_tokens
        self._budget.settle(bound, bound if actual.unanswered else actual)
        if self._tokens is not None and not actual.unanswered:
            self._tokens.correct(counted - expected.input_tokens - expected.output_tokens)
        self._ledger.add(actual)
        ledger = _ledger.get()
        if ledger is not None:
            ledger.add(actual)

    def hold(self, seconds: float) -> bool:
        """Let nobody ask for so long: the endpoint said that it has enough. Whether that is news."""
        until = self._clock() + seconds
        news = until > self._held_until + 1
        self._held_until = max(self._held_until, until)
        return news

    def pause(self, seconds: float) -> None:
        """Sleep, unless the work is cancelled meanwhile."""
        ends = self._clock() + seconds
        while (left := ends - self._clock()) > 0:
            check()
            self._sleep(min(left, _LONGEST_SLEEP))

    def _bucket(self, per_minute: float | None) -> Bucket | None:
        return None if per_minute is None else Bucket(per_minute, self._clock)

    def _wait_for_pause(self) -> None:
        while (left := self._held_until - self._clock()) > 0:
            self.pause(left)

    def _wait_for(self, bucket: Bucket | None, amount: float) -> None:
        while bucket is not None and (wait := bucket.draw(amount)) > 0:
            self.pause(wait)


_meter: ContextVar[Meter | None] = ContextVar("dartboard_meter", default=None)
_ledger: ContextVar[Ledger | None] = ContextVar("dartboard_ledger", default=None)


def current_meter() -> Meter:
    """The meter that holds here; one without limits where none does."""
    return _meter.get() or Meter()


@contextmanager
def metered(meter: Meter) -> Iterator[Meter]:
    """Requests inside pass this meter."""
    token = _meter.set(meter)
    try:
        yield meter
    finally:
        _meter.reset(token)


@contextmanager
def spending() -> Iterator[Ledger]:
    """Adds up what is spent inside, whether it ends well or not."""
    outer = _ledger.get()
    ledger = Ledger()
    token = _ledger.set(ledger)
    try:
        yield ledger
    finally:
        _ledger.reset(token)
        if outer is not None:
            outer.add(ledger.usage)
