"""What all endpoints share: open collections, the model, workers, jobs, limits.

Endpoints get it by ``service: ServiceDep`` and hold nothing themselves.
"""

import asyncio
import math
import time
from collections.abc import Callable, Coroutine
from dataclasses import replace
from functools import partial, wraps
from typing import Annotated, Any, ParamSpec, TypeVar, cast

from fastapi import Depends, Request

from dartboard.answering import answer_model
from dartboard.answering.registry import PATIENCE
from dartboard.api.engines import Engines
from dartboard.api.guards.rate_limit import RateLimits
from dartboard.api.job_queue import JobQueue
from dartboard.api.keys import Keys
from dartboard.api.locks import WriteLock
from dartboard.api.metrics import Metrics
from dartboard.api.settings import ServiceSettings
from dartboard.api.worker_pool import WorkerPool, WriteQueue

P = ParamSpec("P")
T = TypeVar("T")


class Service:
    """One for an application; started and stopped with it."""

    def __init__(self, settings: ServiceSettings) -> None:
        self.settings = settings
        self.metrics = Metrics()
        self.engines = Engines(settings, self.metrics)
        self.workers = WorkerPool(settings, self.metrics)
        self.writes = WriteQueue(settings, self.metrics)
        self.answer_model = (
            answer_model(
                settings.answer_model,
                max_output_tokens=settings.answer_tokens,
                patience=replace(PATIENCE, timeout=min(PATIENCE.timeout, settings.answer_timeout)),
                timeout=math.inf,  # the deadline of the request holds
            )
            if settings.answer_model
            else None
        )
        """Who writes answers; None where nobody was configured."""
        self.answer_workers = WorkerPool(
            replace(settings, workers=settings.answers, timeout=settings.answer_timeout),
            self.metrics,
            report=self.metrics.writing,
            overload_concurrency=settings.answers,
        )
        """Answers wait for a model most of the time, so they have threads of their own: no search waits."""
        self.jobs = JobQueue(settings, self.metrics)
        self.keys = Keys.open(settings.keys) if settings.keys else None
        self.limits = RateLimits()
        self.write_lock = WriteLock(self.engines.let_others_write)
        """One writer at a time into the store; between two, other processes may write."""
        self._stop_requested: float | None = None

    async def start(self) -> None:
        """Load the model and open the store, so that the first request finds both."""
        await asyncio.to_thread(self.engines.start)

    @property
    def stopping(self) -> bool:
        """Whether the service was told to stop."""
        return self._stop_requested is not None

    def told_to_stop(self) -> None:
        """From now on the grace runs out; told twice, jobs get no more of it. Safe in a signal's handler."""
        if self._stop_requested is None:
            self._stop_requested = time.monotonic()
        else:
            self.jobs.hurry()

    async def stop(self) -> None:
        """Let requests and the running job finish within the grace, then close the store."""
        began = time.monotonic() if self._stop_requested is None else self._stop_requested
        end = began + self.settings.grace
        self.jobs.close()
        left = max(0.0, end - time.monotonic())
        pools = (self.workers, self.writes, self.answer_workers)
        await asyncio.gather(*(pool.stop(left) for pool in pools))
        if self.answer_model is not None:
            self.answer_model.close()
        await asyncio.to_thread(self.jobs.stop, max(0.0, end - time.monotonic()))
        self.engines.close()


async def _service_of(request: Request) -> Service:
    service: Service = request.app.state.service
    return service


ServiceDep = Annotated[Service, Depends(_service_of)]
"""What an endpoint writes to get the service of the application that a request came to."""


def in_worker(endpoint: Callable[P, T]) -> Callable[P, Coroutine[Any, Any, T]]:
    """Run a blocking endpoint in a worker of its parameter ``service``, within the time limit.

    FastAPI would run it in a thread, too, but with neither a bounded queue nor a time limit.
    """

    @wraps(endpoint)
    async def run(*args: P.args, **kwargs: P.kwargs) -> T:
        return await cast(Service, kwargs["service"]).workers.run(partial(endpoint, *args, **kwargs))

    return run


def in_write_queue(endpoint: Callable[P, T]) -> Callable[P, Coroutine[Any, Any, T]]:
    """The same for an endpoint that changes a collection; see :class:`WriteQueue`."""

    @wraps(endpoint)
    async def run(*args: P.args, **kwargs: P.kwargs) -> T:
        writes = cast(Service, kwargs["service"]).writes
        with writes.admitted():
            return await writes.run(partial(endpoint, *args, **kwargs))

    return run
