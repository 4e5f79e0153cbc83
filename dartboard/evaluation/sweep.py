"""How much σ matters: Dartboard at many fixed σ, beside the σ that labels and candidates choose."""

from collections.abc import Sequence
from dataclasses import asdict
from statistics import median
from typing import Any

import numpy as np

from dartboard.calibration import Estimate, Evidence, fit_sigma
from dartboard.errors import InvalidInputError
from dartboard.evaluation.content import Content
from dartboard.evaluation.judgements import Judgements
from dartboard.evaluation.measures import Measure, evaluate
from dartboard.evaluation.questions import Triage
from dartboard.evaluation.runner import Elsewhere, Listener, answer, silent
from dartboard.evaluation.systems import Selecting
from dartboard.selection import Dartboard
from dartboard.types import FloatArray

SIGMAS = (0.01, 0.02, 0.03, 0.05, 0.07, 0.09, 0.12, 0.15, 0.2, 0.3, 0.5)


def sigma_sweep(
    triage: Triage,
    judgements: Judgements,
    content: Content,
    measures: Sequence[Measure],
    *,
    sigmas: Sequence[float] = SIGMAS,
    workers: int | None = None,
    seed: int = 0,
    elsewhere: Elsewhere | None = None,
    listener: Listener = silent,
) -> dict[str, Any]:
    """Measures along σ; ``calibrated`` is the likeliest σ given the labels, ``auto`` the rule's median.

    The calibrated σ is fitted on the same questions that it is shown on: a mark on the curve, not a score
    of a system.
    """
    fitted, auto = _labels_and_rule(triage, judgements, seed)
    asked = sorted({*sigmas, *([fitted.value] if fitted else [])})
    systems = [
        Selecting("auto", Dartboard()),
        *(Selecting(f"{sigma!r}", Dartboard(), sigma) for sigma in asked),
    ]
    depth = max(measure.k or 1 for measure in measures)
    runs, _ = answer(
        triage,
        judgements.query_ids,
        systems,
        depth=depth,
        workers=workers,
        elsewhere=elsewhere,
        listener=listener,
    )
    means = {
        name: evaluate(run, judgements, measures, content=content).means for name, (run,) in runs.items()
    }
    return {
        "measures": [str(measure) for measure in measures],
        "sigmas": asked,
        "values": {str(m): [means[f"{sigma!r}"][str(m)] for sigma in asked] for m in measures},
        "auto": {"sigma": auto, "values": means["auto"]},
        "calibrated": None if fitted is None else {**asdict(fitted), "values": means[f"{fitted.value!r}"]},
    }


def _labels_and_rule(triage: Triage, judgements: Judgements, seed: int) -> tuple[Estimate | None, float]:
    """The likeliest σ of the relevant candidates, None where labels settle none; and the rule's median σ."""
    evidence, chosen = [], []
    for query_id, grades in zip(judgements.query_ids, judgements.grades, strict=True):
        question = triage.question(query_id)
        squared: FloatArray = ((1.0 - question.similarity) / 2.0) ** 2
        bases = judgements.bases(chunk.id for chunk in question.candidates)
        targets = np.array([place for place, base in enumerate(bases) if base in grades], dtype=np.intp)
        evidence.append(Evidence(-squared, targets))
        chosen.append(question.pool().sigma.value)
    try:
        found = fit_sigma(evidence, resamples=500, seed=seed)
    except InvalidInputError:
        return None, median(chosen)
    return None if found.at_edge else found, median(chosen)
