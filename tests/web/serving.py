"""A real service in a real uvicorn, on a free port, for a browser to look at."""

import asyncio
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import uvicorn
from fastapi import FastAPI

from dartboard.api import ServiceSettings, create_app
from tests.waiting import wait_until


@dataclass(frozen=True)
class Served:
    """Where a service listens, its application, and where it keeps its files."""

    url: str
    app: FastAPI
    home: Path
    loop: asyncio.AbstractEventLoop

    def post(self, path: str, **options: Any) -> Any:
        """What an endpoint answers, without a browser."""
        answer = httpx.post(f"{self.url}/api/dartboard/{path}", timeout=60, **options)
        answer.raise_for_status()
        return answer.json()

    def explore(self, query: str, **options: Any) -> Any:
        """What the page is told; with as many candidates as the page asks for."""
        return self.post("explore", json={"query": query, "triage_k": 100, **options})


def pick_names(answer: Any, method: str) -> list[str]:
    """What a method's picks from the demo are called: by source, with the id where a source comes twice."""
    sources = [one["source"] for one in answer["candidates"]]
    names = [
        one["source"] if sources.count(one["source"]) == 1 else f"{one['source']} {one['id']}"
        for one in answer["candidates"]
    ]
    return [names[index] for index in answer["methods"][method]["picks"]]


@contextmanager
def serving(folder: Path, **options: Any) -> Iterator[Served]:
    """Start a service over a store of its own; stop it at the end."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    home = folder / "home"
    app = create_app(ServiceSettings(store=str(folder / "index.dartboard"), home=home, port=port, **options))
    config = uvicorn.Config(
        app, host="127.0.0.1", port=port, log_config=None, ws="none", timeout_graceful_shutdown=5
    )
    server = uvicorn.Server(config)
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=_run, args=(server, loop), daemon=True)
    thread.start()
    wait_until(lambda: server.started or not thread.is_alive())
    assert thread.is_alive(), "the service did not start"
    try:
        yield Served(f"http://127.0.0.1:{port}", app, home, loop)
    finally:
        server.should_exit = True
        thread.join(30)


def _run(server: uvicorn.Server, loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    try:
        loop.run_until_complete(server.serve())
    finally:
        loop.close()


def add_documents(served: Served, collection: str, texts: list[tuple[str, str]]) -> None:
    """Make a collection of one passage a document."""
    base = f"{served.url}/api/dartboard/collections/{collection}"
    httpx.put(base, json={}, timeout=60).raise_for_status()
    lines = [httpx.Request("POST", base, json={"id": name, "text": text}).content for name, text in texts]
    answer = httpx.post(
        f"{base}/documents",
        content=b"\n".join(lines),
        headers={"Content-Type": "application/x-ndjson"},
        timeout=120,
    )
    answer.raise_for_status()
    assert answer.json()["accepted"] == len(texts), answer.text
