"""Chat models at an endpoint: asked within limits, tried again where that helps, paid for exactly.

Each attempt passes the current :class:`~dartboard.llm.call_limits.CallLimiter`. 408, 429, 5xx and broken
connections are tried again, with growing waits or as ``Retry-After`` says; a pause that the endpoint asks for
holds for all threads. What an endpoint does not understand is left out of the request from then on.
"""

import json
import logging
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, Protocol, TypedDict

from dartboard.deadline import check
from dartboard.errors import ConfigError, EndpointError
from dartboard.http_client import Patience, Reply
from dartboard.llm.call_limits import CallLimiter, current_limiter
from dartboard.llm.errors import RefusedError
from dartboard.llm.sse_client import ChatEndpoint
from dartboard.llm.usage import Prices, Usage, estimated_tokens

logger = logging.getLogger(__name__)

MOST_OUTPUT = 8192
"""Tokens of one answer: models that think before they answer are charged for their thoughts, too."""

PATIENCE = Patience(timeout=300.0)
"""Such models take their time."""

NO_USE = frozenset({401, 402, 403, 404, 405})
"""Refusals of the key, the bill or the model: asking again helps nobody."""

_EXPECTED_OUTPUT = 120
_OVERHEAD = 64
_LONG_WAIT = 30.0
_SHOWN = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatAnswer:
    """What a model wrote, or ``trouble`` saying why it wrote nothing usable; and what it cost."""

    text: str
    usage: Usage
    trouble: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """Some of an answer, or all of it, as the endpoint sent it. An empty one is a sign of life.

    ``finish`` says why the answer ended here, ``trouble`` why it does not count; tokens are None where the
    endpoint did not count them.
    """

    text: str = ""
    finish: str = ""
    input_tokens: int | None = None
    output_tokens: int | None = None
    trouble: str = ""


class CompletionModel(Protocol):
    """A model that answers a prompt at once, as :class:`Chat` does."""

    @property
    def model(self) -> str:
        """Its name."""

    def complete(
        self, text: str, *, system: str = "", schema: Mapping[str, Any] | None = None, attempt: int = 0
    ) -> ChatAnswer:
        """What the model answers."""


class ChatOptions(TypedDict, total=False):
    """What every chat model can be told beside its name, address and key."""

    prices: Prices | None
    max_output_tokens: int
    patience: Patience


class GaveUpError(EndpointError):
    """No further attempt is made: the message says why."""

    def __init__(self, why: Literal["refused", "failed", "wait"], message: str) -> None:
        super().__init__(message)
        self.why = why


@dataclass(frozen=True, slots=True)
class Attempt:
    """Where a request stands: parts of the body to leave out, and how often it has failed."""

    without: frozenset[str]
    failures: int = 0


class Chat(ABC):
    """A chat model at an endpoint; subclasses write requests and read answers.

    Args:
        model: the name that the endpoint knows the model by.
        base_url: what comes before the paths of the API.
        headers: sent with each request; the key is one of them.
        secret: the key, which no message shows.
        prices: what tokens cost; a budget in money needs them.
        max_output_tokens: the most that one answer may have, thoughts included.
        patience: time limits and retries.

    Raises:
        ConfigError: an argument that cannot work.
    """

    kind: ClassVar[str]
    """What stands before the colon in the name of such a model."""
    default_url: ClassVar[str]

    def __init__(
        self,
        model: str,
        base_url: str,
        *,
        headers: Mapping[str, str],
        secret: str | None,
        prices: Prices | None = None,
        max_output_tokens: int = MOST_OUTPUT,
        patience: Patience = PATIENCE,
    ) -> None:
        if not model.strip():
            raise ConfigError("model must be the name that the endpoint knows the model by, got ''")
        if max_output_tokens < 1:
            raise ConfigError(f"max_output_tokens must be >= 1, got {max_output_tokens}")
        self.model = model
        self.prices = prices
        self.max_output_tokens = max_output_tokens
        self.endpoint = ChatEndpoint(base_url, headers=headers, secret=secret, patience=patience)
        self._given_up: frozenset[str] = frozenset()

    @property
    def name(self) -> str:
        """Kind and model, as a configuration writes them."""
        return f"{self.kind}:{self.model}"

    @property
    def full_name(self) -> str:
        """The name with its address, where that is not the provider's own."""
        url = self.endpoint.base_url
        return self.name if url == self.default_url else f"{self.name}@{url}"

    def complete(
        self, text: str, *, system: str = "", schema: Mapping[str, Any] | None = None, attempt: int = 0
    ) -> ChatAnswer:
        """What the model answers; ``attempt`` > 0 asks for another, independent answer.

        Args:
            text: the prompt.
            system: the system prompt.
            schema: a JSON schema that the answer is to have.
            attempt: the seed of the answer.

        Returns:
            The answer; one without text where the endpoint refuses this request alone.

        Raises:
            RefusedError: the endpoint refuses key, model or address, or asks for too long a pause.
            EndpointError: no attempt succeeded.
            BudgetError: the budget does not allow another call.
        """
        text = text.encode("utf-8", "replace").decode()
        bound, expected = self.bound(text, system, schema), self.expected(text, system)
        limiter, total, state = current_limiter(), Usage(), Attempt(self._given_up)
        while True:
            path, body = self._request(text, system, schema, attempt, state.without)
            check()
            limiter.admit(bound, expected, priced=self.prices is not None)
            usage = Usage(unanswered=1)
            try:
                reply = self.endpoint.once(path, body)
                written = self._read(reply.answer) if reply.ok else None
                usage = self._spent(written, text + system) if written else Usage(unanswered=int(reply.lost))
            finally:
                limiter.settle(bound, expected, usage)
            total = total + usage
            if written is not None:
                self._given_up |= state.without
                return ChatAnswer(text=written.text, usage=total, trouble=written.trouble)
            try:
                state = self._next_attempt(state, reply, body, limiter, reply.trouble[:_SHOWN])
            except GaveUpError as error:
                if error.why == "refused" and not self._is_no_use(reply):
                    return ChatAnswer(text="", usage=total, trouble=f"the endpoint {error}")
                message = f"{self.endpoint.base_url} {error}"
                if error.why == "wait":
                    message += ". What was paid for is kept: resume then"
                raise (EndpointError if error.why == "failed" else RefusedError)(message) from None

    def bound(self, text: str, system: str, schema: Mapping[str, Any] | None = None) -> Usage:
        """The most that one attempt can cost: a token has at least one byte."""
        sent = (
            len(text.encode("utf-8", "replace")) + len(system.encode()) + len(json.dumps(dict(schema or {})))
        )
        return self._usage(sent + _OVERHEAD, self.max_output_tokens)

    def expected(self, text: str, system: str = "") -> Usage:
        """What one attempt will probably cost."""
        return self._usage(estimated_tokens(text + system), min(_EXPECTED_OUTPUT, self.max_output_tokens))

    def close(self) -> None:
        """Close the connections."""
        self.endpoint.close()

    def __repr__(self) -> str:
        return f"{type(self).__name__}(model={self.model!r}, base_url={self.endpoint.base_url!r})"

    @abstractmethod
    def _request(
        self,
        text: str,
        system: str,
        schema: Mapping[str, Any] | None,
        attempt: int,
        without: frozenset[str],
    ) -> tuple[str, dict[str, Any]]:
        """Path and body of a request, without the parts that the endpoint does not understand."""

    @abstractmethod
    def _read(self, answer: dict[str, Any]) -> Piece:
        """The text and the tokens of a whole answer, whatever shape it has."""

    def _concede(self, reply: Reply, body: Mapping[str, Any], without: frozenset[str]) -> str | None:
        """The next part of the body to leave out after a refusal; None where there is nothing to give up."""
        return None

    def _is_no_use(self, reply: Reply) -> bool:
        """Whether key, model or address are refused, and not this request alone."""
        return reply.status in NO_USE

    def _cut(self) -> str:
        """The reason why an answer that reached its limit does not count."""
        return (
            f"the answer was cut at the limit of {self.max_output_tokens:,} output tokens, thoughts included"
            ": allow more (max_output_tokens, --max-output)"
        )

    def _next_attempt(
        self,
        state: Attempt,
        reply: Reply,
        body: Mapping[str, Any],
        limiter: CallLimiter,
        told: str,
        level: int = logging.INFO,
    ) -> Attempt:
        """After a failed attempt: leave something out, or wait; ``told`` is what the log says.

        Raises:
            GaveUpError: the request is refused, has failed too often, or the pause asked for is too long.
        """
        if not reply.worth_another_try:
            conceded = self._concede(reply, body, state.without)
            if conceded is None:
                raise GaveUpError("refused", f"refused: {reply.trouble}")
            return replace(state, without=state.without | {conceded})
        failures = state.failures + 1
        if failures >= self.endpoint.attempts:
            times = f"failed {failures} times, at last with" if failures > 1 else "failed"
            raise GaveUpError("failed", f"{times}: {reply.trouble}")
        try:
            wait = self.endpoint.wait(failures - 1, reply.retry_after)
        except EndpointError as error:  # it asks for more patience than there is
            raise GaveUpError("wait", str(error)) from None
        if (
            (reply.status == 429 or reply.retry_after is not None)
            and limiter.hold(wait)
            and wait >= _LONG_WAIT
        ):
            level = logging.WARNING
        logger.log(level, "%s: %s; asking again in %.1f s", self.endpoint.base_url, told, wait)
        limiter.pause(wait)
        return replace(state, failures=failures)

    def _spent(self, written: Piece, sent: str) -> Usage:
        given, got = written.input_tokens, written.output_tokens
        return self._usage(
            estimated_tokens(sent) if given is None else given,
            estimated_tokens(written.text) if got is None else got,
        )

    def _usage(self, input_tokens: int, output_tokens: int) -> Usage:
        cost = self.prices.cost(input_tokens, output_tokens) if self.prices else 0.0
        return Usage(calls=1, input_tokens=input_tokens, output_tokens=output_tokens, cost=cost)


def token_count(value: Any) -> int | None:
    """A number of tokens as an endpoint states it; None for anything else."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
