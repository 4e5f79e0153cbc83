"""A run: for each query, chunk ids from the best down.

A list is a ranking as it stands. A mapping of ids to scores is ranked by falling score, and **equal scores
by falling id**: trec_eval's rule, so that published figures come out the same. A selected set has no scores
worth the name, and a list is the honest form for it. Files are read and written by
:mod:`dartboard.datasets.trec`.
"""

from collections.abc import Mapping, Sequence

import numpy as np

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
