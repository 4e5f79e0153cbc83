"""Answer questions on the machines of a cluster, a few per task.

The data set is sent once, as arrays and lists of text, and shared by all machines; systems are sent as one
line of JSON each. The results are the picks, which do not depend on the machine, and the seconds that they
took, which do. Only systems that consist of values (a method and its numbers) can be sent; those with other
objects, such as judgements, a run file or a custom scorer, run here.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from functools import lru_cache, partial
from typing import Any, cast

import numpy as np

from dartboard.blas import one_thread_each
from dartboard.cluster.encoder import Recipe, check_machines, load_model
from dartboard.cluster.tasks import Cluster, fetch
from dartboard.embeddings.base import PairScorer
from dartboard.embeddings.late_interaction import LateInteraction
from dartboard.errors import ClusterError, InvalidInputError
from dartboard.evaluation.baselines import PairScorerSystem, Pyversity, RandomSystem, SelectionSystem, System
from dartboard.evaluation.journal import Part
from dartboard.evaluation.questions import Triage
from dartboard.evaluation.runner import Asked, parts_of
from dartboard.selection import MMR, Dartboard, NearDuplicateFilter, TopK
from dartboard.types import Chunk, Dataset

GROUP = 4
"""Questions per task: enough to outweigh the transfer, few enough to lose."""

Answered = list[tuple[str, str, list[list[str]], float]]
"""Parts as plain values."""


class ClusterRunner:
    """Answers questions on machines that were checked first."""

    def __init__(self, cluster: Cluster, recipe: Recipe) -> None:
        self._cluster = cluster
        self._plain = recipe.plain()
        self._reads = bool(recipe.model)
        self._kept: tuple[Triage, list[Any]] | None = None
        self.machines = check_machines(cluster, recipe)
        self.slots = cluster.slots()

    def takes(self, system: System) -> bool:
        """Whether the system can be sent to another machine."""
        readable = self._reads or not isinstance(system, PairScorerSystem)
        return readable and system_to_json(system) is not None

    def parts(self, triage: Triage, asked: Sequence[Asked], *, depth: int) -> Iterator[list[Part]]:
        """The parts of a few questions at a time, in order of completion."""
        if not asked:
            return
        kept = self._put(triage)
        distinct = {system.name: system for _, systems in asked for system in systems}
        told = {name: system_to_json(system) for name, system in distinct.items()}
        groups = (asked[start : start + GROUP] for start in range(0, len(asked), GROUP))
        jobs = (
            (
                self._plain,
                kept,
                triage.triage_k,
                [(query_id, [told[system.name] for system in systems]) for query_id, systems in group],
                depth,
            )
            for group in groups
        )
        for answered in self._cluster.unordered(answer_some, jobs):
            yield [Part(*one) for one in answered]

    def _put(self, triage: Triage) -> list[Any]:
        """Share the data set with the machines; the last one is cached."""
        if self._kept is None or self._kept[0] is not triage:
            self._kept = None
            self._kept = (triage, self._cluster.keep(_plain(triage.dataset)))
        return self._kept[1]


def _plain(dataset: Dataset) -> dict[str, Any]:
    """The fields of a data set that answering needs; judgements stay here."""
    return {
        "name": dataset.name,
        "ids": [chunk.id for chunk in dataset.chunks],
        "texts": [chunk.text for chunk in dataset.chunks],
        "vectors": np.stack([chunk.embedding for chunk in dataset.chunks]),
        "query_ids": list(dataset.query_ids),
        "queries": list(dataset.queries),
        "query_embeddings": np.asarray(dataset.metadata["query_embeddings"]),
    }


def answer_some(
    plain: dict[str, str | int],
    kept: list[Any],
    triage_k: int,
    asked: list[tuple[str, list[str]]],
    depth: int,
) -> Answered:
    """On a worker: the parts of a few questions."""
    load_model(plain)
    triage = _triage(kept, triage_k)
    scorer = partial(_scorer, tuple(sorted(plain.items())))
    answered: Answered = []
    with one_thread_each():
        for query_id, texts in asked:
            systems = [system_from_json(text, scorer) for text in texts]
            for part in parts_of(triage, query_id, systems, depth):
                answered.append((part.system, part.query_id, [*map(list, part.lists)], part.seconds))
    return answered


_held: dict[tuple[str, int], Triage] = {}
"""The data set of this worker; replaced by the next one."""


def _triage(kept: list[Any], triage_k: int) -> Triage:
    key = (kept[0].hex(), triage_k)
    if key not in _held:
        _held.clear()
        _held[key] = Triage(_dataset(fetch(kept)), triage_k)
    return _held[key]


def _dataset(found: dict[str, Any]) -> Dataset:
    vectors = np.array(found["vectors"])  # a copy, so that the shared memory can be freed
    chunks = [
        Chunk.trusted(name, text, vector, {})
        for name, text, vector in zip(found["ids"], found["texts"], vectors, strict=True)
    ]
    return Dataset(
        name=found["name"],
        chunks=chunks,
        queries=found["queries"],
        ground_truth={},
        metadata={"query_embeddings": np.array(found["query_embeddings"])},
        query_ids=found["query_ids"],
    )


@lru_cache(maxsize=1)
def _scorer(items: tuple[tuple[str, Any], ...]) -> PairScorer:
    """Late interaction over the worker's model, with its cache of passages."""
    model: Any = load_model(dict(items)).model
    if model is None:
        raise ClusterError("no model was named to read texts with")
    return LateInteraction(model)


_METHODS: dict[str, Callable[..., Any]] = {
    kind.__name__: kind for kind in (MMR, Dartboard, NearDuplicateFilter, TopK)
}


def system_to_json(system: System) -> str | None:
    """The system as one line of text; None for one that holds other objects."""
    from dartboard.embeddings import default_model

    seeds = list(system.seeds)
    told: dict[str, Any]
    match system:
        case SelectionSystem(name=name, method=method, sigma=sigma):
            kind = type(method).__name__
            if _METHODS.get(kind) is not type(method):
                return None
            options = asdict(cast(Any, method))
            told = {"kind": "selecting", "name": name, "method": kind, "options": options, "sigma": sigma}
        case RandomSystem(name=name):
            told = {"kind": "chance", "name": name}
        case Pyversity(strategy=strategy):
            told = {"kind": "pyversity", "strategy": strategy}
        case PairScorerSystem(variant=variant, scorer=scorer):
            if type(scorer) is not LateInteraction or scorer.model is not default_model():
                return None
            told = {"kind": "reading", "variant": variant}
        case _:
            return None
    return json.dumps(told | {"seeds": seeds}, sort_keys=True)


def system_from_json(description: str, scorer: Callable[[], PairScorer]) -> System:
    """The system from its text; ``scorer`` makes the pair scorer of systems that read texts."""
    told = json.loads(description)
    kind, seeds = told["kind"], tuple(told["seeds"])
    if kind == "selecting":
        method = _METHODS[told["method"]](**told["options"])
        return SelectionSystem(told["name"], method, told["sigma"], seeds)
    if kind == "chance":
        return RandomSystem(seeds, told["name"])
    if kind == "pyversity":
        return Pyversity(told["strategy"], seeds)
    if kind == "reading":
        return PairScorerSystem(told["variant"], scorer(), seeds)
    raise InvalidInputError(f"unknown kind of system {kind!r}: it was described by another dartboard")
