"""The server: four tools, described for a model, each call in a thread with a time limit.

What a caller does wrong is a result that says so (``isError``), for the model to read and to call again. Only
a tool that does not exist is an error of the protocol. What goes wrong here without anybody's fault is
logged, and the caller is told no more than that.

Over stdio, stdout belongs to the protocol: while serving, whatever else writes to it ends up on stderr.
Lines are read by a thread that the end of the process does not wait for, so Ctrl-C ends it at once; the end
of stdin ends it as well.
"""

import asyncio
import logging
import os
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from threading import Event
from typing import TYPE_CHECKING, Any, cast

import anyio
import anyio.to_thread
from mcp import types
from mcp.server import Server, ServerRequestContext
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError
from pydantic import BaseModel, ValidationError

from dartboard.deadline import deadline
from dartboard.errors import DartboardError
from dartboard.integrations.mcp import answers, limits, tools
from dartboard.integrations.mcp.answers import (
    NOTICE,
    ContextAnswer,
    ExplainAnswer,
    SearchAnswer,
    SelectAnswer,
)
from dartboard.integrations.mcp.arguments import (
    Arguments,
    ContextArguments,
    ExplainArguments,
    SearchArguments,
    SelectArguments,
    complaint,
    schema_of,
)
from dartboard.integrations.mcp.index import OpenIndex
from dartboard.search_options import SearchOptions
from dartboard.version import __version__

if TYPE_CHECKING:
    from starlette.applications import Starlette


logger = logging.getLogger(__name__)

INSTRUCTIONS = (
    "This server has an index of documents. Call search with a whole question: it returns passages that "
    "complement each other instead of repeating each other. A question with parts: give the parts in also. A "
    "follow-up question: give the ids of the passages that you have in seen. More on the same question: use "
    "offset. To read as much as fits into a number of tokens before you answer: call context. Why a passage "
    f"was chosen or left out is what explain tells. From texts that you bring along, select picks. {NOTICE}"
)


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool: what it says of itself, what it takes and gives, and who does the work."""

    name: str
    title: str
    description: str
    takes: type[Arguments]
    gives: type[BaseModel]
    work: Callable[[OpenIndex, SearchOptions, Any], Any]
    words: Callable[[Any], str]

    def described(self, defaults: SearchOptions) -> types.Tool:
        """As clients list it."""
        takes = schema_of(self.takes)
        count = takes["properties"]["k"]
        count["description"] = count["description"].replace("Default 5", f"Default {defaults.k}")
        if "method" in takes["properties"]:
            takes["properties"]["method"]["enum"] = list(tools.methods())
        return types.Tool(
            name=self.name,
            title=self.title,
            description=self.description,
            input_schema=takes,
            output_schema=self.gives.model_json_schema(mode="serialization"),
            annotations=types.ToolAnnotations(
                title=self.title,
                read_only_hint=True,
                destructive_hint=False,
                idempotent_hint=True,
                open_world_hint=False,
            ),
        )


TOOLS = (
    Tool(
        "search",
        "Search the index",
        "Find the passages of the indexed documents that TOGETHER say most about a question. Unlike a plain "
        "search it does not return five wordings of one paragraph: each passage is chosen for what it adds. "
        "Returns each passage with its source, its gain (what it adds), the coverage so far, and how many "
        "similar passages it stands for. When the question has parts, pass them as also. When you ask a "
        "follow-up question, pass the ids of all earlier results as seen, and get only what is new. When you "
        f"want more of the same, repeat the call with offset. {NOTICE}",
        SearchArguments,
        SearchAnswer,
        tools.search,
        answers.search_text,
    ),
    Tool(
        "context",
        "Collect a context",
        "The passages that TOGETHER say most about a question as ONE text within a token budget. Use it "
        "instead of search when you are about to write an answer and want to read as much as fits, with "
        "whole sections instead of fragments: chunks that follow each other in a document are merged, "
        "without repeated text. Use search to look around, or to see why each passage is there. Returns "
        "the text with numbered passages to cite, and the chunk ids behind each number: pass them as seen "
        f"with a follow-up question. {NOTICE}",
        ContextArguments,
        ContextAnswer,
        tools.context,
        answers.context_text,
    ),
    Tool(
        "select",
        "Select from given texts",
        "From texts (or vectors) that you bring along, pick those that TOGETHER say most about a question, "
        "without near-duplicates: to shorten search results of any other tool, or a list of notes. Nothing "
        "is stored. Returns positions in the list that you gave, counted from 0, with gain and coverage.",
        SelectArguments,
        SelectAnswer,
        tools.select,
        answers.select_text,
    ),
    Tool(
        "explain",
        "Explain a choice",
        "Why search (method dartboard) chose a passage or left it out: the steps of the selection, who came "
        "second at each, what the passage would have added, and which pick made it redundant. Give the "
        "query, k and filter of that search; also, seen and offset are not taken into account. "
        f"{NOTICE}",
        ExplainArguments,
        ExplainAnswer,
        tools.explain,
        answers.explain_text,
    ),
)


def create_server(index: OpenIndex, defaults: SearchOptions | None = None) -> Server[Any]:
    """A server over an index; whoever runs it closes the index."""
    known = {tool.name: tool for tool in TOOLS}
    limiter = anyio.CapacityLimiter(limits.AT_ONCE)
    chosen = defaults or SearchOptions()

    async def list_tools(
        context: ServerRequestContext[Any], params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[tool.described(chosen) for tool in TOOLS])

    async def call_tool(
        context: ServerRequestContext[Any], params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        tool = known.get(params.name)
        if tool is None:
            raise MCPError(code=types.INVALID_PARAMS, message=f"unknown tool: there are {', '.join(known)}")
        return await _in_thread(partial(answered, tool, index, chosen, params.arguments or {}), limiter)

    return Server(
        "dartboard",
        version=__version__,
        title="dartboard",
        description="Passages that together say most about a question",
        instructions=INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


def answered(
    tool: Tool, index: OpenIndex, defaults: SearchOptions, arguments: dict[str, Any]
) -> types.CallToolResult:
    """One call from arguments to result; it raises nothing."""
    try:
        asked = tool.takes.model_validate(arguments)
    except ValidationError as error:
        return _refused(complaint(error, list(tool.takes.model_fields)))
    try:
        found = tool.work(index, defaults, asked)
        text = tool.words(found)
    except (DartboardError, OSError) as error:
        return _refused(" ".join(str(error).split()))
    except Exception as error:
        logger.exception("%s failed: %r", tool.name, error)
        return _refused(f"{tool.name} failed inside the server; its log on stderr says why")
    return types.CallToolResult(
        content=[types.TextContent(text=text)], structured_content=found.model_dump(mode="json")
    )


def _refused(message: str) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(text=message)], is_error=True)


async def _in_thread(
    work: Callable[[], types.CallToolResult], limiter: anyio.CapacityLimiter
) -> types.CallToolResult:
    """Work beside the loop; where nobody waits for it any more, it stops at its next step."""
    cancelled = Event()

    def limited() -> types.CallToolResult:
        with deadline(limits.SECONDS, cancelled=cancelled):
            return work()

    try:
        return await anyio.to_thread.run_sync(limited, limiter=limiter, abandon_on_cancel=True)
    finally:
        cancelled.set()


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
