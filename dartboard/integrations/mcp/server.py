"""The server: three tools, described for a model, each call in a thread with a time limit.

What a caller does wrong is a result that says so (``isError``), for the model to read and to call again. Only
a tool that does not exist is an error of the protocol. What goes wrong here without anybody's fault is
logged, and the caller is told no more than that.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from threading import Event
from typing import Any

import anyio
import anyio.to_thread
from mcp import types
from mcp.server import Server, ServerRequestContext
from mcp.shared.exceptions import MCPError
from pydantic import BaseModel, ValidationError

from dartboard.deadline import deadline
from dartboard.errors import DartboardError
from dartboard.integrations.mcp import limits, tools, wording
from dartboard.integrations.mcp.answers import NOTICE, ExplainAnswer, SearchAnswer, SelectAnswer
from dartboard.integrations.mcp.arguments import (
    Arguments,
    ExplainArguments,
    SearchArguments,
    SelectArguments,
    complaint,
    schema_of,
)
from dartboard.integrations.mcp.index import OpenIndex
from dartboard.integrations.mcp.tools import Defaults
from dartboard.version import __version__

logger = logging.getLogger(__name__)

INSTRUCTIONS = (
    "This server has an index of documents. Call search with a whole question: it returns passages that "
    "complement each other instead of repeating each other. To read on, call it again, with the ids that you "
    "have in exclude. Why a passage was chosen or left out is what explain tells. From texts that you bring "
    f"along, select picks. {NOTICE}"
)


@dataclass(frozen=True, slots=True)
class ToolKind:
    """A tool: what it says of itself, what it takes and gives, and who does the work."""

    name: str
    title: str
    description: str
    takes: type[Arguments]
    gives: type[BaseModel]
    work: Callable[[OpenIndex, Defaults, Any], Any]
    words: Callable[[Any], str]

    def described(self, defaults: Defaults) -> types.Tool:
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


KINDS = (
    ToolKind(
        "search",
        "Search the index",
        "Find the passages of the indexed documents that TOGETHER say most about a question. Unlike a plain "
        "search it does not return five wordings of one paragraph: each passage is chosen for what it adds. "
        "Returns each passage with its source, its gain (what it adds), the coverage so far, and how many "
        f"similar passages it stands for. {NOTICE}",
        SearchArguments,
        SearchAnswer,
        tools.search,
        wording.search_text,
    ),
    ToolKind(
        "select",
        "Select from given texts",
        "From texts (or vectors) that you bring along, pick those that TOGETHER say most about a question, "
        "without near-duplicates: to shorten search results of any other tool, or a list of notes. Nothing "
        "is stored. Returns positions in the list that you gave, counted from 0, with gain and coverage.",
        SelectArguments,
        SelectAnswer,
        tools.select,
        wording.select_text,
    ),
    ToolKind(
        "explain",
        "Explain a choice",
        "Why search (method dartboard) chose a passage or left it out: the steps of the selection, who came "
        "second at each, what the passage would have added, and which pick made it redundant. Give the "
        f"query, k and filter of that search. {NOTICE}",
        ExplainArguments,
        ExplainAnswer,
        tools.explain,
        wording.explain_text,
    ),
)


def create_server(index: OpenIndex, defaults: Defaults | None = None) -> Server[Any]:
    """A server over an index; whoever runs it closes the index."""
    known = {kind.name: kind for kind in KINDS}
    limiter = anyio.CapacityLimiter(limits.AT_ONCE)
    chosen = defaults or Defaults()

    async def list_tools(
        context: ServerRequestContext[Any], params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[kind.described(chosen) for kind in KINDS])

    async def call_tool(
        context: ServerRequestContext[Any], params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        kind = known.get(params.name)
        if kind is None:
            raise MCPError(code=types.INVALID_PARAMS, message=f"unknown tool: there are {', '.join(known)}")
        return await _in_thread(partial(answered, kind, index, chosen, params.arguments or {}), limiter)

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
    kind: ToolKind, index: OpenIndex, defaults: Defaults, arguments: dict[str, Any]
) -> types.CallToolResult:
    """One call from arguments to result; it raises nothing."""
    try:
        asked = kind.takes.model_validate(arguments)
    except ValidationError as error:
        return _refused(complaint(error, list(kind.takes.model_fields)))
    try:
        found = kind.work(index, defaults, asked)
        text = kind.words(found)
    except (DartboardError, OSError) as error:
        return _refused(" ".join(str(error).split()))
    except Exception as error:
        logger.exception("%s failed: %r", kind.name, error)
        return _refused(f"{kind.name} failed inside the server; its log on stderr says why")
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
