"""Whose turn it is: a lock that leaves something in order whenever it is given back."""

from collections.abc import Callable
from threading import Lock
from types import TracebackType
from typing import Self


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
