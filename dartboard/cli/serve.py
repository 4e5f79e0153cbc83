"""``dartboard serve``: the service and the playground, until it is told to stop."""

import socket
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dartboard.cli.common_options import IndexOptions, spelled_out, trust_index
from dartboard.errors import ConfigError, DartboardError, MissingExtraError

if TYPE_CHECKING:
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
            "--host-name",
            "--public-name",
            metavar="HOST",
            help="A host name that leads here, beside the address; may be repeated.",
        ),
    ] = None
    proxies: Annotated[
        list[str] | None,
        typer.Option(
            "--proxy",
            metavar="ADDRESS",
            help="A reverse proxy whose X-Forwarded-For is believed; may be repeated.",
        ),
    ] = None
    processes: Annotated[
        int | None,
        typer.Option(
            metavar="N", help="Processes behind the port, which then only read the index; by default 1."
        ),
    ] = None
    timeout: Annotated[
        float | None, typer.Option(metavar="SECONDS", help="Longest time for a request; by default 30.")
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

    lists = {name: tuple(getattr(flags, name) or ()) or None for name in ("origins", "hosts", "proxies")}
    settings = service_settings(vars(flags) | lists | target.settings)
    settings.check_exposure()
    if target.trust_model:
        trust_index(settings.store)
    with listening(settings.host, settings.port) as bound:
        if settings.processes > 1:
            _run_processes(settings, bound)
        else:
            _run(settings, bound)


def _run(settings: "ServiceSettings", bound: socket.socket) -> None:
    import signal

    import uvicorn

    from dartboard.api.app import create_app
    from dartboard.api.logs import configure
    from dartboard.blas import one_thread_each
    from dartboard.cli.console import messages

    with one_thread_each():
        app = create_app(settings)
        with messages().status("Loading the model and opening the store"):
            app.state.service.engines.start()
        for line in greeting(settings, bound.getsockname()[1], app.state.service.engines.default):
            print(line, flush=True)
        configure()
        before = signal.signal(signal.SIGTERM, lambda *_: None)  # uvicorn raises it again at its end
        try:
            uvicorn.Server(config_of(app, settings)).run(sockets=[bound])
        except KeyboardInterrupt:
            pass
        finally:
            signal.signal(signal.SIGTERM, before)


def _run_processes(settings: "ServiceSettings", bound: socket.socket) -> None:
    """uvicorn's own supervisor starts, watches, replaces and stops the processes."""
    import os
    import tempfile
    from functools import partial

    from uvicorn.config import STARTUP_FAILURE
    from uvicorn.supervisors import Multiprocess

    from dartboard.api.logs import configure
    from dartboard.api.metrics import SHARED_FOLDER
    from dartboard.stores import open_store
    from dartboard.stores.urls import is_there

    if is_there(settings.store):  # what is wrong with it is said here, once
        open_store(settings.store, read_only=True).close()
    more = f"  {settings.processes} processes read the index; nothing can be changed through the service."
    for line in [*greeting(settings, bound.getsockname()[1]), more]:
        print(line, flush=True)
    configure(with_pid=True)
    with tempfile.TemporaryDirectory(prefix="dartboard-metrics-") as folder:
        os.environ[SHARED_FOLDER] = folder
        config = config_of(partial(_child_app, settings), settings, factory=True)
        supervisor = Multiprocess(config, [bound])
        supervisor.run()
    if any(process.exitcode == STARTUP_FAILURE for process in supervisor.processes):
        raise DartboardError("a process of the service could not start: its log says why")


def _child_app(settings: "ServiceSettings") -> "FastAPI":
    """The application of one of several processes, made in that process."""
    from dartboard.api.app import create_app
    from dartboard.api.logs import configure
    from dartboard.blas import one_thread_each

    configure(with_pid=True)
    one_thread_each().__enter__()  # as long as the process lives
    return create_app(settings)


def listening(host: str, port: int) -> socket.socket:
    """A socket that is bound, or one clear line that says why not."""
    bare = host.strip("[]")
    try:
        family, *_, address = socket.getaddrinfo(
            bare, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except OSError as error:
        raise ConfigError(f"{host} is no address of this machine: {error.strerror or error}") from error
    try:
        return socket.create_server(address[:2], family=family, backlog=1024)
    except OSError as error:
        raise ConfigError(
            f"port {port} of {host} cannot be had ({error.strerror or error}): "
            "stop what uses it, choose another with --port, or --port 0 for a free one"
        ) from error


def greeting(settings: "ServiceSettings", port: int, collection: str | None = None) -> list[str]:
    """Where to look, and what is there."""
    from dartboard.stores.urls import without_password

    shown = f"[{settings.host}]" if ":" in settings.host.strip("[]") else settings.host
    address = f"http://{shown}:{port}"
    store = without_password(settings.store)
    lines = [
        f"dartboard serves {store if collection is None else f'collection {collection!r}'} at {address}",
        f"  playground  {address}/",
        f"  API         {address}/api/dartboard  (described by {address}/openapi.json)",
    ]
    if collection not in (None, settings.collection):
        lines.append(
            f"  There is no collection {settings.collection!r} in {store} yet: the demo corpus answers. "
            "Index something with dartboard index PATH, or upload it on the page."
        )
    if settings.keys is None:
        lines.append("  No key is asked for: only this machine can reach it.")
    return lines


def config_of(app: Any, settings: "ServiceSettings", *, factory: bool = False) -> Any:
    """How uvicorn is to serve. Its h11 parser limits the heads of requests itself; httptools does not."""
    import uvicorn

    return uvicorn.Config(
        app,
        factory=factory,
        workers=settings.processes,
        http="h11",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=bool(settings.proxies),  # else a client could choose the address it is counted by
        forwarded_allow_ips=list(settings.proxies),
        lifespan="on",
        ws="none",
        timeout_graceful_shutdown=max(1, round(settings.grace)),
        timeout_worker_healthcheck=60,
    )
