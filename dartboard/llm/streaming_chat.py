"""Answers that are read while they are written.

Until the first words have come, a request is repeated as other requests are. After them nothing is repeated,
for nobody can unread. An endpoint may be silent for so long, and take so long in all
(:mod:`dartboard.llm.sse_client`).
"""

import json
import logging
import time
from abc import abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, Protocol

import httpx

from dartboard.errors import EndpointError
from dartboard.http_client import Reply
from dartboard.llm.call_limits import current_limiter
from dartboard.llm.chat import NO_USE, Attempt, Chat, GaveUpError, Piece
from dartboard.llm.errors import AnswerError, Kind
from dartboard.llm.sse_client import (
    DONE,
    LONGEST_BODY,
    Stopwatch,
    StreamedResponse,
    TooLongError,
    event_data,
)

LONGEST_ANSWER = 600.0
"""Seconds for an answer unless told otherwise."""
_LONGEST_REFUSAL = 16_000


class AnswerModel(Protocol):
    """A model whose answers are read while it writes them, as :class:`StreamingChat` is one."""

    @property
    def name(self) -> str:
        """As a configuration writes it, without its address."""

    def stream(self, text: str, *, system: str = "") -> Iterator[Piece]:
        """The answer to a prompt, as it is written; close the iterator to stop it."""


class _Failed(Exception):
    """An attempt that came to nothing, or broke off."""

    def __init__(self, kind: Kind, trouble: str = "", reply: Reply | None = None) -> None:
        super().__init__(trouble)
        self.reply = reply or Reply(lost=True, trouble=trouble)
        self.kind = kind


class StreamingChat(Chat):
    """A chat model that can also be read while it writes; subclasses ask for streams and read events."""

    longest: float = LONGEST_ANSWER
    """Seconds for a streamed answer, all attempts together."""

    def stream(self, text: str, *, system: str = "") -> Iterator[Piece]:
        """The answer as it is written; close the iterator to stop it.

        Raises:
            AnswerError: there is no answer, or only a part of it.
        """
        text = text.encode("utf-8", "replace").decode()
        state = Attempt(self._given_up)
        stopwatch = Stopwatch(self.endpoint.silence, self.longest)
        while True:
            said = False
            path, body = self._stream_request(text, system, state.without)
            stopwatch.alive()
            response = self.endpoint.open(path, body, stopwatch)
            try:
                for piece in self._pieces(response, stopwatch):
                    said = said or bool(piece.text)
                    gone = time.monotonic()
                    yield piece
                    stopwatch.skip(time.monotonic() - gone)
                self._given_up |= state.without
                return
            except TooLongError:
                told = "is still not done" if said else "has not begun"
                message = f"took too long: the answer {told} after {self.longest:g} s (answer_timeout)"
                raise self._error("cut" if said else "silent", message) from None
            except _Failed as failed:
                reply, kind = failed.reply, failed.kind
            finally:
                response.leave()
            if said:
                raise self._error("cut", f"broke off in the middle of the answer: {reply.trouble}", reply)
            # What the endpoint said is not logged: it may quote the question.
            told = f"{_TOLD[kind]} (HTTP {reply.status})" if reply.status else _TOLD[kind]
            try:
                state = self._next_attempt(state, reply, body, current_limiter(), told, logging.WARNING)
            except GaveUpError as error:
                raise self._error(kind, str(error), reply) from None

    @abstractmethod
    def _stream_request(self, text: str, system: str, without: frozenset[str]) -> tuple[str, dict[str, Any]]:
        """Path and body of a request for a stream."""

    @abstractmethod
    def _piece(self, event: dict[str, Any]) -> Piece:
        """What an event brings, whatever shape it has."""

    @abstractmethod
    def _thinks(self, event: dict[str, Any]) -> bool:
        """Whether an event without words of an answer brings thoughts."""

    def _pieces(self, response: StreamedResponse, stopwatch: Stopwatch) -> Iterator[Piece]:
        """Everything up to the end of the answer; ``_Failed`` where it does not come to its end."""
        try:
            head = response.head()
            stopwatch.alive()
            if not head.is_success:
                raise self._refusal(head, response.parts())
            yield Piece()
            if "json" in head.headers.get("content-type", ""):
                yield self._whole(response.parts(), stopwatch)
            else:
                yield from self._events(response.parts(), stopwatch)
        except httpx.ReadTimeout as error:
            raise _Failed("silent", f"nothing of the answer came for {stopwatch.silence:g} s") from error
        except (httpx.TransportError, httpx.DecodingError) as error:
            reply = self.endpoint.failure(error)
            raise _Failed("broken" if reply.lost else "unreachable", reply=reply) from error

    def _events(self, parts: Iterable[bytes], stopwatch: Stopwatch) -> Iterator[Piece]:
        ended, some, size = False, False, 0
        try:
            for data in event_data(parts):
                some = True
                if data.strip() == DONE:
                    return
                event = self._decoded(data)
                piece = self._piece(event)
                if piece != Piece() or self._thinks(event):
                    stopwatch.alive()
                ended = ended or bool(piece.finish)
                size += len(piece.text)
                if size > LONGEST_BODY:
                    raise EndpointError(f"an answer of more than {LONGEST_BODY:,} characters came")
                yield piece
        except EndpointError as error:  # an event or an answer that is too long
            raise _Failed("broken", str(error)) from None
        except (httpx.TransportError, httpx.DecodingError):
            if not ended:
                raise
        if not ended:
            told = "the connection ended before the answer did" if some else "no event came"
            raise _Failed("broken", told)

    def _decoded(self, data: str) -> dict[str, Any]:
        """An event's object; an error that is sent as one is an error."""
        try:
            event = json.loads(data)
        except (ValueError, RecursionError):
            event = None
        if not isinstance(event, dict):
            raise _Failed("broken", f"an event is not JSON: {self.endpoint.hidden(data[:100])!r}")
        if error := event.get("error"):
            facts = error if isinstance(error, dict) else {"message": error}
            code = facts.get("code")
            status = code if isinstance(code, int) and 400 <= code < 600 else 0
            trouble = self.endpoint.hidden(f"the endpoint says: {str(facts.get('message', facts))[:300]}")
            kind = _kind(status) if status else "failed"
            raise _Failed(kind, reply=Reply(status=status, trouble=trouble))
        return event

    def _refusal(self, head: httpx.Response, parts: Iterable[bytes]) -> _Failed:
        body = bytearray()
        for part in parts:
            body += part
            if len(body) > _LONGEST_REFUSAL:
                break
        headers = {name: value for name, value in head.headers.items() if name != "content-encoding"}
        content = bytes(body[:_LONGEST_REFUSAL])
        reply = self.endpoint.refusal(httpx.Response(head.status_code, headers=headers, content=content))
        return _Failed("refused" if self._is_no_use(reply) else _kind(reply.status), reply=reply)

    def _whole(self, parts: Iterable[bytes], stopwatch: Stopwatch) -> Piece:
        """The answer of an endpoint that does not stream; blanks are no sign of life."""
        content = bytearray()
        for part in parts:
            if part.strip():
                stopwatch.alive()
            content += part
            if len(content) > LONGEST_BODY:
                raise _Failed("broken", f"the answer has more than {LONGEST_BODY:,} bytes")
        written = self._read(self._decoded(content.decode("utf-8", "replace")))
        if not written.text:
            return Piece(finish=written.trouble or "stop")
        return replace(written, finish="length" if written.trouble else "stop")

    def _error(self, kind: Kind, message: str, reply: Reply | None = None) -> AnswerError:
        return AnswerError(
            kind,
            f"{self.name} at {self.endpoint.base_url} {message}",
            status=reply.status if reply else 0,
            retry_after=reply.retry_after if reply else None,
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
