"""What a caller is told when something goes wrong: one shape, one place, nothing of the request in it.

Every error is ``application/problem+json`` (RFC 9457): title, status, code (one word, for programs), detail,
``message`` (the same text, under the name that rerank clients read), the fields that were wrong, and the
request's id. Texts of library errors may quote what was asked or where files lie, so they pass through
:func:`plain`, which takes such parts out.
"""

import logging
import re
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

import orjson
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response

from dartboard.api.wording import field_errors, plain
from dartboard.errors import (
    CollectionError,
    DartboardError,
    DatasetError,
    DeadlineError,
    EndpointError,
    MissingExtraError,
    ModelError,
    StoreError,
    StoreLockedError,
    StoreUnavailableError,
)

logger = logging.getLogger(__name__)

PROBLEM = "application/problem+json"
_NAMED = re.compile(r"\b(?:must_include|exclude)\b|^filter(?=:)")
"""Fields whose faults only the library finds, and names."""
FieldErrors = Sequence[Mapping[str, str]]


class ApiError(Exception):
    """An answer that says no: HTTP status, a code for programs, a sentence for people."""

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        *,
        headers: Mapping[str, str] | None = None,
        errors: FieldErrors = (),
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message
        self.headers = dict(headers or {})
        self.errors = list(errors)


class BadRequest(ApiError):
    """The request is no HTTP or JSON that can be read."""

    def __init__(self, message: str) -> None:
        super().__init__(400, "bad_request", message)


class Unauthorized(ApiError):
    """No key, or one that is not known."""

    def __init__(self, message: str = "a valid key is needed: Authorization: Bearer KEY") -> None:
        super().__init__(
            401, "unauthorized", message, headers={"WWW-Authenticate": 'Bearer realm="dartboard"'}
        )


class Forbidden(ApiError):
    """The key may not do this."""

    def __init__(self, message: str = "this key may read only: ask for one with the scope write") -> None:
        super().__init__(403, "forbidden", message)


class NotFound(ApiError):
    """There is nothing of that name."""

    def __init__(self, message: str = "there is nothing at this address") -> None:
        super().__init__(404, "not_found", message)


class Conflict(ApiError):
    """What is there already stands against it."""

    def __init__(
        self, message: str, *, code: str = "conflict", headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(409, code, message, headers=headers)


class TooLarge(ApiError):
    """More bytes than the service takes."""

    def __init__(self, message: str) -> None:
        super().__init__(413, "too_large", message)


class UnsupportedType(ApiError):
    """A body of another type than the operation reads."""

    def __init__(self, message: str) -> None:
        super().__init__(415, "unsupported_media_type", message)


class Invalid(ApiError):
    """Values that cannot be used; ``field`` says where, and is not said again beside itself."""

    def __init__(self, message: str, *, field: str | None = None, errors: FieldErrors = ()) -> None:
        listed = errors or ([{"field": field, "message": _beside(field, message)}] if field else [])
        super().__init__(422, "invalid_input", message, errors=listed)


class TooManyRequests(ApiError):
    """Faster than the key's limit."""

    def __init__(
        self, message: str, *, retry_after: float = 1.0, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(
            429, "rate_limited", message, headers={"Retry-After": _seconds(retry_after), **(headers or {})}
        )


class Busy(ApiError):
    """All workers are taken and the queue is full."""

    def __init__(
        self,
        message: str = "the service is busy: try again a little later",
        *,
        retry_after: float = 1.0,
    ) -> None:
        super().__init__(429, "busy", message, headers={"Retry-After": _seconds(retry_after)})


class Stopping(ApiError):
    """The service is shutting down, or not up yet."""

    def __init__(
        self,
        message: str = "the service is shutting down: try again later",
        *,
        retry_after: float = 5.0,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(
            503, "stopping", message, headers={"Retry-After": _seconds(retry_after), **(headers or {})}
        )


class TimedOut(ApiError):
    """The time of the request is up."""

    def __init__(
        self, message: str = "out of time: ask for less (k, triage_k, a smaller batch), or try again later"
    ) -> None:
        super().__init__(504, "timed_out", message)


def install(app: FastAPI) -> None:
    """Answer every kind of error in the one shape."""
    app.add_exception_handler(ApiError, _api_error)  # type: ignore[arg-type]
    app.add_exception_handler(DartboardError, _library_error)  # type: ignore[arg-type]
    app.add_exception_handler(RequestValidationError, _invalid)  # type: ignore[arg-type]
    app.add_exception_handler(HTTPException, _http_error)  # type: ignore[arg-type]


def problem(error: ApiError, request_id: str = "") -> Response:
    """The answer to an error."""
    body = orjson.dumps(content_of(error, request_id))
    return Response(body, error.status, error.headers, PROBLEM)


def content_of(error: ApiError, request_id: str) -> dict[str, Any]:
    """What an answer to an error holds."""
    return {
        "title": _title(error.status),
        "status": error.status,
        "code": error.code,
        "detail": error.message,
        "message": error.message,
        "errors": error.errors,
        "request_id": request_id,
    }


def in_our_terms(error: DartboardError) -> ApiError:
    """A library's error as an answer, without what it quotes."""
    if isinstance(error, StoreLockedError):
        return Conflict(
            "another process is writing to the store: try again when it has finished; searches go on",
            code="store_locked",
            headers={"Retry-After": "1"},
        )
    if isinstance(error, CollectionError):
        if "exists already" in str(error):
            return Conflict("a collection of this name exists already", code="exists")
        return NotFound("there is no such collection: GET /api/dartboard/collections lists them")
    if isinstance(error, DeadlineError):
        return TimedOut()
    if isinstance(error, MissingExtraError):
        return ApiError(501, "not_installed", str(error))
    if isinstance(error, (StoreUnavailableError, EndpointError)):
        return ApiError(
            503,
            "unavailable",
            "a server that this service depends on cannot be reached: try again later",
            headers={"Retry-After": "5"},
        )
    if isinstance(error, (StoreError, ModelError)):
        logger.error("%s: %s", type(error).__name__, error)
        return ApiError(503, "unusable", "the collection cannot be used: the service's log says why")
    if isinstance(error, DatasetError):
        logger.error("data set: %s", error)
        return Invalid("the data set cannot be read: the service's log says why")
    said = plain(str(error))
    named = _NAMED.search(said)
    return Invalid(said, field=named.group() if named else None)


def request_id_of(scope: Mapping[str, Any]) -> str:
    """The id that the log gave to a request, or an empty one."""
    return str(scope.get("state", {}).get("request_id", ""))


async def _api_error(request: Request, error: ApiError) -> Response:
    return problem(error, request_id_of(request.scope))


async def _library_error(request: Request, error: DartboardError) -> Response:
    return problem(in_our_terms(error), request_id_of(request.scope))


async def _invalid(request: Request, error: RequestValidationError) -> Response:
    unread: ApiError | None = getattr(request.state, "unread_body", None)
    if unread is not None:
        return problem(unread, request_id_of(request.scope))
    field = getattr(request.scope.get("route"), "body_field", None)
    listed = field_errors(error.errors(), field.field_info.annotation if field is not None else None)
    message = (
        "; ".join(f"{one['field']}: {one['message']}" for one in listed[:3]) or "the request is not valid"
    )
    return problem(Invalid(message, errors=listed), request_id_of(request.scope))


async def _http_error(request: Request, error: HTTPException) -> Response:
    known = {
        404: NotFound(),
        405: ApiError(405, "method_not_allowed", "this address does not take this method"),
        400: BadRequest("the request cannot be read"),
    }
    answer = known.get(error.status_code) or ApiError(
        error.status_code, "http_error", _title(error.status_code)
    )
    answer.headers.update(error.headers or {})
    return problem(answer, request_id_of(request.scope))


def _beside(field: str, message: str) -> str:
    """A message without the name of the field that it stands beside."""
    for begins in (f"{field}: ", f"{field} "):
        if message.startswith(begins):
            return message.removeprefix(begins)
    return message


def _title(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "Error"


def _seconds(value: float) -> str:
    return str(max(1, round(value + 0.499)))
