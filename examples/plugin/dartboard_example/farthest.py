"""A selector: the most relevant candidate first, then always the one farthest from all picks.

This is farthest-first traversal (Gonzalez, 1985). It knows nothing of relevance beyond the first pick, which
makes it a baseline for diversity alone.
"""

from dataclasses import dataclass

import numpy as np

from dartboard.selection import Limits, LimitTracker, Pool, Selection, explain_picks
from dartboard.types import FloatArray


@dataclass(frozen=True, slots=True)
class Farthest:
    """What the entry point names: called without arguments, it is ready to select."""

    name = "farthest"

    def select(self, pool: Pool, limits: Limits) -> Selection:
        """The picks of one query; every limit of dartboard holds."""
        pool = limits.apply(pool)
        gate = LimitTracker(pool, limits)
        most = len(pool) if limits.k is None else min(limits.k, len(pool))
        forced = pool.find(limits.must_include)
        closest = np.full(int(pool.row_of.max()) + 1, -np.inf)
        picks: list[int] = []
        while len(picks) < most and gate.open_candidates().any():
            number = len(picks)
            pick = forced[number] if number < len(forced) else _farthest(pool, gate, closest)
            gate.admit(pick)
            picks.append(pick)
            np.maximum(closest, pool.closeness[pool.row_of[pick]], out=closest)
        return explain_picks(pool, limits, picks, method=self.name)


def _farthest(pool: Pool, gate: LimitTracker, closest: FloatArray) -> int:
    """Of the candidates that may be picked, the least like any pick; the more relevant of equals."""
    order = pool.by_relevance()
    allowed = order[gate.open_candidates()[order]]
    return int(allowed[closest[pool.row_of[allowed]].argmin()])
