"""Changes of collections have threads and a bounded queue of their own, so that no search waits behind one.

The store takes one writer at a time, so two threads are enough: one writes while the other splits documents.
A request counts from its admission to its end, whatever the number of its steps: it is refused (429) before
anything of it is kept, or not at all.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, TypeVar

from dartboard.api.metrics import Metrics
from dartboard.api.settings import ServiceSettings
from dartboard.api.workers import Counters, Workers

T = TypeVar("T")
WRITERS = 2
"""Threads that change collections."""


class WriteQueue:
    """Admits ``settings.write_queue`` requests beside those that are worked on."""

    def __init__(self, settings: ServiceSettings, metrics: Metrics) -> None:
        self._most = WRITERS + settings.write_queue
        self._admitted = 0
        own = replace(settings, workers=WRITERS, queue=self._most)
        self.workers = Workers(own, Counters(metrics.write_queue, metrics.rejected), few=None)

    @contextmanager
    def admitted(self) -> Iterator[None]:
        """A place for one request, for all of its steps; ``Busy`` where all are taken."""
        if self._admitted >= self._most:
            raise self.workers.refusal()
        self._admitted += 1
        try:
            yield
        finally:
            self._admitted -= 1

    async def step(self, function: Callable[..., T], *arguments: Any) -> T:
        """One step of an admitted request, in a writer's thread; see :meth:`Workers.run`."""
        return await self.workers.run(function, *arguments)

    async def run(self, function: Callable[..., T], *arguments: Any) -> T:
        """A request of one step."""
        with self.admitted():
            return await self.step(function, *arguments)

    async def stop(self, grace: float | None = None) -> None:
        """Take nothing more, and let what runs finish within the grace."""
        await self.workers.stop(grace)
