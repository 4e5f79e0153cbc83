"""What all endpoints share: open collections, the model, threads for every kind of work, jobs, limits.

Endpoints get it by ``service: ServiceDep`` and hold nothing themselves.
"""

import asyncio
import gc
import math
from collections.abc import Callable, Coroutine
from dataclasses import replace
from functools import partial, wraps
from typing import Annotated, Any, ParamSpec, TypeVar, cast

from fastapi import Depends, Request

from dartboard.answering import answer_model
from dartboard.answering.registry import PATIENCE
from dartboard.api.engines import Engines
from dartboard.api.jobs import Jobs
from dartboard.api.keys import Keys
from dartboard.api.metrics import Metrics
from dartboard.api.rate_limit import RateLimits
from dartboard.api.settings import ServiceSettings
from dartboard.api.work import Work

P = ParamSpec("P")
T = TypeVar("T")


class Service:
    """One for an application; started and stopped with it."""

    def __init__(self, settings: ServiceSettings) -> None:
        self.settings = settings
        self.metrics = Metrics()
        self.engines = Engines(settings, self.metrics)
        work = partial(Work, metrics=self.metrics, seconds=settings.timeout)
        self.searches = work("searches", threads=settings.workers, waiting=settings.queue)
        self.pairs = work("pairs", threads=1, waiting=settings.pair_queue)
        """Searches with a pair scorer take a second or more of all processors: one at a time."""
        self.writes = work("writes", threads=2, waiting=settings.write_queue)
        """Changes of collections; no search waits behind one. The store writes one batch at a time, so two
        threads do: one writes while the other splits or encodes."""
        self.answers = Work(
            "answers",
            threads=settings.answers,
            waiting=4 * settings.answers,
            seconds=settings.answer_timeout,
            metrics=self.metrics,
        )
        """Answers wait for a language model most of the time."""
        self.jobs = Jobs(settings.jobs, self.metrics)
        self.keys = Keys.open(settings.keys) if settings.keys else None
        self.limits = RateLimits()
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

    async def start(self) -> None:
        """Load the model and open the store, so that the first request finds both."""
        await asyncio.to_thread(self.engines.start)
        gc.collect()
        gc.freeze()  # what is loaded by now stays, and need not be looked through again and again

    async def stop(self) -> None:
        """Let what still runs finish within the grace, then close the store."""
        grace = self.settings.grace
        lines = (self.searches, self.pairs, self.writes, self.answers)
        await asyncio.gather(self.jobs.stop(grace), *(line.stop(grace) for line in lines))
        if self.answer_model is not None:
            self.answer_model.close()
        self.engines.close()


async def _service_of(request: Request) -> Service:
    service: Service = request.app.state.service
    return service


ServiceDep = Annotated[Service, Depends(_service_of)]
"""What an endpoint writes to get the service of the application that a request came to."""


def in_thread(endpoint: Callable[P, T]) -> Callable[P, Coroutine[Any, Any, T]]:
    """Run a blocking endpoint in a thread for searches, or for pair scoring where its body asks for it."""

    @wraps(endpoint)
    async def run(*args: P.args, **kwargs: P.kwargs) -> T:
        service = cast(Service, kwargs["service"])
        quick = getattr(kwargs.get("body"), "reranker", "cosine") == "cosine"
        line = service.searches if quick else service.pairs
        return await line.run(partial(endpoint, *args, **kwargs))

    return run


def in_write_thread(endpoint: Callable[P, T]) -> Callable[P, Coroutine[Any, Any, T]]:
    """The same for an endpoint that changes a collection."""

    @wraps(endpoint)
    async def run(*args: P.args, **kwargs: P.kwargs) -> T:
        return await cast(Service, kwargs["service"]).writes.run(partial(endpoint, *args, **kwargs))

    return run
