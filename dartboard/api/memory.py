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

LARGE = 1024 * 1024
"""Bytes of a request or an answer after which memory is given back."""
_DELAY = 1.0


def release_memory() -> None:
    """Collect garbage, and return free memory to the system where the C library can (glibc)."""
    gc.collect()
    _trim()(0)


class Release:
    """Gives memory back a second after a large request: once for all that came in the meantime."""

    def __init__(self) -> None:
        self._due = False

    def soon(self) -> None:
        """Called on the event loop when a large request has ended."""
        if not self._due:
            self._due = True
            asyncio.get_running_loop().call_later(_DELAY, self._now)

    def _now(self) -> None:
        self._due = False
        release_memory()


@cache
def _trim() -> Callable[[int], object]:
    with suppress(OSError, AttributeError):
        return ctypes.CDLL(None).malloc_trim
    return lambda _: None
