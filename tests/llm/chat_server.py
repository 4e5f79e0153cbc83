"""Chat endpoints on loopback that stream over real sockets: well, slowly, broken, cut, or never."""

import json
import re
import ssl
from collections.abc import Callable, Iterator
from threading import Event
from time import monotonic
from typing import Any

from dartboard.http_client import Patience
from tests.embeddings.local_server import LocalServer, Request
from tests.waiting import PATIENCE

SSE = {"content-type": "text/event-stream"}
QUICK = Patience(timeout=60, attempts=3, first_wait=0.001, longest_wait=0.01, longest_asked=1.0)


def event(data: Any) -> bytes:
    text = data if isinstance(data, str) else json.dumps(data)
    return f"data: {text}\n\n".encode()


def openai_events(*pieces: str, finish: str | None = "stop", usage: Any = (100, 20), done: bool = True):
    """What an OpenAI-compatible endpoint sends."""
    events = [event({"choices": [{"delta": {"role": "assistant", "content": ""}, "finish_reason": None}]})]
    events += [event({"choices": [{"delta": {"content": one}, "finish_reason": None}]}) for one in pieces]
    if finish:
        events.append(event({"choices": [{"delta": {}, "finish_reason": finish}]}))
    if usage:
        counted = {"prompt_tokens": usage[0], "completion_tokens": usage[1]}
        events.append(event({"choices": [], "usage": counted}))
    return [*events, event("[DONE]")] if done else events


def gemini_events(*pieces: str, finish: str | None = "STOP", thought: str = ""):
    """What Gemini sends."""
    events = []
    if thought:
        events.append(event({"candidates": [{"content": {"parts": [{"text": thought, "thought": True}]}}]}))
    events += [event({"candidates": [{"content": {"parts": [{"text": one}]}}]}) for one in pieces]
    usage = {"promptTokenCount": 90, "candidatesTokenCount": 12, "thoughtsTokenCount": 30}
    last: dict[str, Any] = {
        "candidates": [{"finishReason": finish}] if finish else [],
        "usageMetadata": usage,
    }
    return [*events, event(last)]


def streamed(events: list[bytes], **headers: str):
    return 200, events, SSE | headers


def cut(events: list[bytes]):
    """A body that is shorter than it says."""
    body = b"".join(events)
    return 200, [body], SSE | {"content-length": str(len(body) + 100)}


class ChatServer:
    """Gives its replies in order, the last one for ever; a reply is (status, body, headers) or makes one."""

    def __init__(self, *replies: Any) -> None:
        self.replies = list(replies)
        self.server = LocalServer(self._answer)
        self.url = self.server.url

    def encrypt(self, context: ssl.SSLContext) -> None:
        """From now on connections are TLS."""
        server = self.server._server
        server.socket = context.wrap_socket(server.socket, server_side=True)
        self.url = self.url.replace("http://", "https://")

    @property
    def bodies(self) -> list[dict[str, Any]]:
        return [request.json for request in self.server.requests]

    @property
    def requests(self) -> list[Request]:
        return self.server.requests

    def _answer(self, request: Request):
        reply = self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]
        return reply(request) if callable(reply) else reply

    def __enter__(self) -> "ChatServer":
        return self

    def __exit__(self, *_: object) -> None:
        self.server.stop()


class Waiting:
    """A reply that sends some events and then waits, until it is let go or the client leaves.

    While it waits it sends comments (``aloud``) or nothing.
    """

    def __init__(self, *pieces: str, aloud: bool = True, head: bool = True) -> None:
        self.pieces, self.aloud, self.head = pieces, aloud, head
        self.began, self.go, self.left = Event(), Event(), Event()
        self.ran_out = False
        """Whether nobody let it go, and the client stayed."""

    def __call__(self, request: Request):
        if not self.head:
            self.began.set()
            self.ran_out = not self.go.wait(PATIENCE)
            return None
        return 200, self._parts(), SSE

    def _parts(self) -> Iterator[bytes]:
        try:
            yield from openai_events(*self.pieces, finish=None, usage=None, done=False)
            self.began.set()
            ends = monotonic() + PATIENCE
            while not (self.ran_out or self.go.wait(0.01)):  # timing: between two looks
                if self.aloud:
                    yield b": waiting\n\n"
                self.ran_out = monotonic() > ends
            yield from openai_events("the end", usage=None)
        finally:
            self.left.set()


_PASSAGE = re.compile(r'<<(\w{20}) passage (\d+) "(?:[^"\\]|\\.)*">>\n(.*?)\n<<end \1>>', re.DOTALL)


def quoting(prompt: str, most: int = 2) -> str:
    """An answer that a simple mind would give: the first sentence of the first passages, cited."""
    said = []
    for _, number, text in _PASSAGE.findall(prompt)[:most]:
        sentence = re.split(r"(?<=[.!?])\s", " ".join(text.split()), maxsplit=1)[0].rstrip(".")
        said.append(f"{sentence} [{number}].")
    return " ".join(said)


class ModelServer(ChatServer):
    """Answers any prompt, in OpenAI's dialect and in Gemini's, streamed word by word or as a whole.

    An answer of None drops the connection.
    """

    def __init__(self, answer: Callable[[str], str | None] = quoting) -> None:
        self.answer = answer
        super().__init__(self._reply)

    def _reply(self, request: Request):
        body = request.json
        if "generateContent" in request.path.replace("streamG", "g").replace("?alt=sse", ""):
            text = self.answer(body["contents"][-1]["parts"][0]["text"])
            if text is None:
                return None
            if "stream" in request.path:
                return streamed(gemini_events(*_words(text)))
            answer = {"candidates": [{"content": {"parts": [{"text": text}]}, "finishReason": "STOP"}]}
            return 200, json.dumps(answer).encode(), {"content-type": "application/json"}
        text = self.answer(body["messages"][-1]["content"])
        if text is None:
            return None
        usage = (len(body["messages"][-1]["content"]) // 4, len(text) // 4)
        if body.get("stream"):
            return streamed(openai_events(*_words(text), usage=usage))
        counted = {"prompt_tokens": usage[0], "completion_tokens": usage[1]}
        whole = {"choices": [{"message": {"content": text}, "finish_reason": "stop"}], "usage": counted}
        return 200, json.dumps(whole).encode(), {"content-type": "application/json"}


def _words(text: str) -> list[str]:
    return re.findall(r"\S+\s*", text)


def finding(prompt: str) -> str:
    """A careful model, asked for the code of a door: what a passage says, or that none does."""
    door = re.search(r"What is the code of door (\d+)\?", prompt)[1]
    found = re.search(rf"The code of door {door} is (\d+)\.", prompt)
    return f"It is {found[1]} [1]." if found else "The passages do not answer this question."
