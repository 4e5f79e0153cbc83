"""Limits of calls to language models: how many at once and a minute, and how much may be spent.

A :class:`CallLimiter` holds for the code inside ``with limited_by(limiter): …``, whichever model is asked
there and however it is wrapped. A call reserves the most that it could cost before it is made and settles for
what it did cost afterwards, so that parallel calls together never exceed the budget: at every moment
spent + reserved <= budget. What is spent is counted by the limiter and by the innermost open
:func:`~dartboard.llm.usage.spending`.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from threading import Condition, Lock

from dartboard.deadline import check
from dartboard.errors import BudgetError, ConfigError
from dartboard.llm.circuit_breaker import CircuitBreaker
from dartboard.llm.usage import PICO, Usage, UsageTotal, record_spending

_LEAST_IN_A_ROW = 10
_LONGEST_SLEEP = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class CallLimits:
    """How many calls at once and a minute, and how much may be spent; None: no limit.

    Args:
        concurrency: calls at once, 1 to 100.
        requests_per_minute: the most requests.
        tokens_per_minute: the most tokens, of input and output together.
        budget_cost: the most money, in the currency of the prices.
        budget_tokens: the most tokens in all.
        give_up_after: so many calls in a row that fail, or that get no readable answer, end a run; None: 10,
            or twice the calls at once where that is more.

    Raises:
        ConfigError: a number that cannot work.
    """

    concurrency: int = 8
    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None
    budget_cost: float | None = None
    budget_tokens: int | None = None
    give_up_after: int | None = None

    def __post_init__(self) -> None:
        if not 1 <= self.concurrency <= 100:
            raise ConfigError(f"concurrency must be from 1 to 100, got {self.concurrency}")
        for name in ("requests_per_minute", "tokens_per_minute"):
            value = getattr(self, name)
            if value is not None and not 0 < value < float("inf"):
                raise ConfigError(f"{name} must be a positive number or None, got {value}")
        for name in ("budget_cost", "budget_tokens"):
            value = getattr(self, name)
            if value is not None and not 0 <= value < float("inf"):
                raise ConfigError(f"{name} must be a number >= 0 or None, got {value}")
        if self.give_up_after is not None and self.give_up_after < 1:
            raise ConfigError(f"give_up_after must be >= 1 or None, got {self.give_up_after}")

    @property
    def most_in_a_row(self) -> int:
        """So many calls in a row may go wrong, less one."""
        return self.give_up_after or max(_LEAST_IN_A_ROW, 2 * self.concurrency)


class Budget:
    """What may still be spent, shared by threads."""

    def __init__(self, limits: CallLimits, spent: Usage) -> None:
        most_cost = None if limits.budget_cost is None else round(limits.budget_cost * PICO)
        self._most = (most_cost, limits.budget_tokens)
        self._spent = list(_amounts(spent))
        self._reserved = [0, 0]
        self._changed = Condition()

    def reserve(self, bound: Usage) -> None:
        """Set the most that a call can cost aside; wait for other calls where that helps."""
        wanted = _amounts(bound)
        with self._changed:
            while not self._fits(wanted, self._reserved):
                if not self._fits(wanted, (0, 0)):
                    raise BudgetError(self._message(wanted))
                self._changed.wait(0.05)
                check()
            for at, amount in enumerate(wanted):
                self._reserved[at] += amount

    def settle(self, bound: Usage, actual: Usage) -> None:
        """Replace a reservation by what was spent."""
        with self._changed:
            for at, (reserved, amount) in enumerate(zip(_amounts(bound), _amounts(actual), strict=True)):
                self._reserved[at] -= reserved
                self._spent[at] += amount
            self._changed.notify_all()

    def _fits(self, wanted: tuple[int, int], reserved: "list[int] | tuple[int, int]") -> bool:
        return all(
            most is None or self._spent[at] + reserved[at] + wanted[at] <= most
            for at, most in enumerate(self._most)
        )

    def _message(self, wanted: tuple[int, int]) -> str:
        parts = []
        if self._most[0] is not None:
            spent, most, next_ = (amount / PICO for amount in (self._spent[0], self._most[0], wanted[0]))
            parts.append(f"{spent:.4f} of {most:.4f} are spent, and the next call may cost {next_:.4f}")
        if self._most[1] is not None:
            parts.append(
                f"{self._spent[1]} of {self._most[1]} tokens are spent, the next call may take {wanted[1]}"
            )
        return (
            f"the budget is used up: {'; '.join(parts)}. Resume with a larger one, or with shorter answers "
            "(--max-output): what was paid for is kept"
        )


class TokenBucket:
    """Fills at a steady rate and is drawn from; whoever finds too little in it is told how long to wait.

    It starts full with a tenth of a minute's worth (one, at least), and the rest of the minute's worth
    flows in over the minute, so that no minute sees more than its limit. A draw larger than the bucket waits
    until it is full and leaves it in debt.
    """

    def __init__(self, per_minute: float, clock: Callable[[], float]) -> None:
        self._capacity = max(1.0, per_minute / 10)
        flowing = per_minute - self._capacity if per_minute >= 10 else per_minute
        self._rate = flowing / 60
        self._clock = clock
        self._level = self._capacity
        self._seen = clock()
        self._lock = Lock()

    def draw(self, amount: float) -> float:
        """0 where the amount was drawn, else the seconds to wait before asking again."""
        with self._lock:
            self._fill()
            needed = min(amount, self._capacity)
            if self._level >= needed - 1e-9:
                self._level -= amount
                return 0.0
            return (needed - self._level) / self._rate

    def correct(self, amount: float) -> None:
        """Draw more afterwards, or give back."""
        with self._lock:
            self._fill()
            self._level = min(self._capacity, self._level - amount)

    def _fill(self) -> None:
        now = self._clock()
        self._level = min(self._capacity, self._level + (now - self._seen) * self._rate)
        self._seen = now


class CallLimiter:
    """Lets calls through within limits; shared by the threads of a run, and by stages with one budget.

    Args:
        limits: what is allowed.
        spent: what an earlier part of the run paid, which counts towards the budget.
        clock: tells the time in seconds.
        sleep: waits for so many seconds.

    Example::

        limiter = CallLimiter(CallLimits(requests_per_minute=60, budget_tokens=1_000_000))
        with limited_by(limiter):
            chat.complete("Who wrote Dracula?")
        limiter.usage.tokens
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
        """What was spent through this limiter."""
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


_limiter: ContextVar[CallLimiter | None] = ContextVar("dartboard_call_limiter", default=None)


def current_limiter() -> CallLimiter:
    """The limiter that holds here; one without limits where none does."""
    return _limiter.get() or CallLimiter()


@contextmanager
def limited_by(limiter: CallLimiter) -> Iterator[CallLimiter]:
    """Requests inside pass this limiter."""
    token = _limiter.set(limiter)
    try:
        yield limiter
    finally:
        _limiter.reset(token)


def _amounts(usage: Usage) -> tuple[int, int]:
    return round(usage.cost * PICO), usage.tokens
