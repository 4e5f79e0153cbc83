"""Fusion of several rankings: by scores normalised per query, or by rank.

    minmax:  (s - min) / (max - min)        zscore:  (s - mean) / standard deviation
    reciprocal rank fusion:  Σ_m w_m / (damping + rank_m(p))        (Cormack et al., 2009)

Equal scores carry no information, so if all are equal each becomes 0. In rank fusion, a ranking adds nothing
to a chunk that it does not contain.
"""

from collections.abc import Sequence
from typing import Literal

import numpy as np

from dartboard.errors import ConfigError
from dartboard.types import FloatArray

Normalisation = Literal["minmax", "zscore", "none"]
NORMALISATIONS: tuple[Normalisation, ...] = ("minmax", "zscore", "none")


def check_normalisation(name: str) -> Normalisation:
    """Check a normalisation; the error lists the known ones."""
    for known in NORMALISATIONS:
        if name == known:
            return known
    raise ConfigError(f"unknown normalisation {name!r}: choose one of {', '.join(NORMALISATIONS)}")


def normalised(scores: FloatArray, how: Normalisation) -> FloatArray:
    """The scores of one query, ``(n,)``, normalised."""
    values = scores.astype(np.float64)
    if how == "none" or not values.size:
        return values
    spread = np.ptp(values) if how == "minmax" else values.std()
    if spread <= 1e-12 * max(1.0, float(np.abs(values).max())):
        return np.zeros_like(values)
    made: FloatArray = (values - (values.min() if how == "minmax" else values.mean())) / spread
    return made


def weighted_sum(scores: FloatArray, weights: Sequence[float] | FloatArray, how: Normalisation) -> FloatArray:
    """``(n,)`` from ``(members, n)``: the weighted sum of each member's normalised scores."""
    rows = np.array([normalised(row, how) for row in scores]).reshape(scores.shape)
    total: FloatArray = np.asarray(weights) @ rows
    return total


def reciprocal_rank_fusion(
    rankings: Sequence[Sequence[str]], weights: Sequence[float], damping: float
) -> dict[str, float]:
    """The fused score of every id in any ranking; each ranking is best first."""
    fused: dict[str, float] = {}
    for ranking, weight in zip(rankings, weights, strict=True):
        for rank, id in enumerate(ranking, start=1):
            fused[id] = fused.get(id, 0.0) + weight / (damping + rank)
    return fused
