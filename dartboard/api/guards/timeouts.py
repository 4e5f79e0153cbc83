"""How long a request may take, and whether its client still waits for the answer.

A server says that a client has left through ``receive``, but only after the body; so one object stands
between the two, hands the body on, and afterwards listens for whoever asks.
"""

import asyncio
import time
from contextvars import ContextVar
from typing import Any

from starlette.types import Message, Receive, Scope

from dartboard.api.errors import ApiError, ClientGone, TimedOut

_current: ContextVar["Client | None"] = ContextVar("dartboard_client", default=None)


class Client:
    """The other end of one request."""

    def __init__(self, scope: Scope, receive: Receive) -> None:
        self._receive = receive
        self._read = asyncio.Event()
        self._kept: Message | None = None
        self._gone = False
        names = {name for name, _ in scope["headers"]}
        self._bodiless = not names & {b"content-length", b"transfer-encoding"}

    async def receive(self) -> Message:
        """The next message of the server."""
        if self._kept is not None:
            message, self._kept = self._kept, None
            return message
        if self._gone:
            return {"type": "http.disconnect"}
        message = await self._receive()
        if message["type"] == "http.disconnect":
            self._gone = True
        if message["type"] != "http.request" or not message.get("more_body", False):
            self._read.set()
        return message

    async def gone(self) -> None:
        """Return when the client has left; before the body is read, nobody can know."""
        if self._bodiless and not self._read.is_set():
            self._kept = await self.receive()
        await self._read.wait()
        while not self._gone:
            if (await self._receive())["type"] == "http.disconnect":
                self._gone = True

    def enter(self) -> None:
        """Be the client of what runs in this context."""
        _current.set(self)


class TimeLimit:
    """The time of one request: it ends after so many seconds, or when its client leaves."""

    def __init__(self, seconds: float) -> None:
        self._end = time.monotonic() + seconds
        client = _current.get()
        self._leaving = None if client is None else asyncio.ensure_future(client.gone())

    @property
    def left(self) -> float:
        """Seconds left, at least 0."""
        return max(0.0, self._end - time.monotonic())

    async def wait(self, wanted: "asyncio.Future[Any]") -> None:
        """Wait until a future is done; ``TimedOut`` or ``ClientGone`` where the time ends before it."""
        futures = [wanted] if self._leaving is None else [wanted, self._leaving]
        await asyncio.wait(futures, timeout=self.left, return_when=asyncio.FIRST_COMPLETED)
        if not wanted.done():
            raise self.error()

    def error(self) -> ApiError:
        """Why the time has ended."""
        return ClientGone() if self._leaving is not None and self._leaving.done() else TimedOut()

    def close(self) -> None:
        """Listen to the client no more."""
        if self._leaving is not None:
            self._leaving.cancel()
