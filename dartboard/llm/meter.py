"""What every request to a model passes: rate limits, a common pause after a refusal, the budget, the spend.

A meter holds for the code inside ``with metered(meter): …``, whichever model is asked there and however it is
wrapped. What is spent goes to the meter and to the innermost open ``spending()``.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from dartboard.deadline import check
from dartboard.errors import ConfigError
from dartboard.llm.circuit_breaker import CircuitBreaker
from dartboard.llm.limits import Budget, CallLimits, TokenBucket
from dartboard.llm.usage import Usage, UsageTotal, record_spending

_LONGEST_SLEEP = 0.1


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
        self._requests, self._tokens = (
            None if per_minute is None else TokenBucket(per_minute, clock)
            for per_minute in (self.limits.requests_per_minute, self.limits.tokens_per_minute)
        )
        self._budget = Budget(self.limits, spent or Usage())
        self._held_until = clock()
        self._total = UsageTotal()
        self.circuit_breaker = CircuitBreaker(self.limits.most_in_a_row)

    @property
    def usage(self) -> Usage:
        """What was spent through this meter."""
        return self._total.usage

    def admit(self, bound: Usage, expected: Usage, *, priced: bool) -> None:
        """Wait until a request may be made, and reserve the most that it can cost."""
        if self.limits.budget_cost is not None and not priced:
            raise ConfigError(
                "a budget in money needs prices, and none are known for this model: give prices"
            )
        self._budget.reserve(bound)
        try:
            while (left := self._held_until - self._clock()) > 0:
                self.pause(left)
            self._draw(self._requests, 1)
            self._draw(self._tokens, expected.tokens)
        except BaseException:
            self._budget.settle(bound, Usage())
            raise

    def settle(self, bound: Usage, expected: Usage, actual: Usage) -> None:
        """What a request did cost. One that was not answered keeps its bound: it may have been charged."""
        self._budget.settle(bound, bound if actual.unanswered else actual)
        if self._tokens is not None and not actual.unanswered:
            self._tokens.correct(actual.tokens - expected.tokens)
        self._total.add(actual)
        record_spending(actual)

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

    def _draw(self, bucket: TokenBucket | None, amount: float) -> None:
        while bucket is not None and (wait := bucket.draw(amount)) > 0:
            self.pause(wait)


_meter: ContextVar[Meter | None] = ContextVar("dartboard_meter", default=None)


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
