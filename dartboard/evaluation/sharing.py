"""Questions answered by the machines of a cluster, a few in one piece of work.

The data set goes there once, as arrays and lists of text, and stays where every machine can read it; systems
go as descriptions. What comes back are the picks, which do not depend on the machine, and the seconds that
they took, which do.
"""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from dartboard.cluster.encoder import Recipe, check_machines, load_model
from dartboard.cluster.tasks import Cluster, fetch
from dartboard.embeddings.base import PairScorer
from dartboard.embeddings.late_interaction import LateInteraction
from dartboard.errors import ClusterError
from dartboard.evaluation.described import described, made
from dartboard.evaluation.journal import Part
from dartboard.evaluation.questions import Triage
from dartboard.evaluation.runner import Asked, one_blas_thread, parts_of
from dartboard.evaluation.systems import Reading, System
from dartboard.types import Chunk, Dataset

GROUP = 4
"""Questions in one piece of work: enough to outweigh its journey, few enough to lose."""

Answered = list[tuple[str, str, list[list[str]], float]]
"""Parts as they travel."""


class Shared:
    """Answers questions on machines that were examined first."""

    def __init__(self, cluster: Cluster, recipe: Recipe) -> None:
        self._cluster = cluster
        self._plain = recipe.plain()
        self._reads = bool(recipe.model)
        self._kept: tuple[Triage, list[Any]] | None = None
        self.machines = check_machines(cluster, recipe)
        self.slots = cluster.slots()

    def takes(self, system: System) -> bool:
        """Whether the system can be told to another machine."""
        return described(system) is not None and (self._reads or not isinstance(system, Reading))

    def parts(self, triage: Triage, asked: Sequence[Asked], *, depth: int) -> Iterator[list[Part]]:
        """The parts of a few questions at a time, as they are finished."""
        if not asked:
            return
        kept = self._put(triage)
        distinct = {system.name: system for _, systems in asked for system in systems}
        told = {name: described(system) for name, system in distinct.items()}
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
        """The data set where machines can read it: the last one is remembered."""
        if self._kept is None or self._kept[0] is not triage:
            self._kept = None
            self._kept = (triage, self._cluster.keep(_plain(triage.dataset)))
        return self._kept[1]


def _plain(dataset: Dataset) -> dict[str, Any]:
    """What answering needs of a data set; judgements stay here."""
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
    with one_blas_thread():
        return [
            (part.system, part.query_id, [list(picks) for picks in part.lists], part.seconds)
            for query_id, descriptions in asked
            for part in parts_of(triage, query_id, [_made(one, plain) for one in descriptions], depth)
        ]


_held: dict[tuple[str, int], Triage] = {}
"""The data set that this worker answers from; the next one takes its place."""


def _triage(kept: list[Any], triage_k: int) -> Triage:
    key = (kept[0].hex(), triage_k)
    if key not in _held:
        _held.clear()
        _held[key] = Triage(_dataset(fetch(kept)), triage_k)
    return _held[key]


def _dataset(found: dict[str, Any]) -> Dataset:
    vectors = np.array(found["vectors"])  # of its own: what is shared can be let go
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


def _made(description: str, plain: dict[str, str | int]) -> System:
    return made(description, lambda: _scorer(tuple(sorted(plain.items()))))


@lru_cache(maxsize=1)
def _scorer(items: tuple[tuple[str, Any], ...]) -> PairScorer:
    """Late interaction over the worker's model, with what it remembers of passages."""
    model: Any = load_model(dict(items)).model
    if model is None:
        raise ClusterError("no model was named to read texts with")
    return LateInteraction(model)
