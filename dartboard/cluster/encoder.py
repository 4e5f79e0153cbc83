"""Encode lists of passages on a cluster while the local process reads and stores others.

A model is sent by name. The worker loads it with as many threads as one process here would use, because the
number of threads can change the rounding of a matrix product. It then compares version and fingerprint with
the expected ones: another dartboard or other weights stop the work before anything is stored.

One worker encodes a list with the same call as a local process: the same batches, padding and number of
threads. So the vectors are bit-identical on processors with the same rounding. Bits are compared too: another
kind of processor may round differently, which is logged as a warning.
"""

import hashlib
import logging
import os
import socket
import sys
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from dartboard.cluster.tasks import AHEAD, Cluster, Machine, Task
from dartboard.embeddings.base import EmbeddingModel
from dartboard.embeddings.by_name import model_by_name
from dartboard.embeddings.vectors import Vectors
from dartboard.errors import ClusterError
from dartboard.version import __version__

logger = logging.getLogger(__name__)

PROBES = (
    "The quick brown fox jumps over the lazy dog.",
    "Consumers fall behind when messages take long to handle.",
    "def add(a, b): return a + b",
    "A passage that is long enough for a matrix product to be shared between threads. " * 12,
)
"""Texts whose vectors show whether two machines round alike."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """What a worker loads, and its expected fingerprint; without a name, no model.

    ``fingerprint`` is the model's, ``bits`` the hash of its vectors of :data:`PROBES`.
    """

    version: str = __version__
    model: str = ""
    threads: int = 0
    torch_threads: int = 0
    fingerprint: str = ""
    bits: str = ""

    @property
    def cpus(self) -> int:
        """The number of cores that the model uses."""
        return max(1, self.threads, self.torch_threads)

    def plain(self) -> dict[str, str | int]:
        """The recipe as plain values."""
        return asdict(self)


def recipe_of(name: str) -> Recipe:
    """The recipe for a model by name, as this process loads it."""
    name = name.strip()
    kind, colon, path = name.partition(":")
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

    ``machines`` are the usable ones, and ``slots`` is how many lists they encode at a time.

    Raises:
        ClusterError: a machine has another dartboard or another model.
    """

    def __init__(self, cluster: Cluster, recipe: Recipe) -> None:
        self.cluster = cluster
        self.recipe = recipe
        self.machines = check_machines(cluster, recipe)
        # The cores that the model uses, or all of the largest machine if it has fewer.
        self._cpus = max(1, min(recipe.cpus, int(max(machine.cpus for machine in self.machines))))
        self.slots = cluster.slots(self._cpus)
        self.warned: set[str] = set()

    @property
    def room(self) -> int:
        """How many lists may be in progress."""
        return AHEAD * self.slots + 1

    def begin(self, texts: list[str]) -> "Encoding":
        """Start encoding the texts on some machine."""
        task = self.cluster.begin(encode, self.recipe.plain(), texts, cpus=self._cpus)
        return Encoding(self, task)


@dataclass(frozen=True, slots=True)
class Encoding:
    """A list that is being encoded."""

    encoder: ClusterEncoder
    task: Task

    def ready(self) -> bool:
        """Whether the vectors are available."""
        return self.encoder.cluster.ready(self.task)

    def vectors(self) -> Vectors:
        """``(n, d)``, in the order of the texts; waits for them."""
        name, bits, vectors = self.encoder.cluster.result(self.task)
        if bits != self.encoder.recipe.bits and name not in self.encoder.warned:
            self.encoder.warned.add(name)
            _warn_of_rounding([name])
        found: Vectors = vectors
        return found


def check_machines(cluster: Cluster, recipe: Recipe) -> list[Machine]:
    """All usable machines; raises if one has another dartboard or model.

    A machine that is lost during the check is skipped, as long as another one is left.
    """
    machines = cluster.machines()
    if not machines:
        raise ClusterError(
            f"the cluster at {cluster.address} has no machine with a core to offer: start one there with "
            "ray start --address HOST:PORT"
        )
    tasks = [cluster.begin(examine, recipe.plain(), cpus=0, machine=machine) for machine in machines]
    answered: list[Machine] = []
    other_bits: list[str] = []
    for machine, task in zip(machines, tasks, strict=True):
        try:
            name, bits = cluster.result(task)
        except ClusterError:
            if machine in cluster.machines():
                raise
            continue
        answered.append(machine)
        if bits != recipe.bits:
            other_bits.append(name)
    if not answered:
        raise ClusterError(f"every machine of the cluster at {cluster.address} was lost during the check")
    if other_bits:
        _warn_of_rounding(other_bits)
    return answered


class Loaded(NamedTuple):
    """A model in a worker, and the hash of its vectors for a few sentences."""

    model: EmbeddingModel | None
    bits: str


def examine(plain: dict[str, str | int]) -> tuple[str, str]:
    """On a worker: check the model; returns the machine's name and the hash of its vectors."""
    return socket.gethostname(), load_model(plain).bits


def encode(plain: dict[str, str | int], texts: list[str]) -> tuple[str, str, Vectors]:
    """On a worker: its machine, the hash of its model's vectors, and the encoded texts."""
    loaded = load_model(plain)
    if loaded.model is None:
        raise ClusterError("no model was named to encode with")
    return socket.gethostname(), loaded.bits, loaded.model.encode_documents(texts)


def load_model(plain: dict[str, str | int]) -> Loaded:
    """On a worker: load and check the model of a recipe, once per process."""
    return _load_model(tuple(sorted(plain.items())))


@lru_cache(maxsize=1)
def _load_model(items: tuple[tuple[str, Any], ...]) -> Loaded:
    wanted = Recipe(**dict(items))
    here = socket.gethostname()
    if wanted.version != __version__:
        raise ClusterError(
            f"{here} runs dartboard {__version__}, and here it is {wanted.version}: install the same there"
        )
    if not wanted.model:
        return Loaded(None, "")
    model = _with_threads(wanted)
    if model.fingerprint != wanted.fingerprint:
        raise ClusterError(
            f"{here} has another model under the name {wanted.model!r}: {model.fingerprint} where "
            f"{wanted.fingerprint} is due. Put the same files there"
        )
    return Loaded(model, _bits_of(model))


def _with_threads(wanted: Recipe) -> EmbeddingModel:
    kind, _, rest = wanted.model.partition(":")
    threads = wanted.threads or None
    if kind in ("default", "onnx"):
        from dartboard.embeddings.onnx import OnnxModel

        if kind == "default":
            return OnnxModel.bundled(threads=threads)
        return OnnxModel.from_folder(rest, threads=threads)
    model = model_by_name(wanted.model)
    if wanted.torch_threads:
        import torch

        torch.set_num_threads(wanted.torch_threads)
    return model


def _bits_of(model: EmbeddingModel) -> str:
    """The hash of a model's exact vectors for a few sentences."""
    return hashlib.sha256(model.encode_documents(PROBES).tobytes()).hexdigest()[:16]


def _warn_of_rounding(names: list[str]) -> None:
    logger.warning(
        "%s rounds differently from this machine (another kind of processor, or other library versions): "
        "vectors are as good, but not the same to the last bit",
        ", ".join(sorted(set(names))),
    )
