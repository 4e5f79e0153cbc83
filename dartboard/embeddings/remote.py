"""Models behind HTTP: one polite way to ask, and the part that all of them share."""

import hashlib
import logging
import os
import random
import time
from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from functools import cached_property
from typing import Any, ClassVar, Self

import httpx
import numpy as np

from dartboard.deadline import check, within
from dartboard.embeddings.base import BatchModel
from dartboard.embeddings.descriptions import ModelDescription, TaskType, known_description
from dartboard.embeddings.vectors import Vectors
from dartboard.errors import ConfigError, EndpointError
from dartboard.utils import unit_rows

logger = logging.getLogger(__name__)


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


PATIENCE = Patience()

_A_YEAR = 365 * 86400.0
_MB = 1_000_000
_WORTH_ANOTHER_TRY = frozenset({408, 429})


class TooLongAnswerError(EndpointError):
    """The endpoint sends more than any answer holds; the rest is not read."""


class Endpoint:
    """Posts JSON and returns JSON; asks again where that can help, and never shows the key."""

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

    def post(self, path: str, body: Mapping[str, Any]) -> Any:
        """The decoded answer; 408, 429, 5xx and broken connections are tried again, other refusals not."""
        url = f"{self.base_url}{path}"
        trouble = ""
        for attempt in range(self._patience.attempts):
            check()
            asked = None
            try:
                response = self._answer(url, body)
            except (httpx.TransportError, httpx.DecodingError) as error:
                trouble = f"{type(error).__name__} {error}".strip()
            else:
                if response.is_success:
                    return self._decoded(url, response)
                trouble = f"HTTP {response.status_code} {response.text[:300]}"
                if response.status_code not in _WORTH_ANOTHER_TRY and response.status_code < 500:
                    raise EndpointError(self._hidden(f"{url} refused: {trouble}"))
                asked = retry_after(response)
            if attempt + 1 < self._patience.attempts:
                try:
                    wait = self._patience.wait(attempt, asked)
                except EndpointError as error:
                    raise EndpointError(self._hidden(f"{url} {error}")) from None
                logger.info("%s: %s; asking again in %.1f s", url, self._hidden(trouble), wait)
                self._sleep(within(wait))
        raise EndpointError(
            self._hidden(f"{url} failed {self._patience.attempts} times, at last with: {trouble}")
        )

    def _answer(self, url: str, body: Mapping[str, Any]) -> httpx.Response:
        """The whole response within the timeout and the limit, however slowly its bytes come in."""
        patience = max(0.001, within(self._patience.timeout))
        ends = time.monotonic() + patience
        with self._client.stream("POST", url, json=body, timeout=patience) as response:
            content = bytearray()
            for part in response.iter_bytes():
                content += part
                if len(content) > self.longest:
                    raise TooLongAnswerError(
                        f"{url} answers with more than {self.longest // _MB} MB: it is no model's endpoint"
                    )
                if time.monotonic() > ends:
                    raise httpx.ReadTimeout(f"no whole answer within {patience:g} s")
        decoded = {name: value for name, value in response.headers.items() if name != "content-encoding"}
        return httpx.Response(response.status_code, headers=decoded, content=bytes(content))

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def _decoded(self, url: str, response: httpx.Response) -> Any:
        try:
            return response.json()
        except (ValueError, RecursionError):
            start = response.text[:100]
            raise EndpointError(self._hidden(f"{url} answered what is not JSON: {start!r}")) from None

    def _hidden(self, message: str) -> str:
        return message.replace(self._secret, "***") if self._secret else message


class RemoteModel(BatchModel):
    """A model at an endpoint; subclasses say how a batch is asked for and read."""

    max_batch = 100

    def __init__(
        self,
        endpoint: Endpoint,
        model: str,
        *,
        dimensions: int | None,
        description: ModelDescription | None,
    ) -> None:
        if not model:
            raise ConfigError("model must be the name that the endpoint knows the model by, got ''")
        if dimensions is not None and dimensions < 1:
            raise ConfigError(f"dimensions must be >= 1 or None for the model's own, got {dimensions}")
        self._endpoint = endpoint
        self._model = model
        self._dimensions = dimensions
        self._stated = description or known_description(model)

    @abstractmethod
    def _ask(self, texts: list[str], task: TaskType) -> list[Any]:
        """One request: the vectors of prefixed texts, in order."""

    @cached_property
    def description(self) -> ModelDescription:
        """As given or known; an unknown dimension is learnt by encoding one word."""
        dim = self._dimensions or (self._stated.dim if self._stated else None)
        if dim is None:
            dim = self._vectors(self._ask(["dimension"], TaskType.RETRIEVAL_DOCUMENT)).shape[1]
        stated = self._stated or ModelDescription(name=self._model, dim=dim)
        return replace(stated, name=self._model, dim=dim)

    @cached_property
    def fingerprint(self) -> str:
        """Name and a hash of endpoint, model and description: weights behind HTTP cannot be hashed."""
        known = (
            type(self).__name__,
            self._endpoint.base_url,
            self._dimensions,
            replace(self.description, sigma=None),
        )
        return f"{self.name}:{hashlib.sha256(repr(known).encode()).hexdigest()[:16]}"

    def close(self) -> None:
        """Close the connections."""
        self._endpoint.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"{type(self).__name__}(model={self._model!r}, base_url={self._endpoint.base_url!r})"

    def _encode_batch(self, texts: list[str], task: TaskType) -> Vectors:
        prefix = self.description.prefix(task)
        answers: list[Any] = []
        for start in range(0, len(texts), self.max_batch):
            some = [prefix + text for text in texts[start : start + self.max_batch]]
            answers += self._ask(some, task)
        vectors = self._vectors(answers)
        return unit_rows(vectors) if self.description.normalize else vectors

    def _vectors(self, answers: list[Any]) -> Vectors:
        try:
            raw = np.array(answers)
            if raw.dtype.kind not in "fiu":
                raise TypeError(raw.dtype)
            with np.errstate(over="ignore"):
                vectors = raw.astype(np.float32)
        except (TypeError, ValueError, OverflowError):
            raise EndpointError(
                f"{self!r} answered vectors that are not lists of numbers of one length"
            ) from None
        if vectors.ndim != 2 or not vectors.shape[1]:
            raise EndpointError(f"{self!r} answered vectors of shape {vectors.shape} where rows are due")
        return vectors


def checked_key(api_key: str | None, variable: str) -> str | None:
    """The key given, else the one in the environment, else None; it must fit into a header."""
    key = (api_key if api_key is not None else os.environ.get(variable, "")).strip()
    if not (key.isascii() and key.isprintable()):
        raise ConfigError(f"the API key holds characters that no key has: check api_key or {variable}")
    return key or None


def counted(answers: Any, texts: list[str], source: object) -> list[Any]:
    """The answers, when they are a list with one for each text."""
    if not isinstance(answers, list) or len(answers) != len(texts):
        got = len(answers) if isinstance(answers, list) else type(answers).__name__
        raise EndpointError(f"{source!r} answered {got} vectors for {len(texts)} texts")
    return answers


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


def retry_after(response: httpx.Response) -> float | None:
    """Seconds that the server asks to wait, from a number or a date; None where it says nothing usable."""
    text = response.headers.get("retry-after", "").strip()
    if text.isdecimal():
        return float(text)
    try:
        until = parsedate_to_datetime(text)
    except ValueError:
        return None
    if until.tzinfo is None:
        until = until.replace(tzinfo=UTC)
    return max(0.0, (until - datetime.now(UTC)).total_seconds())
