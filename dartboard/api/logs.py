"""One line of JSON for each request, which never holds what was asked.

A line has the time, a request id, the method, the route's template, the status, milliseconds, the id of the
key and the bytes sent: enough to find a request again, and nothing of its query, text, path, headers or
secrets. The setting ``log_queries`` adds the questions of searches, answers and reranks, for debugging on
one's own machine. Exceptions are logged by their type and the lines of code that they passed through; their
messages are left out, since messages quote data.
"""

import json
import logging
import re
import sys
import traceback
from datetime import UTC, datetime
from typing import Any, TextIO

from starlette.types import Scope

from dartboard.api.metrics import METHODS, UNMATCHED, Metrics

LONGEST_QUESTION = 2000
"""Characters of a question that are logged."""
_MOST_QUESTIONS = 100
_KEY = re.compile(r"dbk_[0-9a-f]{8}_[A-Za-z0-9_-]+")
_FIELDS = "dartboard_fields"
access = logging.getLogger("dartboard.access")


def write_line(
    metrics: Metrics, scope: Scope, status: int, seconds: float, sent: int, broken: BaseException | None
) -> None:
    """Count a request that has been answered, and log it."""
    template = getattr(scope.get("route"), "path", None)
    route = str(template) if template else UNMATCHED
    method = scope["method"] if scope["method"] in METHODS else "OTHER"
    metrics.observe_request(route, method, status, seconds)
    state = scope["state"]
    fields: dict[str, Any] = {
        "request_id": state["request_id"],
        "method": method,
        "route": route,
        "status": status,
        "ms": round(1000 * seconds, 2),
        "key": getattr(state.get("key"), "id", None),
        "bytes": sent,
        **state.get("asked", {}),
    }
    if broken is not None:
        fields |= {"error": type(broken).__name__, "trace": _stack_lines(broken)}
    level = logging.ERROR if status >= 500 or broken is not None else logging.INFO
    access.log(level, "request", extra={_FIELDS: fields})


def questions_of(body: Any) -> dict[str, Any]:
    """What a body asks, cut to a bounded length, without keys that were pasted into it."""
    found: dict[str, Any] = {}
    if isinstance(query := getattr(body, "query", None), str):
        found["query"] = _shown(query)
    for name in ("queries", "also"):
        if several := getattr(body, name, None):
            found[name] = [_shown(one) for one in several[:_MOST_QUESTIONS]]
    return found


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
        line |= {"message": record.getMessage()} if fields is None else fields
        if record.exc_info and record.exc_info[1] is not None:
            line |= {"error": type(record.exc_info[1]).__name__, "trace": _stack_lines(record.exc_info[1])}
        return json.dumps(line, ensure_ascii=True)


def configure(*, level: int = logging.INFO, stream: TextIO | None = None, with_pid: bool = False) -> None:
    """Write the lines of the whole program to stderr as JSON; called once, by whoever runs the service."""
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


def _stack_lines(error: BaseException) -> list[str]:
    """The lines of code that an exception passed through, the innermost last."""
    frames = traceback.extract_tb(error.__traceback__)[-12:]
    return [f"{'/'.join(frame.filename.split('/')[-2:])}:{frame.lineno} {frame.name}" for frame in frames]


def _shown(question: str) -> str:
    return _KEY.sub("dbk_…", question)[:LONGEST_QUESTION]
