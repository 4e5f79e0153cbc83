"""Scores that say how good a pick is, and keep the order that it was picked in.

Rerank clients sort by score and cut by score. Dartboard's order is not one of similarity alone, so a pick's
score is its cosine to the question times what of it no earlier pick covers::

    raw_i = max(0, cos(q, i)) · (1 - max_{j before i} exp(-d_ij² / 2σ²))

The first pick scores its cosine, a copy of an earlier one 0. Where that would go up along the order,
neighbours share their mean (pool adjacent violators: the decreasing sequence nearest by least squares). A
thousandth of the score counts positions, so that no two are equal: strictly decreasing, in (0, 1).
"""

import numpy as np

from dartboard.selection.kernels import unit_rows
from dartboard.types import FloatArray

_POSITIONS = 1e-3


def novelty(vectors: FloatArray, sigma: float) -> FloatArray:
    """What of each row of ``(k, d)``, in picking order, no earlier row covers: 1 for the first."""
    if not len(vectors):
        return np.empty(0)
    rows = unit_rows(vectors, np.float32)
    distances = (1.0 - np.clip(rows @ rows.T, -1.0, 1.0)).astype(np.float64) / 2.0
    covered = np.tril(np.exp(-np.square(distances / sigma) / 2.0), -1)
    new: FloatArray = 1.0 - covered.max(axis=1)
    return new


def decreasing(raw: FloatArray) -> list[float]:
    """Strictly decreasing numbers in (0, 1), as near to ``raw`` as that goes."""
    clipped = np.clip(raw, 0.0, 1.0)
    levels: list[tuple[float, int]] = []
    for value in clipped.tolist():
        mean, count = float(value), 1
        while levels and levels[-1][0] < mean:
            before, many = levels.pop()
            mean, count = (before * many + mean * count) / (many + count), many + count
        levels.append((mean, count))
    flat = np.repeat([mean for mean, _ in levels], [count for _, count in levels])
    places = (len(flat) - np.arange(len(flat)) - 0.5) / max(1, len(flat))
    return [float(score) for score in (1.0 - _POSITIONS) * flat + _POSITIONS * places]
