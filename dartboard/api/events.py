"""Work in a thread whose results are sent while it goes on, as server-sent events.

Nothing is sent before the work has something to say: until then an error is an answer of its own, with its
own status. After that an error is the last event. While the work is silent, a comment now and then keeps
proxies from thinking that nobody is there. (sse-starlette sends its status before the work has begun.)
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import orjson
from starlette.responses import StreamingResponse
from starlette.types import Scope

from dartboard.api.errors import ApiError, ClientGone, as_api_error, problem_details
from dartboard.errors import DartboardError

MEDIA_TYPE = "text/event-stream"
SILENCE = 10.0
"""Seconds after which a silent stream sends a comment."""

SendEvent = Callable[[str, Any], None]
"""Sends an event of a name with some data; any thread may."""


async def streamed(start: Callable[[SendEvent], Awaitable[Any]], scope: Scope) -> StreamingResponse:
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
    except BaseException:
        work.cancel()
        raise
    return StreamingResponse(
        _rest(first, events, work, scope), media_type=MEDIA_TYPE, headers={"X-Accel-Buffering": "no"}
    )


async def _rest(
    first: bytes | None, events: "asyncio.Queue[bytes | None]", work: "asyncio.Future[Any]", scope: Scope
) -> AsyncIterator[bytes]:
    part = first
    try:
        while part is not None:
            yield part
            try:
                part = await asyncio.wait_for(events.get(), SILENCE)
            except TimeoutError:
                part = b": still there\n\n"
        failure = None if work.cancelled() else work.exception()
        if failure is not None and not isinstance(failure, ClientGone):
            yield event("error", problem_details(as_api_error(failure), scope))
            if not isinstance(failure, (ApiError, DartboardError)):
                raise failure
    finally:
        work.cancel()


def event(name: str, data: Any) -> bytes:
    """One event; JSON has no line ends of its own."""
    return b"event: %s\ndata: %s\n\n" % (name.encode(), orjson.dumps(data))
