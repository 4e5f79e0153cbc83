"""The application: every endpoint group, every guard around them, and the service that they share."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware

from dartboard.api import errors
from dartboard.api.endpoints import (
    admin,
    ask,
    cases,
    collections,
    datasets,
    documents,
    evaluate,
    explore,
    pages,
    reports,
    rerank,
    retrieve,
    select,
    uploads,
)
from dartboard.api.guards.admission_control import AdmissionControl
from dartboard.api.guards.body_limit import BodyLimit
from dartboard.api.guards.request_log import RequestLog
from dartboard.api.guards.security_headers import SecurityHeaders, TrustedHosts
from dartboard.api.openapi import DESCRIPTION, REFUSALS, describe
from dartboard.api.service import Service
from dartboard.api.settings import ServiceSettings
from dartboard.version import __version__

ENDPOINTS = (
    retrieve,
    select,
    explore,
    ask,
    evaluate,
    datasets,
    collections,
    documents,
    uploads,
    reports,
    cases,
    rerank,
    admin,
    pages,
)


def create_app(settings: ServiceSettings) -> FastAPI:
    """An application for these settings; its service starts and stops with it.

    Args:
        settings: Everything that can be set; no request can widen it.

    Returns:
        What an ASGI server runs, such as ``uvicorn.run(create_app(ServiceSettings()))``. Its service is at
        ``app.state.service``.
    """
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
        middleware=_middleware(service),
        responses=REFUSALS,
        docs_url=None,
        redoc_url=None,
        openapi_url="/openapi.json",
    )
    app.state.service = service
    errors.install(app)
    for group in ENDPOINTS:
        app.include_router(group.router)
    describe(app, settings)
    return app


def _middleware(service: Service) -> list[Middleware]:
    """What a request passes through, outermost first."""
    settings = service.settings
    layers = [
        Middleware(RequestLog, service=service),
        Middleware(SecurityHeaders),
        Middleware(TrustedHosts, settings=settings),
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
    layers.append(Middleware(AdmissionControl, workers=service.workers))
    layers.append(Middleware(BodyLimit, settings=settings))
    return layers
