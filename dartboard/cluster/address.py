"""Where a cluster is, as a command line says it.

auto             the cluster that this machine belongs to
local            one that is started here for this command and stopped after it
HOST:PORT        the cluster whose head is there; this machine belongs to it
ray://HOST:PORT  the same from a machine that does not, through the head's client server
"""

import os
import socket
from dataclasses import dataclass
from typing import Literal

from dartboard.errors import ClusterError, ConfigError

OFF = "off"
"""No cluster: everything in this process."""

FORMS = "auto, local, HOST:PORT or ray://HOST:PORT"

_SCHEME = "ray://"
_PATIENCE = 5.0
"""Seconds in which a cluster that is there answers."""

_SETTINGS = 4
_HEAD = 9
_GREETING = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, _SETTINGS, 0, 0, 0, 0, 0])
"""The preface of HTTP/2 (RFC 9113, section 3.4) with empty settings; a frame's head has nine bytes."""

Kind = Literal["auto", "local", "member", "client"]


@dataclass(frozen=True, slots=True)
class Address:
    """An address as it was written, and what it means."""

    text: str
    kind: Kind
    host: str = ""
    port: int = 0


def parse_address(text: str) -> Address:
    """The address, or an error that names the forms that there are."""
    text = text.strip()
    if text == "auto":
        return Address(text, "auto")
    if text == "local":
        return Address(text, "local")
    host, colon, port = text.removeprefix(_SCHEME).rpartition(":")
    if not (host and colon and port.isdecimal() and 0 < int(port) < 65536) or "/" in host:
        raise ConfigError(f"{text!r} is no address of a cluster: use {FORMS}, or {OFF} for none")
    return Address(text, "client" if text.startswith(_SCHEME) else "member", host.strip("[]"), int(port))


def check_reachable(address: Address, host: str) -> None:
    """Complain within seconds where no cluster listens; Ray itself would go on trying for minutes.

    ``host`` is where Ray will look: for it, this machine is not 127.0.0.1 but its name in the network.
    """
    try:
        with socket.create_connection((host, address.port), timeout=_PATIENCE) as connection:
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
    """Whether a greeting in HTTP/2 is answered by settings, as HTTP/2 asks for."""
    connection.sendall(_GREETING)
    answer = b""
    while len(answer) < _HEAD and (more := connection.recv(_HEAD - len(answer))):
        answer += more
    return len(answer) == _HEAD and answer[3] == _SETTINGS
