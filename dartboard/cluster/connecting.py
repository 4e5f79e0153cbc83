"""Join a cluster for a while, and leave it as it was found."""

import logging
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from dartboard.cluster.address import Address, check_reachable, parse_address
from dartboard.cluster.work import Cluster, in_one_line
from dartboard.errors import ClusterError, MissingExtraError

_LOOPBACK = "127.0.0.1"
_STAY_HERE = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"
"""Set to 0, it keeps Ray on the loopback on every system, not on those alone that it is named after."""
_OBJECT_BYTES = 128 * 1024 * 1024
"""Shared memory of a cluster that is started here: what is under way at a time is a few megabytes."""


@contextmanager
def connect(address: str) -> Iterator[Cluster]:
    """The cluster at ``address``; at the end it is left, and stopped where it was started here.

    A program that is connected already stays connected to what it is connected to.
    """
    place = parse_address(address)
    ray = _ray(place)
    if ray.is_initialized():
        yield Cluster(ray, place.text)
        return
    if place.host:
        check_reachable(place, _host(ray, place))
    with _own_signals():
        try:
            _join(ray, place)
            yield Cluster(ray, place.text)
        finally:
            ray.shutdown()


def _ray(place: Address) -> Any:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    if place.kind == "local":
        os.environ.setdefault(_STAY_HERE, "0")  # is read when Ray is imported
    try:
        import ray
    except ImportError as error:
        raise MissingExtraError("ray", "ray", "--ray") from error
    return ray


def _host(ray: Any, place: Address) -> str:
    """Where Ray will look: members of a cluster know each other by their addresses in the network."""
    local = place.host in ("localhost", "127.0.0.1", "::1")
    return str(ray.util.get_node_ip_address()) if local and place.kind == "member" else place.host


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
        raise ClusterError(f"{_tried(place)}: {in_one_line(error)}. {_advice(place)}") from error


def _tried(place: Address) -> str:
    if place.kind == "local":
        return "no cluster could be started on this machine"
    if place.kind == "auto":
        return "no cluster was found that this machine belongs to"
    return f"the cluster at {place.text} could not be joined"


def _advice(place: Address) -> str:
    if place.kind == "local":
        return "Leave --ray out to work in this process"
    if place.kind == "member":
        return (
            "Ray and Python must be of the same version as there, and this machine a member of the cluster: "
            "from others use ray://HOST:10001"
        )
    if place.kind == "client":
        return "Ray and Python must be of the same version as there"
    return "Start one with ray start --head, give its address, or use local"


@contextmanager
def _own_signals() -> Iterator[None]:
    """Ray puts its own handler on SIGTERM; afterwards the old one is back."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before if before is not None else signal.SIG_DFL)
