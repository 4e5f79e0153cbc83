"""What a worker loads, and what it must turn out to be.

A model travels by its name. The worker loads it with as many threads as one process here would use, since
how a matrix product is shared between threads may decide how it is rounded, and compares what it has with
what it was told: another dartboard or other weights end the work before anything is kept. Last bits are
compared, too: another kind of processor may round otherwise, which is said, not refused.
"""

import hashlib
import os
import socket
import sys
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from dartboard.embeddings.by_name import model_by_name
from dartboard.errors import ClusterError
from dartboard.version import __version__

if TYPE_CHECKING:
    from dartboard.embeddings.base import EmbeddingModel

PROBES = (
    "The quick brown fox jumps over the lazy dog.",
    "Consumers fall behind when messages take long to handle.",
    "def add(a, b): return a + b",
    "A passage that is long enough for a matrix product to be shared between threads. " * 12,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """A model by name, its threads, and the marks by which it is known; no name is no model."""

    version: str = __version__
    model: str = ""
    threads: int = 0
    torch_threads: int = 0
    fingerprint: str = ""
    bits: str = ""

    @property
    def cpus(self) -> int:
        """The cores that the model keeps busy."""
        return max(1, self.threads, self.torch_threads)

    def plain(self) -> dict[str, str | int]:
        """As it travels."""
        return asdict(self)


class Loaded(NamedTuple):
    """A model in a worker, and the hash of what it makes of a few sentences."""

    model: "EmbeddingModel | None"
    bits: str


def recipe_of(name: str) -> Recipe:
    """The recipe for a model by name, as this process loads it."""
    name = portable(name)
    model = model_by_name(name)
    torch: Any = sys.modules.get("torch")
    return Recipe(
        model=name,
        threads=getattr(model, "threads", 0),
        torch_threads=torch.get_num_threads() if torch and name.startswith("sentence-") else 0,
        fingerprint=model.fingerprint,
        bits=bits_of(model),
    )


def portable(name: str) -> str:
    """The name with its path from the root, if it has one: workers stand in other folders."""
    kind, colon, rest = name.strip().partition(":")
    if colon and Path(rest).exists():
        return f"{kind}:{os.path.abspath(rest)}"  # noqa: PTH100 - resolve() would follow links
    return name.strip()


def bits_of(model: "EmbeddingModel") -> str:
    """The hash of what a model makes of a few sentences, to the last bit."""
    return hashlib.sha256(model.encode_documents(PROBES).tobytes()).hexdigest()[:16]


def prepared(plain: dict[str, str | int]) -> Loaded:
    """On a worker: the model, loaded once a process and found to be the right one."""
    return _prepared(tuple(sorted(plain.items())))


@lru_cache(maxsize=1)
def _prepared(items: tuple[tuple[str, Any], ...]) -> Loaded:
    wanted = Recipe(**dict(items))
    here = socket.gethostname()
    if wanted.version != __version__:
        raise ClusterError(
            f"{here} runs dartboard {__version__}, and here it is {wanted.version}: install the same there"
        )
    if not wanted.model:
        return Loaded(None, "")
    model = _load(wanted)
    if model.fingerprint != wanted.fingerprint:
        raise ClusterError(
            f"{here} has another model under the name {wanted.model!r}: {model.fingerprint} where "
            f"{wanted.fingerprint} is due. Put the same files there"
        )
    return Loaded(model, bits_of(model))


def _load(wanted: Recipe) -> "EmbeddingModel":
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


def examine(plain: dict[str, str | int]) -> tuple[str, str]:
    """On a worker: the machine's name and the bits of its model, once it is found to be the right one."""
    return socket.gethostname(), prepared(plain).bits
