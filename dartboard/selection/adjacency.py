"""P(t|q) over chunks that follow each other in a document.

A chunk that matches a question is often cut off from its answer, which is in the chunk before or after.
So the probable targets of a question include the neighbours of the chunks that match it:

    P'(t) = (1 - β) · P(t) + β · Σ_s P(s) · A[s, t],

where A spreads the probability of a chunk evenly over its neighbours, and β is ``SHARE``. A chunk without
neighbours keeps what it has.

β completes sections that were cut into chunks: ``docs/how-to/context.md`` has the measurements.
"""

from collections.abc import Sequence

import numpy as np

from dartboard.selection.pool import Pool

SHARE = 0.2


def spread_to_neighbours(pool: Pool, adjacent: Sequence[tuple[int, int]], share: float = SHARE) -> Pool:
    """The pool with a share of each candidate's probability on its neighbours.

    Args:
        pool: candidates of a query.
        adjacent: pairs of candidates, by position, that are neighbours in a document.
        share: β.
    """
    if not adjacent:
        return pool
    one, other = np.array(adjacent, dtype=np.intp).T
    start, end = np.append(one, other), np.append(other, one)
    neighbours = np.bincount(start, minlength=len(pool))
    kept = np.where(neighbours > 0, np.log1p(-share), 0.0)
    spread = pool.relevance + kept
    np.logaddexp.at(spread, end, pool.relevance[start] + np.log(share / neighbours[start]))
    return pool.reweighted(spread)
