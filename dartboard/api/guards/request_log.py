"""One line of JSON for each request, which never holds what was asked.

A line has the time, a request id, the method, the route's template, the status, milliseconds, the id of the
key and the bytes sent: enough to find a request again, and nothing of its query, text, path, headers or
secrets. ``log_queries`` adds the questions of searches, answers and reranks, read from the body, for
debugging on one's own machine. Addresses stay out even then: the tickets of reports travel in them.

An exception that nobody expected is answered with 500 here, and logged by its type and the lines of code that
it passed through; its message is left out, since messages quote data. A client that leaves is no error: it
is logged as 499, or as 400 where it was let go for a body that could not be read. A request that the service
cuts off because it stops is answered with 503.
"""

import asyncio
import json
import logging
import re
import secrets
import sys
import time
import traceback
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TextIO

import orjson
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dartboard.api.errors import ApiError, Stopping, problem
from dartboard.api.guards.admission_control import CONTROLLED
from dartboard.api.guards.head_limit import BROKEN_BODY
from dartboard.api.guards.security_headers import HEADERS
from dartboard.api.metrics import METHODS, UNMATCHED

if TYPE_CHECKING:
    from dartboard.api.service import Service

HEADER = "x-request-id"
GONE = 499
"""What is logged for a client that did not wait for its answer."""

ASKING = CONTROLLED - {"/api/dartboard/select"} | {"/api/dartboard/ask"}
"""Where bodies hold questions in words, as ``query``, ``queries`` and ``also``."""
LONGEST_QUESTION = 2000
"""Characters of a question that are logged."""
_MOST_QUESTIONS = 100
_NOT_LET_IN = (401, 403, 421)
"""Answers to those who are not let in: what they ask is no business of the log."""
_KEY = re.compile(r"dbk_[0-9a-f]{8}_[A-Za-z0-9_-]+")

access = logging.getLogger("dartboard.access")
_PLAIN = re.compile(r"[A-Za-z0-9._-]{1,64}")
_FIELDS = "dartboard_fields"


class RequestLog:
    """Gives each request an id, counts it, and writes its line. The outermost layer."""

    def __init__(self, app: ASGIApp, service: "Service") -> None:
        self.app = app
        self.service = service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, and look at what comes back."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        began = time.perf_counter()
        state = scope.setdefault("state", {})
        state["request_id"] = name = _request_id(scope)
        status, sent = 0, 0
        body = bytearray()
        asking = self.service.settings.log_queries and scope["method"] == "POST" and scope["path"] in ASKING

        async def overheard() -> Message:
            message = await receive()
            body.extend(message.get("body", b""))
            return message

        async def answer(message: Message) -> None:
            nonlocal status, sent
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = [pair for pair in message.get("headers", ()) if pair[0].lower() != HEADER.encode()]
                message = {**message, "headers": [*headers, (HEADER.encode(), name.encode())]}
            elif message["type"] == "http.response.body":
                sent += len(message.get("body", b""))
            await send(message)

        broken: BaseException | None = None
        try:
            await self.app(scope, overheard if asking else receive, answer)
        except ClientDisconnect:
            status = status or GONE
        except asyncio.CancelledError as error:
            if not self.service.stopping:
                broken, status = error, status or GONE
                raise
            if not status:
                await problem(Stopping(headers=HEADERS), scope)(scope, receive, answer)
        except Exception as error:  # noqa: BLE001 - whatever it is, the client gets 500 and the log its type
            broken = error
            if not status:
                await problem(ApiError(headers=HEADERS), scope)(scope, receive, answer)
        except BaseException as error:
            broken, status = error, status or GONE
            raise
        finally:
            seconds = time.perf_counter() - began
            asked = _questions(bytes(body)) if asking and status not in _NOT_LET_IN else {}
            if status in (0, GONE):
                status = 400 if state.get(BROKEN_BODY) else GONE
            self._write(scope, status, seconds, sent, broken, asked)

    def _write(
        self,
        scope: Scope,
        status: int,
        seconds: float,
        sent: int,
        broken: BaseException | None,
        asked: dict[str, Any],
    ) -> None:
        route = route_of(scope)
        method = scope["method"] if scope["method"] in METHODS else "OTHER"
        self.service.metrics.observe_request(route, method, status, seconds)
        key = scope["state"].get("key")
        fields: dict[str, Any] = {
            "request_id": scope["state"]["request_id"],
            "method": method,
            "route": route,
            "status": status,
            "ms": round(1000 * seconds, 2),
            "key": getattr(key, "id", None),
            "bytes": sent,
            **asked,
        }
        if isinstance(broken, Exception):
            fields |= {"error": type(broken).__name__, "trace": stack_lines(broken)}
        level = logging.ERROR if status >= 500 or "error" in fields else logging.INFO
        access.log(level, "request", extra={_FIELDS: fields})


class JsonLines(logging.Formatter):
    """A record as one line of JSON; exceptions by their type and place, without their message."""

    def __init__(self, *, with_pid: bool = False) -> None:
        super().__init__()
        self._with_pid = with_pid

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
        }
        if self._with_pid:
            line["pid"] = record.process
        fields = getattr(record, _FIELDS, None)
        if fields is None:
            line["message"] = record.getMessage()
        else:
            line |= fields
        if record.exc_info and record.exc_info[1] is not None:
            line |= {"error": type(record.exc_info[1]).__name__, "trace": stack_lines(record.exc_info[1])}
        return json.dumps(line, ensure_ascii=True)


def configure(*, level: int = logging.INFO, stream: TextIO | None = None, with_pid: bool = False) -> None:
    """Write the lines of the whole program to stderr as JSON; called once, by whoever runs the service.

    With ``with_pid``, a line says which process wrote it.
    """
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonLines(with_pid=with_pid))
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(logging.WARNING)
    for name in ("dartboard", "uvicorn", "uvicorn.error", "uvicorn.access"):
        logger = logging.getLogger(name)
        logger.handlers.clear()
        logger.propagate = True
    logging.getLogger("dartboard").setLevel(level)
    logging.getLogger("uvicorn.error").setLevel(level)
    logging.getLogger("uvicorn.access").disabled = True  # it writes whole paths, queries included


def route_of(scope: Scope) -> str:
    """The template of the route that was matched, as ``/collections/{name}``; never the path itself."""
    template = getattr(scope.get("route"), "path", None)
    return str(template) if template else UNMATCHED


def stack_lines(error: BaseException) -> list[str]:
    """The lines of code that an exception passed through, the innermost last."""
    frames = traceback.extract_tb(error.__traceback__)[-12:]
    return [f"{'/'.join(frame.filename.split('/')[-2:])}:{frame.lineno} {frame.name}" for frame in frames]


def _questions(body: bytes) -> dict[str, Any]:
    """What a body asks, cut to a bounded length, without keys that were pasted into it."""
    try:
        content = orjson.loads(body)
    except orjson.JSONDecodeError:
        return {}
    if not isinstance(content, dict):
        return {}
    found: dict[str, Any] = {}
    if isinstance(query := content.get("query"), str):
        found["query"] = _shown(query)
    for name in ("queries", "also"):
        if isinstance(several := content.get(name), list) and several:
            found[name] = [_shown(one) for one in several[:_MOST_QUESTIONS] if isinstance(one, str)]
    return found


def _shown(question: str) -> str:
    return _KEY.sub("dbk_…", question)[:LONGEST_QUESTION]


def _request_id(scope: Scope) -> str:
    """The client's own id if it is short and plain, else a new one."""
    for header, value in scope["headers"]:
        if header == HEADER.encode():
            given = value.decode("latin-1")
            if _PLAIN.fullmatch(given):
                return str(given)
    return secrets.token_hex(8)
