"""The kernels of a mined data set by source, and how far the sources agree."""

from dataclasses import asdict
from itertools import combinations
from pathlib import Path
from typing import Any

from dartboard.datasets.records import need_file
from dartboard.datasets.safe_yaml import read_fields
from dartboard.mining.kernels.comparing import compare_kernels, jaccard


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
        _compared(identity, first, second, found)
        for first, second in combinations(sources, 2)
        for identity, found in kernels.items()
        if first in found and second in found
    ]
    return {"sources": [asdict(one) for one in compare_kernels(by_source) if one.cases], "pairs": rows}


def _compared(
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
