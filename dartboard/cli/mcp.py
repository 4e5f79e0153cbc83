"""``dartboard mcp``: an index as tools for language models."""

import logging
import sys
from contextlib import redirect_stdout
from importlib.util import find_spec
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dartboard.cli.common_options import IndexOptions, RerankerOption, configured, spelled_out, trust_index
from dartboard.errors import ConfigError, MissingExtraError

if TYPE_CHECKING:
    from mcp.server import Server

    from dartboard.engine import Configured


@spelled_out
def mcp(
    *,
    target: IndexOptions,
    k: Annotated[
        int | None,
        typer.Option("--k", "-k", metavar="N", help="Passages of an answer that asks for no number."),
    ] = None,
    method: Annotated[
        str | None, typer.Option(metavar="NAME", help="Who picks where a call does not say.")
    ] = None,
    reranker: RerankerOption = None,
    http: Annotated[
        int | None,
        typer.Option(
            metavar="PORT",
            help="Serve over HTTP at http://127.0.0.1:PORT/mcp instead of stdio; 0 takes a free port.",
        ),
    ] = None,
) -> None:
    """Serve an index to language models, by the Model Context Protocol.

    The tools search, select and explain read the index and change nothing; dartboard index may run beside
    them, and what it adds is found at once. By default a client starts this command and talks to it over
    stdin and stdout, so there is nothing to see here: messages go to stderr. With --http, clients of this
    machine connect to a port. No key is asked for, so it listens on 127.0.0.1 only.

    \b
    In the configuration of a client:
      {"mcpServers": {"docs": {"command": "dartboard", "args": ["mcp", "--store", "/path/docs.dartboard"]}}}

    \b
    Examples:
      dartboard mcp --store docs.dartboard
      dartboard mcp --store postgresql://me@localhost/docs --collection handbook
      dartboard mcp --store docs.dartboard --http 8010
    """
    if find_spec("mcp") is None:
        raise MissingExtraError("the package mcp", "mcp", "dartboard mcp")
    if http is not None and not 0 <= http <= 65535:
        raise typer.BadParameter(f"--http must be a port, 0 to 65535, got {http}")
    found = configured(**target.settings, k=k, method=method, reranker=reranker)
    if target.trust_model:
        trust_index(found.settings.store, found.settings.collection)
    _serve(found, http)


def _serve(found: "Configured", port: int | None) -> None:
    from dartboard.cli.console import warn
    from dartboard.errors import DartboardError
    from dartboard.integrations.mcp.index import OpenIndex
    from dartboard.integrations.mcp.limits import K
    from dartboard.integrations.mcp.server import create_server, serve_stdio
    from dartboard.integrations.mcp.tools import check_method
    from dartboard.search_options import SearchOptions

    settings = found.settings
    if not 1 <= settings.k <= K:
        raise ConfigError(f"k must be in 1 to {K} for dartboard mcp, got {settings.k}")
    defaults = SearchOptions(
        k=settings.k,
        method=check_method(settings.method),
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
    _log_to_stderr()
    try:
        with redirect_stdout(sys.stderr):  # stdout is the protocol's, also for what a plug-in prints
            index.look()
    except DartboardError as error:  # it may be made while this serves
        warn(" ".join(str(error).split()))
    server = create_server(index, defaults)
    try:
        if port is None:
            serve_stdio(server)
        else:
            _serve_http(server, port)
    finally:
        index.close()


def _serve_http(server: "Server[Any]", port: int) -> None:
    import uvicorn

    from dartboard.cli.serve import listening, server_of
    from dartboard.integrations.mcp.server import http_app

    with listening("127.0.0.1", port) as bound:
        config = uvicorn.Config(
            http_app(server),
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_graceful_shutdown=5,
        )
        print(f"dartboard serves MCP at http://127.0.0.1:{bound.getsockname()[1]}/mcp", flush=True)
        server_of(config, lambda: None).run(sockets=[bound])


def _log_to_stderr() -> None:
    """Warnings of the protocol's library, in one line each."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("mcp: %(message)s"))
    logger = logging.getLogger("mcp")
    logger.addHandler(handler)
    logger.propagate = False
