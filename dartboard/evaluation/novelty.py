"""Measures over facets: what a list says that it has not said before.

    α-DCG@k = Σ_r ( Σ_{facets f of pick r} (1-α)^(how many earlier picks cover f) ) / log2(r + 2)

(Clarke et al., SIGIR 2008), divided by the same of an ideal list. The best list is NP-hard to find; as in
TREC's ndeval the ideal takes the largest gain at every rank, and of equal ones the larger id. Hand-written,
and held to ndeval by the tests: pyndeval stops at rank 20 and cannot count copies of a chunk as one.
"""

import math
from functools import lru_cache

import numpy as np

from dartboard.errors import ConfigError
from dartboard.evaluation.assessed import Assessed
from dartboard.evaluation.judgements import Judgements
from dartboard.evaluation.relevance import discount, order_within, share
from dartboard.types import FloatArray

ALPHA = 0.5


def subtopic_recall(run: Assessed, k: int | None) -> FloatArray:
    """The share of the facets that some pick covers."""
    hits, facets = run.facet_hits
    inside = run.within(k)[hits]
    pairs = np.unique(np.stack([run.query[hits[inside]], facets[inside]]), axis=1)
    covered = np.bincount(pairs[0], minlength=len(run)).astype(np.float64)
    return share(covered, run.judgements.facet_counts)


def alpha_ndcg(run: Assessed, k: int | None, alpha: float = ALPHA) -> FloatArray:
    """α-nDCG over the facets of the judgements."""
    check_alpha(alpha)
    hits, facets = run.facet_hits
    order = np.lexsort((run.rank[hits], facets, run.query[hits]))
    hits, facets = hits[order], facets[order]
    width = int(facets.max(initial=0)) + 1
    before = order_within(run.query[hits] * width + facets)
    inside = run.within(k)[hits]
    hits, before = hits[inside], before[inside]
    gained = run.count(hits, (1.0 - alpha) ** before / discount(run.rank[hits]))
    return share(gained, _ideal(run.judgements, k, alpha))


def check_alpha(alpha: float) -> None:
    """α is a share: 0 asks for relevance alone, 1 for novelty alone."""
    if not 0.0 <= alpha <= 1.0:
        raise ConfigError(f"alpha must be in [0, 1], got {alpha!r}")


@lru_cache(maxsize=64)
def _ideal(judgements: Judgements, k: int | None, alpha: float) -> FloatArray:
    """``(Q,)`` the α-DCG of ideal lists, worked out once for all systems."""
    by_id = (sorted(covers.items(), reverse=True) for covers in judgements.facets_of)
    return np.array([_ideal_gain([facets for _, facets in covers], k, alpha) for covers in by_id])


def _ideal_gain(left: list[tuple[int, ...]], k: int | None, alpha: float) -> float:
    """The α-DCG of a greedy list of documents, given by their facets and in falling order of id."""
    worth = dict.fromkeys((facet for facets in left for facet in facets), 1.0)
    total = 0.0
    for rank in range(len(left) if k is None else min(k, len(left))):
        gains = [sum(worth[facet] for facet in facets) for facets in left]
        best = gains.index(max(gains))
        total += gains[best] / math.log2(rank + 2)
        for facet in left.pop(best):
            worth[facet] *= 1.0 - alpha
    return total
