"""What a caller is told when something goes wrong: one shape (RFC 9457), one table, one place.

A library error carries its ``code``, its ``field`` and its sentence; the table says its status. Sentences
that may hold paths or addresses of this machine are kept for the log. What the caller sent may stand in the
answer, since it goes to the one who sent it; the log has none of it.
"""

import difflib
import logging
import math
import re
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

import orjson
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response

from dartboard import errors as library
from dartboard.errors import DartboardError
from dartboard.search_options import option_name

logger = logging.getLogger(__name__)

PROBLEM = "application/problem+json"
MOST_ERRORS = 20
"""Errors that an answer lists."""
FieldErrors = Sequence[Mapping[str, str]]

_UNUSABLE = "the collection cannot be used: the service's log says why"
LIBRARY_ERRORS: Sequence[tuple[type[DartboardError], int, str | None]] = (
    (library.CollectionError, 404, None),
    (library.StoreLockedError, 409, "another process is writing to the store: try again a little later"),
    (library.StoreUnavailableError, 503, "a server that this service depends on cannot be reached"),
    (library.StoreError, 503, _UNUSABLE),
    (library.EndpointError, 503, "a model that this service depends on cannot be reached, or refuses"),
    (library.ModelError, 503, _UNUSABLE),
    (library.ClusterError, 503, _UNUSABLE),
    (library.BudgetError, 503, None),
    (library.DeadlineError, 504, "out of time: ask for less, or try again later"),
    (library.MissingExtraError, 501, None),
    (library.DatasetError, 422, "the data set cannot be read: the service's log says why"),
    (DartboardError, 422, None),
)
"""Status of each class, the first that fits; and what is said instead of a sentence that may hold a path."""


class ApiError(Exception):
    """A refusal; subclasses are those with a usual status, code and sentence.

    Args:
        message: What was wrong and what to do, for people.
        status: The HTTP status.
        code: One word, for programs.
        field: The field that was wrong.
        retry_after: Seconds after which it is worth trying again, sent as ``Retry-After``.
        headers: More headers of the answer.
        errors: Where several fields were wrong: each as ``{"field": …, "message": …}``.
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
        field: str | None = None,
        retry_after: float | None = None,
        headers: Mapping[str, str] | None = None,
        errors: FieldErrors = (),
    ) -> None:
        self.message = message or self.message
        super().__init__(self.message)
        self.status = status or self.status
        self.code = code or self.code
        self.errors = list(errors) or ([{"field": field, "message": self.message}] if field else [])
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
    """A change of the index, or a job of one process, where several processes serve one index."""

    code = "read_only"
    message = (
        "several processes serve the index, and none of them changes it: use the command line on the "
        "machine, or start the service with one process"
    )


class TooLarge(ApiError):
    """More bytes than the service takes."""

    status, code = 413, "too_large"


class UnsupportedType(ApiError):
    """A body of another type than the operation reads."""

    status, code = 415, "unsupported_media_type"


class Invalid(ApiError):
    """Values that cannot be used; ``field`` says where."""

    status, code = 422, "invalid_input"


class TooManyRequests(ApiError):
    """Faster than the key's limit."""

    status, code, retry_after = 429, "rate_limited", 1.0


class Busy(ApiError):
    """All workers are taken and the line is full."""

    status, code, retry_after = 429, "busy", 1.0
    message = "the service is busy: try again a little later"


class ClientGone(ApiError):
    """Nobody waits for the answer; the status is what logs show."""

    status, code = 499, "client_gone"
    message = "the client has left"


class Unavailable(ApiError):
    """Something that the service depends on fails."""

    status, code = 503, "unavailable"


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

    async def answer(request: Request, error: Exception) -> Response:
        return problem(as_api_error(error), request.scope)

    for kind in (ApiError, DartboardError, RequestValidationError, HTTPException):
        app.add_exception_handler(kind, answer)


def problem(error: ApiError, scope: Mapping[str, Any]) -> Response:
    """The answer to an error, for the request of an ASGI scope."""
    return Response(orjson.dumps(problem_details(error, scope)), error.status, error.headers, PROBLEM)


def problem_details(error: ApiError, scope: Mapping[str, Any]) -> dict[str, Any]:
    """What an answer to an error holds; the id is the one that the request log gave to the request."""
    details: dict[str, Any] = {
        "title": _title(error.status),
        "status": error.status,
        "code": error.code,
        "detail": error.message,
        "errors": error.errors,
        "request_id": str(scope.get("state", {}).get("request_id", "")),
    }
    if str(scope.get("path", "")).endswith("/rerank"):
        details["message"] = error.message  # where rerank clients look
    return details


def as_api_error(error: BaseException) -> ApiError:
    """Any error as a refusal; one that nobody expected is internal (500)."""
    if isinstance(error, ApiError):
        return error
    if isinstance(error, RequestValidationError):
        return _invalid([{**one, "loc": one["loc"][1:]} for one in error.errors()], None)
    if isinstance(error, HTTPException):
        if error.status_code == 404:
            return NotFound()
        return ApiError(
            _title(error.status_code),
            status=error.status_code,
            code=_title(error.status_code).lower().replace(" ", "_"),
            headers=error.headers,
        )
    if not isinstance(error, DartboardError):
        return ApiError()
    status, said = next((status, said) for kind, status, said in LIBRARY_ERRORS if isinstance(error, kind))
    if said is not None:
        logger.error("%s: %s", type(error).__name__, error)
    return ApiError(
        said or str(error),
        status=status,
        code=error.code,
        field=error.field,
        retry_after=5 if status in (409, 503) else None,
    )


def invalid(error: ValidationError, model: Any) -> Invalid:
    """What pydantic found wrong with a body, without the body; ``model`` knows the right names of fields."""
    return _invalid(error.errors(include_input=False, include_url=False), model)


def _invalid(errors: Sequence[Any], model: Any) -> Invalid:
    listed: dict[str, list[str]] = {}
    for one in errors:
        said = listed.setdefault(_field(one), [])
        if (message := _message(one, model)) not in said:
            said.append(message)
    found = [{"field": field, "message": " or ".join(said)} for field, said in listed.items()][:MOST_ERRORS]
    sentence = "; ".join(f"{one['field']}: {one['message']}" for one in found[:3])
    return Invalid(sentence or "the request is not valid", errors=found)


def _field(error: Mapping[str, Any]) -> str:
    """The place of an error with dots; options have their own name there, whatever alias was sent."""
    parts = [str(part) for part in error["loc"] if _is_place(part)]
    if error["type"] == "extra_forbidden":
        parts[-1:] = [str(error["loc"][-1])[:100]]
    elif parts:
        parts[0] = option_name(parts[0]) or parts[0]
    return ".".join(parts) or "body"


_BRANCHES = {"float", "int", "str", "bool", "list", "dict"}


def _is_place(part: int | str) -> bool:
    """Whether it is a field or a position; the rest names members of unions."""
    return isinstance(part, int) or (part not in _BRANCHES and bool(re.fullmatch(r"\w+", part)))


def _message(error: Mapping[str, Any], model: Any) -> str:
    if error["type"] != "extra_forbidden":
        return str(error["msg"]).removeprefix("Value error, ").replace("Input should", "should")
    names = _names(model, error["loc"][:-1])
    meant = difflib.get_close_matches(str(error["loc"][-1])[:50], names, 1)
    return f"there is no such field: {f'did you mean {meant[0]}?' if meant else 'see /openapi.json'}"


def _names(model: Any, place: Sequence[int | str]) -> list[str]:
    """The fields of the model at a place, by all their names."""
    for part in place:
        fields = getattr(model, "model_fields", {})
        model = fields[part].annotation if part in fields else model
    if not (isinstance(model, type) and issubclass(model, BaseModel)):
        return []
    found = []
    for name, field in model.model_fields.items():
        alias = field.validation_alias
        found += [name, *(str(one) for one in getattr(alias, "choices", ()))]
    return found


def _title(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "Error"
