"""Requests to models behind HTTP: JSON in, JSON out, time limits, retries, and no key in any message.

Embedding models, judges and models that write answers all ask through :class:`Endpoint`. Why no library does
the retries: httpx repeats only failed connections, not 429 or 5xx; tenacity is no dependency of ours and
knows neither ``Retry-After`` nor the deadline of the work at hand, which are most of what is here.
"""

import json
import logging
import os
import random
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any, ClassVar

import httpx

from dartboard.deadline import check, within
from dartboard.errors import ConfigError, EndpointError

logger = logging.getLogger(__name__)

_A_YEAR = 365 * 86400.0
_MB = 1_000_000
_WORTH_ANOTHER_TRY = frozenset({0, 408, 409, 425, 429})
_GOOGLE_DELAY = re.compile(r'"retryDelay":\s*"(\d+(?:\.\d+)?)s"')


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

    def wait(self, attempt: int, asked: float | None) -> float:
        """Seconds to wait after failed attempt number ``attempt``, from 0; an error where it is too long."""
        if asked is not None and asked > self.longest_asked:
            then = datetime.now(UTC) + timedelta(seconds=min(asked, _A_YEAR))
            raise EndpointError(
                f"asks to wait {asked:,.0f} s, longer than the {self.longest_asked:,.0f} s that are allowed: "
                f"come back after {then:%Y-%m-%d %H:%M:%S} UTC, or allow more (longest_asked, --max-wait)"
            )
        if asked is not None:
            return asked
        return min(self.first_wait * 2.0**attempt, self.longest_wait) * random.uniform(0.5, 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What came of one request.

    ``status`` is 0 where no answer came. ``lost``: the request may have been worked on (and charged for), but
    no answer that can be read arrived. ``trouble`` says what went wrong, without the key.
    """

    status: int = 0
    answer: Any = None
    trouble: str = ""
    retry_after: float | None = None
    lost: bool = False

    @property
    def ok(self) -> bool:
        """Whether there is a JSON object to read."""
        return isinstance(self.answer, dict)

    @property
    def worth_another_try(self) -> bool:
        """Whether the same request can succeed later."""
        return self.status in _WORTH_ANOTHER_TRY or self.status >= 500 or self.lost


class _TooLongError(Exception):
    """The endpoint sends more than any answer holds; the rest is not read."""


class Endpoint:
    """Posts JSON and reads JSON at one base URL; see :meth:`post` and :meth:`once`.

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
        self._secret = secret
        self._patience = patience
        self._sleep = sleep
        # A redirect is an error: another host must not get the key, nor the texts.
        self._client = httpx.Client(headers=dict(headers), timeout=patience.timeout, follow_redirects=False)

    @property
    def attempts(self) -> int:
        """How often a request is tried."""
        return self._patience.attempts

    def post(self, path: str, body: Mapping[str, Any]) -> Any:
        """The decoded answer; tries again after 408, 409, 425, 429, 5xx and broken connections.

        Raises:
            EndpointError: the endpoint refuses, asks for too long a wait, answers what cannot be read, or no
                attempt succeeded.
        """
        url, trouble = f"{self.base_url}{path}", ""
        for attempt in range(self.attempts):
            check()
            reply = self.once(path, body)
            trouble = reply.trouble
            if reply.answer is not None:
                return reply.answer
            if 200 <= reply.status < 300:
                raise EndpointError(f"{url} {trouble}")
            if not reply.worth_another_try:
                raise EndpointError(f"{url} refused: {trouble}")
            if attempt + 1 < self.attempts:
                try:
                    wait = self.wait(attempt, reply.retry_after)
                except EndpointError as error:
                    raise EndpointError(f"{url} {error}") from None
                logger.info("%s: %s; asking again in %.1f s", url, trouble, wait)
                self._sleep(within(wait))
        raise EndpointError(f"{url} failed {self.attempts} times, at last with: {trouble}")

    def once(self, path: str, body: Mapping[str, Any]) -> Reply:
        """Post a single time and say what happened, for callers with something to do between attempts."""
        try:
            response = self._answer(f"{self.base_url}{path}", body)
        except (httpx.TransportError, httpx.DecodingError) as error:
            return self.failure(error)
        except _TooLongError:
            trouble = f"answers with more than {self.longest // _MB} MB: it is no model's endpoint"
            return Reply(status=200, lost=True, trouble=trouble)
        if not response.is_success:
            return self.refusal(response)
        try:
            answer = json.loads(response.content)
        except (ValueError, RecursionError):
            answer = None
        reply = Reply(status=response.status_code, answer=answer)
        if reply.ok:
            return reply
        trouble = self.hidden(f"answered what is not JSON: {response.text[:100]!r}")
        return Reply(status=response.status_code, answer=answer, lost=True, trouble=trouble)

    def failure(self, error: Exception) -> Reply:
        """What a broken connection, or one that never came about, means for its request."""
        if isinstance(error, httpx.ConnectError | httpx.ConnectTimeout | httpx.PoolTimeout):
            return Reply(trouble=self.hidden(f"no connection: {error}"))
        return Reply(lost=True, trouble=self.hidden(f"{type(error).__name__} {error}".strip()))

    def refusal(self, response: httpx.Response) -> Reply:
        """What an answer that says no means; its body has been read."""
        return Reply(
            status=response.status_code,
            trouble=self.hidden(f"HTTP {response.status_code} {response.text[:300]}"),
            retry_after=retry_after(response),
        )

    def wait(self, attempt: int, asked: float | None) -> float:
        """Seconds to wait after failed attempt number ``attempt``, from 0; see :meth:`Patience.wait`."""
        return self._patience.wait(attempt, asked)

    def hidden(self, message: str) -> str:
        """The message without the key."""
        return message.replace(self._secret, "***") if self._secret else message

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def _answer(self, url: str, body: Mapping[str, Any]) -> httpx.Response:
        """The whole response within the timeout and the limit, however slowly its bytes come in."""
        patience = max(0.001, within(self._patience.timeout))
        ends = time.monotonic() + patience
        with self._client.stream("POST", url, json=body, timeout=patience) as response:
            content = bytearray()
            for part in response.iter_bytes():
                content += part
                if len(content) > self.longest:
                    raise _TooLongError
                if time.monotonic() > ends:
                    raise httpx.ReadTimeout(f"no whole answer within {patience:g} s")
        decoded = {name: value for name, value in response.headers.items() if name != "content-encoding"}
        return httpx.Response(response.status_code, headers=decoded, content=bytes(content))


def checked_key(api_key: str | None, variable: str) -> str | None:
    """The key given, else the one in the environment, else None; it must fit into a header."""
    key = (api_key if api_key is not None else os.environ.get(variable, "")).strip()
    if not (key.isascii() and key.isprintable()):
        raise ConfigError(f"the API key holds characters that no key has: check api_key or {variable}")
    return key or None


def retry_after(response: httpx.Response) -> float | None:
    """Seconds that the endpoint asks to wait; None where it says nothing usable.

    OpenAI says milliseconds, the usual header a number or a date, Google a RetryInfo in the body.
    """
    milliseconds = response.headers.get("retry-after-ms", "").strip()
    if milliseconds.isdecimal():
        return int(milliseconds) / 1000
    text = response.headers.get("retry-after", "").strip()
    if text.isdecimal():
        return float(text)
    try:
        until = parsedate_to_datetime(text)
    except ValueError:
        delay = _GOOGLE_DELAY.search(response.text)
        return float(delay[1]) if delay else None
    if until.tzinfo is None:
        until = until.replace(tzinfo=UTC)
    return max(0.0, (until - datetime.now(UTC)).total_seconds())


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
