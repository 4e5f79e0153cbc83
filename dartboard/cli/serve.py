"""``dartboard serve``: the service and the playground, until it is told to stop."""

import socket
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dartboard.cli.common_options import IndexOptions, spelled_out, trust_index
from dartboard.errors import ConfigError, MissingExtraError

if TYPE_CHECKING:
    from collections.abc import Callable

    from fastapi import FastAPI

    from dartboard.api.settings import ServiceSettings


@dataclass(frozen=True, kw_only=True)
class ServiceFlags:
    """How the service is reached and what it allows; fields have the names of the service's settings."""

    host: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS", help="The address to listen on; by default 127.0.0.1, this machine only."
        ),
    ] = None
    port: Annotated[
        int | None,
        typer.Option("--port", "-p", metavar="N", help="The port; by default 8000, 0 takes a free one."),
    ] = None
    pair_scorer: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Pair scorer for requests that ask for crossencoder or hybrid: late-interaction (the "
            "default) or cross-encoder:PATH.",
        ),
    ] = None
    keys: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The file of dartboard keys; without one, no key is asked for."),
    ] = None
    home: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Where uploads, reports and cases live; by default dartboard-data."),
    ] = None
    demo: Annotated[
        bool | None, typer.Option("--demo/--no-demo", help="Whether the small demo corpus is there to ask.")
    ] = None
    origins: Annotated[
        list[str] | None,
        typer.Option(
            "--origin", metavar="URL", help="A site whose pages may call the service (CORS); may be repeated."
        ),
    ] = None
    hosts: Annotated[
        list[str] | None,
        typer.Option(
            "--public-name",
            metavar="HOST",
            help="A host name that leads here, beside the address; may be repeated.",
        ),
    ] = None
    processes: Annotated[
        int | None,
        typer.Option(
            metavar="N", help="Processes behind the port, which then only read the index; by default 1."
        ),
    ] = None
    workers: Annotated[
        int | None, typer.Option(metavar="N", help="Requests that are worked on at a time.")
    ] = None
    queue: Annotated[
        int | None,
        typer.Option(metavar="N", help="Requests that may wait; those beyond get 429. By default 16."),
    ] = None
    timeout: Annotated[
        float | None, typer.Option(metavar="SECONDS", help="Longest time for a request; by default 30.")
    ] = None
    rate: Annotated[
        float | None,
        typer.Option(
            metavar="N", help="Requests a second for each key or address; by default 1000, 0 is no limit."
        ),
    ] = None
    k: Annotated[
        int | None,
        typer.Option(
            "--max-k", metavar="N", help="Most passages that a request may ask for; by default 100."
        ),
    ] = None
    triage_k: Annotated[
        int | None,
        typer.Option("--max-triage", metavar="N", help="Most candidates to pick from; by default 1000."),
    ] = None
    query_tokens: Annotated[
        int | None,
        typer.Option("--max-query-tokens", metavar="N", help="Longest question, in tokens; by default 512."),
    ] = None
    answer_model: Annotated[
        str | None,
        typer.Option(
            metavar="SPEC", help="Who writes the answers of /ask: openai:MODEL@URL or gemini:MODEL[@URL]."
        ),
    ] = None
    log_queries: Annotated[
        bool | None,
        typer.Option("--log-queries/--no-log-queries", help="Whether logs hold what is asked."),
    ] = None


@spelled_out
def serve(*, flags: ServiceFlags, target: IndexOptions) -> None:
    """Serve an index over HTTP, with a playground to look at it.

    The page is at /, the API at /api/dartboard, its description at /openapi.json. Until the collection
    exists, a small demo corpus answers. Ctrl-C or SIGTERM lets what is running finish;
    a second one does not wait for it.

    \b
    Examples:
      dartboard serve                                  then open http://127.0.0.1:8000
      dartboard serve --store docs.dartboard --port 9000
      dartboard serve --store postgresql://localhost/team
      dartboard serve --answer-model openai:llama3.1@http://localhost:11434/v1
      curl -s localhost:8000/api/dartboard/retrieve -H 'Content-Type: application/json' -d '{"query": "why?"}'

    \b
    For others than this machine, keys are needed:
      dartboard keys create team --keys keys.json
      dartboard serve --host 0.0.0.0 --keys keys.json

    \b
    Every limit can be set as DARTBOARD_SERVE_NAME, or in dartboard.toml:
      [serve]
      port = 9000
      timeout = 10
      origins = ["https://search.example.org"]
    """
    if find_spec("fastapi") is None or find_spec("uvicorn") is None:
        raise MissingExtraError("fastapi and uvicorn", "serve", "dartboard serve")
    from dartboard.api.settings import service_settings

    lists = {"origins": tuple(flags.origins or ()) or None, "hosts": tuple(flags.hosts or ()) or None}
    settings = service_settings(vars(flags) | lists | target.settings)
    settings.check_exposure()
    if target.trust_model:
        trust_index(settings.store)
    if settings.processes > 1:
        from dartboard.cli.serve_processes import Supervisor, listening_together

        Supervisor(settings, listening_together(settings.host, settings.port, settings.processes)).run()
    else:
        _run(settings)


def _run(settings: "ServiceSettings") -> None:
    from dartboard.api.app import create_app
    from dartboard.blas import one_thread_each
    from dartboard.cli.console import messages

    with listening(settings.host, settings.port) as bound, one_thread_each():
        app = create_app(settings)
        with messages().status("Loading the model and opening the store"):
            app.state.service.engines.start()
        for line in greeting(app, settings, bound.getsockname()[1]):
            print(line, flush=True)
        serve_app(app, settings, bound)


def listening(host: str, port: int, *, shared: bool = False) -> socket.socket:
    """A socket that is bound, or one clear line that says why not; ``shared`` with others of this user."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host.strip("[]"), port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        bound = socket.socket(family, kind, protocol)
    except OSError as error:
        raise ConfigError(f"{host} is no address of this machine: {error.strerror or error}") from error
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if shared:
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        bound.bind(address)
        bound.listen(128)
    except OSError as error:
        bound.close()
        raise ConfigError(
            f"port {port} of {host} cannot be had ({error.strerror or error}): "
            "stop what uses it, choose another with --port, or --port 0 for a free one"
        ) from error
    return bound


def greeting(app: "FastAPI", settings: "ServiceSettings", port: int) -> list[str]:
    """Where to look, and what is there."""
    from dartboard.stores.urls import without_password

    engines = app.state.service.engines
    shown = f"[{settings.host}]" if ":" in settings.host.strip("[]") else settings.host
    address = f"http://{shown}:{port}"
    name = engines.default
    lines = [
        f"dartboard serves collection {name!r} at {address}",
        f"  playground  {address}/",
        f"  API         {address}/api/dartboard  (described by {address}/openapi.json)",
    ]
    if name != settings.collection:
        lines.append(
            f"  There is no collection {settings.collection!r} in {without_password(settings.store)} yet: "
            "the demo corpus answers. Index something with dartboard index PATH"
            + (", or upload it on the page." if settings.processes == 1 else ".")
        )
    if settings.keys is None:
        lines.append("  No key is asked for: only this machine can reach it.")
    return lines


def serve_app(app: "FastAPI", settings: "ServiceSettings", bound: socket.socket) -> None:
    """Answer requests that come through a socket, until a signal."""
    import logging

    from dartboard.api.guards.request_log import configure

    configure(with_pid=settings.processes > 1)
    for handler in list(logging.getLogger("dartboard").handlers):
        logging.getLogger("dartboard").removeHandler(handler)  # the log of the service has its own lines
    server_of(config_of(app, settings), app.state.service.told_to_stop).run(sockets=[bound])


def config_of(app: "FastAPI", settings: "ServiceSettings") -> Any:
    """How uvicorn is to serve."""
    import uvicorn

    from dartboard.api.guards.head_limit import http_protocol

    return uvicorn.Config(
        app,
        http=http_protocol(),
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,  # a client could choose the address that it is counted by
        lifespan="on",
        ws="none",
        timeout_graceful_shutdown=max(1, round(settings.grace)),
    )


def server_of(config: Any, told: "Callable[[], None]") -> Any:
    """A server that says when it is told to stop, and ends quietly after a signal: nothing failed."""
    import gc
    import signal
    import threading
    from collections.abc import Iterator
    from contextlib import contextmanager

    import uvicorn

    class Server(uvicorn.Server):
        async def startup(self, sockets: Any = None) -> None:
            await super().startup(sockets)
            gc.collect()
            gc.freeze()  # what is loaded by now stays, and need not be looked through again and again

        def handle_exit(self, sig: int, frame: Any) -> None:
            told()
            super().handle_exit(sig, frame)

        @contextmanager
        def capture_signals(self) -> Iterator[None]:
            if threading.current_thread() is not threading.main_thread():
                yield
                return
            before = {
                number: signal.signal(number, self.handle_exit) for number in (signal.SIGINT, signal.SIGTERM)
            }
            try:
                yield
            finally:
                for number, handler in before.items():
                    signal.signal(number, handler)

    return Server(config)
