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
from dartboard.selection.compiled import compiled
from dartboard.selection.halves import lower_product
from dartboard.types import FloatArray

Distance = Literal["scaled_cosine", "euclidean"]
_CACHED = 65_536
_ONE = np.float32(1.0)
_HALVED_FROM, _STRIP = 700, 96
_ABOVE = np.triu(np.ones((_STRIP, _STRIP), dtype=bool), 1)
_UNIT = 3e-7
"""float32 rows whose squared length is that close to 1 are as long as rounding lets them be."""

SMALLEST_SIGMA, LARGEST_SIGMA = 1e-8, 1e8
LARGEST_COMPONENT = 1e140

DISTANCES: tuple[Distance, ...] = ("scaled_cosine", "euclidean")


def check_distance(distance: str) -> Distance:
    """The name of a known distance, or an error that lists them."""
    for known in DISTANCES:
        if distance == known:
            return known
    raise ConfigError(f"unknown distance {distance!r}: choose one of {', '.join(DISTANCES)}")


def check_sigma(sigma: float) -> float:
    """A finite σ > 0."""
    if isinstance(sigma, bool) or not isinstance(sigma, (int, float, np.number)) or not math.isfinite(sigma):
        raise ConfigError(f"sigma must be a finite number > 0 or 'auto', got {sigma!r}")
    if not SMALLEST_SIGMA <= sigma <= LARGEST_SIGMA:
        raise ConfigError(f"sigma must be > 0, in [{SMALLEST_SIGMA:g}, {LARGEST_SIGMA:g}], got {sigma}")
    return float(sigma)


def unit_rows(vectors: FloatArray, dtype: type | None = None) -> FloatArray:
    """Rows scaled to length 1, ``(n, d)``, from any magnitude; a zero or non-finite row becomes NaN.

    Rows that are so already may come back as they are: not to be written to.
    """
    rows = vectors.astype(vectors.dtype if dtype is None else dtype, copy=False)
    with np.errstate(over="ignore"):
        squares = row_dots(rows, rows)
    shortest, longest = float(squares.min()), float(squares.max())
    if rows.dtype == np.float32 and shortest > 1.0 - _UNIT and longest < 1.0 + _UNIT:
        return rows
    limits = np.finfo(rows.dtype)
    if not (shortest > 1e6 * limits.tiny and longest < limits.max):
        with np.errstate(invalid="ignore"):
            rows = rows / np.abs(rows).max(axis=1, keepdims=True)
            squares = np.einsum("ij,ij->i", rows, rows)
    unit: FloatArray = rows / np.sqrt(squares)[:, None]
    return unit


def row_dots(left: FloatArray, right: FloatArray) -> FloatArray:
    """``(n,)`` products of rows with a vector, or with a row each: the same for a row wherever it stands."""
    products: FloatArray
    if hasattr(np, "vecdot"):
        products = np.vecdot(left, right)
        return products
    products = np.einsum("ij,ij->i" if right.ndim == 2 else "ij,j->i", left, right)
    return products


def unit_vector(vector: FloatArray, dtype: type) -> FloatArray:
    """One vector, finite and not all zero, scaled to length 1, ``(d,)``."""
    one: FloatArray = vector.astype(dtype, copy=False)
    with np.errstate(over="ignore"):
        square = float(np.dot(one, one))
    if 1e-12 < square < 1e12:
        return one / one.dtype.type(math.sqrt(square))
    unit: FloatArray = unit_rows(one[None])[0]
    return unit


def direct(vectors: FloatArray, distance: Distance, dtype: type = np.float64) -> FloatArray:
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
        apart += np.einsum("ij,ij->i", left, left)[:, None] + np.einsum("ij,ij->i", right, right)
        np.sqrt(np.maximum(apart, 0.0, out=apart), out=apart)
    if left is right:
        np.fill_diagonal(apart, 0.0)
    return apart


def by_cosine(cosines: FloatArray) -> FloatArray:
    """Scaled cosine distances, float64, of cosines that rounding may have taken above 1."""
    apart: FloatArray = 0.5 - 0.5 * np.minimum(cosines, 1.0, dtype=np.float64)
    return apart


def log_kernel(distance: FloatArray, sigma: float) -> FloatArray:
    """``-d² / 2σ²``, float64; a distance too large to square gives ``-inf``, which is probability 0."""
    scaled = np.divide(distance, math.sqrt(2.0) * sigma, dtype=np.float64)
    with np.errstate(over="ignore"):
        np.multiply(scaled, scaled, out=scaled)
    return np.negative(scaled, out=scaled)


def log_similarity(distance: FloatArray) -> FloatArray:
    """``log(1 - d)``, float64: the scaled cosine similarity as a kernel."""
    with np.errstate(divide="ignore"):
        return np.log1p(-distance.astype(np.float64))


def fast_kernel(rows: FloatArray, unit: FloatArray, sigma: float) -> FloatArray:
    """``exp(-d² / 2σ²)`` of unit float32 ``rows`` with others under the scaled cosine, ``(m, n)`` float32.

    The exponent is ``-(1 - x·x')² / 8σ²``: one matrix product, half of it where both sides are one array,
    and four passes, made on strips that stay in the cache. Of a large symmetric matrix only one half goes
    through these, and becomes the other at the end.
    """
    scale = np.float32(-1.0 / (8.0 * sigma**2))
    machine = compiled()
    if rows is unit and machine:
        cosines = np.empty((len(unit), len(unit)), np.float32)
        lower_product(unit, cosines)
        machine.fill(cosines, scale)
        return cosines
    if rows is not unit or len(unit) < _HALVED_FROM:
        kernel: FloatArray = rows @ unit.T
        if machine:
            machine.gaussian(kernel, scale, kernel)
            return kernel
        at_once = max(1, _CACHED // kernel.shape[1])
        for start in range(0, len(kernel), at_once):
            block = kernel[start : start + at_once]
            gaussian(block, scale, block)
        return kernel
    kernel = np.empty((len(unit), len(unit)), np.float32)
    lower_product(unit, kernel)
    room = np.empty(_STRIP * len(unit), np.float32)
    for start in range(0, len(unit), _STRIP):
        end = min(start + _STRIP, len(unit))
        corner = kernel[start:end, start:end]
        np.copyto(corner, corner.T, where=_ABOVE[: end - start, : end - start])
        strip = room[: (end - start) * end].reshape(end - start, end)
        kernel[start:end, :end] = gaussian(kernel[start:end, :end], scale, strip)
        kernel[:start, start:end] = strip[:, :start].T
    return kernel


def gaussian(cosines: FloatArray, scale: np.float32, out: FloatArray) -> FloatArray:
    """``exp(scale · (1 - cos)²)``."""
    np.subtract(cosines, _ONE, out=out)
    out *= out
    out *= scale
    return np.exp(out, out=out)
