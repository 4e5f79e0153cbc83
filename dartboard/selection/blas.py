"""One thread for each matrix product while many small ones are made.

A product of a hundred rows takes several times longer through two BLAS threads than through one, and
callers that make many have threads of their own. How many threads BLAS takes is a setting of the whole
process, so one caller at a time sets it, and sets it back when done.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib.util import find_spec
from threading import Lock
from typing import Any

_setting = Lock()


@contextmanager
def one_thread_each() -> Iterator[None]:
    """Products made inside take one thread, provided that threadpoolctl is installed."""
    controller = _controller()
    if controller is None or not _setting.acquire(blocking=False):
        yield
        return
    try:
        with controller.limit(limits=1):
            yield
    finally:
        _setting.release()


@cache
def _controller() -> Any:
    """Who looks after the BLAS libraries that are loaded; looking for them takes milliseconds."""
    if find_spec("threadpoolctl") is None:
        return None
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api="blas")
