"""The application: every router, every layer around them, and the service that they share."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware

from dartboard.api import (
    ask,
    cases,
    collections,
    datasets,
    documents,
    errors,
    evaluate,
    explore,
    files,
    health,
    job_status,
    reports,
    rerank,
    retrieve,
    select,
    static,
)
from dartboard.api.body_limits import BodyLimit
from dartboard.api.door import Door
from dartboard.api.headers import HostCheck, SecurityHeaders
from dartboard.api.logs import RequestLog
from dartboard.api.openapi import DESCRIPTION, REFUSALS, describe
from dartboard.api.service import Service
from dartboard.api.settings import ServiceSettings
from dartboard.version import __version__

ROUTERS = (
    retrieve.router,
    select.router,
    explore.router,
    ask.router,
    evaluate.router,
    datasets.router,
    job_status.router,
    collections.router,
    documents.router,
    files.router,
    reports.router,
    cases.router,
    rerank.router,
    health.router,
    static.router,
)


def create_app(settings: ServiceSettings) -> FastAPI:
    """An application for these settings; its service starts and stops with it."""
    service = Service(settings)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        await service.start()
        try:
            yield
        finally:
            await service.stop()

    app = FastAPI(
        title="dartboard",
        version=__version__,
        summary="The passages that together say most about a question.",
        description=DESCRIPTION,
        lifespan=lifespan,
        middleware=_layers(service),
        responses=REFUSALS,
        docs_url=None,
        redoc_url=None,
        openapi_url="/openapi.json",
    )
    app.state.service = service
    errors.install(app)
    for router in ROUTERS:
        app.include_router(router)
    describe(app, settings)
    return app


def _layers(service: Service) -> list[Middleware]:
    """What a request passes through, outermost first."""
    settings = service.settings
    layers = [
        Middleware(RequestLog, service=service),
        Middleware(SecurityHeaders),
        Middleware(HostCheck, settings=settings),
    ]
    if settings.origins:
        layers.append(
            Middleware(
                CORSMiddleware,
                allow_origins=list(settings.origins),
                allow_methods=["GET", "POST", "PUT", "DELETE"],
                allow_headers=["Authorization", "Content-Type", "X-API-Key", "X-Request-Id"],
                expose_headers=[
                    "X-Request-Id",
                    "Retry-After",
                    "RateLimit-Limit",
                    "RateLimit-Remaining",
                    "RateLimit-Reset",
                ],
            )
        )
    return [*layers, Middleware(Door, workers=service.workers), Middleware(BodyLimit, settings=settings)]
