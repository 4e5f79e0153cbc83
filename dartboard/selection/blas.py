"""One thread for each matrix product while many small ones are made.

A product of a hundred rows takes several times longer through two BLAS threads than through one, and
callers that make many have threads of their own. How many threads BLAS takes is a setting of the whole
process: the first to ask sets it, the last to leave sets it back.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib.util import find_spec
from threading import Lock
from typing import Any

_lock = Lock()
_inside: list[Any] = []


@contextmanager
def one_thread_each() -> Iterator[None]:
    """Products made inside take one thread, provided that threadpoolctl is installed."""
    controller = _controller()
    if controller is None:
        yield
        return
    with _lock:
        _inside.append(None if _inside else controller.limit(limits=1))
        limiter = _inside[0]
    try:
        yield
    finally:
        with _lock:
            _inside.pop()
            if not _inside:
                limiter.restore_original_limits()


@cache
def _controller() -> Any:
    """Those who look after the BLAS libraries that are loaded; looking for them takes milliseconds."""
    if find_spec("threadpoolctl") is None:
        return None
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api="blas")
