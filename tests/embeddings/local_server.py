"""A real HTTP server in a thread, answering as a test wants, badly if need be."""

import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

Reply = tuple[int, bytes, dict[str, str]] | None


@dataclass
class Request:
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


Answer = Callable[[Request], Reply]


class LocalServer:
    """Answers each request with (status, body, headers); None drops the connection."""

    def __init__(self, answer: Answer) -> None:
        self.requests: list[Request] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler(answer))
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _handler(self, answer: Answer) -> type[BaseHTTPRequestHandler]:
        requests = self.requests

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                self.reply(with_body=True)

            def do_GET(self) -> None:
                self.reply(with_body=True)

            def do_HEAD(self) -> None:
                self.reply(with_body=False)

            def reply(self, *, with_body: bool) -> None:
                length = int(self.headers.get("content-length", 0))
                request = Request(self.path, dict(self.headers.items()), self.rfile.read(length))
                requests.append(request)
                self.close_connection = True
                reply = answer(request)
                if reply is None:
                    return
                status, body, headers = reply
                self.send_response(status)
                parts = [body] if isinstance(body, bytes) else body
                if isinstance(body, bytes):
                    headers = {"content-length": str(len(body))} | headers
                for name, value in headers.items():
                    self.send_header(name, value)
                self.end_headers()
                if with_body:
                    with suppress(ConnectionError):
                        for part in parts:
                            self.wfile.write(part)

            def handle_error(self) -> None:
                pass

            def log_message(self, *_: object) -> None:
                pass

        return Handler
