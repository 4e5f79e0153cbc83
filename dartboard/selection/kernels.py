"""Distances, and the Gaussian kernel that turns them into log-probabilities.

The paper's distance is the *scaled cosine* ``d = (1 - cos) / 2`` in [0, 1]; the specification's is
Euclidean. On unit vectors ``d = ‖a-b‖² / 4``: two different kernels, which no choice of σ makes equal.
The kernel is ``exp(-d² / 2σ²)``. Its constant ``-log σ - ½ log 2π`` is the same for every pair, scales
every gain alike and is left out.
"""

import math
from typing import Literal

import numpy as np

from dartboard.errors import ConfigError, InvalidInputError
from dartboard.types import FloatArray

Auto = Literal["auto"]
Distance = Literal["scaled_cosine", "euclidean"]
DISTANCES: tuple[Distance, ...] = ("scaled_cosine", "euclidean")

LARGEST_COMPONENT = 1e140
_UNIT_32 = 3e-7
"""float32 rows whose squared length is this close to 1 are unit rows already, up to rounding."""


def check_distance(distance: str) -> Distance:
    """The name of a known distance, or an error that lists them."""
    for known in DISTANCES:
        if distance == known:
            return known
    raise ConfigError(f"unknown distance {distance!r}: choose one of {', '.join(DISTANCES)}")


def check_sigma(sigma: float) -> float:
    """A finite σ > 0; also a temperature, on the scale of any scores."""
    if isinstance(sigma, bool) or not isinstance(sigma, (int, float, np.number)) or not math.isfinite(sigma):
        raise ConfigError(f"sigma must be a finite number > 0 or 'auto', got {sigma!r}")
    if not 1e-8 <= sigma <= 1e8:
        raise ConfigError(f"sigma must be in [1e-08, 1e+08], got {sigma}: scale vectors or scores")
    return float(sigma)


def unit_rows(vectors: FloatArray, dtype: type | None = None) -> FloatArray:
    """Rows scaled to length 1, ``(n, d)``, from any magnitude; a zero or non-finite row becomes NaN.

    Rows that are so already may come back as they are: not to be written to.
    """
    rows = vectors.astype(vectors.dtype if dtype is None else dtype, copy=False)
    with np.errstate(over="ignore", under="ignore"):
        squares = row_dots(rows, rows)
    shortest, longest = float(squares.min()), float(squares.max())
    if rows.dtype == np.float32 and shortest > 1.0 - _UNIT_32 and longest < 1.0 + _UNIT_32:
        return rows
    limits = np.finfo(rows.dtype)
    if not (shortest > 1e6 * limits.tiny and longest < limits.max):
        # The squares left the number format: scale each row by its largest entry first.
        with np.errstate(invalid="ignore", divide="ignore", under="ignore"):
            rows = rows / np.abs(rows).max(axis=1, keepdims=True)
            squares = row_dots(rows, rows)
    with np.errstate(under="ignore"):
        unit: FloatArray = rows / np.sqrt(squares)[:, None]
    return unit


def row_dots(left: FloatArray, right: FloatArray) -> FloatArray:
    """``(n,)`` products of rows with a vector, or with a row each.

    Not a matrix product: BLAS rounds a row by where it stands, and equal rows must give equal numbers.
    """
    products: FloatArray
    if hasattr(np, "vecdot"):
        products = np.vecdot(left, right)
        return products
    products = np.einsum("ij,ij->i" if right.ndim == 2 else "ij,j->i", left, right)
    return products


def cosines_to(vectors: FloatArray, query: FloatArray) -> FloatArray:
    """``(n,)`` float64 cosines of rows with a query, NaN for a row that is zero or not finite.

    Equal rows give equal numbers, wherever they stand.
    """
    asked = unit_rows(query[None], np.float64)[0]
    rows: FloatArray = vectors.astype(np.float64, copy=False)
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        squares = row_dots(rows, rows)
        if not (squares.min() > 1e-280 and squares.max() < 1e280):
            rows = unit_rows(rows)
            squares = row_dots(rows, rows)
        cosines: FloatArray = row_dots(rows, asked) / np.sqrt(squares)
    return np.clip(cosines, -1.0, 1.0, out=cosines)


def prepared(vectors: FloatArray, distance: Distance, dtype: type = np.float64) -> FloatArray:
    """The vectors as the distance wants them: unit rows for the cosine, as they are otherwise."""
    if distance == "scaled_cosine":
        return unit_rows(vectors, dtype)
    if float(np.abs(vectors).max()) > LARGEST_COMPONENT:
        raise InvalidInputError(
            f"Euclidean distances need components up to {LARGEST_COMPONENT:g}: scale them"
        )
    return vectors.astype(dtype)


def distances(left: FloatArray, right: FloatArray, distance: Distance) -> FloatArray:
    """``(n, m)`` distances between the rows of ``left`` and ``right``, which are unit rows for the cosine.

    Given one array twice, a row's distance to itself is exactly 0.
    """
    apart: FloatArray = left @ right.T
    if distance == "scaled_cosine":
        np.subtract(0.5, np.multiply(apart, 0.5, out=apart), out=apart)
        np.maximum(apart, 0.0, out=apart)
    else:
        apart *= -2.0
        apart += row_dots(left, left)[:, None] + row_dots(right, right)
        np.sqrt(np.maximum(apart, 0.0, out=apart), out=apart)
    if left is right:
        np.fill_diagonal(apart, 0.0)
    return apart


def log_kernel(distance: FloatArray, sigma: float) -> FloatArray:
    """``-d² / 2σ²``, float64; a distance too large to square gives ``-inf``, which is probability 0."""
    with np.errstate(over="ignore", under="ignore"):
        scaled = np.divide(distance, math.sqrt(2.0) * sigma, dtype=np.float64)
        np.multiply(scaled, scaled, out=scaled)
    return np.negative(scaled, out=scaled)


def log_sum_exp(rows: FloatArray) -> FloatArray:
    """``log Σ_t exp(rows[:, t])``, ``(n,)``; a row of ``-inf`` gives ``-inf``."""
    peak = rows.max(axis=1)
    shift = np.where(np.isfinite(peak), peak, 0.0)
    with np.errstate(divide="ignore", under="ignore"):
        total: FloatArray = np.log(np.exp(rows - shift[:, None]).sum(axis=1)) + shift
    return total
