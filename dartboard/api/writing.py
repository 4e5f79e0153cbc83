"""What every change of a collection goes through: is it ours to change, and is it our turn."""

from collections.abc import Iterator
from contextlib import contextmanager

from dartboard.api.errors import Conflict
from dartboard.api.service import Service
from dartboard.deadline import check
from dartboard.engine import Engine

_GLANCE = 0.05


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
