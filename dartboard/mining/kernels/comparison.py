"""Compare kernels that were found in different ways, by Jaccard: what two share of what either has.

Only cases for which both ways found something are compared, and the numbers of the others stand beside.
Intervals are percentile bootstraps over cases.
"""

from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from dartboard.datasets.records import need_file
from dartboard.datasets.safe_yaml import read_fields
from dartboard.statistics import bootstrap


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelComparison:
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
) -> list[KernelComparison]:
    """Every two sources.

    Args:
        sources: ``{source: {case id: names}}``; an empty kernel counts as none.
        seed: of the bootstrap.
        resamples: of the bootstrap.
    """
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
) -> KernelComparison:
    mine, theirs = ({case for case, names in source.items() if names} for source in (ones, others))
    both = sorted(mine & theirs)
    values = np.array([[jaccard(ones[case], others[case])] for case in both]).reshape(-1, 1)
    low, high = bootstrap(values, resamples=resamples, seed=seed)
    return KernelComparison(
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


def read_kernels(path: str | Path) -> dict[str, dict[str, tuple[str, ...]]]:
    """``{pair: {source: names}}``; sources that found nothing are left out."""
    file = need_file(Path(path), "expected a retrieval_dataset.yaml")
    found: dict[str, dict[str, tuple[str, ...]]] = {}
    for pair in read_fields(file, "'pairs'").mappings("pairs"):
        kernels = pair.mapping("kernels") if pair.has("kernels") else None
        by_source = {
            source: tuple(kernels.mapping(source).strings("contexts"))
            for source in (kernels.entries if kernels is not None else ())
            if kernels is not None
        }
        found[pair.string("id")] = {source: names for source, names in by_source.items() if names}
    return found


def compare_sources(path: str | Path) -> dict[str, Any]:
    """Jaccard of every two sources: on average with an interval, and question by question."""
    kernels = read_kernels(path)
    sources = sorted({source for by_source in kernels.values() for source in by_source})
    by_source = {source: {one: found.get(source, ()) for one, found in kernels.items()} for source in sources}
    rows = [
        _case_row(identity, first, second, found)
        for first, second in combinations(sources, 2)
        for identity, found in kernels.items()
        if first in found and second in found
    ]
    return {"sources": [asdict(one) for one in compare_kernels(by_source) if one.cases], "pairs": rows}


def _case_row(
    identity: str, first: str, second: str, by_source: dict[str, tuple[str, ...]]
) -> dict[str, Any]:
    ours, theirs = set(by_source[first]), set(by_source[second])
    return {
        "id": identity,
        "first": first,
        "second": second,
        "jaccard": jaccard(ours, theirs),
        "only_first": sorted(ours - theirs),
        "only_second": sorted(theirs - ours),
    }
