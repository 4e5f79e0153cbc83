"""Chat models whose answers are read while they are written.

They send what the judges' chat models send (:mod:`dartboard.mining.judges`), and ask for a stream. Until the
first words have come, a request is repeated as theirs are: after 408, 429, 5xx and broken connections, with
growing waits or as ``Retry-After`` says. After them nothing is repeated, for nobody can unread. An endpoint
may be silent for so long, and take so long in all (:mod:`dartboard.answering.clock`).
"""

import json
import logging
import time
from abc import abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import httpx

from dartboard.answering.clock import Clock, TooLongError
from dartboard.answering.events import event_data
from dartboard.answering.troubles import AnswerError, Kind
from dartboard.answering.upstream import Response, StreamingEndpoint
from dartboard.errors import EndpointError
from dartboard.http_client import Reply
from dartboard.mining.judges.chat import NO_USE, Chat, ChatEndpoint
from dartboard.mining.metering import Meter

logger = logging.getLogger(__name__)

LONGEST_ANSWER = 600.0
"""Seconds for an answer unless told otherwise."""
_LONGEST_BODY = 8_000_000
"""Bytes of an answer that is not streamed, and characters of one that is."""
_LONGEST_REFUSAL = 16_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """Some of an answer. An empty one is a sign of life; ``finish`` says why the answer ended here."""

    text: str = ""
    finish: str = ""
    input_tokens: int | None = None
    output_tokens: int | None = None


class AnswerModel(Protocol):
    """Whoever writes answers."""

    @property
    def name(self) -> str:
        """As a configuration writes it, without its address."""

    def stream(self, text: str, *, system: str = "") -> Iterator[Piece]:
        """The answer to a prompt, as it is written; close the iterator to stop it."""


class _Failed(Exception):
    """An attempt that came to nothing, or broke off."""

    def __init__(self, reply: Reply, kind: Kind) -> None:
        super().__init__(reply.trouble)
        self.reply = reply
        self.kind = kind


class StreamingChat(Chat):
    """A chat model at an endpoint; subclasses ask for streams and read events."""

    endpoint_type: ClassVar[type[ChatEndpoint]] = StreamingEndpoint
    kind: ClassVar[str]
    longest: float = LONGEST_ANSWER
    """Seconds for an answer, all attempts together."""

    @property
    def name(self) -> str:
        """Kind and model."""
        return f"{self.kind}:{self.model}"

    def stream(self, text: str, *, system: str = "") -> Iterator[Piece]:
        """The answer as it is written. An :class:`AnswerError` says why there is none, or only a part."""
        text = text.encode("utf-8", "replace").decode()
        without, tries = self._given_up, 0
        clock = Clock(self._streaming.silence, self.longest)
        while True:
            said = False
            path, body = self._stream_request(text, system, without)
            clock.alive()
            response = self._streaming.open(path, body, clock)
            try:
                for piece in self._pieces(response, clock):
                    said = said or bool(piece.text)
                    gone = time.monotonic()
                    yield piece
                    clock.skip(time.monotonic() - gone)
                self._given_up |= without
                return
            except TooLongError:
                raise self._too_long(said=said) from None
            except _Failed as failed:
                reply, kind = failed.reply, failed.kind
            finally:
                response.leave()
            if said:
                raise self._error("cut", f"broke off in the middle of the answer: {reply.trouble}", reply)
            if not reply.worth_another_try:
                conceded = self._concede(reply, without)
                if conceded is None:
                    raise self._error(kind, f"refused: {reply.trouble}", reply)
                without |= {conceded}
                continue
            tries += 1
            if tries >= self.endpoint.attempts:
                times = f"failed {tries} times, at last with" if tries > 1 else "failed"
                raise self._error(kind, f"{times}: {reply.trouble}", reply)
            self._rest(reply, kind, tries - 1)

    def _too_long(self, *, said: bool) -> AnswerError:
        told = "is still not done" if said else "has not begun"
        message = f"took too long: the answer {told} after {self.longest:g} s (answer_timeout)"
        return self._error("cut" if said else "silent", message, Reply(lost=True))

    @abstractmethod
    def _stream_request(self, text: str, system: str, without: frozenset[str]) -> tuple[str, dict[str, Any]]:
        """Path and body of a request for a stream."""

    @abstractmethod
    def _piece(self, event: dict[str, Any]) -> Piece:
        """What an event brings, whatever shape it has."""

    @abstractmethod
    def _thinks(self, event: dict[str, Any]) -> bool:
        """Whether an event without words of an answer brings thoughts."""

    @property
    def _streaming(self) -> StreamingEndpoint:
        if not isinstance(self.endpoint, StreamingEndpoint):  # pragma: no cover - the class makes its own
            raise TypeError(f"{self!r} has an endpoint that cannot stream")
        return self.endpoint

    def _pieces(self, response: Response, clock: Clock) -> Iterator[Piece]:
        """Everything up to the end of the answer; ``_Failed`` where it does not come to its end."""
        try:
            head = response.head()
            clock.alive()
            if not head.is_success:
                raise self._refusal(head, response.parts())
            yield Piece()
            if "json" in head.headers.get("content-type", ""):
                yield self._whole(_noted(response.parts(), clock))
            else:
                yield from self._events(response.parts(), clock)
        except httpx.ReadTimeout as error:
            trouble = f"nothing of the answer came for {clock.silence:g} s"
            raise _Failed(Reply(lost=True, trouble=trouble), "silent") from error
        except (httpx.TransportError, httpx.DecodingError) as error:
            reply = self.endpoint.failure(error)
            raise _Failed(reply, "broken" if reply.lost else "unreachable") from error

    def _events(self, parts: Iterable[bytes], clock: Clock) -> Iterator[Piece]:
        ended, some, size = False, False, 0
        try:
            for data in event_data(parts):
                some = True
                if data.strip() == "[DONE]":
                    return
                event = self._decoded(data)
                piece = self._piece(event)
                if piece != Piece() or self._thinks(event):
                    clock.alive()
                ended = ended or bool(piece.finish)
                size += len(piece.text)
                if size > _LONGEST_BODY:
                    raise EndpointError(f"an answer of more than {_LONGEST_BODY:,} characters came")
                yield piece
        except EndpointError as error:  # an event or an answer that is too long
            raise _Failed(Reply(lost=True, trouble=str(error)), "broken") from None
        except (httpx.TransportError, httpx.DecodingError):
            if not ended:
                raise
        if not ended:
            told = "the connection ended before the answer did" if some else "no event came"
            raise _Failed(Reply(lost=True, trouble=told), "broken")

    def _decoded(self, data: str) -> dict[str, Any]:
        """An event's object; an error that is sent as one is an error."""
        try:
            event = json.loads(data)
        except (ValueError, RecursionError):
            event = None
        if not isinstance(event, dict):
            start = self.endpoint.hidden(data[:100])
            raise _Failed(Reply(lost=True, trouble=f"an event is not JSON: {start!r}"), "broken")
        if error := event.get("error"):
            raise self._told(error)
        return event

    def _told(self, error: Any) -> _Failed:
        """An error that came in the place of an answer."""
        facts = error if isinstance(error, dict) else {"message": error}
        code = facts.get("code")
        status = code if isinstance(code, int) and 400 <= code < 600 else 0
        trouble = self.endpoint.hidden(f"the endpoint says: {str(facts.get('message', facts))[:300]}")
        reply = Reply(status=status, trouble=trouble)
        return _Failed(reply, _kind(status) if status else "failed")

    def _refusal(self, head: httpx.Response, parts: Iterable[bytes]) -> _Failed:
        body = _gathered(parts, _LONGEST_REFUSAL, whole=False)
        headers = {name: value for name, value in head.headers.items() if name != "content-encoding"}
        reply = self.endpoint.refusal(httpx.Response(head.status_code, headers=headers, content=body))
        return _Failed(reply, "refused" if self._is_no_use(reply) else _kind(reply.status))

    def _whole(self, parts: Iterable[bytes]) -> Piece:
        """The answer of an endpoint that does not stream."""
        answer = self._decoded(_gathered(parts, _LONGEST_BODY, whole=True).decode("utf-8", "replace"))
        written = self._read(answer)
        if not written.text:
            return Piece(finish=written.trouble or "stop")
        return Piece(
            text=written.text,
            finish="length" if written.trouble else "stop",
            input_tokens=written.input_tokens,
            output_tokens=written.output_tokens,
        )

    def _rest(self, reply: Reply, kind: Kind, tries: int) -> None:
        """Wait before the next attempt. What the endpoint said is not logged: it may quote the question."""
        try:
            wait = self.endpoint.wait(tries, reply.retry_after)
        except EndpointError as error:  # it asks for more patience than there is
            raise self._error(kind, f"{error}", reply) from None
        status = f" (HTTP {reply.status})" if reply.status else ""
        logger.warning("%s: %s%s; asking again in %.1f s", self.name, _TOLD[kind], status, wait)
        Meter().pause(wait)

    def _error(self, kind: Kind, message: str, reply: Reply) -> AnswerError:
        return AnswerError(
            kind,
            f"{self.name} at {self.endpoint.base_url} {message}",
            status=reply.status,
            retry_after=reply.retry_after,
        )


_TOLD: dict[Kind, str] = {
    "unreachable": "no connection",
    "limited": "too many requests",
    "failed": "the endpoint failed",
    "refused": "the endpoint refuses",
    "rejected": "the endpoint refuses this question",
    "broken": "the answer cannot be read",
    "silent": "nothing came",
    "cut": "the answer broke off",
    "empty": "the answer is empty",
}


def _kind(status: int) -> Kind:
    if status == 429:
        return "limited"
    if status in NO_USE:
        return "refused"
    return "failed" if status >= 500 or status == 408 else "rejected"


def _noted(parts: Iterable[bytes], clock: Clock) -> Iterator[bytes]:
    """The parts of a whole answer; blanks are none of it."""
    for part in parts:
        if part.strip():
            clock.alive()
        yield part


def _gathered(parts: Iterable[bytes], most: int, *, whole: bool) -> bytes:
    """A body up to a limit; beyond it the rest is left unread, or is an error where all is needed."""
    content = bytearray()
    for part in parts:
        content += part
        if len(content) > most:
            if whole:
                raise _Failed(Reply(lost=True, trouble=f"the answer has more than {most:,} bytes"), "broken")
            break
    return bytes(content[:most])
