"""What a caller is told when something goes wrong: one shape, one place, nothing of the request in it.

Every error is ``application/problem+json`` (RFC 9457): title, status, code (one word, for programs), detail,
``message`` (the same text, under the name that rerank clients read), the fields that were wrong, and the
request's id. Texts of library errors may quote what was asked or where files lie, so they pass through
:func:`plain`, which takes such parts out.
"""

import logging
import math
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

import orjson
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response

from dartboard.api.error_messages import field_errors, plain
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
from dartboard.wrong_names import first_named, renamed

logger = logging.getLogger(__name__)

PROBLEM = "application/problem+json"
FieldErrors = Sequence[Mapping[str, str]]


class ApiError(Exception):
    """A refusal; subclasses are those with a usual status, code and sentence.

    Args:
        message: What was wrong and what to do, for people.
        status: The HTTP status.
        code: One word, for programs.
        retry_after: Seconds after which it is worth trying again, sent as ``Retry-After``.
        headers: More headers of the answer.
        errors: The fields that were wrong, as ``{"field": …, "message": …}``.
    """

    status = 500
    code = "internal"
    message = "the service failed: its log has the request's id"
    retry_after: float | None = None

    def __init__(
        self,
        message: str | None = None,
        *,
        status: int | None = None,
        code: str | None = None,
        retry_after: float | None = None,
        headers: Mapping[str, str] | None = None,
        errors: FieldErrors = (),
    ) -> None:
        self.message = message or self.message
        super().__init__(self.message)
        self.status = status or self.status
        self.code = code or self.code
        self.errors = list(errors)
        wait = self.retry_after if retry_after is None else retry_after
        self.headers = {} if wait is None else {"Retry-After": str(max(1, math.ceil(wait)))}
        self.headers.update(headers or {})


class BadRequest(ApiError):
    """The request is no HTTP or JSON that can be read."""

    status, code = 400, "bad_request"
    message = "the request cannot be read"


class Unauthorized(ApiError):
    """No key, or one that is not known."""

    status, code = 401, "unauthorized"
    message = "a valid key is needed: Authorization: Bearer KEY"

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message, headers={"WWW-Authenticate": 'Bearer realm="dartboard"'})


class Forbidden(ApiError):
    """The key may not do this."""

    status, code = 403, "forbidden"
    message = "this key may read only: ask for one with the scope write"


class NotFound(ApiError):
    """There is nothing of that name."""

    status, code = 404, "not_found"
    message = "there is nothing at this address"


class Conflict(ApiError):
    """It conflicts with what is there already."""

    status, code = 409, "conflict"


class ReadOnly(Conflict):
    """A change, or a task that another process would not know, where several processes serve one index."""

    code = "read_only"
    message = (
        "several processes serve the index, and none of them changes it or runs long tasks: use the command "
        "line on the machine, or start the service with one process"
    )


class TooLarge(ApiError):
    """More bytes than the service takes."""

    status, code = 413, "too_large"


class UnsupportedType(ApiError):
    """A body of another type than the operation reads."""

    status, code = 415, "unsupported_media_type"


class Invalid(ApiError):
    """Values that cannot be used; ``field`` says where, and is not said again beside itself."""

    status, code = 422, "invalid_input"

    def __init__(self, message: str, *, field: str | None = None, errors: FieldErrors = ()) -> None:
        if field and not errors:
            beside = message.removeprefix(field).removeprefix(":")
            said_alone = beside.startswith(" ") and not beside.startswith(" and ")
            errors = [{"field": field, "message": beside[1:] if said_alone else message}]
        super().__init__(message, errors=errors)


class TooManyRequests(ApiError):
    """Faster than the key's limit."""

    status, code, retry_after = 429, "rate_limited", 1.0


class Busy(ApiError):
    """All workers are taken and the queue is full."""

    status, code, retry_after = 429, "busy", 1.0
    message = "the service is busy: try again a little later"


class ClientGone(ApiError):
    """Nobody waits for the answer; the status is what logs show."""

    status, code = 499, "client_gone"
    message = "the client has left"


class Unavailable(ApiError):
    """Something that the service depends on fails."""

    status, code = 503, "unavailable"
    message = "a server that this service depends on cannot be reached: try again later"


class Stopping(ApiError):
    """The service is shutting down, or not up yet."""

    status, code, retry_after = 503, "stopping", 5.0
    message = "the service is shutting down: try again later"


class TimedOut(ApiError):
    """The time of the request is up."""

    status, code = 504, "timed_out"
    message = "out of time: ask for less (fewer passages or candidates, a smaller batch), or try again later"


def install(app: FastAPI) -> None:
    """Answer every kind of error in the one shape."""
    app.add_exception_handler(ApiError, _api_error)  # type: ignore[arg-type]
    app.add_exception_handler(DartboardError, _library_error)  # type: ignore[arg-type]
    app.add_exception_handler(RequestValidationError, _validation_error)  # type: ignore[arg-type]
    app.add_exception_handler(HTTPException, _http_error)  # type: ignore[arg-type]


def problem(error: ApiError, scope: Mapping[str, Any]) -> Response:
    """The answer to an error, for the request of an ASGI scope."""
    return Response(orjson.dumps(problem_details(error, scope)), error.status, error.headers, PROBLEM)


def problem_details(error: ApiError, scope: Mapping[str, Any]) -> dict[str, Any]:
    """What an answer to an error holds; the id is the one that the request log gave to the request."""
    return {
        "title": _title(error.status),
        "status": error.status,
        "code": error.code,
        "detail": error.message,
        "message": error.message,
        "errors": error.errors,
        "request_id": str(scope.get("state", {}).get("request_id", "")),
    }


def body_model(scope: Mapping[str, Any]) -> Any:
    """The model that reads the body of a request; None where there is none."""
    field = getattr(scope.get("route"), "body_field", None)
    return None if field is None else field.field_info.annotation


def as_api_error(error: BaseException, body: Any = None) -> ApiError:
    """Any error as a refusal, without what it quotes; one that nobody expected is internal (500).

    ``body`` is the model of the request: the message has the names of its fields (``top_k`` for the library's
    ``k``), and the field that it mentions first is the one that was wrong.
    """
    if isinstance(error, ApiError):
        return error
    if not isinstance(error, DartboardError):
        return ApiError()
    if isinstance(error, StoreLockedError):
        return Conflict(
            "another process is writing to the store: try again when it has finished; searches go on",
            code="store_locked",
            retry_after=1,
        )
    if isinstance(error, CollectionError):
        if "exists already" in str(error):
            return Conflict("a collection of this name exists already", code="exists")
        return NotFound("there is no such collection: GET /api/dartboard/collections lists them")
    if isinstance(error, DeadlineError):
        return TimedOut()
    if isinstance(error, MissingExtraError):
        return ApiError(str(error), status=501, code="not_installed")
    if isinstance(error, (StoreUnavailableError, EndpointError)):
        return Unavailable(retry_after=5)
    if isinstance(error, (StoreError, ModelError)):
        logger.error("%s: %s", type(error).__name__, error)
        return Unavailable("the collection cannot be used: the service's log says why", code="unusable")
    if isinstance(error, DatasetError):
        logger.error("data set: %s", error)
        return Invalid("the data set cannot be read: the service's log says why")
    fields = {name: field.alias or name for name, field in getattr(body, "model_fields", {}).items()}
    message = renamed(plain(str(error)), fields)
    return Invalid(message, field=first_named(message, fields.values()))


async def _api_error(request: Request, error: ApiError) -> Response:
    return problem(error, request.scope)


async def _library_error(request: Request, error: DartboardError) -> Response:
    return problem(as_api_error(error, body_model(request.scope)), request.scope)


async def _validation_error(request: Request, error: RequestValidationError) -> Response:
    unread: ApiError | None = getattr(request.state, "unread_body", None)
    if unread is not None:
        return problem(unread, request.scope)
    listed = field_errors(error.errors(), body_model(request.scope))
    message = "; ".join(f"{one['field']}: {one['message']}" for one in listed[:3])
    return problem(Invalid(message or "the request is not valid", errors=listed), request.scope)


async def _http_error(request: Request, error: HTTPException) -> Response:
    status = error.status_code
    known = {
        400: BadRequest(),
        404: NotFound(),
        405: ApiError("this address does not take this method", status=405, code="method_not_allowed"),
    }
    answer = known.get(status) or ApiError(_title(status), status=status, code="http_error")
    answer.headers.update(error.headers or {})
    return problem(answer, request.scope)


def _title(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "Error"
