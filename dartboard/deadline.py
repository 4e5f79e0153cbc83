"""A time limit that work looks at by itself, since a thread cannot be stopped from outside.

Whoever starts work says how long it may take, ``with deadline(30): …``; whoever works in steps calls
:func:`check` between them and is stopped by :class:`~dartboard.errors.DeadlineError`. Without a deadline a
check costs some fifty nanoseconds. The limit follows the context, so it holds in one thread, and in threads
that are started with a copy of the context.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Event

from dartboard.errors import ConfigError, DeadlineError

_GLANCE = 0.05  # seconds between looks at the deadline, which may be cancelled at any time
_limit: ContextVar[tuple[float, tuple[Event, ...]] | None] = ContextVar("dartboard_deadline", default=None)


@contextmanager
def deadline(seconds: float, *, cancelled: Event | None = None) -> Iterator[None]:
    """Work inside must end within ``seconds``, or when ``cancelled`` is set; an outer limit still holds."""
    if not seconds > 0:
        raise ConfigError(f"a deadline is a positive number of seconds, got {seconds}")
    outer = _limit.get()
    end = time.monotonic() + seconds
    events = () if cancelled is None else (cancelled,)
    if outer is not None:
        end, events = min(end, outer[0]), (*outer[1], *events)
    token = _limit.set((end, events))
    try:
        yield
    finally:
        _limit.reset(token)


def check() -> None:
    """Go on, or stop here because time is up or nobody waits for the result."""
    limit = _limit.get()
    if limit is None:
        return
    end, events = limit
    for event in events:
        if event.is_set():
            raise DeadlineError("cancelled: nobody waits for this result any more")
    if time.monotonic() >= end:
        raise DeadlineError("out of time: ask for less (k, triage_k, a smaller batch), or allow more time")


def remaining() -> float | None:
    """Seconds left, at least 0; None where there is no deadline."""
    limit = _limit.get()
    return None if limit is None else max(0.0, limit[0] - time.monotonic())


def within(seconds: float) -> float:
    """So many seconds, or what is left of the deadline where that is less."""
    left = remaining()
    return seconds if left is None else min(seconds, left)


def wait_for(event: Event) -> None:
    """Wait until the event is set; DeadlineError once time is up or the work was cancelled."""
    while not event.wait(within(_GLANCE)):
        check()
