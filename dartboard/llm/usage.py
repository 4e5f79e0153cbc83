"""Tokens and money of calls to language models: counted, priced, estimated and added up."""

import math
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from threading import Lock

from dartboard.errors import ConfigError

PICO = 10**12
"""Money is added up in whole picos: the order of the calls does not show in a sum."""

_CHARACTERS_PER_TOKEN = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Tokens and money of one call, as the endpoint counted them, or as estimated where it does not.

    ``unanswered`` counts requests whose answer never arrived whole: nobody here knows whether they were
    charged, so they are in no other figure.
    """

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float = 0.0
    unanswered: int = 0

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(
            calls=self.calls + other.calls,
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            cost=self.cost + other.cost,
            unanswered=self.unanswered + other.unanswered,
        )

    @property
    def tokens(self) -> int:
        """Input and output together."""
        return self.input_tokens + self.output_tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """Money for a million tokens."""

    input_per_million: float
    output_per_million: float

    def __post_init__(self) -> None:
        for price in (self.input_per_million, self.output_per_million):
            if not 0 <= price < 1e6:
                raise ConfigError(
                    f"a price for a million tokens is a number from 0 to 1,000,000, got {price}"
                )

    def cost(self, input_tokens: int, output_tokens: int) -> float:
        """What so many tokens cost; computed in whole picos, so that equal tokens cost equal money."""
        whole = input_tokens * round(self.input_per_million * 10**6)
        return (whole + output_tokens * round(self.output_per_million * 10**6)) / PICO


def total_usage(usages: Iterable[Usage]) -> Usage:
    """The sum, with money added in whole picos."""
    listed = list(usages)
    picos = sum(round(usage.cost * PICO) for usage in listed)
    return replace(sum(listed, Usage()), cost=picos / PICO)


def estimated_tokens(text: str) -> int:
    """About how many tokens a chat model counts, where the endpoint does not say: four letters each."""
    return math.ceil(len(text) / _CHARACTERS_PER_TOKEN)


class UsageTotal:
    """A sum of usages, shared by threads."""

    def __init__(self) -> None:
        self.usage = Usage()
        self._lock = Lock()

    def add(self, usage: Usage) -> None:
        """Count one more."""
        with self._lock:
            self.usage = total_usage([self.usage, usage])


_innermost: ContextVar[UsageTotal | None] = ContextVar("dartboard_usage", default=None)


@contextmanager
def spending() -> Iterator[UsageTotal]:
    """Adds up what is spent inside the block, whether it ends well or not."""
    outer, inner = _innermost.get(), UsageTotal()
    token = _innermost.set(inner)
    try:
        yield inner
    finally:
        _innermost.reset(token)
        if outer is not None:
            outer.add(inner.usage)


def record_spending(usage: Usage) -> None:
    """Count a call for the innermost :func:`spending` block, if one is open."""
    total = _innermost.get()
    if total is not None:
        total.add(usage)
