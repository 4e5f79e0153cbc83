"""Work in a thread whose results are sent while it goes on, as server-sent events.

Nothing is sent before the work has something to say: until then an error is an answer of its own, with its
own status. After that an error is the last event. A client that leaves ends the work; while the work is
silent, a comment now and then keeps proxies from thinking that nobody is there. (FastAPI's
``EventSourceResponse`` and sse-starlette send their status before the work has begun.)
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import orjson
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from dartboard.api.errors import ApiError, ClientGone, as_api_error, body_model, problem_details
from dartboard.errors import DartboardError

MEDIA_TYPE = "text/event-stream"
SILENCE = 10.0
"""Seconds after which a silent stream sends a comment."""

SendEvent = Callable[[str, Any], None]
"""Sends an event of a name with some data; any thread may."""


class EventStream(Response):
    """The answer of a request whose work sends events."""

    media_type = MEDIA_TYPE

    def __init__(
        self, work: "asyncio.Future[Any]", first: bytes, rest: "asyncio.Queue[bytes | None]"
    ) -> None:
        super().__init__(None, 200, {"X-Accel-Buffering": "no"})
        del self.headers["content-length"]
        self._work, self._first, self._rest = work, first, rest

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send what there is, then what comes."""
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        part: bytes | None = self._first
        try:
            while part is not None:
                await send({"type": "http.response.body", "body": part, "more_body": True})
                part = await self._next()
            failure = None if self._work.cancelled() else self._work.exception()
            if failure is not None and not isinstance(failure, ClientGone):
                body = event("error", problem_details(as_api_error(failure, body_model(scope)), scope))
                await send({"type": "http.response.body", "body": body, "more_body": True})
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            self._work.cancel()
        if failure is not None and not isinstance(failure, (ApiError, DartboardError)):
            raise failure

    async def _next(self) -> bytes | None:
        try:
            return await asyncio.wait_for(self._rest.get(), SILENCE)
        except TimeoutError:
            return b": still there\n\n"


async def streamed(start: Callable[[SendEvent], Awaitable[Any]]) -> EventStream:
    """The stream of the events that ``start`` sends, once there is one; its error, where that comes first."""
    loop = asyncio.get_running_loop()
    events: asyncio.Queue[bytes | None] = asyncio.Queue()

    def send_event(name: str, data: Any) -> None:
        loop.call_soon_threadsafe(events.put_nowait, event(name, data))

    work = asyncio.ensure_future(start(send_event))
    work.add_done_callback(lambda _: events.put_nowait(None))
    try:
        first = await events.get()
        if first is None:
            await work
            raise RuntimeError(
                "the work ended without a word"
            )  # pragma: no cover - it sends an event, or fails
    except BaseException:
        work.cancel()
        raise
    return EventStream(work, first, events)


def event(name: str, data: Any) -> bytes:
    """One event; JSON has no line ends of its own."""
    return b"event: %s\ndata: %s\n\n" % (name.encode(), orjson.dumps(data))
