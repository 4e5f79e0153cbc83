"""Whose turn it is: a lock that leaves something in order whenever it is given back, and one for searches.

Python runs one thread at a time, and threads that hand the interpreter to each other after every short NumPy
call lose more than they gain: searches of an index in this process are done sooner one after the other.
"""

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Lock
from types import TracebackType
from typing import Self

from dartboard.deadline import wait_for


class Turns:
    """So many at a time, in the order in which they came; waiting ends with the deadline."""

    def __init__(self, places: int) -> None:
        self._free = places
        self._waiting: deque[Event] = deque()
        self._guard = Lock()

    @contextmanager
    def one(self) -> Iterator[None]:
        """Wait for a turn, and have it."""
        self._begin()
        try:
            yield
        finally:
            self._end()

    def _begin(self) -> None:
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

    def _end(self) -> None:
        with self._guard:
            if self._waiting:
                self._waiting.popleft().set()
            else:
                self._free += 1

    def _leave(self, called: Event) -> None:
        """Stop waiting; a turn that was given in the same moment goes to the next."""
        with self._guard:
            if not called.is_set():
                self._waiting.remove(called)
                return
        self._end()


class Turn:
    """A lock; ``after`` is called before it is released."""

    def __init__(self, after: Callable[[], None]) -> None:
        self._lock = Lock()
        self._after = after

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        """As a lock's."""
        return self._lock.acquire(blocking, timeout)

    def release(self) -> None:
        """As a lock's, in order."""
        try:
            self._after()
        finally:
            self._lock.release()

    def locked(self) -> bool:
        """Whether somebody has it."""
        return self._lock.locked()

    def __enter__(self) -> Self:
        self.acquire()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()
