"""Requests to models behind HTTP: JSON in, JSON or events out, time limits, retries, no key in any message.

Embedding models, judges and models that write answers all ask through :class:`Endpoint`; tenacity repeats
what is worth it, as a :class:`Patience` says.
"""

import json
import logging
import os
import random
import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, ClassVar, Literal

import httpx
from tenacity import RetryCallState, Retrying, retry_if_exception, stop_after_attempt

from dartboard.deadline import check, within
from dartboard.errors import ConfigError, EndpointError

logger = logging.getLogger(__name__)

_MB = 1_000_000
_GOOGLE_DELAY = re.compile(r'"retryDelay":\s*"(\d+(?:\.\d+)?)s"')
_DONE = b"[DONE]"

Kind = Literal["unreachable", "limited", "failed", "refused", "rejected", "broken", "silent", "cut", "empty"]
"""``refused``: key, model or address; ``rejected``: this request alone; ``broken``: no answer to be read."""


class RequestError(EndpointError):
    """One request came to nothing.

    ``lost``: it may have been worked on (and charged for), but no answer that can be read arrived. ``status``
    is 0 where no answer came, ``retry_after`` the seconds that the endpoint asks to wait.
    """

    def __init__(
        self,
        message: str,
        *,
        kind: Kind | None = None,
        status: int = 0,
        retry_after: float | None = None,
        lost: bool = False,
    ) -> None:
        super().__init__(message)
        self.kind = kind or _kind(status)
        self.status, self.retry_after, self.lost = status, retry_after, lost
        self.attempts = 1

    @property
    def worth_another_try(self) -> bool:
        """Whether the same request can succeed later."""
        return self.lost or self.kind in ("unreachable", "limited", "failed") or self.status in (409, 425)


class LongWaitError(EndpointError):
    """The endpoint asks for a longer pause than is allowed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How long to wait for an answer and how often to ask again.

    The wait before attempt i + 1 is ``first_wait · 2^i``, at most ``longest_wait``, times a random
    share between ½ and 1 so that many clients do not return at once. A ``Retry-After`` header takes
    its place; one that asks for more than ``longest_asked`` seconds ends the work with an error.
    """

    timeout: float = 30.0
    attempts: int = 6
    first_wait: float = 0.5
    longest_wait: float = 60.0
    longest_asked: float = 600.0

    def __post_init__(self) -> None:
        waits = (self.first_wait, self.longest_wait, self.longest_asked)
        if not self.timeout > 0 or self.attempts < 1 or not all(wait >= 0 for wait in waits):
            raise ConfigError(f"needed: timeout > 0, attempts >= 1 and waits >= 0, got {self}")

    def retrying(
        self, pause: Callable[[float], None], told: Callable[[RequestError, float], None]
    ) -> Retrying:
        """Repeats requests; ``told`` hears of each failure before the ``pause``."""

        def wait(state: RetryCallState) -> float:
            asked = _error(state).retry_after
            if asked is not None and asked > self.longest_asked:
                raise LongWaitError(
                    f"asks to wait {asked:,.0f} s, longer than the {self.longest_asked:,.0f} s that are "
                    "allowed: come back later, or allow more (longest_asked)"
                )
            if asked is not None:
                return asked
            growing = self.first_wait * 2.0 ** (state.attempt_number - 1)
            return min(growing, self.longest_wait) * random.uniform(0.5, 1)

        def before_sleep(state: RetryCallState) -> None:
            told(_error(state), state.upcoming_sleep)

        def again(error: BaseException) -> bool:
            return isinstance(error, RequestError) and error.worth_another_try

        def stop(state: RetryCallState) -> bool:
            _error(state).attempts = state.attempt_number
            return stop_after_attempt(self.attempts)(state)

        return Retrying(
            retry=retry_if_exception(again),
            stop=stop,
            wait=wait,
            sleep=pause,
            before_sleep=before_sleep,
            reraise=True,
        )


class Endpoint:
    """Posts JSON to one base URL; see :meth:`post` (an answer, with retries) and :meth:`events` (once).

    Args:
        base_url: what comes before the paths, as in ``http://localhost:11434/v1``.
        headers: sent with each request; the key is one of them.
        secret: the key, which no message and no log line shows.
        patience: time limit and retries.
        sleep: waits between attempts; tests give their own.

    Raises:
        ConfigError: ``base_url`` is no http(s) URL, or holds a password.
    """

    longest: ClassVar[int] = 128 * _MB
    """Bytes of an answer: room for two thousand vectors of 3,072 numbers."""

    def __init__(
        self,
        base_url: str,
        *,
        headers: Mapping[str, str],
        secret: str | None,
        patience: Patience,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.base_url = _checked_url(base_url)
        self.patience = patience
        self._secret = secret
        self._sleep = sleep
        # A redirect is an error: another host must not get the key, nor the texts.
        self._client = httpx.Client(headers=dict(headers), timeout=patience.timeout, follow_redirects=False)

    def post(self, path: str, body: Mapping[str, Any]) -> Any:
        """The decoded answer; tries again after 408, 409, 425, 429, 5xx and broken connections.

        Raises:
            EndpointError: the endpoint refuses, asks for too long a wait, or no attempt succeeded.
        """

        def told(error: RequestError, wait: float) -> None:
            logger.info("%s%s: %s; asking again in %.1f s", self.base_url, path, error, wait)

        def pause(seconds: float) -> None:
            self._sleep(within(seconds))
            check()

        try:
            parts = self.patience.retrying(pause, told)(self._whole, path, body)
            return next(part for part in parts if part is not None)
        except EndpointError as error:
            raise EndpointError(f"{self.base_url}{path} {gave_up(error)}") from None

    def events(self, path: str, body: Mapping[str, Any], *, stream: bool) -> Iterator[dict[str, Any] | None]:
        """What one request brings: the object of a whole answer, or those of server-sent events.

        None stands for bytes without an event, such as comments: somebody is there.

        Raises:
            RequestError: the request came to nothing, or its answer broke off.
        """
        with self._responding(path, body, stream=stream) as (response, parts):
            yield None
            if "event-stream" in response.headers.get("content-type", "") or (
                stream and "json" not in response.headers.get("content-type", "")
            ):
                yield from self._events(parts)
            else:
                yield self._object(b"".join(parts))

    def hidden(self, message: str) -> str:
        """The message without the key."""
        return message.replace(self._secret, "***") if self._secret else message

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def _whole(self, path: str, body: Mapping[str, Any]) -> list[dict[str, Any] | None]:
        check()
        return list(self.events(path, body, stream=False))

    @contextmanager
    def _responding(
        self, path: str, body: Mapping[str, Any], *, stream: bool
    ) -> Iterator[tuple[httpx.Response, Iterator[bytes]]]:
        """A successful response and its body, as far as it is not too long or (unless a stream) too slow."""
        timeout = max(0.001, within(self.patience.timeout))
        ends = float("inf") if stream else time.monotonic() + timeout
        try:
            with self._client.stream(
                "POST", f"{self.base_url}{path}", json=body, timeout=timeout
            ) as response:
                parts = self._limited(response.iter_bytes(), ends)
                if not response.is_success:
                    text = b"".join(parts).decode("utf-8", "replace")
                    raise RequestError(
                        self.hidden(f"HTTP {response.status_code} {text[:300]}"),
                        status=response.status_code,
                        retry_after=retry_after(response.headers, text),
                    )
                yield response, parts
        except (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout) as error:
            raise RequestError(self.hidden(f"no connection: {error}"), kind="unreachable") from None
        except httpx.ReadTimeout:
            trouble = f"nothing of the answer came for {timeout:g} s"
            raise RequestError(trouble, kind="silent", lost=True) from None
        except (httpx.TransportError, httpx.DecodingError) as error:
            trouble = self.hidden(f"{type(error).__name__} {error}".strip())
            raise RequestError(trouble, kind="broken", lost=True) from None

    def _limited(self, parts: Iterator[bytes], ends: float) -> Iterator[bytes]:
        size = 0
        for part in parts:
            size += len(part)
            if size > self.longest:
                trouble = f"answers with more than {self.longest // _MB} MB: it is no model's endpoint"
                raise RequestError(trouble, kind="rejected", status=200)
            if time.monotonic() > ends:
                raise httpx.ReadTimeout("no whole answer in time")
            yield part

    def _events(self, parts: Iterator[bytes]) -> Iterator[dict[str, Any] | None]:
        """The objects in lines that begin with ``data:``, up to the end or OpenAI's last event."""
        rest = b""
        for part in parts:
            # Not splitlines(): JSON may hold other ends of lines, such as U+2028, as they are.
            *lines, rest = (rest + part).split(b"\n")
            yield None
            for line in lines:
                data = line.removeprefix(b"data:").strip() if line.startswith(b"data:") else b""
                if data == _DONE:
                    return
                if data:
                    yield self._object(data)
        data = rest.removeprefix(b"data:").strip() if rest.startswith(b"data:") else b""
        if data and data != _DONE:
            yield self._object(data)

    def _object(self, data: bytes) -> dict[str, Any]:
        """A JSON object; an error that is sent as one is an error."""
        try:
            found = json.loads(data)
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, dict):
            shown = self.hidden(data[:100].decode("utf-8", "replace"))
            raise RequestError(f"answered what is not JSON: {shown!r}", kind="broken", lost=True)
        if error := found.get("error"):
            facts = error if isinstance(error, dict) else {"message": error}
            code = facts.get("code")
            told = self.hidden(f"the endpoint says: {str(facts.get('message', facts))[:300]}")
            if isinstance(code, int) and 400 <= code < 600:
                raise RequestError(told, status=code)
            raise RequestError(told, kind="failed")
        return found


def gave_up(error: EndpointError) -> str:
    """Why no further attempt is made."""
    if not isinstance(error, RequestError):
        return str(error)
    if not error.worth_another_try:
        return f"refused: {error}"
    return (
        f"failed {error.attempts} times, at last with: {error}" if error.attempts > 1 else f"failed: {error}"
    )


def checked_key(api_key: str | None, variable: str) -> str | None:
    """The key given, else the one in the environment, else None; it must fit into a header."""
    key = (api_key if api_key is not None else os.environ.get(variable, "")).strip()
    if not (key.isascii() and key.isprintable()):
        raise ConfigError(f"the API key holds characters that no key has: check api_key or {variable}")
    return key or None


def retry_after(headers: Mapping[str, str], body: str = "") -> float | None:
    """Seconds that the endpoint asks to wait; None where it says nothing usable.

    OpenAI says milliseconds, the usual header a number or a date, Google a RetryInfo in the body.
    """
    milliseconds = headers.get("retry-after-ms", "").strip()
    if milliseconds.isdecimal():
        return int(milliseconds) / 1000
    text = headers.get("retry-after", "").strip()
    if text.isdecimal():
        return float(text)
    try:
        until = parsedate_to_datetime(text)
    except ValueError:
        delay = _GOOGLE_DELAY.search(body)
        return float(delay[1]) if delay else None
    if until.tzinfo is None:
        until = until.replace(tzinfo=UTC)
    return max(0.0, (until - datetime.now(UTC)).total_seconds())


def _kind(status: int) -> Kind:
    if status == 429:
        return "limited"
    if status in (401, 402, 403, 404, 405):
        return "refused"
    return "failed" if status >= 500 or status == 408 else "rejected"


def _error(state: RetryCallState) -> RequestError:
    """What the last attempt failed with."""
    error = state.outcome.exception() if state.outcome is not None else None
    if not isinstance(error, RequestError):  # pragma: no cover - only such errors are tried again
        raise TypeError(error)
    return error


def _checked_url(base_url: str) -> str:
    try:
        url = httpx.URL(base_url)
    except (httpx.InvalidURL, TypeError) as error:
        raise ConfigError(f"base_url is not a URL: {error}") from error
    if url.scheme not in ("http", "https") or not url.host:
        raise ConfigError(f"base_url must start with http:// or https://, got {base_url!r}")
    if url.userinfo:
        raise ConfigError("base_url must not hold a password: give it as api_key")
    return base_url.rstrip("/")
