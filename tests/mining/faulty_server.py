"""A chat endpoint on loopback that answers, delays, refuses, cuts, babbles and lies, on a seeded schedule.

It speaks OpenAI's ``/v1/chat/completions`` over a real socket. Cases are about codes: a context answers "What
is the code of door 7?" if it says "The code of door 7 is ….". The server keeps its own books.
"""

import hashlib
import json
import re
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock, Thread
from typing import Any

from dartboard.mining.cases import Case
from dartboard.mining.corpora.base import Document

FAULTS = ("limit", "down", "cut", "drop", "garbage", "broken", "slow")
_MOST_FAULTS_IN_A_ROW = 3


def door_tasks(count: int) -> list[tuple[Case, Document]]:
    """One task a door; two in three have a context that answers."""
    tasks = []
    for number in range(count):
        case = Case(id=f"door-{number}", question=f"What is the code of door {number}?")
        about = number if number % 3 else number + 100_000
        text = f"A note on doors.\nThe code of door {about} is {about * 7919 % 9973:04d}.\nKeep it secret."
        tasks.append((case, Document(f"note-{number}", text)))
    return tasks


class FaultyServer:
    """``faults`` is the share of requests that go wrong; ``lies`` the share of prompts answered falsely."""

    def __init__(self, *, seed: int = 0, faults: float = 0.0, lies: float = 0.0, babble: float = 0.0) -> None:
        self.seed, self.faults, self.lies, self.babble = seed, faults, lies, babble
        self.books: Counter[str] = Counter()
        self.happened: Counter[str] = Counter()
        self.bodies: list[dict[str, Any]] = []
        self.on_request: Callable[[int], None] = lambda count: None
        self.override: Callable[[dict[str, Any]], tuple[int, dict[str, str], bytes] | None] = lambda body: (
            None
        )
        self.busy = self.busiest = 0
        self._lock = Lock()
        self._seen: Counter[str] = Counter()
        self._in_a_row: Counter[str] = Counter()
        self._broken: set[str] = set()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/v1"
        self._thread = Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()

    def __enter__(self) -> "FaultyServer":
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def fault(self, prompt: str) -> str:
        """What happens to this request: a fault, or "" for an answer."""
        with self._lock:
            nth = self._seen[prompt]
            self._seen[prompt] += 1
            kind = ""
            if _share(self.seed, "fault", prompt, nth) < self.faults:
                kind = FAULTS[int(_share(self.seed, "kind", prompt, nth) * len(FAULTS))]
            if self._in_a_row[prompt] >= _MOST_FAULTS_IN_A_ROW or (
                kind == "broken" and prompt in self._broken
            ):
                kind = ""
            if kind == "broken":
                self._broken.add(prompt)
            self._in_a_row[prompt] = self._in_a_row[prompt] + 1 if kind else 0
            self.happened[kind or "answer"] += 1
            return kind

    def content(self, prompt: str) -> str:
        """What the model says."""
        if _share(self.seed, "babble", prompt) < self.babble:
            return '{"label": "YES", "evidence": "The code'
        if _share(self.seed, "lie", prompt) < self.lies:
            return _json("YES", evidence="The code of every door is written right here.", reason="Trust me.")
        door = re.search(r"What is the code of door (\d+)\?", prompt)
        found = re.search(rf"The code of door {door[1]} is \d+\.", prompt) if door else None
        if found:
            return _json("YES", evidence=found[0], reason="The note says so.")
        return _json("NO", missing=f"code of door {door[1] if door else '?'}", reason="It is not there.")

    def _reply(self, body: dict[str, Any]) -> tuple[int, dict[str, str], bytes, str]:
        """Status, headers, body and the fault."""
        prompt = body["messages"][-1]["content"]
        kind = self.fault(prompt)
        if kind == "limit":
            return 429, {"retry-after": "0"}, b'{"error": "too many requests"}', kind
        if kind == "down":
            return 500, {}, b"the back end is down", kind
        if kind == "slow":
            time.sleep(0.02)  # timing: slow, but answered
        content = self.content(prompt)
        if kind == "broken":
            content = content[: len(content) // 2]
        usage = {"prompt_tokens": len(prompt) // 3 + 7, "completion_tokens": len(content) // 5 + 3}
        answer = {"choices": [{"message": {"content": content}, "finish_reason": "stop"}], "usage": usage}
        sent = _events(content, usage) if body.get("stream") else json.dumps(answer).encode()
        with self._lock:
            if kind in ("cut", "drop", "garbage"):
                self.books["lost"] += 1
            else:
                self.books.update(delivered=1, **usage)
        headers = {"content-type": "text/event-stream"} if body.get("stream") else {}
        return 200, headers, sent[: len(sent) // 2] if kind == "garbage" else sent, kind

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def do_POST(self) -> None:
                length = int(self.headers["content-length"])
                data = self.rfile.read(length)
                if len(data) < length:  # the client was killed while it sent
                    self.close_connection = True
                    return
                body = json.loads(data)
                with server._lock:
                    server.bodies.append(body)
                    count = len(server.bodies)
                    server.busy += 1
                    server.busiest = max(server.busiest, server.busy)
                server.on_request(count)
                try:
                    special = server.override(body)
                    self._send(*((*special, "") if special else server._reply(body)))
                finally:
                    with server._lock:
                        server.busy -= 1

            def _send(self, status: int, headers: dict[str, str], content: bytes, kind: str) -> None:
                if kind == "drop":
                    self.close_connection = True
                    return
                with suppress(ConnectionError):
                    self.send_response(status)
                    for name, value in {"content-length": str(len(content)), **headers}.items():
                        self.send_header(name, value)
                    self.end_headers()
                    self.wfile.write(content[: len(content) // 2] if kind == "cut" else content)
                if kind == "cut":
                    self.close_connection = True

            def handle(self) -> None:
                with suppress(ConnectionError):
                    super().handle()

            def log_message(self, *_: object) -> None:
                pass

        return Handler


def _events(content: str, usage: dict[str, int]) -> bytes:
    """The same answer as a stream of a few letters each."""
    pieces = [content[at : at + 7] for at in range(0, len(content), 7)]
    events: list[Any] = [{"choices": [{"delta": {"content": piece}}]} for piece in pieces]
    events += [{"choices": [{"delta": {}, "finish_reason": "stop"}]}, {"choices": [], "usage": usage}]
    return "".join(f"data: {json.dumps(event)}\n\n" for event in events).encode() + b"data: [DONE]\n\n"


def _json(label: str, *, evidence: str = "", missing: str = "", reason: str = "") -> str:
    return json.dumps({"label": label, "evidence": evidence, "missing": missing, "reason": reason})


def _share(*parts: object) -> float:
    """A number in [0, 1) that depends on the parts alone."""
    return int.from_bytes(hashlib.sha256(repr(parts).encode()).digest()[:6], "big") / 2**48
