"""σ from the candidates: the median distance between two of them, divided by 4.5.

σ is the spread of a query around its target. No fixed number suits two encoders, whose distances have
different scales; a share of the median distance does not depend on the scale. ``docs/sigma.md`` has the
measurements.
"""

from functools import lru_cache

import numpy as np

from dartboard.selection.kernels import Distance
from dartboard.selection.result import Sigma
from dartboard.types import FloatArray, IntArray

DIVISOR = 4.5

SAMPLE = 128
"""In a larger pool, so many candidates nearest to the query are looked at."""

SMALLEST_POOL = 8
"""Fewer distinct candidates than this say nothing about how wide a pool is."""

FALLBACK = {"scaled_cosine": 0.09, "euclidean": 0.6}
"""Where a pool is too small and no model is known: what all-MiniLM-L6-v2 calibrates to."""


def auto_sigma(
    pairwise: FloatArray, distance: Distance, *, model_sigma: float | None = None, divisor: float = DIVISOR
) -> Sigma:
    """σ of distinct candidates by their distances to one another, ``(n, n)``.

    ``model_sigma`` is the known σ of the embedding model, for a pool that is too small to tell.
    """
    apart = pairwise.reshape(-1).take(_pairs(len(pairwise)))
    rounding = 8.0 * float(np.finfo(apart.dtype).eps)
    if len(apart) and not apart.min() > rounding:
        apart = apart[apart > rounding]  # the others are one candidate twice
    if len(pairwise) < SMALLEST_POOL or len(apart) < SMALLEST_POOL:
        return Sigma(FALLBACK[distance], "fallback") if model_sigma is None else Sigma(model_sigma, "model")
    middle = len(apart) // 2
    return Sigma(float(np.partition(apart, middle)[middle]) / divisor, "candidates")


@lru_cache(maxsize=SAMPLE)
def _pairs(n: int) -> IntArray:
    """Where the pairs above the diagonal stand in a flattened ``(n, n)`` matrix."""
    return np.flatnonzero(np.triu(np.ones((n, n), dtype=bool), 1))
