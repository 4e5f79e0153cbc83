"""Memory back to the system after a large request or answer.

What a body of 8 MB was parsed into can be 30 times as large. Where it is part of a reference cycle (as the
traceback of a refused request is), it stays until Python's collector comes by; and the C library keeps freed
memory for itself. Measured: ``benchmarks/hostile_memory.py``.
"""

import asyncio
import ctypes
import gc
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from threading import Lock

LARGE = 1024 * 1024
"""Bytes of a request or an answer after which memory is given back."""
_DELAY = 1.0


def release_memory() -> None:
    """Collect garbage, and return free memory to the system where the C library can (glibc)."""
    gc.collect()
    _trim()(0)


class Release:
    """Gives memory back a second after a large request: once for all that came in the meantime.

    That is done in a thread, one at a time, while the event loop goes on to answer.
    """

    def __init__(self) -> None:
        self._due = False
        self._at_work = Lock()

    def soon(self) -> None:
        """Called on the event loop when a large request has ended."""
        if not self._due:
            self._due = True
            asyncio.get_running_loop().call_later(_DELAY, self._now)

    def _now(self) -> None:
        loop = asyncio.get_running_loop()
        if self._at_work.locked():
            loop.call_later(_DELAY, self._now)
            return
        self._due = False
        loop.run_in_executor(None, self._release)

    def _release(self) -> None:
        with self._at_work:
            release_memory()


@cache
def _trim() -> Callable[[int], object]:
    with suppress(OSError, AttributeError):
        return ctypes.CDLL(None).malloc_trim
    return lambda _: None
