"""Compare kernels that were found in different ways, by Jaccard: what two share of what either has.

Only cases for which both ways found something are compared, and the numbers of the others stand beside.
Intervals are percentile bootstraps over cases.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from dartboard.evaluation.significance import bootstrap


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """Two ways on the same cases; ``first_more`` and ``second_more`` count documents that only one has."""

    first: str
    second: str
    cases: int
    jaccard: float
    low: float
    high: float
    equal: int
    first_more: int
    second_more: int
    only_first: int
    only_second: int


def jaccard(first: Collection[str], second: Collection[str]) -> float:
    """Intersection over union; two empty sets are equal."""
    a, b = set(first), set(second)
    return len(a & b) / len(a | b) if a | b else 1.0


def compare_kernels(
    sources: Mapping[str, Mapping[str, Collection[str]]], *, seed: int = 0, resamples: int = 2000
) -> list[Compared]:
    """Every two sources, given ``{source: {case id: names}}``; an empty kernel counts as none."""
    return [
        _compared(first, second, sources[first], sources[second], seed, resamples)
        for first, second in combinations(sources, 2)
    ]


def _compared(
    first: str,
    second: str,
    ones: Mapping[str, Collection[str]],
    others: Mapping[str, Collection[str]],
    seed: int,
    resamples: int,
) -> Compared:
    mine, theirs = ({case for case, names in source.items() if names} for source in (ones, others))
    both = sorted(mine & theirs)
    values = np.array([[jaccard(ones[case], others[case])] for case in both]).reshape(-1, 1)
    low, high = bootstrap(values, resamples=resamples, seed=seed)
    return Compared(
        first=first,
        second=second,
        cases=len(both),
        jaccard=float(values.mean()) if both else 0.0,
        low=float(low[0]),
        high=float(high[0]),
        equal=int((values == 1.0).sum()),
        first_more=sum(len(set(ones[case]) - set(others[case])) for case in both),
        second_more=sum(len(set(others[case]) - set(ones[case])) for case in both),
        only_first=len(mine - theirs),
        only_second=len(theirs - mine),
    )
