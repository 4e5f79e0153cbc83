"""Connect to a Ray cluster by its address, and disconnect without changing it.

auto             the cluster that this machine belongs to
local            a cluster that is started here for this command and stopped after it
HOST:PORT        the cluster with this head; this machine must belong to it
ray://HOST:PORT  the same from any other machine, through the head's client server
"""

import logging
import os
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Literal

from dartboard.cluster.tasks import Cluster, last_line
from dartboard.errors import ClusterError, ConfigError, MissingExtraError

OFF = "off"
"""No cluster: everything runs in this process."""

FORMS = "auto, local, HOST:PORT or ray://HOST:PORT"

_SCHEME = "ray://"
_LOOPBACK = "127.0.0.1"
_LOOPBACK_ONLY = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"
"""Set to 0, it keeps Ray on the loopback interface on every system, despite its name."""

_OBJECT_BYTES = 128 * 1024 * 1024
"""Shared memory of a cluster that is started here: a few megabytes are in use at a time."""

_CONNECT_SECONDS = 5.0
_SETTINGS = 4
_HEAD = 9
_GREETING = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, _SETTINGS, 0, 0, 0, 0, 0])
"""The preface of HTTP/2 (RFC 9113, section 3.4) with empty settings; a frame header has 9 bytes."""

# Error and advice, by the kind of an address.
_PROBLEMS = {
    "auto": (
        "no cluster was found that this machine belongs to",
        "Start one with ray start --head, give its address, or use local",
    ),
    "local": (
        "no cluster could be started on this machine",
        "Leave --ray out to work in this process",
    ),
    "member": (
        "the cluster at {} could not be joined",
        "Ray and Python must be of the same version as there, and this machine a member of the cluster: "
        "from others use ray://HOST:10001",
    ),
    "client": (
        "the cluster at {} could not be joined",
        "Ray and Python must be of the same version as there",
    ),
}


@dataclass(frozen=True, slots=True)
class Address:
    """An address as written, and its parts."""

    text: str
    kind: Literal["auto", "local", "member", "client"]
    host: str = ""
    port: int = 0


def parse_address(text: str) -> Address:
    """Parse an address; the :class:`ConfigError` lists the valid forms."""
    text = text.strip()
    if text == "auto":
        return Address(text, "auto")
    if text == "local":
        return Address(text, "local")
    host, colon, port = text.removeprefix(_SCHEME).rpartition(":")
    if not (host and colon and port.isdecimal() and 0 < int(port) < 65536) or "/" in host:
        raise ConfigError(f"{text!r} is not a cluster address: use {FORMS}, or {OFF} for none")
    return Address(text, "client" if text.startswith(_SCHEME) else "member", host.strip("[]"), int(port))


@contextmanager
def connect(address: str) -> Iterator[Cluster]:
    """Connect to the cluster at ``address``; disconnect at the end, and stop a cluster started here.

    An existing connection of the program is used and kept.

    Raises:
        ClusterError: no cluster can be joined.
        MissingExtraError: Ray is not installed.

    Example::

        with connect("auto") as cluster:
            encoder = ClusterEncoder(cluster, recipe_of("default"))
    """
    place = parse_address(address)
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    if place.kind == "local":
        os.environ.setdefault(_LOOPBACK_ONLY, "0")  # Ray reads it when it is imported
    try:
        ray: Any = import_module("ray")
    except ImportError as error:
        raise MissingExtraError("ray", "ray", "--ray") from error
    if ray.is_initialized():
        yield Cluster(ray, place.text)
        return
    if place.host:
        is_here = place.host in ("localhost", "127.0.0.1", "::1")
        # Members of a cluster know each other by their network addresses.
        host = str(ray.util.get_node_ip_address()) if is_here and place.kind == "member" else place.host
        check_reachable(place, host)
    with _own_signals():
        try:
            _join(ray, place)
            yield Cluster(ray, place.text)
        finally:
            ray.shutdown()


def check_reachable(address: Address, host: str) -> None:
    """Raise within seconds if no cluster listens; Ray itself would retry for minutes.

    ``host`` is the address that Ray will use: for Ray, this machine is not 127.0.0.1 but its network name.
    """
    try:
        with socket.create_connection((host, address.port), timeout=_CONNECT_SECONDS) as connection:
            speaks = os.environ.get("RAY_USE_TLS") == "1" or _speaks_grpc(connection)
    except OSError as error:
        where = address.text if host == address.host else f"{address.text} ({host} for Ray)"
        raise ClusterError(
            f"no cluster answers at {where}: {error.strerror or error}. Start one there with "
            "ray start --head, check host and port, or leave --ray out"
        ) from error
    if not speaks:
        raise ClusterError(f"what answers at {address.text} is no Ray cluster: check the port")


def _speaks_grpc(connection: socket.socket) -> bool:
    """Whether an HTTP/2 preface is answered with a settings frame, as HTTP/2 requires."""
    connection.sendall(_GREETING)
    answer = b""
    while len(answer) < _HEAD and (more := connection.recv(_HEAD - len(answer))):
        answer += more
    return len(answer) == _HEAD and answer[3] == _SETTINGS


def _join(ray: Any, place: Address) -> None:
    options: dict[str, Any] = {"logging_level": logging.ERROR, "log_to_driver": False}
    if place.kind == "local":
        options |= {
            "include_dashboard": False,
            "object_store_memory": _OBJECT_BYTES,
            "_node_ip_address": _LOOPBACK,
        }
    try:
        ray.init(address=place.text, **options)
    except ImportError as error:
        raise MissingExtraError("ray[client]", "ray", "--ray ray://…") from error
    except (RuntimeError, ValueError, OSError, AssertionError, ray.exceptions.RayError) as error:
        problem, advice = _PROBLEMS[place.kind]
        raise ClusterError(f"{problem.format(place.text)}: {last_line(error)}. {advice}") from error


@contextmanager
def _own_signals() -> Iterator[None]:
    """Restore the handler of SIGTERM, which Ray replaces."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before if before is not None else signal.SIG_DFL)
