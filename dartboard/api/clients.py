"""Whether the client of the current request still waits for its answer.

A server tells it through ``receive``, but only after the body; so one object stands between the two, hands
the body on, and afterwards listens for whoever asks.
"""

import asyncio
from contextvars import ContextVar

from starlette.types import Message, Receive, Scope

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


def current_client() -> Client | None:
    """The client of the request that is being answered in this context."""
    return _current.get()
