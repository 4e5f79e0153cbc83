"""Wait for what another thread, process or server does: the one place where tests poll."""

import asyncio
import time
from collections.abc import Callable
from typing import TypeVar

PATIENCE = 300.0
"""Seconds: reached only if what a test waits for never happens, on any machine."""
_PAUSE = 0.01

Found = TypeVar("Found")


def wait_until(found: Callable[[], Found], *, seconds: float = PATIENCE) -> Found:
    """Call ``found`` until it returns something true, and return that; AssertionError if it never does."""
    ends = time.monotonic() + seconds
    while not (value := found()):
        assert time.monotonic() < ends, (
            f"did not happen within {seconds:g} s"
        )  # timing: the deadline of minutes
        time.sleep(_PAUSE)  # timing: between two looks; nothing depends on its length
    return value


async def eventually(found: Callable[[], Found]) -> Found:
    """The same for a coroutine, which lets others run meanwhile."""
    ends = time.monotonic() + PATIENCE
    while not (value := found()):
        assert time.monotonic() < ends, (
            f"did not happen within {PATIENCE:g} s"
        )  # timing: the deadline of minutes
        await asyncio.sleep(_PAUSE / 10)  # timing: between two looks; nothing depends on its length
    return value
