"""Encode passages on the machines of a Ray cluster, while this process alone reads files and stores results.

::

    auto             the cluster that this machine belongs to
    local            a cluster that is started here for this command and stopped after it
    HOST:PORT        the cluster with this head; this machine must belong to it
    ray://HOST:PORT  the same from any other machine, through the head's client server

A model is sent by name. A worker loads it with as many threads as one process here would use, because their
number can change the rounding of a matrix product, and compares version and fingerprint with the expected
ones: another dartboard or other weights stop the work before anything is stored. Each list is encoded by one
worker with the same call as here, so vectors are the same to the bit on processors that round alike; others
are named in a warning. A list whose worker or machine is lost is encoded again, by another one.

Only plain values are sent, errors as the name of their class and a message. Needs the extra ``ray``.
"""

import hashlib
import logging
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import Any

from dartboard import errors
from dartboard.deadline import check
from dartboard.embeddings.base import EmbeddingModel
from dartboard.embeddings.by_name import model_by_name
from dartboard.embeddings.vectors import Vectors
from dartboard.errors import ClusterError, ConfigError, DartboardError, MissingExtraError
from dartboard.plain_text import counted
from dartboard.version import __version__

logger = logging.getLogger(__name__)

OFF = "off"
"""No cluster: everything runs in this process."""

RETRIES = 3
"""How often a list is encoded again when its worker is lost; limited, because it may kill its workers."""

AHEAD = 2
"""Lists in progress per slot: enough that no worker waits, few enough to save memory."""

MACHINE_TIMEOUT = 60.0
"""Seconds to wait for a machine to come back when none is left."""

PROBES = (
    "The quick brown fox jumps over the lazy dog.",
    "def add(a, b): return a + b",
    "A passage that is long enough for a matrix product to be shared between threads. " * 12,
)
"""Texts whose vectors show whether two machines round alike."""


@contextmanager
def connect(address: str) -> "Iterator[Any]":
    """Ray, connected to the cluster at ``address``; a connection of the program's own is used and kept.

    Raises:
        ClusterError: no cluster can be joined.
        ConfigError: it is no address.
        MissingExtraError: Ray is not installed.
    """
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if address not in ("auto", "local") and not (host and port.isdecimal()):
        raise ConfigError(
            f"{address!r} is not a cluster address: use auto, local, HOST:PORT or ray://HOST:PORT, or "
            f"{OFF} for none",
            field="ray",
        )
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    options: dict[str, Any] = {"logging_level": logging.ERROR, "log_to_driver": False}
    if address == "local":  # on the loopback alone, whatever the name of the variable says
        os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
        options |= {"include_dashboard": False, "_node_ip_address": "127.0.0.1"}
    try:
        ray: Any = import_module("ray")
    except ImportError as error:
        raise MissingExtraError("ray", "ray", "--ray") from error
    if ray.is_initialized():
        yield ray
        return
    if host:
        _check_listening(address, host, int(port), ray)
    in_main = threading.current_thread() is threading.main_thread()
    handler = signal.getsignal(signal.SIGTERM) if in_main else None  # Ray replaces it
    try:
        ray.init(address=address, **options)
        yield ray
    except ImportError as error:
        raise MissingExtraError("ray[client]", "ray", "--ray ray://…") from error
    except (RuntimeError, ValueError, AssertionError, ray.exceptions.RayError) as error:
        if isinstance(error, DartboardError):
            raise
        raise ClusterError(
            f"the cluster at {address} failed: {_last_line(error)}. Ray and Python must be of the same "
            "version as there; a machine that is no member uses ray://HOST:10001; --ray local starts one"
        ) from error
    finally:
        ray.shutdown()
        if in_main:
            signal.signal(signal.SIGTERM, handler or signal.SIG_DFL)


def _check_listening(address: str, host: str, port: int, ray: Any) -> None:
    """Fail within seconds where nothing listens; Ray itself would retry for minutes."""
    if host in ("localhost", "127.0.0.1") and not address.startswith("ray://"):
        host = ray.util.get_node_ip_address()  # members know each other by their network addresses
    try:
        socket.create_connection((host.strip("[]"), port), timeout=5).close()
    except OSError as error:
        raise ClusterError(
            f"no cluster answers at {address} ({host}): {error.strerror or error}. Start one there with "
            "ray start --head, check host and port, or leave --ray out"
        ) from error


@contextmanager
def encoding_on(address: str, model: str | Callable[[], str]) -> "Iterator[ClusterEncoder | None]":
    """What encodes on the cluster at ``address``, all its machines examined; None for ``off``.

    Args:
        address: as above.
        model: the model by name, or a function that finds it, called once a cluster is joined.

    Example::

        with encoding_on("auto", "default") as encoder:
            index_paths(engine, "docs", encoder=encoder)
    """
    if address == OFF:
        yield None
        return
    with connect(address.strip()) as ray:
        yield ClusterEncoder(ray, recipe_of(model if isinstance(model, str) else model()))


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """What a worker loads, and its expected fingerprint; ``bits`` is the hash of its vectors of PROBES."""

    version: str = __version__
    model: str
    threads: int
    torch_threads: int
    fingerprint: str
    bits: str


def recipe_of(name: str) -> Recipe:
    """The recipe for a model by name, as this process loads it."""
    kind, colon, path = name.strip().partition(":")
    if colon and Path(path).exists():  # workers run in other folders, so make the path absolute
        name = f"{kind}:{os.path.abspath(path)}"  # noqa: PTH100 - resolve() would follow links
    model = model_by_name(name)
    torch: Any = sys.modules.get("torch")
    return Recipe(
        model=name,
        threads=getattr(model, "threads", 0),
        torch_threads=torch.get_num_threads() if torch and name.startswith("sentence-") else 0,
        fingerprint=model.fingerprint,
        bits=_bits_of(model),
    )


class ClusterEncoder:
    """Encodes lists of passages on the machines of a cluster, after checking them.

    ``machines`` are the ids of the usable ones, and ``slots`` is how many lists they encode at a time.

    Raises:
        ClusterError: a machine has another dartboard or another model, or there is none.
    """

    def __init__(self, ray: Any, recipe: Recipe) -> None:
        self._ray, self._recipe, self._warned = ray, recipe, set[str]()
        self._encode = ray.remote(encode)
        there = self._machines()
        if not there:
            raise ClusterError("the cluster has no machine with a core to offer: add one with ray start")
        self._cpus = max(1, min(max(recipe.threads, recipe.torch_threads), int(max(there.values()))))
        self.machines = [machine for machine in there if self._examined(machine)]
        if not self.machines:
            raise ClusterError("every machine of the cluster was lost while it was examined")
        self.slots = sum(int(there[machine] // self._cpus) for machine in self.machines)

    @property
    def room(self) -> int:
        """How many lists may be in progress."""
        return AHEAD * self.slots + 1

    @property
    def summary(self) -> str:
        """What works for us, in words."""
        lists = f"{counted(self.slots, 'list')} of passages at a time"
        return f"{counted(len(self.machines), 'machine')} of the cluster, {lists}"

    def begin(self, texts: list[str]) -> "Encoding":
        """Start encoding the texts on some machine."""
        return Encoding(self, self._begin(texts, num_cpus=self._cpus, scheduling_strategy="SPREAD"))

    def ready(self, reference: Any) -> bool:
        """Whether a result is there."""
        return bool(self._ray.wait([reference], timeout=0)[0])

    def result(self, reference: Any) -> Vectors:
        """The vectors, once they are there; raises a worker's error as ours."""
        alone_since: float | None = None
        known = self._ray.exceptions
        try:
            while not self._ray.wait([reference], timeout=1.0)[0]:
                check()
                alone_since = None if self._machines() else alone_since or time.monotonic()
                if alone_since is not None and time.monotonic() - alone_since > MACHINE_TIMEOUT:
                    raise ClusterError("no machine is left in the cluster: start some. Finished work is kept")
            error, message, host, bits, vectors = self._ray.get(reference)
        except (known.RayError, ConnectionError) as lost:
            raise ClusterError(
                f"the cluster failed: {_last_line(lost)}. A machine may be short of memory, or lack "
                "dartboard with the extra ray. Finished work is kept"
            ) from lost
        if error:
            kind = getattr(errors, error, ClusterError)
            raise kind.__new__(kind, message)  # some errors build their message from other arguments
        if bits != self._recipe.bits and host not in self._warned:
            self._warned.add(host)
            logger.warning(
                "%s rounds differently from this machine (another kind of processor, or other library "
                "versions): vectors are as good, but not the same to the last bit",
                host,
            )
        found: Vectors = vectors
        return found

    def _machines(self) -> dict[str, float]:
        """The machines with a core, busy or not: cores by id."""
        alive = (node for node in self._ray.nodes() if node["Alive"])
        return {node["NodeID"]: cores for node in alive if (cores := node["Resources"].get("CPU", 0.0)) >= 1}

    def _examined(self, machine: str) -> bool:
        """Whether a machine loads the same model; one that is lost meanwhile is left out."""
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        there = NodeAffinitySchedulingStrategy(node_id=machine, soft=False)
        try:
            self.result(self._begin([], num_cpus=0, scheduling_strategy=there))
        except ClusterError:
            if machine in self._machines():
                raise
            return False
        return True

    def _begin(self, texts: list[str], **options: Any) -> Any:
        options |= {"max_retries": RETRIES, "name": "dartboard encode"}
        return self._encode.options(**options).remote(asdict(self._recipe), texts)


class Encoding(Future[Vectors]):
    """The vectors of a list that a machine encodes; Ray has them."""

    def __init__(self, encoder: ClusterEncoder, reference: Any) -> None:
        super().__init__()
        self._encoder, self._reference = encoder, reference

    def done(self) -> bool:
        """Whether the vectors are available."""
        return self._encoder.ready(self._reference)

    def result(self, timeout: float | None = None) -> Vectors:
        """``(n, d)``, in the order of the texts; waits for them."""
        return self._encoder.result(self._reference)


def encode(recipe: dict[str, Any], texts: list[str]) -> tuple[str, str, str, str, Vectors | None]:
    """On a worker: an error and its message, or the machine, its model's bits and the encoded texts."""
    here = socket.gethostname()
    try:
        model, bits = _load_model(tuple(sorted(recipe.items())))
        return "", "", here, bits, model.encode_documents(texts) if texts else None
    except DartboardError as error:
        return type(error).__name__, f"{error} (on {here})", here, "", None
    except Exception as error:  # noqa: BLE001 - whatever it is, it is told to the one who waits
        return ClusterError.__name__, f"a worker on {here} failed: {error!r}", here, "", None


@lru_cache(maxsize=1)
def _load_model(recipe: tuple[tuple[str, Any], ...]) -> tuple[EmbeddingModel, str]:
    """On a worker: load and check the model of a recipe, once per process."""
    wanted = Recipe(**dict(recipe))
    if wanted.version != __version__:
        raise ClusterError(
            f"it runs dartboard {__version__}, and here it is {wanted.version}: install the same there"
        )
    kind, _, folder = wanted.model.partition(":")
    if kind in ("default", "onnx"):
        from dartboard.embeddings.onnx import OnnxModel

        threads = wanted.threads or None
        model: EmbeddingModel
        model = (
            OnnxModel.from_folder(folder, threads=threads) if folder else OnnxModel.bundled(threads=threads)
        )
    else:
        model = model_by_name(wanted.model)
        if wanted.torch_threads:
            import torch

            torch.set_num_threads(wanted.torch_threads)
    if model.fingerprint != wanted.fingerprint:
        raise ClusterError(
            f"it has another model under the name {wanted.model!r}: {model.fingerprint} where "
            f"{wanted.fingerprint} is due. Put the same files there"
        )
    return model, _bits_of(model)


def _bits_of(model: EmbeddingModel) -> str:
    """The hash of a model's exact vectors for a few sentences."""
    return hashlib.sha256(model.encode_documents(PROBES).tobytes()).hexdigest()[:16]


def _last_line(error: BaseException) -> str:
    """The last non-empty line: Ray's errors include the log before it."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return (lines[-1] if lines else type(error).__name__)[:300].rstrip(".")
