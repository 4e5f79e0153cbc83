"""What every request passes before an endpoint sees it: two layers, the outer one first.

:class:`Guard` gives the request an id and a line in the log, lets in only requests that name this service and
come from its own pages, and completes the headers of the answer. :class:`BodyLimit` counts what comes in.
"""

import asyncio
import re
import secrets
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dartboard.api.authentication import key_of
from dartboard.api.errors import ApiError, Stopping, TooLarge, Unauthorized, UnsupportedType, problem
from dartboard.api.logs import write_line
from dartboard.api.settings import ServiceSettings, is_loopback
from dartboard.api.work import client

if TYPE_CHECKING:
    from dartboard.api.service import Service

CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "font-src 'self'; form-action 'none'; frame-ancestors 'none'; base-uri 'none'"
)
HEADERS = {
    "content-security-policy": CONTENT_SECURITY_POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
}
_PAIRS = tuple((name.encode(), value.encode()) for name, value in HEADERS.items())
GONE = 499
"""What is logged for a client that did not wait for its answer."""
SLOWEST = 16 * 1024
"""Bytes a second below which a long body is too slow."""
WITHOUT_KEY = 64 * 1024
"""Bytes that are read from somebody without a key, where keys are used."""
_STREAMED = re.compile(r"/api/dartboard/collections/[^/]+/(documents|files)")
_PLAIN = re.compile(r"[A-Za-z0-9._-]{1,64}")


class Guard:
    """Id, log line, hosts, origins, and the headers of the answer."""

    def __init__(self, app: ASGIApp, service: "Service") -> None:
        self.app, self.service = app, service
        settings = service.settings
        self._any_host = not settings.loopback and not settings.hosts
        self._hosts = {_bare(name) for name in settings.hosts} | {_bare(settings.host)}
        self._origins = {origin.rstrip("/").lower() for origin in settings.origins}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or refuse it; look at what comes back.

        An exception that nobody expected is answered with 500, and logged by its type and place. A client
        that leaves is no error. A request that is cut off because the service stops is answered with 503.
        """
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        began, status, sent = time.perf_counter(), 0, 0
        name = _request_id(scope)
        scope.setdefault("state", {})["request_id"] = name

        async def answer(message: Message) -> None:
            nonlocal status, sent
            if message["type"] == "http.response.start":
                status = message["status"]
                message = {**message, "headers": _completed(scope, name, message.get("headers", ()))}
            elif message["type"] == "http.response.body":
                sent += len(message.get("body", b""))
            await send(message)

        broken: BaseException | None = None
        try:
            refusal = self._refusal(scope)
            if refusal is not None:
                await problem(refusal, scope)(scope, receive, answer)
            else:
                await self.app(scope, receive, answer)
        except ClientDisconnect:
            status = status or GONE
        except asyncio.CancelledError:  # the server stops
            if not status:
                await problem(Stopping(), scope)(scope, receive, answer)
        except Exception as error:  # noqa: BLE001 - whatever it is, the client gets 500 and the log its type
            broken = error
            if not status:
                await problem(ApiError(), scope)(scope, receive, answer)
        finally:
            seconds = time.perf_counter() - began
            write_line(self.service.metrics, scope, status or GONE, seconds, sent, broken)

    def _refusal(self, scope: Scope) -> ApiError | None:
        """Web pages use a service on loopback through its owner's browser: by a name that resolves to
        127.0.0.1 (the ``Host`` header gives it away) or by a plain cross-site request (``Origin``).

        Beyond loopback a key is needed, which no browser sends by itself; there any host is taken unless
        ``settings.hosts`` lists them.
        """
        hosts = _values(scope, b"host")
        host = _bare(hosts[0]) if len(hosts) == 1 else ""
        if not host:
            return ApiError("a request needs one Host header", status=400, code="bad_host")
        if not (self._any_host or host in self._hosts or is_loopback(host)):
            return ApiError(
                "the Host header names another host: see the setting 'hosts'", status=421, code="wrong_host"
            )
        if self._foreign(scope, hosts[0]):
            return ApiError(
                "pages of other sites may not call this: see the setting 'origins'",
                status=403,
                code="foreign_origin",
            )
        return None

    def _foreign(self, scope: Scope, host: str) -> bool:
        """Whether a page of another site makes the request; following a link to here is not that."""
        origins = _values(scope, b"origin")
        if origins:
            return len(origins) > 1 or not self._welcome(origins[0], host)
        site = _values(scope, b"sec-fetch-site")
        if not site or site[0] in ("same-origin", "none"):
            return False
        return not (_values(scope, b"sec-fetch-mode") == ["navigate"] and scope["method"] in ("GET", "HEAD"))

    def _welcome(self, origin: str, host: str) -> bool:
        if origin.lower() in self._origins:
            return True
        try:
            parts = urlsplit(origin)
        except ValueError:
            return False
        return parts.scheme in ("http", "https") and parts.netloc.lower() == host.lower()


class BodyLimit:
    """Refuses bodies that are too large (413), too slow (408) or compressed (415).

    Bytes are counted as they arrive, so a body without a length, or with a wrong one, is stopped as well. A
    body may take ``timeout`` seconds, and one more for each 16 kB of it. Where keys are used, a request
    without a valid one gets no more than a small body in.
    """

    def __init__(self, app: ASGIApp, settings: ServiceSettings) -> None:
        self.app, self.settings = app, settings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on with a body that is counted."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        streamed = scope["method"] == "POST" and _STREAMED.fullmatch(scope["path"])
        limit = self.settings.upload_bytes if streamed else self.settings.body_bytes
        too_large: ApiError = TooLarge(f"the body is too large: at most {limit} bytes are taken here")
        keys = scope["app"].state.service.keys
        if limit > WITHOUT_KEY and keys is not None and key_of(scope, keys) is None:
            limit, too_large = WITHOUT_KEY, Unauthorized()
        too_large.headers["Connection"] = "close"  # the rest of the body is not read
        declared = "".join(_values(scope, b"content-length"))
        refusal = too_large if declared.isdecimal() and int(declared[:20]) > limit else None
        if {value.lower() for value in _values(scope, b"content-encoding")} - {
            "",
            "identity",
        }:  # nothing is unpacked, nothing can swell
            refusal = UnsupportedType("bodies are read as they come: send it without Content-Encoding")
        if refusal is not None:
            await problem(refusal, scope)(scope, receive, send)
            return
        received, waited, complete = 0, 0.0, False

        async def counted() -> Message:
            nonlocal received, waited, complete
            if complete:
                return await receive()
            began, allowed = time.monotonic(), self.settings.timeout + received / SLOWEST - waited
            try:
                message = await asyncio.wait_for(receive(), timeout=max(0.001, allowed))
            except TimeoutError:
                raise ApiError(
                    "the body came too slowly: send it at once",
                    status=408,
                    code="too_slow",
                    headers={"Connection": "close"},
                ) from None
            waited += time.monotonic() - began
            if message["type"] == "http.request":
                received += len(message.get("body", b""))
                complete = not message.get("more_body", False)
                if received > limit:
                    raise too_large
            return message

        client.set(counted)
        await self.app(scope, counted, send)


def _completed(scope: Scope, name: str, given: Iterable[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """The answer's headers with those of security; what an endpoint has set itself is left as it is."""
    headers = [pair for pair in given if pair[0].lower() != b"x-request-id"]
    there = {header.lower() for header, _ in headers}
    page = scope["path"] == "/" or scope["path"].startswith("/static/")
    wanted = [*_PAIRS, (b"cache-control", b"no-cache" if page else b"no-store")]
    return [
        *headers,
        *(pair for pair in wanted if pair[0] not in there),
        (b"x-request-id", name.encode()),
    ]


def _request_id(scope: Scope) -> str:
    """The client's own id if it is short and plain, else a new one."""
    given = _values(scope, b"x-request-id")
    return given[0] if given and _PLAIN.fullmatch(given[0]) else secrets.token_hex(8)


def _values(scope: Scope, name: bytes) -> list[str]:
    return [value.decode("latin-1").strip() for header, value in scope["headers"] if header == name]


def _bare(host: str) -> str:
    """The host without its port, brackets and letter case; empty where it is malformed."""
    host = host.strip().lower()
    if host.count(":") > 1 and not host.startswith("["):
        host = f"[{host}]"
    try:
        return urlsplit(f"//{host}").hostname or "" if not set(host) & set("/?#@\\") else ""
    except ValueError:
        return ""
