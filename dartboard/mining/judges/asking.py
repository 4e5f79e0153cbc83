"""One request to a chat endpoint at a time, with what is known of its outcome afterwards."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import httpx

from dartboard.embeddings.remote import Endpoint, TooLongAnswerError, retry_after
from dartboard.errors import EndpointError


class RefusedError(EndpointError):
    """The endpoint refuses this key, model or address: asking again, or about something else, is no use."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What came back. ``lost``: the request may have been worked on, but no whole answer arrived."""

    status: int = 0
    answer: Any = None
    trouble: str = ""
    retry_after: float | None = None
    lost: bool = False

    @property
    def ok(self) -> bool:
        """Whether there is an answer to read."""
        return self.answer is not None

    @property
    def worth_another_try(self) -> bool:
        """Whether the same request can succeed later."""
        return self.status in (0, 408, 409, 425, 429) or self.status >= 500 or self.lost


_DELAY = re.compile(r'"retryDelay":\s*"(\d+(?:\.\d+)?)s"')


def _asked_wait(response: httpx.Response) -> float | None:
    """Seconds that the endpoint asks to wait: OpenAI's milliseconds, the usual header, Google's RetryInfo."""
    milliseconds = response.headers.get("retry-after-ms", "").strip()
    if milliseconds.isdecimal():
        return int(milliseconds) / 1000
    asked = retry_after(response)
    if asked is None and (match := _DELAY.search(response.text)):
        return float(match[1])
    return asked


class ChatEndpoint(Endpoint):
    """An endpoint that is asked once a call: limits and budget stand between one attempt and the next."""

    longest = 8_000_000

    def once(self, path: str, body: Mapping[str, Any]) -> Reply:
        """Post, and say what happened."""
        try:
            response = self._answer(f"{self.base_url}{path}", body)
        except (httpx.TransportError, httpx.DecodingError) as error:
            return self.failure(error)
        except TooLongAnswerError as error:
            return Reply(lost=True, trouble=self.hidden(str(error)))
        if not response.is_success:
            return self.refusal(response)
        try:
            answer = json.loads(response.content)
        except (ValueError, RecursionError):
            answer = None
        if not isinstance(answer, dict):
            start = self.hidden(response.text[:100])
            return Reply(status=response.status_code, lost=True, trouble=f"answered no JSON: {start!r}")
        return Reply(status=response.status_code, answer=answer)

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
            retry_after=_asked_wait(response),
        )

    def wait(self, attempt: int, asked: float | None) -> float:
        """Seconds to wait after failed attempt number ``attempt``, from 0."""
        return self._patience.wait(attempt, asked)

    @property
    def attempts(self) -> int:
        """How often a request is tried."""
        return self._patience.attempts

    def hidden(self, message: str) -> str:
        """The message without the key."""
        return self._hidden(message)
