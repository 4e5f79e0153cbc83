"""A block of small pools by what is compiled: two calls for all of them, and σ in between.

Inside the calls other threads run Python. Going in and out of C for every query would have threads wait for
one another more than they work.
"""

from functools import partial

import numpy as np

from dartboard.selection import bandwidth, copies, neighbourhood
from dartboard.selection.bandwidth import Sigma
from dartboard.selection.coverage import rounding_32
from dartboard.selection.kernels import by_cosine
from dartboard.selection.machine import LinedMany, Machine
from dartboard.selection.quick import LARGEST_SIGMA, SMALLEST_SIGMA, told_natively
from dartboard.selection.result import Selection
from dartboard.selection.states import SMALLEST
from dartboard.types import FloatArray


def select_block(
    machine: Machine, syrk: int, embeddings: FloatArray, queries: FloatArray, k: int, sigma: float | str
) -> list[Selection | None]:
    """Selections from pools ``(b, n, d)`` of 64 and more; None for one that has to be selected by itself."""
    lined = machine.line_up_many(
        syrk, embeddings, queries, spread=sigma == "auto", noise=bandwidth.noise(embeddings)
    )
    spread = np.full(len(queries), sigma) if not isinstance(sigma, str) else _spreads(lined)
    lined.usual[:] &= (spread >= SMALLEST_SIGMA) & (spread <= LARGEST_SIGMA)
    found = machine.conclude_many(
        embeddings, queries, lined, spread, rounding_32(spread), SMALLEST[embeddings.dtype], k
    )
    source = "candidates" if sigma == "auto" else "given"
    return [
        None
        if one is None
        else told_natively(one, queries[i], embeddings[i], Sigma(float(spread[i]), source))
        for i, one in enumerate(found)
    ]


def _spreads(lined: LinedMany) -> FloatArray:
    """σ of each pool, NaN where near-copies have to be looked for."""
    if lined.apart is None:
        raise AssertionError("distances were not asked for")
    spreads = np.full(len(lined.usual), np.nan)
    some = lined.usual.nonzero()[0]
    if not len(some):
        return spreads
    middle = lined.apart.shape[1] // 2
    median = np.partition(lined.apart[some], middle, axis=1)[:, middle].astype(np.float64)
    to_query = by_cosine(lined.cosines[some])
    alone = neighbourhood.standing_alone(lined.nearest[some], to_query, median, "scaled_cosine")
    for i, asked, wide, share in zip(some.tolist(), to_query, median.tolist(), alone.tolist(), strict=True):
        if share > bandwidth.ALL_ALONE or not copies.crowded(lined.nearest[i], wide):
            between = partial(lined.apart.__getitem__, i)
            crowd = neighbourhood.crowd_by_pairs(share, between, asked, wide, "scaled_cosine")
            spreads[i] = bandwidth.spread(wide, crowd)
    return spreads
