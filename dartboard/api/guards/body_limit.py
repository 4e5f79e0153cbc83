"""How large a request may be, and how slowly it may come.

Bytes are counted as they arrive, so a body without a length, or with a wrong one, is stopped as well. The
time that the service waits for the client adds up; a body may take ``timeout`` seconds, and one more for
each 16 kB of it. Bodies are read before endpoints look at keys; so where keys are used, a request without a
valid one gets no more than a small body in. Starlette's ``RequestBodyLimitMiddleware`` counts bytes, but
knows neither time nor keys, and answers in plain text.

After a large request or answer, memory goes back to the system. What a body of 8 MB was parsed into can be 30
times as large. Where it is part of a reference cycle (as the traceback of a refused request is), it stays
until Python's collector comes by; and the C library keeps freed memory for itself. Measured:
``benchmarks/hostile_memory.py``.
"""

import asyncio
import ctypes
import gc
import re
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from threading import Lock

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dartboard.api.errors import ApiError, TooLarge, Unauthorized, UnsupportedType, problem
from dartboard.api.guards.authentication import key_of
from dartboard.api.guards.timeouts import Client
from dartboard.api.settings import ServiceSettings

SLOWEST = 16 * 1024
"""Bytes a second below which a long body is too slow."""
WITHOUT_KEY = 64 * 1024
"""Bytes that are read from somebody without a key, where keys are used."""
LARGE = 1024 * 1024
"""Bytes of a request or an answer after which memory is given back."""
_DELAY = 1.0
_STREAMED = re.compile(r"/api/dartboard/collections/[^/]+/(documents|files)")


class BodyRefused(Exception):
    """Stops whoever reads the body; the client has its answer from :class:`BodyLimit`."""


class BodyLimit:
    """Refuses bodies that are too large (413), too slow (408) or compressed (415)."""

    def __init__(self, app: ASGIApp, settings: ServiceSettings) -> None:
        self.app = app
        self.settings = settings
        self.release = MemoryRelease()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on with a body that is counted."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        streamed = scope["method"] == "POST" and _STREAMED.fullmatch(scope["path"])
        limit = self.settings.upload_bytes if streamed else self.settings.body_bytes
        client = Client(scope, receive)
        client.enter()
        too_large: ApiError = TooLarge(f"the body is too large: at most {limit} bytes are taken here")
        if limit > WITHOUT_KEY and _without_key(scope):
            limit, too_large = WITHOUT_KEY, Unauthorized()
        request = _Request(self.app, scope, client, send, limit, too_large, self.settings.timeout)
        headers = Headers(scope=scope)
        encodings = {value.strip().lower() for value in headers.getlist("content-encoding")}
        if encodings - {"", "identity"}:  # nothing is unpacked here, so nothing can swell
            await request.refuse(
                UnsupportedType("bodies are read as they come: send it without Content-Encoding")
            )
            return
        declared = headers.get("content-length", "")
        if declared.isdecimal() and int(declared[:20]) > limit:
            await request.refuse(too_large)
            return
        try:
            await request.run()
        finally:
            if request.received > LARGE or request.sent > LARGE:
                self.release.schedule()


class _Request:
    """One request on its way in, and its answer on the way out; both are counted."""

    def __init__(
        self,
        app: ASGIApp,
        scope: Scope,
        client: Client,
        send: Send,
        limit: int,
        too_large: ApiError,
        patience: float,
    ) -> None:
        self.app, self.scope, self.client, self.send = app, scope, client, send
        self.limit, self.too_large, self.patience = limit, too_large, patience
        self.received, self.sent, self.waited = 0, 0, 0.0
        self.complete = self.started = False
        self.refused: ApiError | None = None

    async def run(self) -> None:
        """Let the application answer, unless its reading was stopped before it did."""
        try:
            await self.app(self.scope, self._receive, self._send)
        except Exception:
            if self.refused is None:
                raise
        if self.refused is not None and not self.started:
            self.started = True
            await self.refuse(self.refused)

    async def refuse(self, error: ApiError) -> None:
        """Refuse, and close the connection, since the rest of the body is not read."""
        error.headers["Connection"] = "close"
        await problem(error, self.scope)(self.scope, self.client.receive, self.send)

    async def _receive(self) -> Message:
        if self.complete:
            return await self.client.receive()
        if self.refused is not None:
            raise BodyRefused
        clock = asyncio.get_running_loop().time
        began, allowed = clock(), self.patience + self.received / SLOWEST - self.waited
        try:
            message = await asyncio.wait_for(self.client.receive(), timeout=max(0.001, allowed))
        except TimeoutError:
            self.refused = ApiError("the body came too slowly: send it at once", status=408, code="too_slow")
            raise BodyRefused from None
        self.waited += clock() - began
        if message["type"] == "http.request":
            self.received += len(message.get("body", b""))
            self.complete = not message.get("more_body", False)
            if self.received > self.limit:
                self.refused = self.too_large
                raise BodyRefused
        return message

    async def _send(self, message: Message) -> None:
        """What the application says of a body that it could not read is replaced by what was wrong."""
        if self.refused is not None and not self.started:
            return
        self.started = True
        self.sent += len(message.get("body", b""))
        await self.send(message)


def _without_key(scope: Scope) -> bool:
    """Whether the service uses keys and the request shows none of them."""
    keys = scope["app"].state.service.keys
    return keys is not None and key_of(scope, keys) is None


def release_memory() -> None:
    """Collect garbage, and return free memory to the system where the C library can (glibc)."""
    gc.collect()
    _trim()(0)


class MemoryRelease:
    """Gives memory back a second after a large request: once for all that came in the meantime.

    That is done in a thread, one at a time, while the event loop goes on to answer.
    """

    def __init__(self) -> None:
        self._due = False
        self._at_work = Lock()

    def schedule(self) -> None:
        """Called on the event loop when a large request has ended."""
        if not self._due:
            self._due = True
            asyncio.get_running_loop().call_later(_DELAY, self._now)

    def _now(self) -> None:
        loop = asyncio.get_running_loop()
        if self._at_work.locked():
            loop.call_later(_DELAY, self._now)
            return
        self._due = False
        loop.run_in_executor(None, self._release)

    def _release(self) -> None:
        with self._at_work:
            release_memory()


@cache
def _trim() -> Callable[[int], object]:
    with suppress(OSError, AttributeError):
        return ctypes.CDLL(None).malloc_trim
    return lambda _: None
