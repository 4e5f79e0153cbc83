"""The same comparison on a corpus that repeats itself: near-copies of every chunk, one level after another.

Real knowledge bases say things many times over, and benchmarks rarely do. What a system loses from the
first level to the last is what repetition costs its users.
"""

from collections.abc import Sequence
from typing import Any

from dartboard.evaluation.content import Content
from dartboard.evaluation.judgements import Judgements
from dartboard.evaluation.measures import Measure, evaluate
from dartboard.evaluation.questions import Triage
from dartboard.evaluation.runner import Elsewhere, Listener, answer, silent
from dartboard.evaluation.scores import Scores
from dartboard.evaluation.systems import System
from dartboard.types import Dataset

LARGEST = 60_000
"""Chunks, copies included, that are still worth copying for a plot."""


def why_not(dataset: Dataset, copies: Sequence[int]) -> str | None:
    """The reason to leave the levels out, if there is one."""
    if len(dataset.chunks) * (1 + max(copies, default=0)) > LARGEST:
        return f"{len(dataset.chunks):,} chunks are too many to copy"
    bases = [chunk.metadata.get("base_id", chunk.id) for chunk in dataset.chunks]
    if len(set(bases)) < len(bases):
        return "the data set has near-copies already"
    return None


def redundancy_levels(
    dataset: Dataset,
    systems: Sequence[System],
    measure: Measure,
    *,
    copies: Sequence[int],
    cosine: float,
    triage_k: int,
    workers: int | None = None,
    seed: int = 0,
    elsewhere: Elsewhere | None = None,
    listener: Listener = silent,
) -> dict[str, Any]:
    """The measure of each system at each level."""
    from dartboard.datasets import with_redundancy

    values: dict[str, list[float]] = {system.name: [] for system in systems}
    for count in copies:
        data = with_redundancy(dataset, copies=count, cosine=cosine, seed=seed) if count else dataset
        judgements, content = Judgements.of(data), Content.of(data)
        triage = Triage(data, triage_k)
        runs, _ = answer(
            triage,
            judgements.query_ids,
            systems,
            depth=measure.k or 1,
            workers=workers,
            elsewhere=elsewhere,
            listener=listener,
        )
        for name, seeded in runs.items():
            found = Scores.mean_of([evaluate(r, judgements, [measure], content=content) for r in seeded])
            values[name].append(found.means[str(measure)])
    return {"measure": str(measure), "copies": list(copies), "cosine": cosine, "systems": values}
