"""JSON in and out, strictly and quickly; lines of JSON as they arrive.

Bodies are read by orjson, which refuses NaN, Infinity, numbers beyond a double, half surrogates, bytes that
are no UTF-8 and nesting beyond 1,024. What is wrong with a body is said only after the caller's key has been
looked at: the route notes the problem, and the handler of validation errors answers with it. (FastAPI's own
route reads by ``json``, which takes NaN, and complains of a body before it looks at the key.)
"""

import time
from codecs import BOM_UTF8
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any, NamedTuple

import orjson
from fastapi import Request
from fastapi.routing import APIRoute
from starlette.responses import Response

from dartboard.api.errors import ApiError, Invalid, UnsupportedType

_REASONS = (
    ("zero-length", "{} is empty: send a JSON object"),
    ("depth", "JSON is nested too deep"),
    ("UTF-8", "{} is not valid UTF-8"),
    ("surrogate", "a string holds half a surrogate pair, which is no character"),
    ("infinity", "a number is too large for a double"),
)


class JsonRoute(APIRoute):
    """An operation whose body, where it has one, is ``application/json``."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """The usual handler, after the body has been read here."""
        handler = super().get_route_handler()
        if self.body_field is None:
            return handler
        required = self.body_field.field_info.is_required()

        async def read_first(request: Request) -> Response:
            body = await request.body()
            if not body and not required:
                return await handler(request)
            try:
                request._json = parse(body, request.headers.get("content-type", ""))
            except ApiError as error:
                request._json = None
                request.state.unread_body = error
            return await handler(request)

        return read_first


def parse(body: bytes, content_type: str) -> Any:
    """The value of a body of the right type, or what is wrong with it."""
    if content_type.partition(";")[0].strip().lower() != "application/json":
        raise UnsupportedType("send JSON: Content-Type: application/json")
    return loads(body)


def loads(data: bytes, *, one_line: bool = False) -> Any:
    """JSON that is safe to pass on; the error says where it breaks, not what stands there."""
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError as error:
        what = "the line" if one_line else "the body"
        if data.startswith(BOM_UTF8):
            raise Invalid(
                f"{what} begins with a byte order mark: send UTF-8 without it", field="body"
            ) from None
        reason = next((said.format(what) for word, said in _REASONS if word in error.msg), None)
        if reason is None:
            line = "" if one_line else f"line {error.lineno}, "
            reason = f"not JSON at {line}column {error.colno} (NaN and Infinity are not JSON)"
        raise Invalid(reason, field="body") from None


def json_response(content: Any, status: int = 200) -> Response:
    """Plain data as JSON; NumPy numbers and arrays too. NaN and infinity become null."""
    return Response(dumps(content), status, media_type="application/json")


def elapsed_ms(started: float) -> float:
    """The time since ``started`` (``time.perf_counter()``), as responses say it."""
    return round(1000 * (time.perf_counter() - started), 3)


def dumps(content: Any) -> bytes:
    """Plain data as JSON, as :func:`json_response` writes it."""
    return orjson.dumps(content, option=orjson.OPT_SERIALIZE_NUMPY)


class Line(NamedTuple):
    """A line with its number from 1; ``data`` is None where it was too long to be kept."""

    number: int
    data: bytes | None


async def lines_of(body: AsyncIterator[bytes], longest: int) -> AsyncIterator[Line]:
    """Every line of a body as it arrives that holds more than space, however the client cuts it into parts.

    At most ``longest`` bytes of one are in memory.
    """
    number, kept, too_long = 1, bytearray(), False
    async for part in body:
        if part.isspace() and not kept:
            number += part.count(b"\n")
            continue
        start = 0
        while (end := part.find(b"\n", start)) >= 0:
            too_long = _add(kept, part[start:end], longest) or too_long
            if too_long or kept.strip():
                yield Line(number, None if too_long else bytes(kept))
            kept, too_long, number, start = bytearray(), False, number + 1, end + 1
        too_long = _add(kept, part[start:], longest) or too_long
    if too_long or kept.strip():
        yield Line(number, None if too_long else bytes(kept))


def _add(kept: bytearray, more: bytes, longest: int) -> bool:
    """Keep what fits; whether something did not."""
    kept += more[: longest + 1 - len(kept)]
    return len(kept) > longest
