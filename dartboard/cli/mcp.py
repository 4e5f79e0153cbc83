"""``dartboard mcp``: an index as tools for language models."""

import sys
from contextlib import redirect_stdout
from typing import TYPE_CHECKING, Annotated

import typer

from dartboard.cli.common_options import QueryOptions, configured, spelled_out, trust_index

if TYPE_CHECKING:
    from dartboard.engine import Configured


@spelled_out
def mcp(
    *,
    target: QueryOptions,
    k: Annotated[
        int | None,
        typer.Option("--k", "-k", metavar="N", help="Passages of an answer that asks for no number."),
    ] = None,
    method: Annotated[
        str | None, typer.Option(metavar="NAME", help="Who picks where a call does not say.")
    ] = None,
    http: Annotated[
        int | None,
        typer.Option(
            metavar="PORT",
            min=0,
            max=65535,
            help="Serve over HTTP at http://127.0.0.1:PORT/mcp instead of stdio; 0 takes a free port.",
        ),
    ] = None,
) -> None:
    """Serve an index to language models, by the Model Context Protocol.

    The tools search, context, explain and documents read the index and change nothing; dartboard index may
    run beside them, and what it adds is found at once. By default a client starts this command and talks to
    it over stdin and stdout, so there is nothing to see here: messages go to stderr. With --http, clients of
    this machine connect to a port. No key is asked for, so it listens on 127.0.0.1 only.

    \b
    In the configuration of a client:
      {"mcpServers": {"docs": {"command": "dartboard", "args": ["mcp", "--store", "/path/docs.dartboard"]}}}

    \b
    Examples:
      dartboard mcp --store docs.dartboard
      dartboard mcp --store postgresql://me@localhost/docs --collection handbook
      dartboard mcp --store docs.dartboard --http 8010
    """
    import dartboard.integrations.mcp  # noqa: F401 - without the extra this ends here

    found = configured(**target.settings, k=k, method=method)
    if target.trust_model:
        trust_index(found.settings.store, found.settings.collection)
    _serve(found, http)


def _serve(found: "Configured", port: int | None) -> None:
    from dartboard.cli.console import warn
    from dartboard.errors import DartboardError
    from dartboard.integrations.mcp import OpenIndex, create_server, http_app, serve_stdio
    from dartboard.search_options import SearchOptions

    settings = found.settings
    defaults = SearchOptions(
        k=settings.k,
        method=settings.method,
        sigma=settings.sigma,
        triage_k=settings.triage_k,
        reranker=found.reranker_type,
    )
    index = OpenIndex(
        settings.store,
        collection=settings.collection,
        model=found.chosen("model"),
        retriever=found.chosen("retriever"),
        pair_scorer=found.pair_scorer,
        trust_model=found.trusted,
    )
    try:
        with redirect_stdout(sys.stderr):  # stdout is the protocol's, also for what a plug-in prints
            index.look()
    except DartboardError as error:  # it may be made while this serves
        warn(" ".join(str(error).split()))
    server = create_server(index, defaults)
    try:
        if port is None:
            serve_stdio(server)
            return
        import socket

        import uvicorn

        with socket.create_server(("127.0.0.1", port)) as bound:
            port = bound.getsockname()[1]
            print(f"dartboard serves MCP at http://127.0.0.1:{port}/mcp", flush=True)
            config = uvicorn.Config(http_app(server, port), log_level="warning", access_log=False)
            uvicorn.Server(config).run(sockets=[bound])
    finally:
        index.close()
