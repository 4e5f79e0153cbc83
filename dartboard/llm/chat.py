"""Chat models at an endpoint: asked within limits, tried again where that helps, counted exactly.

A provider writes a request (``_request``) and reads what comes (``_read``): the same method reads a whole
answer and an event of a stream. Each attempt of :meth:`Chat.complete` passes the current
:class:`~dartboard.llm.call_limits.CallLimiter`; a pause that the endpoint asks for holds for all threads. A
streamed answer is tried again until its first words have come, and never after them.
"""

import logging
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import reduce
from operator import add
from queue import Empty, SimpleQueue
from threading import Event, Thread
from typing import Any, ClassVar, Protocol, TypedDict

from tenacity import Retrying

from dartboard.deadline import check
from dartboard.errors import ConfigError, EndpointError
from dartboard.http_client import Endpoint, LongWaitError, Patience, RequestError, gave_up
from dartboard.llm.call_limits import CallLimiter, current_limiter
from dartboard.llm.errors import AnswerError, RefusedError
from dartboard.llm.usage import Usage, estimated_tokens

logger = logging.getLogger(__name__)

MOST_OUTPUT = 8192
"""Tokens of one answer: models that think before they answer are charged for their thoughts, too."""
PATIENCE = Patience(timeout=300.0)
"""Such models take their time."""
LONGEST_ANSWER = 600.0
"""Seconds for a streamed answer unless told otherwise."""

_EXPECTED_OUTPUT = 120
_OVERHEAD = 64
_LONG_WAIT = 30.0
_GLANCE = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatAnswer:
    """What a model wrote, or ``trouble`` saying why it wrote nothing usable; and what it took."""

    text: str
    usage: Usage
    trouble: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """Some of an answer, or all of it, as the endpoint sent it. An empty one is a sign of life.

    ``finish`` says why the answer ended here; tokens are None where the endpoint did not count them.
    """

    text: str = ""
    finish: str = ""
    input_tokens: int | None = None
    output_tokens: int | None = None


class CompletionModel(Protocol):
    """A model that answers a prompt at once, as :class:`Chat` does."""

    @property
    def full_name(self) -> str:
        """Its name, with its address where that matters."""

    def complete(self, text: str, *, system: str = "", attempt: int = 0) -> ChatAnswer:
        """What the model answers."""

    def expected(self, text: str, system: str = "") -> Usage:
        """What one answer will probably take."""

    def close(self) -> None:
        """Close the connections."""


class AnswerModel(Protocol):
    """A model whose answers are read while it writes them, as :class:`Chat` is one."""

    @property
    def name(self) -> str:
        """As a configuration writes it, without its address."""

    def stream(self, text: str, *, system: str = "") -> Iterator[Piece]:
        """The answer to a prompt, as it is written; close the iterator to stop it."""


class ChatOptions(TypedDict, total=False):
    """What every chat model can be told beside its name, address and key."""

    max_output_tokens: int
    patience: Patience


class ChatEndpoint(Endpoint):
    """An endpoint of texts, which are shorter than vectors."""

    longest = 16_000_000


class Chat(ABC):
    """A chat model at an endpoint; subclasses write requests and read answers.

    Args:
        model: the name that the endpoint knows the model by.
        base_url: what comes before the paths of the API.
        headers: sent with each request; the key is one of them.
        secret: the key, which no message shows.
        max_output_tokens: the most that one answer may have, thoughts included.
        patience: time limits and retries.

    Raises:
        ConfigError: an argument that cannot work.
    """

    kind: ClassVar[str]
    """What stands before the colon in the name of such a model."""
    default_url: ClassVar[str]
    longest: float = LONGEST_ANSWER
    """Seconds for a streamed answer, all attempts together."""

    def __init__(
        self,
        model: str,
        base_url: str,
        *,
        headers: Mapping[str, str],
        secret: str | None,
        max_output_tokens: int = MOST_OUTPUT,
        patience: Patience = PATIENCE,
    ) -> None:
        if not model.strip():
            raise ConfigError(
                "model must be the name that the endpoint knows the model by, got ''", field="model"
            )
        if max_output_tokens < 1:
            raise ConfigError(
                f"max_output_tokens must be >= 1, got {max_output_tokens}", field="max_output_tokens"
            )
        self.model = model
        self.max_output_tokens = max_output_tokens
        self.endpoint = ChatEndpoint(base_url, headers=headers, secret=secret, patience=patience)
        self._left_out: frozenset[str] = frozenset()

    @property
    def name(self) -> str:
        """Kind and model, as a configuration writes them."""
        return f"{self.kind}:{self.model}"

    @property
    def full_name(self) -> str:
        """The name with its address, where that is not the provider's own."""
        url = self.endpoint.base_url
        return self.name if url == self.default_url else f"{self.name}@{url}"

    def complete(self, text: str, *, system: str = "", attempt: int = 0) -> ChatAnswer:
        """What the model answers; ``attempt`` > 0 asks for another, independent answer.

        Returns:
            The answer; one without text where the endpoint refuses this request alone.

        Raises:
            RefusedError: the endpoint refuses key, model or address, or asks for too long a pause.
            EndpointError: no attempt succeeded.
            BudgetError: the budget does not allow another call.
        """
        text = text.encode("utf-8", "replace").decode()
        limiter, spent = current_limiter(), [Usage()]
        try:
            written = self._retrying(limiter)(self._ask, text, system, attempt, limiter, spent)
        except LongWaitError as error:
            raise RefusedError(f"{self.endpoint.base_url} {error}") from None
        except RequestError as error:
            if error.worth_another_try:
                raise EndpointError(f"{self.endpoint.base_url} {gave_up(error)}") from None
            if self._is_refused(error):
                raise RefusedError(f"{self.endpoint.base_url} {gave_up(error)}") from None
            return ChatAnswer(text="", usage=reduce(add, spent), trouble=f"the endpoint {gave_up(error)}")
        trouble = ""
        if written.finish == "length":
            trouble = (
                f"the answer was cut at the limit of {self.max_output_tokens:,} output tokens, thoughts "
                "included: allow more (max_output_tokens, --max-output)"
            )
        elif not written.text:
            trouble = f"the answer holds no text ({written.finish or 'no reason given'})"
        return ChatAnswer(text=written.text, usage=reduce(add, spent), trouble=trouble)

    def stream(self, text: str, *, system: str = "") -> Iterator[Piece]:
        """The answer as it is written; close the iterator to stop it.

        Raises:
            AnswerError: there is no answer, or only a part of it.
        """
        text = text.encode("utf-8", "replace").decode()
        ends = time.monotonic() + self.longest
        try:
            for attempt in self._retrying(current_limiter()):
                with attempt:
                    yield from self._streamed(text, system, ends)
        except LongWaitError as error:
            raise self._error(AnswerError("limited", f"{error}")) from None
        except RequestError as error:
            kind = "refused" if self._is_refused(error) else error.kind
            raise self._error(
                AnswerError(kind, gave_up(error), status=error.status, retry_after=error.retry_after)
            ) from None

    def bound(self, text: str, system: str) -> Usage:
        """The most that one attempt can take: a token has at least one byte."""
        sent = len(text.encode("utf-8", "replace")) + len(system.encode()) + _OVERHEAD
        return Usage(calls=1, input_tokens=sent, output_tokens=self.max_output_tokens)

    def expected(self, text: str, system: str = "") -> Usage:
        """What one attempt will probably take."""
        output = min(_EXPECTED_OUTPUT, self.max_output_tokens)
        return Usage(calls=1, input_tokens=estimated_tokens(text + system), output_tokens=output)

    def close(self) -> None:
        """Close the connections."""
        self.endpoint.close()

    def __repr__(self) -> str:
        return f"{type(self).__name__}(model={self.model!r}, base_url={self.endpoint.base_url!r})"

    @abstractmethod
    def _request(self, text: str, system: str, attempt: int, *, stream: bool) -> tuple[str, dict[str, Any]]:
        """Path and body of a request, without what ``_left_out`` names."""

    @abstractmethod
    def _read(self, event: dict[str, Any]) -> Piece:
        """What a whole answer, or an event of a stream, brings, whatever shape it has."""

    def _optional(self, error: RequestError, body: Mapping[str, Any]) -> str | None:
        """The part of the body that a refusal complains of and that can be left out."""
        return None

    def _is_refused(self, error: RequestError) -> bool:
        """Whether key, model or address are refused, and not this request alone."""
        return error.kind == "refused"

    def _ask(self, text: str, system: str, attempt: int, limiter: CallLimiter, spent: list[Usage]) -> Piece:
        """One attempt within the limits; what it took is added to ``spent``."""
        check()
        bound, usage = self.bound(text, system), Usage(unanswered=1)
        limiter.admit(bound)
        try:
            written = _joined(self._read(one) for one in self._events(text, system, attempt) if one)
            given, got = written.input_tokens, written.output_tokens
            usage = Usage(
                calls=1,
                input_tokens=estimated_tokens(text + system) if given is None else given,
                output_tokens=estimated_tokens(written.text) if got is None else got,
            )
        except RequestError as error:
            usage = Usage(unanswered=int(error.lost))
            raise
        finally:
            limiter.settle(bound, usage)
            spent.append(usage)
        return written

    def _events(
        self, text: str, system: str, attempt: int, *, stream: bool = False
    ) -> Iterator[dict[str, Any] | None]:
        """What a request brings; optional parts that the endpoint refuses are left out from then on."""
        while True:
            path, body = self._request(text, system, attempt, stream=stream)
            try:
                yield from self.endpoint.events(path, body, stream=stream)
                return
            except RequestError as error:
                named = self._optional(error, body) if error.status in (400, 422) else None
                if named is None:
                    raise
                self._left_out |= {named}

    def _streamed(self, text: str, system: str, ends: float) -> Iterator[Piece]:
        """One attempt; an answer that breaks off after its first words is not tried again."""
        said = ended = False
        events = self._events(text, system, 0, stream=True)
        try:
            for event in _in_background(events, self.endpoint.patience.timeout, ends):
                piece = self._read(event) if event else Piece()
                said, ended = said or bool(piece.text), ended or bool(piece.finish)
                yield piece
            if not ended:
                raise RequestError("the connection ended before the answer did", kind="broken", lost=True)
        except _TookTooLongError:
            told = "is still not done" if said else "has not begun"
            message = f"took too long: the answer {told} after {self.longest:g} s (answer_timeout)"
            raise self._error(AnswerError("cut" if said else "silent", message)) from None
        except RequestError as error:
            if said and not ended:
                message = f"broke off in the middle of the answer: {error}"
                raise self._error(AnswerError("cut", message, status=error.status)) from None
            if not ended:
                raise

    def _retrying(self, limiter: CallLimiter) -> Retrying:
        def told(error: RequestError, wait: float) -> None:
            limited = error.status == 429 or error.retry_after is not None
            long = limited and limiter.hold(wait) and wait >= _LONG_WAIT
            # What the endpoint said is not logged: it may quote the question.
            what = f"{error.kind} (HTTP {error.status})" if error.status else error.kind
            level = logging.WARNING if long else logging.INFO
            logger.log(level, "%s: %s; asking again in %.1f s", self.endpoint.base_url, what, wait)

        return self.endpoint.patience.retrying(limiter.pause, told)

    def _error(self, error: AnswerError) -> AnswerError:
        """The error with the model's name and address."""
        message = f"{self.name} at {self.endpoint.base_url} {error}"
        return AnswerError(error.kind, message, status=error.status, retry_after=error.retry_after)


class _TookTooLongError(Exception):
    """The answer is not there within the time for all of it."""


def _in_background(
    events: Iterator[dict[str, Any] | None], silence: float, ends: float
) -> Iterator[dict[str, Any] | None]:
    """The same events, read by a thread, so that whoever waits for one can stop waiting.

    Only events are signs of life, since a proxy may send comments for ever. A thread that nobody listens to
    hangs up with the next bytes.
    """
    inbox: SimpleQueue[dict[str, Any] | BaseException | None] = SimpleQueue()
    left = Event()
    over = StopIteration()

    def read() -> None:
        try:
            for event in events:
                if left.is_set():
                    return
                inbox.put(event)
            inbox.put(over)
        except Exception as error:  # noqa: BLE001 - whoever waits gets it
            inbox.put(error)
        finally:
            events.close()  # type: ignore[attr-defined]  # a generator

    Thread(target=read, name="dartboard-answer", daemon=True).start()
    try:
        alive = time.monotonic()
        while True:
            check()
            now = time.monotonic()
            if now >= ends:
                raise _TookTooLongError
            if now - alive >= silence:
                raise RequestError(f"nothing of the answer came for {silence:g} s", kind="silent", lost=True)
            try:
                got = inbox.get(timeout=_GLANCE)
            except Empty:
                continue
            if got is over:
                return
            if isinstance(got, BaseException):
                raise got
            yield got
            if got is not None:
                alive = time.monotonic()
    finally:
        left.set()


def _joined(pieces: Iterator[Piece]) -> Piece:
    """An answer from its parts."""
    listed = list(pieces)
    last = {
        name: next((value for one in reversed(listed) if (value := getattr(one, name)) is not None), None)
        for name in ("input_tokens", "output_tokens")
    }
    finish = next((one.finish for one in reversed(listed) if one.finish), "")
    return Piece(text="".join(one.text for one in listed), finish=finish, **last)


def token_count(value: Any) -> int | None:
    """A number of tokens as an endpoint states it; None for anything else."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
