"""Serving over stdin and stdout, and the application that serves over HTTP.

Over stdio, stdout belongs to the protocol: while serving, whatever else writes to it ends up on stderr.
Lines are read by a thread that the end of the process does not wait for, so Ctrl-C ends it at once; the end
of stdin ends it as well.
"""

import asyncio
import os
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, cast

from mcp.server import Server
from mcp.server.stdio import stdio_server

from dartboard.integrations.mcp import limits

if TYPE_CHECKING:
    from starlette.applications import Starlette

_CHUNK = 1 << 16


def serve_stdio(server: Server[Any]) -> None:
    """Serve one client until it closes stdin."""
    with _own_stdin() as source:
        asyncio.run(_serve(server, source))


async def _serve(server: Server[Any], source: int) -> None:
    async with stdio_server(stdin=cast(Any, _lines(source))) as (received, sent):
        await server.run(received, sent, server.create_initialization_options())


async def _lines(source: int) -> AsyncIterator[str]:
    """Lines of a file descriptor as they come, until its end."""
    loop = asyncio.get_running_loop()
    queue: asyncio.Queue[str | None] = asyncio.Queue()

    def read() -> None:
        with suppress(RuntimeError, OSError):  # the loop has ended, and nobody listens any more
            for line in lines_of(source):
                loop.call_soon_threadsafe(queue.put_nowait, line)
            loop.call_soon_threadsafe(queue.put_nowait, None)

    threading.Thread(target=read, name="stdin", daemon=True).start()
    while (line := await queue.get()) is not None:
        yield line


def lines_of(source: int, longest: int = limits.LINE_BYTES) -> Iterator[str]:
    """Lines as text; one longer than ``longest`` bytes comes as an empty one, which is no message."""
    kept = bytearray()
    too_long = False
    while chunk := os.read(source, _CHUNK):
        *ended, rest = chunk.split(b"\n")
        for end in ended:
            kept += end
            yield ("" if too_long or len(kept) > longest else kept.decode("utf-8", "replace")) + "\n"
            kept.clear()
            too_long = False
        kept += rest
        if len(kept) > longest:
            kept.clear()
            too_long = True
    if kept:
        yield kept.decode("utf-8", "replace")


@contextmanager
def _own_stdin() -> Iterator[int]:
    """Stdin for the protocol alone: whoever else reads it finds it empty."""
    source = os.dup(0)
    empty = os.open(os.devnull, os.O_RDONLY)
    try:
        os.dup2(empty, 0)
        yield source
    finally:
        os.dup2(source, 0)
        os.close(empty)


def http_app(server: Server[Any]) -> "Starlette":
    """The server as an ASGI application at ``/mcp``: each request by itself, and only from this machine.

    A page in a browser cannot reach it under another name: the headers Host and Origin are checked.
    """
    return server.streamable_http_app(
        host="127.0.0.1",
        stateless_http=True,
        json_response=True,
        max_request_body_size=limits.BODY_BYTES,
    )
