"""What all endpoints share: open collections, the model, workers, jobs, limits.

Endpoints get it by ``service: Annotated[Service, Depends(service_of)]`` and hold nothing themselves.
"""

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar

from fastapi import Request

from dartboard.api.engines import Engines
from dartboard.api.jobs import Jobs
from dartboard.api.keys import Keys
from dartboard.api.metrics import Metrics
from dartboard.api.rate_limits import RateLimits
from dartboard.api.settings import ServiceSettings
from dartboard.api.turns import Turn
from dartboard.api.workers import Workers

T = TypeVar("T")


class Service:
    """One for an application; started and stopped with it."""

    def __init__(self, settings: ServiceSettings) -> None:
        self.settings = settings
        self.metrics = Metrics()
        self.engines = Engines(settings, self.metrics)
        self.workers = Workers(settings, self.metrics)
        self.jobs = Jobs(settings, self.metrics)
        self.keys = Keys.open(settings.keys) if settings.keys else None
        self.limits = RateLimits()
        self.writing = Turn(self.engines.let_others_write)
        """One writer at a time into the store; between two, other processes may write."""

    async def run(self, function: Callable[..., T], *arguments: Any, **options: Any) -> T:
        """Call a blocking function in a worker, within the time limit; see :class:`Workers`."""
        return await self.workers.run(function, *arguments, **options)

    async def start(self) -> None:
        """Load the model and open the store, so that the first request finds both."""
        await asyncio.to_thread(self.engines.start)

    async def stop(self) -> None:
        """Let what is running finish, then close the store."""
        await self.workers.stop()
        self.jobs.stop()
        self.engines.close()


async def service_of(request: Request) -> Service:
    """The service of the application that a request came to."""
    service: Service = request.app.state.service
    return service
