"""What every change of a collection goes through: is it ours to change, and is it our turn.

Inside this process turns are waited for as long as the request may take. Another process that writes to the
same store holds it for milliseconds (a batch of another service) or for minutes (``dartboard index``): the
first is waited for, the second is answered with 409 and ``Retry-After``.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from dartboard.api.errors import Conflict
from dartboard.api.service import Service
from dartboard.deadline import check
from dartboard.engine import Engine
from dartboard.errors import StoreLockedError

T = TypeVar("T")
_GLANCE = 0.05
_PATIENCE = 0.5
_PAUSE = 0.01


def writable(service: Service, name: str) -> Engine:
    """The engine of a collection that may be changed."""
    engine = service.engines.get(name)
    if service.engines.is_demo(name):
        raise demo_is_read_only()
    return engine


def demo_is_read_only() -> Conflict:
    """The error for whoever would change the package's own corpus."""
    return Conflict("the demo collection cannot be changed: make one of your own first", code="read_only")


@contextmanager
def our_turn(service: Service) -> Iterator[None]:
    """Inside, nobody else of this service writes; waiting for it counts against the request's time."""
    while not service.writing.acquire(timeout=_GLANCE):
        check()
    try:
        yield
    finally:
        service.writing.release()


def lock(engine: Engine) -> None:
    """Have the store before work begins that ends in writing to it."""
    collection = engine.collection
    when_free(lambda: collection.configure(collection.manifest.settings))


def when_free(write: Callable[[], T]) -> T:
    """The first write of a turn, which locks the store: tried again while another process is in the way."""
    end = time.monotonic() + _PATIENCE
    while True:
        try:
            return write()
        except StoreLockedError:
            if time.monotonic() >= end:
                raise
        check()
        time.sleep(_PAUSE)
