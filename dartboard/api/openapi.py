"""The OpenAPI document: errors in their one shape, and the limits that this service was started with."""

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from dartboard.api.errors import PROBLEM
from dartboard.api.schemas import Problem
from dartboard.api.settings import ServiceSettings

DESCRIPTION = """\
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
REFUSALS: dict[int | str, dict[str, Any]] = {
    status: {
        "description": reason,
        "content": {PROBLEM: {"schema": {"$ref": "#/components/schemas/Problem"}}},
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


def describe(app: FastAPI, settings: ServiceSettings) -> None:
    """Have the application describe itself, once, when it is first asked."""

    def openapi() -> dict[str, Any]:
        if not app.openapi_schema:
            app.openapi_schema = _document(app, settings)
        return app.openapi_schema

    app.openapi = openapi  # type: ignore[method-assign]


def _document(app: FastAPI, settings: ServiceSettings) -> dict[str, Any]:
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
