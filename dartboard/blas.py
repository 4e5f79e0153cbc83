"""One thread for each matrix product while small ones are made.

A product of a hundred rows takes longer through two BLAS threads than through one, and many times as long on
a busy machine, where one of them waits for a processor while the other waits for it. How many threads BLAS
takes is a setting of the whole process, so one caller at a time sets it, and sets it back when done.
"""

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache
from threading import Lock, active_count
from typing import Any

SMALL = 300
"""Of so many candidates at most, products are small."""

_setting = Lock()
_threaded = False


def threads_for(candidates: int) -> AbstractContextManager[None]:
    """One thread for the products of a small pool, whatever BLAS takes for others."""
    return one_thread_each() if candidates <= SMALL else nullcontext()


@contextmanager
def one_thread_each() -> Iterator[None]:
    """Products made inside take one thread."""
    if not _setting.acquire(blocking=False):
        yield
        return
    try:
        counts = [(library, library.get_num_threads()) for library in libraries()]
        before = [(library, count) for library, count in counts if count > 1]
        try:
            for library, _ in before:
                library.set_num_threads(1)
            yield
        finally:
            for library, count in before:
                library.set_num_threads(count)
    finally:
        _setting.release()


@cache
def libraries() -> list[Any]:
    """The BLAS libraries that are loaded; looking for them takes milliseconds."""
    from threadpoolctl import ThreadpoolController

    return list(ThreadpoolController().select(user_api="blas").lib_controllers)


def _before_fork() -> None:
    global _threaded
    _threaded = active_count() > 1


def _after_fork() -> None:
    """In a child, use one thread: the others are not there, and what they held of BLAS is never released."""
    global _setting
    _setting = Lock()
    if _threaded:
        for library in libraries():
            library.set_num_threads(1)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_child=_after_fork)
