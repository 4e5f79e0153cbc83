"""The application: every endpoint group, the layers around them, and its description as OpenAPI."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI
from fastapi.dependencies.models import Dependant
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute
from pydantic import TypeAdapter
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware

from dartboard.api import errors
from dartboard.api.endpoints import (
    admin,
    ask,
    cases,
    collections,
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
from dartboard.api.middleware import BodyLimit, Guard
from dartboard.api.schemas import Problem
from dartboard.api.service import Service
from dartboard.api.settings import ServiceSettings
from dartboard.version import __version__

_DESCRIPTION = """\
Retrieval that gives a language model the passages that *together* say most about a question.

Requests and responses are JSON in UTF-8 unless said otherwise. Unknown fields, NaN and wrong types are
refused with 422 and the field's name; every error is a `Problem`. Where keys are in use, send one as
`Authorization: Bearer KEY`.
"""
_REF = "#/components/schemas/{model}"
_PROBLEM = {
    "description": "What was wrong, as `status`, `code` and `detail` say.",
    "content": {errors.PROBLEM: {"schema": {"$ref": _REF.format(model="Problem")}}},
}
GROUPS = (
    retrieve,
    select,
    explore,
    ask,
    evaluate,
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

    layers = [Middleware(Guard, service=service)]
    if settings.origins:
        layers.append(
            Middleware(
                CORSMiddleware,
                allow_origins=list(settings.origins),
                allow_methods=["GET", "POST", "PUT", "DELETE"],
                allow_headers=["Authorization", "Content-Type", "X-API-Key", "X-Request-Id"],
                expose_headers=["X-Request-Id", "Retry-After"],
            )
        )
    layers.append(Middleware(BodyLimit, settings=settings))
    app = FastAPI(
        title="dartboard",
        version=__version__,
        summary="The passages that together say most about a question.",
        description=_DESCRIPTION,
        lifespan=lifespan,
        middleware=layers,
        docs_url=None,
        redoc_url=None,
        openapi_url="/openapi.json",
    )
    app.state.service = service
    errors.install(app)
    for group in GROUPS:
        app.include_router(group.router)
    document = _openapi(app)  # now, not on the event loop at the first request
    app.openapi = lambda: document  # type: ignore[method-assign]
    return app


def _openapi(app: FastAPI) -> dict[str, Any]:
    """The document; bodies are read by a dependency, so they are described here."""
    every = (route for group in GROUPS for route in group.router.routes)
    routes = [route for route in every if isinstance(route, APIRoute) and route.include_in_schema]
    for route in routes:
        route.summary = route.description.partition("\n")[0].partition(". ")[0].rstrip(".:")
    document = get_openapi(
        title=app.title,
        version=app.version,
        summary=app.summary,
        description=app.description,
        routes=app.routes,
    )
    schemas = document.setdefault("components", {}).setdefault("schemas", {})
    for model in (Problem,):
        _add(schemas, model)
    for route in routes:
        for method in route.methods or ():
            operation = document["paths"][route.path_format].get(method.lower())
            if operation is None:
                continue
            operation["responses"].pop("422", None)
            operation["responses"]["default"] = _PROBLEM
            for model in _bodies(route.dependant):
                content = {"application/json": {"schema": _add(schemas, model)}}
                operation["requestBody"] = {"required": True, "content": content}
    for unused in ("HTTPValidationError", "ValidationError"):
        schemas.pop(unused, None)
    return document


def _bodies(dependant: Dependant) -> Iterator[Any]:
    for one in dependant.dependencies:
        model = getattr(one.call, "body_model", None)
        if model is not None:
            yield model
        yield from _bodies(one)


def _add(schemas: dict[str, Any], model: Any) -> dict[str, Any]:
    """Put the schema of a model, or of a union of models, among the others; a reference to it."""
    made = TypeAdapter(model).json_schema(ref_template=_REF, by_alias=True)
    schemas.update(made.pop("$defs", {}))
    if "title" not in made:
        return made
    schemas[made["title"]] = made
    return {"$ref": _REF.format(model=made["title"])}
