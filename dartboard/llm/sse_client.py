"""Event streams of chat endpoints: a response that can be left at any moment, and the events in its bytes.

A blocking read cannot be interrupted from its own thread. So a thread of its own reads, and whoever waits
looks at the deadline between one part and the next. Leaving shuts the socket down, which ends the read and
tells the server to stop writing; a connection is used for one response only.

Bytes are no sign of life, since a proxy may send comments for ever: only what carries something of an answer
is. Time that whoever reads the answer takes does not count.

Events are server-sent events (WHATWG HTML, 9.2.6). Lines end in CR, LF or both, however the bytes are cut;
comments and other fields are passed over. What follows the last blank line counts as an event too, since many
servers leave the blank line out. httpx-sse is no dependency of ours and has no limit to the length of an
event, so this stays.
"""

import codecs
import json
import re
import socket
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from queue import Empty, Full, Queue
from threading import Event, Thread
from typing import Any

import httpx

from dartboard.deadline import check
from dartboard.errors import EndpointError
from dartboard.http_client import Endpoint

LONGEST_BODY = 8_000_000
"""Bytes of an answer that is not streamed, and characters of one that is."""

LONGEST_EVENT = 4_000_000
"""Characters of one event; an endpoint that sends more is not sending an answer."""
DONE = "[DONE]"
"""The data of OpenAI's last event."""


_LONGEST_LOOK = 0.05
"""Seconds between two looks at the deadline."""
_LONGEST_CONNECT = 10.0
_JOIN = 1.0
_WAITING = 64
"""Parts that may wait to be read; then the server has to wait."""
_CONNECTED = ("connect_tcp.complete", "connect_unix_socket.complete", "start_tls.complete")
_LINE_END = re.compile(r"\r\n|\n|\r")


class TooLongError(Exception):
    """The answer is not there within the time for all of it."""


class Stopwatch:
    """How long an answer may take: ``silence`` seconds without a word, ``longest`` in all.

    It runs from the first attempt to the end of the answer.
    """

    def __init__(self, silence: float, longest: float) -> None:
        self.silence, self.longest = silence, longest
        self._began = self._life = time.monotonic()

    def alive(self) -> None:
        """Something of the answer has come, or an attempt begins."""
        self._life = time.monotonic()

    def skip(self, seconds: float) -> None:
        """So long nobody waited for the endpoint."""
        self._began += seconds
        self._life += seconds

    def check(self) -> None:
        """Go on, or stop here."""
        now = time.monotonic()
        if now - self._began >= self.longest:
            raise TooLongError
        if now - self._life >= self.silence:
            raise httpx.ReadTimeout("silence")


class _Left(Exception):
    """Nobody waits for this response any more."""


class StreamedResponse:
    """A POST under way: :meth:`head` waits for status and headers, :meth:`parts` gives the body."""

    def __init__(
        self, client: httpx.Client, url: str, body: Mapping[str, Any], *, stopwatch: Stopwatch
    ) -> None:
        self._client, self._url, self._body = client, url, body
        self._stopwatch = stopwatch
        silence = stopwatch.silence
        self._timeout = httpx.Timeout(silence, connect=min(_LONGEST_CONNECT, silence))
        self._inbox: Queue[httpx.Response | bytes | BaseException | None] = Queue(_WAITING)
        self._left = Event()
        self._socket: socket.socket | None = None
        self._thread = Thread(target=self._read, name="dartboard-answer", daemon=True)
        self._thread.start()

    def head(self) -> httpx.Response:
        """Status and headers; its body is for :meth:`parts` to give."""
        got = self._next()
        if not isinstance(got, httpx.Response):  # pragma: no cover - the head comes first
            raise TypeError(got)
        return got

    def parts(self) -> Iterator[bytes]:
        """The body."""
        while isinstance(got := self._next(), bytes):
            yield got

    def leave(self) -> None:
        """Hang up; nothing happens where everything has been read."""
        self._left.set()
        if self._socket is not None:
            with suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)
        self._thread.join(_JOIN)

    def _next(self) -> httpx.Response | bytes | None:
        while True:
            check()
            self._stopwatch.check()
            try:
                got = self._inbox.get(timeout=_LONGEST_LOOK)
            except Empty:
                continue
            if isinstance(got, BaseException):
                raise got
            return got

    def _read(self) -> None:
        last: BaseException | None = None
        try:
            with (
                self._client as client,
                client.stream(
                    "POST",
                    self._url,
                    json=self._body,
                    timeout=self._timeout,
                    extensions={"trace": self._look},
                ) as response,
            ):
                self._give(response)
                for part in response.iter_bytes():
                    self._give(part)
        except _Left:
            return
        except Exception as error:  # noqa: BLE001 - whoever waits gets it
            last = error
        with suppress(_Left):
            self._give(last)

    def _give(self, item: httpx.Response | bytes | BaseException | None) -> None:
        while not self._left.is_set():
            try:
                self._inbox.put(item, timeout=_LONGEST_LOOK)
            except Full:
                continue
            return
        raise _Left

    def _look(self, event: str, info: Mapping[str, Any]) -> None:
        """Remember the socket as soon as there is one."""
        if event.endswith(_CONNECTED):
            stream = info["return_value"]
            self._socket = stream.get_extra_info("socket")
            if self._left.is_set():
                stream.close()
                raise _Left


class ChatEndpoint(Endpoint):
    """An endpoint whose answers come whole (:meth:`once`) or while they are written (:meth:`open`)."""

    longest = LONGEST_BODY

    def open(self, path: str, body: Mapping[str, Any], stopwatch: Stopwatch) -> StreamedResponse:
        """Post; the caller has to :meth:`StreamedResponse.leave`."""
        client = httpx.Client(headers=self._client.headers, follow_redirects=False)
        return StreamedResponse(client, f"{self.base_url}{path}", body, stopwatch=stopwatch)

    @property
    def silence(self) -> float:
        """Seconds that nothing of an answer may come."""
        return self._patience.timeout

    def _answer(self, url: str, body: Mapping[str, Any]) -> httpx.Response:
        """The whole response; one that was streamed all the same is put together."""
        response = super()._answer(url, body)
        if response.is_success and "event-stream" in response.headers.get("content-type", ""):
            answer = joined_answer(response.content)
            if answer is not None:
                return httpx.Response(response.status_code, json=answer)
        return response


def event_data(parts: Iterable[bytes], *, longest: int = LONGEST_EVENT) -> Iterator[str]:
    """The data of each event that has any."""
    data: list[str] = []
    size = 0
    for line in _lines(parts, longest):
        if line == "data" or line.startswith("data:"):
            data.append(line[5:].removeprefix(" "))
            size += len(line)
            if size > longest:
                raise EndpointError(f"an event of more than {longest:,} characters came")
        elif not line:
            if any(data):
                yield "\n".join(data)
            data, size = [], 0
    if any(data):
        yield "\n".join(data)


def joined_answer(content: bytes) -> dict[str, Any] | None:
    """The whole answer that OpenAI's events add up to, for endpoints that always stream.

    None where they are no such events, or do not come to their end.
    """
    text, finish, usage = "", None, None
    try:
        for data in event_data([content]):
            if data.strip() == DONE:
                break
            event = json.loads(data)
            usage = event.get("usage") or usage
            for choice in (event.get("choices") or [])[:1]:
                text += (choice.get("delta") or {}).get("content") or ""
                finish = choice.get("finish_reason") or finish
    except (EndpointError, ValueError, RecursionError, AttributeError, TypeError):
        return None
    if finish is None:
        return None
    return {"choices": [{"message": {"content": text}, "finish_reason": finish}], "usage": usage}


def _lines(parts: Iterable[bytes], longest: int) -> Iterator[str]:
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    rest, first = "", True
    for part in parts:
        text = rest + decoder.decode(part)
        if first and text:
            text, first = text.removeprefix("\ufeff"), False
        held = "\r" if text.endswith("\r") else ""
        *whole, rest = _LINE_END.split(text.removesuffix("\r") if held else text)
        rest += held
        yield from whole
        if len(rest) > longest:
            raise EndpointError(f"a line of more than {longest:,} characters came")
    rest = (rest + decoder.decode(b"", final=True)).removesuffix("\r")
    if rest:
        yield rest
