"""A run: for each query, chunk ids from the best down.

A list is a ranking as it stands. A mapping of ids to scores is ranked by falling score, and **equal scores
by falling id**: trec_eval's rule, so that published figures come out the same. A selected set has no scores
worth the name, and a list is the honest form for it.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from dartboard.errors import InvalidInputError

Ranking = Sequence[str] | Mapping[str, float]
Run = Mapping[str, Ranking]


def ranked(ranking: Ranking) -> Sequence[str]:
    """Ids from the best down."""
    if not isinstance(ranking, Mapping):
        return ranking
    names = list(ranking)
    scores = np.fromiter(ranking.values(), dtype=np.float64, count=len(names))
    order = scores.argsort()[::-1]
    ordered = scores[order]
    if (ordered[1:] == ordered[:-1]).any():
        return sorted(sorted(names, reverse=True), key=ranking.__getitem__, reverse=True)
    return [names[place] for place in order.tolist()]


def write_run(path: Path, run: Run, tag: str) -> None:
    """A run file in TREC's format; scores fall by 1 with each rank, so that no reader finds a tie."""
    lines = []
    for query_id, ranking in run.items():
        names = ranked(ranking)
        for place, chunk_id in enumerate(names):
            for name in (query_id, chunk_id):
                if not name or any(c.isspace() for c in name):
                    raise InvalidInputError(f"id {name!r} cannot stand in a TREC run file: spaces separate")
            lines.append(f"{query_id} Q0 {chunk_id} {place + 1} {len(names) - place} {tag}\n")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(lines), encoding="utf-8")


def read_run(path: Path) -> dict[str, dict[str, float]]:
    """The scores in a TREC run file; its rank column is ignored, as trec_eval does."""
    run: dict[str, dict[str, float]] = {}
    with path.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, start=1):
            fields = line.split()
            if not fields:
                continue
            try:
                query_id, _, chunk_id, _, score, *_ = fields
                run.setdefault(query_id, {})[chunk_id] = float(score)
            except ValueError as error:
                raise InvalidInputError(
                    f"{path}, line {number}: expected 'query Q0 chunk rank score tag', got {line.strip()!r}"
                ) from error
    return run
