"""How large the head of a request may be, its first line and its header lines; what is said to broken HTTP.

A parser keeps a head in memory until it is complete, and no key has been looked at by then. So bytes are
counted as they come, and lines as they are read; a head beyond the limits is answered with 431 and its
connection closed. Counting stops where a body moves on, and begins again after it: lines that follow a body
(trailers) are held to the same limits.

What is no HTTP, or stops being it in the middle of a body (a chunk without a size), is answered with 400
here; the request that waits for the rest of its body is told why by ``BROKEN_BODY`` in its state.
"""

import secrets
from http import HTTPStatus
from typing import Any

from dartboard.api.errors import ApiError, BadRequest, problem
from dartboard.api.guards.security_headers import HEADERS

HEAD_BYTES = 64 * 1024
"""Bytes of a request's first line and headers together."""
HEAD_LINES = 100
"""Header lines of a request."""
BROKEN_BODY = "broken_body"
"""In the state of a request whose client was sent away for it."""


class HeadTooLarge(ApiError):
    """Stops the parser; the client has its answer from the protocol."""

    status, code = 431, "headers_too_large"
    message = f"the headers are too large: at most {HEAD_BYTES} bytes in {HEAD_LINES} lines are taken"


def http_protocol() -> Any:
    """What uvicorn's ``http`` takes: its fast parser with limits, or h11, which limits heads itself."""
    try:
        from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
    except ImportError:  # pragma: no cover - httptools is for CPython alone
        return "h11"

    class LimitedHead(HttpToolsProtocol):
        """uvicorn's protocol over httptools, counting."""

        _size = _lines = _unfinished = 0
        _moved = _refused = False

        def data_received(self, data: bytes) -> None:
            if self._refused:
                return
            self._moved = False
            super().data_received(data)
            self._unfinished = 0 if self._moved else self._unfinished + len(data)
            if self._unfinished > HEAD_BYTES and not self._refused:
                self._refuse()

        def on_message_begin(self) -> None:
            self._size = self._lines = 0
            super().on_message_begin()

        def on_url(self, url: bytes) -> None:
            self._count(len(url), 0)
            super().on_url(url)

        def on_header(self, name: bytes, value: bytes) -> None:
            self._count(len(name) + len(value) + 4, 1)
            super().on_header(name, value)

        def on_headers_complete(self) -> None:
            self._moved = True
            super().on_headers_complete()

        def on_body(self, body: bytes) -> None:
            self._moved = True
            super().on_body(body)

        def on_message_complete(self) -> None:
            self._moved = True
            super().on_message_complete()

        def send_400_response(self, msg: str) -> None:
            """Called when the parser was stopped; perhaps by us, for a reason of our own."""
            if self._refused:
                return
            cycle = self.cycle
            if cycle is not None and cycle.more_body:
                cycle.scope["state"][BROKEN_BODY] = True
            if cycle is None or cycle.response_complete or not cycle.response_started:
                self.transport.write(_answer(BadRequest("the request is not HTTP that can be read")))
            self.transport.close()

        def _count(self, size: int, lines: int) -> None:
            self._size += size
            self._lines += lines
            if self._size > HEAD_BYTES or self._lines > HEAD_LINES:
                self._refuse()
                raise HeadTooLarge

        def _refuse(self) -> None:
            """Answer and close; where an answer to an earlier request is under way, only close."""
            self._refused = True
            if self.transport.is_closing():
                return
            if self.cycle is None or self.cycle.response_complete:
                self.transport.write(_answer(HeadTooLarge()))
            self.transport.close()

    return LimitedHead


def _answer(error: ApiError) -> bytes:
    error.headers.update(HEADERS)
    name = secrets.token_hex(8)
    response = problem(error, {"state": {"request_id": name}})
    first = f"HTTP/1.1 {error.status} {HTTPStatus(error.status).phrase}"
    lines = [first.encode(), b"connection: close"]
    lines += [key + b": " + value for key, value in response.raw_headers]
    return b"\r\n".join([*lines, b"x-request-id: " + name.encode(), b"", b""]) + bytes(response.body)
