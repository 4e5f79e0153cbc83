"""A system as one line of JSON, so that another machine can make the same one.

Systems that are values (a method and its numbers) can be told; those that hold something else, such as
judgements, a run file or a scorer of the caller's own, cannot, and stay where they are.
"""

import json
from collections.abc import Callable
from dataclasses import asdict
from functools import singledispatch
from typing import Any

from dartboard.embeddings.base import PairScorer
from dartboard.embeddings.late_interaction import LateInteraction
from dartboard.errors import InvalidInputError
from dartboard.evaluation.systems import Chance, Pyversity, Reading, Selecting, System
from dartboard.selection import MMR, Dartboard, NearDuplicateFilter, TopK

_METHODS: dict[str, Callable[..., Any]] = {
    kind.__name__: kind for kind in (MMR, Dartboard, NearDuplicateFilter, TopK)
}


def described(system: System) -> str | None:
    """The system as text; None for one that cannot be told."""
    told = _told(system)
    return None if told is None else json.dumps(told, sort_keys=True)


@singledispatch
def _told(system: object) -> dict[str, Any] | None:
    return None


@_told.register
def _(system: Selecting) -> dict[str, Any] | None:
    method: Any = system.method
    if _METHODS.get(type(method).__name__) is not type(method):
        return None
    return {
        "kind": "selecting",
        "name": system.name,
        "method": type(method).__name__,
        "options": asdict(method),
        "sigma": system.sigma,
        "seeds": list(system.seeds),
    }


@_told.register
def _(system: Chance) -> dict[str, Any]:
    return {"kind": "chance", "name": system.name, "seeds": list(system.seeds)}


@_told.register
def _(system: Pyversity) -> dict[str, Any]:
    return {"kind": "pyversity", "strategy": system.strategy, "seeds": list(system.seeds)}


@_told.register
def _(system: Reading) -> dict[str, Any] | None:
    from dartboard.embeddings import default_model

    scorer = system.scorer
    if type(scorer) is not LateInteraction or scorer.model is not default_model():
        return None
    return {"kind": "reading", "variant": system.variant, "seeds": list(system.seeds)}


def made(description: str, scorer: Callable[[], PairScorer]) -> System:
    """The system that a text describes; ``scorer`` makes the pair scorer of those that read."""
    told = json.loads(description)
    kind, seeds = told["kind"], tuple(told["seeds"])
    if kind == "selecting":
        method = _METHODS[told["method"]](**told["options"])
        return Selecting(told["name"], method, told["sigma"], seeds)
    if kind == "chance":
        return Chance(seeds, told["name"])
    if kind == "pyversity":
        return Pyversity(told["strategy"], seeds)
    if kind == "reading":
        return Reading(told["variant"], scorer(), seeds)
    raise InvalidInputError(f"unknown kind of system {kind!r}: it was described by another dartboard")
