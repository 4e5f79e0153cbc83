"""Tokens of calls to language models: counted, estimated and added up."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from threading import Lock

_CHARACTERS_PER_TOKEN = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Tokens of one call, as the endpoint counted them, or as estimated where it does not.

    ``unanswered`` counts requests whose answer never arrived whole: nobody here knows whether they were
    charged, so they are in no other figure.
    """

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    unanswered: int = 0

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(
            calls=self.calls + other.calls,
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            unanswered=self.unanswered + other.unanswered,
        )

    @property
    def tokens(self) -> int:
        """Input and output together."""
        return self.input_tokens + self.output_tokens


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
            self.usage = self.usage + usage


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
