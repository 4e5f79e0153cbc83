"""Sensitivity of results: Dartboard by σ, and all systems on a corpus with near-duplicates."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from statistics import median
from typing import Any

import numpy as np

from dartboard.calibration import Estimate, Evidence, fit_sigma
from dartboard.errors import InvalidInputError
from dartboard.evaluation.baselines import Pyversity, RandomSystem, SelectionSystem, System
from dartboard.evaluation.judgements import Content, Judgements
from dartboard.evaluation.measures import Measure, Scores, evaluate
from dartboard.evaluation.questions import Triage
from dartboard.evaluation.runner import Listener, answer, silent
from dartboard.evaluation.settings import EvaluationConfig
from dartboard.selection import Dartboard
from dartboard.types import Dataset, FloatArray

SIGMAS = (0.01, 0.02, 0.03, 0.05, 0.07, 0.09, 0.12, 0.15, 0.2, 0.3, 0.5)

LARGEST = 60_000
"""Maximum number of chunks, including copies, for this plot."""


def sigma_sweep(
    triage: Triage,
    judgements: Judgements,
    headline: Mapping[str, str],
    config: EvaluationConfig,
    *,
    listener: Listener = silent,
) -> dict[str, Any]:
    """The headline measures of Dartboard at many fixed σ.

    ``calibrated`` is the maximum-likelihood σ given the labels, and ``auto`` the median of the automatic σ.
    The calibrated σ is fitted on the same questions, so it is a mark on the curve and not a score of a
    system.
    """
    measures = [Measure.parse(name) for name in headline.values()]
    fitted, auto = _labels_and_rule(triage, judgements, config.seed)
    sigmas = sorted({*SIGMAS, *([fitted.value] if fitted else [])})
    systems = [
        SelectionSystem("auto", Dartboard()),
        *(SelectionSystem(f"{s!r}", Dartboard(), s) for s in sigmas),
    ]
    runs, _ = answer(
        triage,
        judgements.query_ids,
        systems,
        depth=max(measure.k or 1 for measure in measures),
        workers=config.workers,
        listener=lambda _, done, total: listener("Sweeping sigma", done, total),
    )
    content = Content.of(triage.dataset)
    means = {
        name: evaluate(run, judgements, measures, content=content).means for name, (run,) in runs.items()
    }
    return {
        "measures": [str(measure) for measure in measures],
        "sigmas": sigmas,
        "values": {str(m): [means[f"{sigma!r}"][str(m)] for sigma in sigmas] for m in measures},
        "auto": {"sigma": auto, "values": means["auto"]},
        "calibrated": None if fitted is None else {**asdict(fitted), "values": means[f"{fitted.value!r}"]},
    }


def _labels_and_rule(triage: Triage, judgements: Judgements, seed: int) -> tuple[Estimate | None, float]:
    """The maximum-likelihood σ of the relevant candidates (None if undetermined), and the rule's median σ."""
    evidence, chosen = [], []
    for query_id, relevant in zip(judgements.query_ids, judgements.relevant, strict=True):
        question = triage.question(query_id)
        squared: FloatArray = ((1.0 - question.similarity) / 2.0) ** 2
        bases = judgements.bases(chunk.id for chunk in question.candidates)
        targets = np.array([place for place, base in enumerate(bases) if base in relevant], dtype=np.intp)
        evidence.append(Evidence(-squared, targets))
        chosen.append(question.pool().sigma.value)
    try:
        found = fit_sigma(evidence, resamples=500, seed=seed)
    except InvalidInputError:
        return None, median(chosen)
    return None if found.at_edge else found, median(chosen)


def redundancy_levels(
    dataset: Dataset,
    systems: Sequence[System],
    config: EvaluationConfig,
    *,
    listener: Listener = silent,
) -> dict[str, Any]:
    """The same comparison with ``config.copies`` near-duplicates of every chunk, level by level.

    Real knowledge bases contain near-duplicates, and benchmarks rarely do. The loss from the first level to
    the last is the cost of redundancy. Only systems that use nothing but vectors take part.

    Returns:
        The measure of each system at each level, or under ``skipped`` the reason why there are none.
    """
    from dartboard.datasets import with_redundancy

    levels = sorted({0, *config.copies})  # 0 is the original corpus
    if len(dataset.chunks) * (1 + levels[-1]) > LARGEST:
        return {"skipped": f"{len(dataset.chunks):,} chunks are too many to copy"}
    if len({chunk.metadata.get("base_id", chunk.id) for chunk in dataset.chunks}) < len(dataset.chunks):
        return {"skipped": "the data set has near-copies already"}
    systems = [system for system in systems if isinstance(system, (SelectionSystem, RandomSystem, Pyversity))]
    measure = _recall_measure(Judgements.of(dataset), config.headline_k)
    values: dict[str, list[float]] = {system.name: [] for system in systems}
    for count in levels:
        data = dataset
        if count:
            data = with_redundancy(dataset, copies=count, cosine=config.copies_cosine, seed=config.seed)
        judgements, content = Judgements.of(data), Content.of(data)
        runs, _ = answer(
            Triage(data, config.triage_k),
            judgements.query_ids,
            systems,
            depth=config.headline_k,
            workers=config.workers,
            listener=lambda _, done, total: listener("Adding near-copies", done, total),
        )
        for name, seeded in runs.items():
            found = Scores.mean_of([evaluate(r, judgements, [measure], content=content) for r in seeded])
            values[name].append(found.means[str(measure)])
    return {"measure": str(measure), "copies": levels, "cosine": config.copies_cosine, "systems": values}


def _recall_measure(judgements: Judgements, k: int) -> Measure:
    """Recall over what fits into a list of k, copies counted once.

    It is the recall of the kernel; without one, of the relevant chunks if they are few, otherwise of facets.
    """
    few = float(judgements.relevant_counts.mean()) <= k
    return Measure("subtopic_recall" if judgements.facets and not few else "set_recall", k)
