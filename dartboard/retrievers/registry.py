"""Retrievers by name, for the command line and configurations.

::

    dense                            bm25
    colbert                          colbert:PATH            a ColBERT checkpoint
    splade:PATH                      a sparse encoder
    hybrid                           .7 dense + .3 BM25
    hybrid:0.6                       another α
    hybrid:dense=0.6,bm25=0.4        any members, any weights
    hybrid-zscore:…                  z-scores instead of min-max
    rrf    rrf:dense,bm25,colbert    fusion by rank
    multi-vector:code=1,comments=2   search vectors of parts that were indexed in Python
    NAME   NAME:ARGUMENT             a plug-in, also as a member
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from dartboard.errors import ConfigError
from dartboard.plugins import find, names
from dartboard.retrievers.base import Retriever
from dartboard.retrievers.bm25 import BM25Retriever
from dartboard.retrievers.dense import DenseRetriever
from dartboard.retrievers.hybrid import HybridRetriever

if TYPE_CHECKING:
    from dartboard.embeddings import EmbeddingModel

SIMPLE = ("dense", "bm25", "colbert", "colbert:PATH", "splade:PATH")
PARTS = "multi-vector:PART=WEIGHT,…"
FUSED = ("hybrid", "hybrid:ALPHA", "hybrid:NAME=WEIGHT,…", "hybrid-zscore:…", "rrf", "rrf:NAME,…")

_MEMBERS = ("name", "fields", "index_settings", "index", "rank", "retrieve", "explain")
_MIXTURES = {"hybrid": ("scores", "minmax"), "hybrid-zscore": ("scores", "zscore"), "rrf": ("rrf", "minmax")}


def retriever_by_name(
    name: str, *, model: "EmbeddingModel", alpha: float | None = None, paths: bool = True
) -> Retriever:
    """The retriever with that name.

    Args:
        name: One of the forms in the module's docstring.
        model: The collection's embedding model.
        alpha: The (fitted) α of a ``hybrid`` without one in its name.
        paths: False rejects names that load a model from a folder; for names from untrusted users.

    Raises:
        ConfigError: the name is unknown; the message lists the known ones.
    """
    if not isinstance(name, str) or not name.strip():
        raise _unknown(name)
    kind, _, rest = name.strip().partition(":")
    if kind in _MIXTURES:
        return _mixture(kind, rest, model, alpha, paths)
    if kind in ("colbert", "splade") and rest and not paths:
        raise ConfigError(
            f"{name!r} names a folder, which is not allowed here: use {', '.join(_allowed(False))}"
        )
    if kind == "multi-vector":
        return _parts(model, rest)
    plugin = None if kind in _SIMPLE else find("retriever", kind)
    if plugin is not None and (paths or not rest):
        plugged: Retriever = plugin.make(_MEMBERS, model, rest)
        return plugged
    made = _SIMPLE.get(kind)
    if made is None or (kind == "splade" and not rest) or (rest and kind in ("dense", "bm25")):
        raise _unknown(name, paths)
    return made(model, rest)


def loads_foreign(name: str) -> bool:
    """Whether the name or one of its members loads a model from a folder or imports a plug-in."""
    kind, _, rest = name.strip().partition(":")
    if kind in _MIXTURES:
        members = (entry.rpartition("=") for entry in rest.split(","))
        return any(loads_foreign(label if equals else entry) for label, equals, entry in members)
    if kind in ("colbert", "splade"):
        return bool(rest)
    return kind not in NAMES and kind in names("retriever")


def _dense(model: "EmbeddingModel", rest: str) -> Retriever:
    return DenseRetriever(model)


def _bm25(model: "EmbeddingModel", rest: str) -> Retriever:
    return BM25Retriever(model)


def _colbert(model: "EmbeddingModel", path: str) -> Retriever:
    from dartboard.embeddings.torch_models import ColbertModel
    from dartboard.retrievers.colbert import ColbertRetriever

    if path:
        return ColbertRetriever(ColbertModel(path), model=model)
    if not hasattr(model, "token_vectors"):
        raise ConfigError(
            f"model {model.name!r} has no token vectors: use colbert:PATH with a ColBERT checkpoint"
        )
    return ColbertRetriever(model, model=model)


def _splade(model: "EmbeddingModel", path: str) -> Retriever:
    from dartboard.embeddings.torch_models import SpladeModel
    from dartboard.retrievers.splade import SpladeRetriever

    return SpladeRetriever(SpladeModel(path), model=model)


def _parts(model: "EmbeddingModel", rest: str) -> Retriever:
    from dartboard.retrievers.multi_vector import MultiVectorRetriever, Part, not_by_name

    given = [entry.strip().rpartition("=") for entry in rest.split(",")]
    weights = {label: _number(weight) for label, _, weight in given if label}
    if len(weights) < len(given) or None in weights.values():
        raise ConfigError(
            f"multi-vector needs parts: write {PARTS}, such as multi-vector:code=1,comments=2; if "
            "parts have their own models, pass retriever=MultiVectorRetriever(model, {…}) in Python"
        )
    return MultiVectorRetriever(
        model, {label: Part(not_by_name, weight or 0.0) for label, weight in weights.items()}
    )


_SIMPLE: dict[str, Callable[["EmbeddingModel", str], Retriever]] = {
    "dense": _dense,
    "bm25": _bm25,
    "colbert": _colbert,
    "splade": _splade,
}

NAMES = frozenset({*_SIMPLE, *_MIXTURES, "multi-vector"})
"""The names of the built-in retrievers, before any colon."""


def _mixture(
    kind: str, rest: str, model: "EmbeddingModel", alpha: float | None, paths: bool
) -> HybridRetriever:
    method, normalise = _MIXTURES[kind]
    entries = [entry.strip() for entry in rest.split(",")] if rest else []
    if method == "scores" and len(entries) == 1 and (given := _number(entries[0])) is not None:
        entries, alpha = [], given
    if not entries:
        members = [retriever_by_name(part, model=model) for part in ("dense", "bm25")]
        return HybridRetriever(
            members, alpha=None if method == "rrf" else alpha, method=method, normalise=normalise, name=kind
        )
    members, weights = [], []
    for entry in entries:
        label, equals, weight = entry.rpartition("=")
        value = _number(weight) if equals else 1.0
        if value is None or not (equals or method == "rrf"):
            raise ConfigError(f"{kind}: write each member as NAME=WEIGHT, such as dense=0.7, got {entry!r}")
        if (label or weight).partition(":")[0] in _MIXTURES:
            raise ConfigError(f"{kind}: members are {', '.join(SIMPLE)}, got {entry!r}")
        members.append(retriever_by_name(label if equals else entry, model=model, paths=paths))
        weights.append(value)
    return HybridRetriever(members, weights=weights, method=method, normalise=normalise, name=kind)


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _allowed(paths: bool) -> tuple[str, ...]:
    own = (name for name in (*SIMPLE, *FUSED, PARTS) if paths or "PATH" not in name)
    return (*own, *names("retriever"))


def _unknown(name: object, paths: bool = True) -> ConfigError:
    return ConfigError(f"unknown retriever {name!r}: use one of {', '.join(_allowed(paths))}")
