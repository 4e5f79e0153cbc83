"""The locks of the service: searches in order of arrival, one writer at a time, a store that others write to.

Inside this process a writer waits for the lock as long as its request may take. Another process that writes
to the same store holds it for milliseconds (a batch of another service) or for minutes (``dartboard index``):
the first is waited for, the second is answered with 409 and ``Retry-After``.
"""

import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Lock
from typing import TypeVar

from dartboard.deadline import check, wait_for
from dartboard.engine import Engine
from dartboard.errors import StoreLockedError

T = TypeVar("T")
_POLL_SECONDS = 0.05
_RETRY_SECONDS = 0.5
_RETRY_PAUSE = 0.01


class FifoSemaphore:
    """So many at a time, in the order in which they came; waiting ends with the deadline.

    ``threading.Semaphore`` lets newcomers overtake, and knows no deadline that may be cancelled.
    """

    def __init__(self, places: int) -> None:
        self._free = places
        self._waiting: deque[Event] = deque()
        self._guard = Lock()

    @contextmanager
    def held(self) -> Iterator[None]:
        """Wait for a place, and have it inside."""
        self._acquire()
        try:
            yield
        finally:
            self._release()

    def _acquire(self) -> None:
        with self._guard:
            if self._free:
                self._free -= 1
                return
            called = Event()
            self._waiting.append(called)
        try:
            wait_for(called)
        except BaseException:
            self._leave(called)
            raise

    def _release(self) -> None:
        with self._guard:
            if self._waiting:
                self._waiting.popleft().set()
            else:
                self._free += 1

    def _leave(self, called: Event) -> None:
        """Stop waiting; a place that was given in the same moment goes to the next."""
        with self._guard:
            if not called.is_set():
                self._waiting.remove(called)
                return
        self._release()


class WriteLock:
    """One writer of this service at a time; ``after`` is called before it is released."""

    def __init__(self, after: Callable[[], None]) -> None:
        self._lock = Lock()
        self._after = after

    @contextmanager
    def held(self) -> Iterator[None]:
        """Inside, nobody else of this service writes; waiting for it counts against the request's time."""
        while not self._lock.acquire(timeout=_POLL_SECONDS):
            check()
        try:
            yield
        finally:
            try:
                self._after()
            finally:
                self._lock.release()

    def locked(self) -> bool:
        """Whether somebody has it."""
        return self._lock.locked()


def lock_store(engine: Engine) -> None:
    """Have the store before work begins that ends in writing to it."""
    collection = engine.collection
    retry_locked(lambda: collection.configure({}))


def retry_locked(write: Callable[[], T]) -> T:
    """A write that locks the store: tried again for half a second while another process has it locked."""
    end = time.monotonic() + _RETRY_SECONDS
    while True:
        try:
            return write()
        except StoreLockedError:
            if time.monotonic() >= end:
                raise
        check()
        time.sleep(_RETRY_PAUSE)
