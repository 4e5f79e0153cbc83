"""Chat models: asked politely, paid for exactly; and the judge that asks one."""

import json
import logging
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from dartboard.deadline import check
from dartboard.errors import ConfigError, EndpointError
from dartboard.http_client import Endpoint, Patience, Reply
from dartboard.mining.budget import Prices
from dartboard.mining.metering import Meter, current_meter
from dartboard.mining.verdicts import Usage

logger = logging.getLogger(__name__)

MOST_OUTPUT = 8192
"""Tokens of one answer: models that think before they answer are charged for their thoughts, too."""

PATIENCE = Patience(timeout=300.0)
"""Such models take their time."""

_CHARACTERS_A_TOKEN = 4
_EXPECTED_OUTPUT = 120
_OVERHEAD = 64
NO_USE = frozenset({401, 402, 403, 404, 405})
"""Refusals of the key, the bill or the model: asking again helps nobody."""
_LONG_WAIT = 30.0
_SHOWN = 200


class RefusedError(EndpointError):
    """The endpoint refuses this key, model or address: asking again, or about something else, is no use."""


class ChatEndpoint(Endpoint):
    """An endpoint that is asked once a call: limits and budget stand between one attempt and the next."""

    longest = 8_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatAnswer:
    """What a model wrote, or ``trouble`` saying why it wrote nothing usable; and what it cost."""

    text: str
    usage: Usage
    trouble: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """An endpoint's answer as it was read: the text, and the tokens where they were counted."""

    text: str
    input_tokens: int | None = None
    output_tokens: int | None = None
    trouble: str = ""


class Chat(ABC):
    """A chat model at an endpoint; subclasses write requests and read answers.

    Each attempt passes the current :class:`~dartboard.mining.metering.Meter`. 408, 429, 5xx and broken
    connections are tried again, with growing waits or as ``Retry-After`` says; a pause that the endpoint asks
    for holds for all threads.
    """

    endpoint_type: ClassVar[type[ChatEndpoint]] = ChatEndpoint
    """What asks; a subclass may ask in another way."""

    def __init__(
        self, endpoint: ChatEndpoint, model: str, *, prices: Prices | None, max_output_tokens: int
    ) -> None:
        if not model.strip():
            raise ConfigError("model must be the name that the endpoint knows the model by, got ''")
        if max_output_tokens < 1:
            raise ConfigError(f"max_output_tokens must be >= 1, got {max_output_tokens}")
        self.model = model
        self.prices = prices
        self.max_output_tokens = max_output_tokens
        self.endpoint = endpoint
        self._given_up: frozenset[str] = frozenset()

    def complete(
        self, text: str, *, system: str = "", schema: Mapping[str, Any] | None = None, attempt: int = 0
    ) -> ChatAnswer:
        """What the model answers; ``attempt`` > 0 asks for another, independent answer."""
        text = text.encode("utf-8", "replace").decode()
        bound, expected = self.bound(text, system, schema), self.expected(text, system)
        meter = current_meter()
        total, trouble, tries = Usage(), "", 0
        without: frozenset[str] = self._given_up
        while tries < self.endpoint.attempts:
            path, body = self._request(text, system, schema, attempt, without)
            reply, usage, written = self._attempt(meter, path, body, bound, expected, text + system)
            total = total + usage
            if written is not None:
                self._given_up |= without
                return ChatAnswer(text=written.text, usage=total, trouble=written.trouble)
            trouble = reply.trouble
            if not reply.worth_another_try:
                conceded = self._concede(reply, without)
                if conceded is None:
                    return self._refused(reply, total)
                without |= {conceded}
                continue
            tries += 1
            if tries < self.endpoint.attempts:
                self._wait(meter, reply, tries - 1)
        raise EndpointError(f"{self.endpoint.base_url} failed {tries} times, at last with: {trouble}")

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
    def _read(self, answer: dict[str, Any]) -> Written:
        """The text and the tokens of an answer, whatever shape it has."""

    def _cut(self) -> str:
        """The reason why an answer that reached its limit does not count."""
        return (
            f"the answer was cut at the limit of {self.max_output_tokens:,} output tokens, thoughts included"
            ": allow more (max_output_tokens, --max-output)"
        )

    def _concede(self, reply: Reply, without: frozenset[str]) -> str | None:
        """The next part of the body to leave out after a refusal; None where there is nothing to give up."""
        return None

    def _attempt(
        self,
        meter: Meter,
        path: str,
        body: dict[str, Any],
        bound: Usage,
        expected: Usage,
        sent: str,
    ) -> tuple[Reply, Usage, Written | None]:
        """One request and what it cost."""
        check()
        meter.admit(bound, expected, priced=self.prices is not None)
        usage = Usage(unanswered=1)
        try:
            reply = self.endpoint.once(path, body)
            written = self._read(reply.answer) if reply.ok else None
            usage = self._spent(written, sent) if written else Usage(unanswered=int(reply.lost))
        finally:
            meter.settle(bound, expected, usage)
        return reply, usage, written

    def _spent(self, written: Written, sent: str) -> Usage:
        given, got = written.input_tokens, written.output_tokens
        return self._usage(
            estimated_tokens(sent) if given is None else given,
            estimated_tokens(written.text) if got is None else got,
        )

    def _usage(self, input_tokens: int, output_tokens: int) -> Usage:
        cost = self.prices.cost(input_tokens, output_tokens) if self.prices else 0.0
        return Usage(calls=1, input_tokens=input_tokens, output_tokens=output_tokens, cost=cost)

    def _refused(self, reply: Reply, total: Usage) -> ChatAnswer:
        """A refusal of this request alone is an answer; one of the key or the model ends the run."""
        if reply.status in NO_USE or self._is_no_use(reply):
            raise RefusedError(f"{self.endpoint.base_url} refused: {reply.trouble}")
        return ChatAnswer(text="", usage=total, trouble=f"the endpoint refused: {reply.trouble}")

    def _is_no_use(self, reply: Reply) -> bool:
        """Whether an endpoint says by another status that it refuses key or model."""
        return False

    def _wait(self, meter: Meter, reply: Reply, tries: int) -> None:
        try:
            wait = self.endpoint.wait(tries, reply.retry_after)
        except EndpointError as error:
            kept = "What was paid for is kept: resume then"
            raise RefusedError(f"{self.endpoint.base_url} {error}. {kept}") from None
        level = logging.INFO
        if reply.status == 429 or reply.retry_after is not None:
            news = meter.hold(wait)
            level = logging.WARNING if news and wait >= _LONG_WAIT else level
        logger.log(
            level, "%s: %s; asking again in %.1f s", self.endpoint.base_url, reply.trouble[:_SHOWN], wait
        )
        meter.pause(wait)


def count(value: Any) -> int | None:
    """A number of tokens as an endpoint states it; None for anything else."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def estimated_tokens(text: str) -> int:
    """About how many tokens a chat model counts, where the endpoint does not say: four letters each."""
    return math.ceil(len(text) / _CHARACTERS_A_TOKEN)
