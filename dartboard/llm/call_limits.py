"""Limits of calls to language models: how many at once and a minute, and how many tokens in all.

A :class:`CallLimiter` holds for the code inside ``with limited_by(limiter): …``, whichever model is asked
there and however it is wrapped. A call reserves the most that it could take before it is made and settles for
what it did take afterwards, so that parallel calls together never exceed the budget: at every moment
spent + reserved <= budget.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from threading import Condition

from dartboard.deadline import check
from dartboard.errors import BudgetError, ConfigError
from dartboard.llm.errors import NoAnswersError
from dartboard.llm.usage import Usage, UsageTotal, record_spending

_LEAST_IN_A_ROW = 10
_LONGEST_SLEEP = 0.1
_LONGEST_REASON = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class CallLimits:
    """How many calls at once and a minute, and how many tokens may be used; None: no limit.

    Args:
        concurrency: calls at once, 1 to 100.
        requests_per_minute: the most requests, evenly spaced.
        budget_tokens: the most tokens in all.

    Raises:
        ConfigError: a number that cannot work.
    """

    concurrency: int = 8
    requests_per_minute: float | None = None
    budget_tokens: int | None = None

    def __post_init__(self) -> None:
        if not 1 <= self.concurrency <= 100:
            raise ConfigError(
                f"concurrency must be from 1 to 100, got {self.concurrency}", field="concurrency"
            )
        if self.requests_per_minute is not None and not 0 < self.requests_per_minute < float("inf"):
            raise ConfigError(
                f"requests_per_minute must be a positive number or None, got {self.requests_per_minute}",
                field="requests_per_minute",
            )
        if self.budget_tokens is not None and self.budget_tokens < 0:
            raise ConfigError(
                f"budget_tokens must be >= 0 or None, got {self.budget_tokens}", field="budget_tokens"
            )

    @property
    def most_in_a_row(self) -> int:
        """So many calls in a row without a readable answer end a run."""
        return max(_LEAST_IN_A_ROW, 2 * self.concurrency)


class CallLimiter:
    """Lets calls through within limits; shared by the threads of a run, and by stages with one budget.

    Args:
        limits: what is allowed.
        spent: what an earlier part of the run took, which counts towards the budget.
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
        self._spent = (spent or Usage()).tokens
        self._reserved = 0
        self._next = self._held_until = clock()
        self._total = UsageTotal()
        self._unanswered: list[str] = []
        self._changed = Condition()

    @property
    def usage(self) -> Usage:
        """What was spent through this limiter."""
        return self._total.usage

    def admit(self, bound: Usage) -> None:
        """Wait until a request may be made, and reserve the most tokens that it can take."""
        self._reserve(bound.tokens)
        try:
            self.pause(self._held_until - self._clock())
            if self.limits.requests_per_minute is not None:
                with self._changed:
                    slot = max(self._next, self._clock())
                    self._next = slot + 60 / self.limits.requests_per_minute
                self.pause(slot - self._clock())
        except BaseException:
            self._settle(bound.tokens, 0)
            raise

    def settle(self, bound: Usage, actual: Usage) -> None:
        """What a request did take. One that was not answered keeps its bound: it may have been charged."""
        self._settle(bound.tokens, bound.tokens if actual.unanswered else actual.tokens)
        self._total.add(actual)
        record_spending(actual)

    def record(self, model: str, question: str, trouble: str = "") -> None:
        """Count a call; without ``trouble`` its answer could be read, and the row of failures is over.

        One such call is an accident, or a question that a model will not touch. Many in a row, over two
        questions or more, are a wrong model, key or setting, and every further call is money for nothing.

        Raises:
            NoAnswersError: this was one failure too many.
        """
        with self._changed:
            if not trouble:
                self._unanswered.clear()
                return
            self._unanswered.append(question)
            row = self._unanswered
            if len(row) >= self.limits.most_in_a_row and len(set(row)) > 1:
                raise NoAnswersError(
                    f"{model} gave no readable answer to {len(row)} calls in a row, at last because: "
                    f"{trouble[:_LONGEST_REASON]}. Correct the model's name, the key or the limit of output "
                    "and resume: these calls are asked again"
                )

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

    def _reserve(self, tokens: int) -> None:
        """Set tokens aside; wait for other calls where that helps."""
        most = self.limits.budget_tokens
        with self._changed:
            while most is not None and self._spent + self._reserved + tokens > most:
                if self._spent + tokens > most:
                    raise BudgetError(
                        f"the budget is used up: {self._spent:,} of {most:,} tokens are spent, and the next "
                        f"call may take {tokens:,}. Resume with a larger one: what was paid for is kept"
                    )
                self._changed.wait(0.05)
                check()
            self._reserved += tokens

    def _settle(self, reserved: int, spent: int) -> None:
        with self._changed:
            self._reserved -= reserved
            self._spent += spent
            self._changed.notify_all()


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
