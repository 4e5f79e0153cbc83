"""A measure that was taken elsewhere, beside the others: with intervals, and compared with the reference.

It may be about fewer queries than the rest, such as those whose answer is known.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from dartboard.evaluation.experiment import Outcome, comparisons, rounded, with_intervals
from dartboard.evaluation.measures import Measure
from dartboard.evaluation.scores import Scores
from dartboard.evaluation.settings import EvaluationConfig


def add_measure(
    outcome: Outcome,
    config: EvaluationConfig,
    measure: Measure,
    scores: Mapping[str, Scores],
    *,
    about: Mapping[str, Any],
) -> Outcome:
    """The outcome with one more measure of every system; ``about`` says how it was taken."""
    record = dict(outcome.record)
    intervals = rounded(with_intervals(scores, config))
    record["measures"] = {**record["measures"], str(measure): measure.title}
    record["systems"] = {name: {**known, **intervals[name]} for name, known in record["systems"].items()}
    record["comparisons"] = {
        **record["comparisons"],
        **rounded(comparisons(scores, record["reference"], config)),
    }
    record[measure.name] = dict(about)
    return replace(outcome, record=record, added={**outcome.added, **scores})
