"""The measure that a report leads with, chosen by the judgements that a data set has.

==================================================  ================================================
required kernels that a list of k can hold           ``set_recall``: is what is needed there?
facets that several passages cover                   ``subtopic_recall``: which facets are there?
copies of one another among the chunks               ``distinct_ndcg``: a copy earns nothing more
nothing but relevant passages                        ``ndcg``
==================================================  ================================================

The first line that holds decides. α-nDCG does not lead: where a query has one facet that several passages
cover, it rewards a list for telling that facet again.
"""

from collections.abc import Sequence

from dartboard.evaluation.judgements import Judgements
from dartboard.evaluation.measures import Measure


def headline_order(judgements: Judgements, k: int) -> list[str]:
    """Measures from the one that suits the judgements best; the first is the headline where all are there."""
    few = float(judgements.relevant_counts.mean()) <= k
    shared = any(len(ids) > 1 for facets in judgements.facets.values() for ids in facets.values())
    suits = {
        "set_recall": bool(judgements.kernels) and few,
        "subtopic_recall": shared,
        "distinct_ndcg": judgements.grouped,
        "ndcg": True,
        "distinct_recall": judgements.grouped,
        "recall": True,
    }
    return [name for name, holds in suits.items() if holds]


def headline_measure(judgements: Judgements, k: int) -> Measure:
    """The headline of a data set at a depth."""
    return Measure(headline_order(judgements, k)[0], k)


def headline(measures: Sequence[Measure], judgements: Judgements, k: int) -> dict[str, str]:
    """What the first page is about: quality by what the data set knows best, and diversity.

    Where the measure that suits best was not asked for, the next one leads.
    """
    names = {measure.name for measure in measures if measure.k == k}
    order = [*headline_order(judgements, k), *sorted(names)]
    quality = next((name for name in order if name in names), measures[0].name)
    chosen = {"quality": str(Measure(quality, k if quality in names else measures[0].k))}
    if "diversity" in names:
        chosen["diversity"] = f"diversity@{k}"
    return chosen
