"""The layers around a few plain endpoints, in the order of the service, and a real server to run them."""

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import SimpleNamespace
from typing import Annotated

import uvicorn
from fastapi import Depends, FastAPI, Request
from starlette.responses import JSONResponse, StreamingResponse

from dartboard.api.authentication import reader, writer
from dartboard.api.errors import install
from dartboard.api.keys import Keys
from dartboard.api.metrics import Metrics
from dartboard.api.middleware import BodyLimit, Guard
from dartboard.api.rate_limit import RateLimits
from dartboard.api.schemas import json_body
from dartboard.api.settings import ServiceSettings
from dartboard.api.work import Work
from dartboard.deadline import check
from tests.waiting import PATIENCE
from tests.waiting import wait_until as until

BASE = "http://127.0.0.1"


def small_app(**options) -> FastAPI:
    settings = ServiceSettings(**options)
    metrics = Metrics()
    service = SimpleNamespace(
        settings=settings,
        metrics=metrics,
        keys=Keys.open(settings.keys) if settings.keys else None,
        limits=RateLimits(),
        searches=Work(
            "searches",
            threads=settings.workers,
            waiting=settings.queue,
            seconds=settings.timeout,
            metrics=metrics,
        ),
        seen=[],
    )
    app = FastAPI()
    app.state.service = service
    install(app)

    @app.get("/read/{name}")
    async def read(name: str, key: Annotated[object, Depends(reader)]):
        return {"key": getattr(key, "id", None)}

    @app.post("/write")
    async def write(key: Annotated[object, Depends(writer)], body: Annotated[dict, json_body(None)]):
        return {"fields": len(body)}

    @app.get("/plain", dependencies=[Depends(reader)])
    async def plain():
        return JSONResponse({}, headers={"content-security-policy": "sandbox"})

    @app.get("/broken/{name}")
    async def broken(name: str):
        raise ZeroDivisionError(f"no way to divide {name}")

    @app.get("/half")
    async def half():
        async def lines():
            yield b"one\n"
            raise ZeroDivisionError("hidden words")

        return StreamingResponse(lines())

    @app.post("/api/dartboard/collections/{name}/documents")
    async def documents(name: str, request: Request):
        return {"bytes": sum([len(piece) async for piece in request.stream()])}

    @app.post("/work")
    async def work(body: Annotated[dict, json_body(None)]):
        return await service.searches.run(loop, service.seen, body.get("seconds", 60))

    @app.get("/work")
    async def work_without_body(seconds: float = 60):
        return await service.searches.run(loop, service.seen, seconds)

    app.add_middleware(BodyLimit, settings=settings)
    app.add_middleware(Guard, service=service)
    return app


def loop(seen: list, seconds: float) -> str:
    """Work in small steps that looks at its deadline, as a search does."""
    end = time.monotonic() + seconds
    seen.append("began")
    try:
        while time.monotonic() < end:
            check()
            time.sleep(0.002)  # timing: a step of work, of any length
    except BaseException as error:
        seen.append(type(error).__name__)
        raise
    seen.append("ended")
    return "done"


@contextmanager
def serving(app: FastAPI, *, grace: int | None = None) -> Iterator[int]:
    """Run the application on a free port of this machine; at the end, let requests have the grace."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
        config = uvicorn.Config(
            app,
            log_config=None,
            access_log=False,
            server_header=False,
            http="h11",
            timeout_graceful_shutdown=grace,
        )
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            until(lambda: server.started)
            yield port
        finally:
            server.should_exit = True
            thread.join(30)


def talk(
    port: int,
    *pieces: bytes,
    pause: float = 0.0,
    read: bool = True,
    shut: bool = False,
    before_leaving: Callable[[], object] | None = None,
) -> bytes:
    """Send raw bytes, and return all that comes until the server closes; ``shut`` ends our side first.

    ``before_leaving``: what has to be true before the connection is closed.
    """
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as connection:
        for piece in pieces:
            connection.sendall(piece)
            time.sleep(pause)  # timing: pieces that arrive together are answered in the same way
        if before_leaving:
            until(before_leaving)
        if shut:
            connection.shutdown(socket.SHUT_WR)
        answer = b""
        with suppress(ConnectionResetError):
            while read and (got := connection.recv(65536)):
                answer += got
        return answer
