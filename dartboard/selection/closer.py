"""A closer look, once what a pool says is covered: where the picks after that come from.

Where candidates repeat one another, σ is wide: at that distance a few picks cover nearly everything, and a
further pick is paid for remainders, not for what is relevant but for what is far off. So picks are made at σ
until they cover 19/20 of what the query may mean. Those after that are made at the σ of a pool that does not
repeat itself (:mod:`dartboard.selection.bandwidth`), given the picks so far: what is like them, but not the
same, comes back into the choice, the most relevant first.

Whether it is the same is for words to say (:mod:`dartboard.selection.wording`): copies of a pick, or of what
is more relevant, stay away. Without texts nobody looks closer, for copies would come back; nor where
relevance is by scores and not by distance, or candidates are more than are compared by words.

The first picks do not depend on how many follow. Gains, coverage and the bound are told at σ, so that one can
see when it was enough; ``parameters`` say after how many picks the look was closer, and at which σ.
"""

from dataclasses import replace
from typing import Protocol

import numpy as np

from dartboard.selection.explain import explain_picks
from dartboard.selection.limits import Limits
from dartboard.selection.pool import Pool
from dartboard.selection.result import Selection
from dartboard.selection.wording import copies_among, leading, telling
from dartboard.types import FloatArray, IntArray

ENOUGH = 0.95
"""The share of what the query may mean at which a pool counts as covered."""


class _Select(Protocol):
    def __call__(self, pool: Pool, limits: Limits) -> Selection: ...


def covered_early(coverage: FloatArray) -> bool:
    """Whether picks that cover so much, ``(k,)``, cover enough before the last of them is made."""
    return len(coverage) > 1 and bool(coverage[-2] >= ENOUGH)


def look_closer(pool: Pool, limits: Limits, found: Selection, select: _Select) -> Selection:
    """What was ``found`` in a pool, the picks after enough was covered made anew.

    Whoever wants to stop where little is gained is told of little gains, and not of a closer look.
    """
    if pool.closer is None or limits.min_gain_share or not covered_early(found.coverage):
        return found
    enough = max(int(np.searchsorted(found.coverage, ENOUGH)) + 1, len(limits.must_include))
    first = found.indices[:enough].tolist()
    leaders = _by_words(pool, pool.find(first))
    if leaders is None:
        return found
    closer = pool.closer().without_copies(leaders)
    picks = select(closer, replace(limits, must_include=first)).indices
    if np.array_equal(picks, found.indices):
        return found
    return explain_picks(
        pool,
        limits,
        pool.find(picks.tolist()),
        method=found.method,
        closer_after=enough,
        closer_sigma=closer.sigma.value,
    )


def _by_words(pool: Pool, picks: list[int]) -> IntArray | None:
    """``(n,)`` whom each candidate is a copy of by its words: a pick, one that is more relevant, or itself.

    None where there is too little to read.
    """
    rows = pool.leaders()
    order = rows[np.lexsort((np.arange(len(rows)), -pool.relevance[rows]))]
    order = np.concatenate((picks, order[~np.isin(pool.row_of[order], pool.row_of[picks])]))
    texts = () if pool.texts is None else pool.texts(pool.positions[order])
    if not texts or not telling(texts):
        return None
    of_row = np.arange(len(rows))
    of_row[pool.row_of[order]] = order[leading(copies_among(texts))]
    leaders: IntArray = of_row[pool.row_of]
    return leaders
