"""The application: every endpoint group, every guard around them, and its description as OpenAPI.

The document has errors in their one shape, and the limits that this service was started with.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cache, partial
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware

from dartboard.api import errors
from dartboard.api.endpoints import (
    admin,
    ask,
    cases,
    collections,
    context,
    datasets,
    documents,
    duplicates,
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
from dartboard.api.schemas import Problem
from dartboard.api.service import Service
from dartboard.api.settings import ServiceSettings
from dartboard.version import __version__

_DESCRIPTION = """\
Retrieval that gives a language model the passages that *together* say most about a question.

Requests and responses are JSON in UTF-8 unless said otherwise. Unknown fields, NaN and wrong types are
refused with 422 and the field's name. Where keys are in use, send one as `Authorization: Bearer KEY`.
"""

_REASONS = {
    400: "The request cannot be read.",
    401: "A key is needed.",
    403: "The key may not do this.",
    404: "There is nothing of this name.",
    405: "The address does not take this method.",
    408: "The body came too slowly.",
    409: "What is there already stands against it, or another process is writing.",
    413: "The body is too large.",
    415: "The body has another type than the operation reads.",
    421: "The Host header names another host.",
    422: "A value cannot be used; the fields are named.",
    429: "Too many requests; `Retry-After` says when to come back.",
    500: "The service failed.",
    501: "Something optional is not installed, or not configured.",
    503: "Not ready, stopping, or something behind the service is gone.",
    504: "Out of time.",
}
_REFUSALS: dict[int | str, dict[str, Any]] = {
    status: {
        "description": reason,
        "content": {errors.PROBLEM: {"schema": {"$ref": "#/components/schemas/Problem"}}},
    }
    for status, reason in _REASONS.items()
}

_LIMITS = {
    "k": ("k", "maximum"),
    "top_k": ("k", "maximum"),
    "triage_k": ("triage_k", "maximum"),
    "token_budget": ("token_budget", "maximum"),
    "queries": ("batch", "maxItems"),
}

ENDPOINTS = (
    retrieve,
    context,
    select,
    explore,
    ask,
    evaluate,
    datasets,
    collections,
    documents,
    duplicates,
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
        description=_DESCRIPTION,
        lifespan=lifespan,
        middleware=_middleware(service),
        responses=_REFUSALS,
        docs_url=None,
        redoc_url=None,
        openapi_url="/openapi.json",
    )
    app.state.service = service
    errors.install(app)
    for group in ENDPOINTS:
        app.include_router(group.router)
    app.openapi = cache(partial(_openapi, app, settings))  # type: ignore[method-assign]
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


def _openapi(app: FastAPI, settings: ServiceSettings) -> dict[str, Any]:
    document = get_openapi(
        title=app.title,
        version=app.version,
        summary=app.summary,
        description=app.description,
        routes=app.routes,
    )
    schemas = document.setdefault("components", {}).setdefault("schemas", {})
    problem = Problem.model_json_schema(ref_template="#/components/schemas/{model}")
    schemas.update(problem.pop("$defs"))
    schemas["Problem"] = problem
    for schema in schemas.values():
        _add_limits(schema, settings)
        for described in schema.get("properties", {}).values():
            if described.get("type") == "array" and "examples" not in described:
                described["examples"] = [_example(described, schemas)]
    return document


def _add_limits(schema: dict[str, Any], settings: ServiceSettings) -> None:
    """The service's limits where a request's field has one."""
    for name, described in schema.get("properties", {}).items():
        if name in _LIMITS and schema.get("title", "").endswith("Request"):
            setting, keyword = _LIMITS[name]
            wanted = {"maximum": "integer", "maxItems": "array"}[keyword]
            for part in described.get("anyOf", [described]):
                if part.get("type") == wanted:
                    limit = getattr(settings, setting)
                    part[keyword] = min(limit, part.get(keyword, limit))


def _example(described: dict[str, Any], schemas: dict[str, Any]) -> Any:
    """A value as a schema describes it, put together from the examples of its parts."""
    if "examples" in described:
        return described["examples"][0]
    if "$ref" in described:
        fields = schemas[described["$ref"].rpartition("/")[2]]["properties"]
        return {name: _example(field, schemas) for name, field in fields.items()}
    return (
        [_example(described["items"], schemas)]
        if "items" in described
        else _example(described["anyOf"][0], schemas)
    )
