"""Security headers: what browsers are told about every answer, and which of their requests are let in.

The answers' headers forbid inline script, framing, sniffing and foreign use. The checks stop web pages from
using a service on loopback through its owner's browser: by a name that resolves to 127.0.0.1 (DNS rebinding;
the ``Host`` header gives it away) or by a plain cross-site request (``Origin`` and ``Sec-Fetch-Site`` do).
"""

from collections.abc import Iterable
from urllib.parse import urlsplit

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dartboard.api.errors import ApiError, problem
from dartboard.api.settings import ServiceSettings, is_loopback

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
_EXTRA = "response_headers"


class SecurityHeaders:
    """Adds the headers to every answer; what an endpoint has set itself is left as it is."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, and add to what comes back."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def answer(message: Message) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": _completed(scope, message.get("headers", ()))}
            await send(message)

        await self.app(scope, receive, answer)


def add_headers(scope: Scope, headers: dict[str, str]) -> None:
    """Have headers added to the answer of this request, whoever makes it."""
    scope.setdefault("state", {}).setdefault(_EXTRA, {}).update(headers)


def _completed(scope: Scope, given: Iterable[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    headers = list(given)
    there = {name.lower() for name, _ in headers}
    page = scope["path"] == "/" or scope["path"].startswith("/static/")
    wanted = [*_PAIRS, (b"cache-control", b"no-cache" if page else b"no-store")]
    for name, value in scope.get("state", {}).get(_EXTRA, {}).items():
        wanted.append((name.lower().encode(), value.encode("latin-1")))
    return headers + [pair for pair in wanted if pair[0] not in there]


class TrustedHosts:
    """Lets in requests that name this service as their host, and pages that it served itself.

    Starlette's ``TrustedHostMiddleware`` looks at the first of several ``Host`` headers, does not look at
    origins, and answers in plain text.

    Beyond loopback a key is needed, which no browser sends by itself, and the names that lead here are not
    known; there any host is taken unless ``settings.hosts`` lists them.
    """

    def __init__(self, app: ASGIApp, settings: ServiceSettings) -> None:
        self.app = app
        self._any = not settings.loopback and not settings.hosts
        self._hosts = {_bare(name) for name in settings.hosts} | {_bare(settings.host)}
        self._origins = {origin.rstrip("/").lower() for origin in settings.origins}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or refuse it."""
        if scope["type"] == "http" and (refusal := self._refusal(scope)) is not None:
            await problem(refusal, scope)(scope, receive, send)
        else:
            await self.app(scope, receive, send)

    def _refusal(self, scope: Scope) -> ApiError | None:
        hosts = _values(scope, b"host")
        host = _bare(hosts[0]) if len(hosts) == 1 else ""
        if not host:
            return ApiError("a request needs one Host header", status=400, code="bad_host")
        if not (self._any or host in self._hosts or is_loopback(host)):
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
        mode = _values(scope, b"sec-fetch-mode")
        if not site or site[0] in ("same-origin", "none"):
            return False
        return not (mode == ["navigate"] and scope["method"] in ("GET", "HEAD"))

    def _welcome(self, origin: str, host: str) -> bool:
        if origin.lower() in self._origins:
            return True
        try:
            parts = urlsplit(origin)
        except ValueError:
            return False
        return parts.scheme in ("http", "https") and parts.netloc.lower() == host.lower()


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
