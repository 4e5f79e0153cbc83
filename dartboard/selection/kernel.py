"""Distances between candidates, the Gaussian kernel that makes probabilities of them, and σ.

The paper's distance is the *scaled cosine* ``d = (1 - cos) / 2`` in [0, 1]; the specification's is
Euclidean. On unit vectors ``d = ‖a-b‖² / 4``: two different kernels, which no choice of σ makes equal.
The kernel is ``exp(-d² / 2σ²)``. Its constant ``-log σ - ½ log 2π`` is the same for every pair, scales
every gain alike and is left out.

σ is the spread of a query around its target. By default it is the median distance between two candidates,
divided by 4.5: no fixed number suits two encoders, whose distances have different scales, and a share of the
median distance does not depend on the scale. ``docs/sigma.md`` has the measurements.
"""

import math
from functools import lru_cache
from typing import Literal, NamedTuple

import numpy as np

from dartboard.errors import ConfigError, InvalidInputError
from dartboard.types import FloatArray, IntArray
from dartboard.utils import row_dots, unit_rows

Auto = Literal["auto"]
Distance = Literal["scaled_cosine", "euclidean"]
DISTANCES: tuple[Distance, ...] = ("scaled_cosine", "euclidean")

LARGEST_COMPONENT = 1e140

DIVISOR = 4.5

SAMPLE = 128
"""In a larger pool, so many candidates nearest to the query are looked at."""

SMALLEST_POOL = 8
"""Fewer distinct candidates than this say nothing about how wide a pool is."""

FALLBACK = {"scaled_cosine": 0.09, "euclidean": 0.6}
"""Where a pool is too small and no model is known: what all-MiniLM-L6-v2 calibrates to."""

_NEAR = 0.02  # of ‖a‖² + ‖b‖²: squared distances below are worked out from differences (cosines above .98)
_SAME = 1e-30  # as a share of ‖a‖² + ‖b‖²: squared differences that are rounding
_PAIRS_AT_ONCE = 4096


class Sigma(NamedTuple):
    """A σ and its source: ``given``, ``candidates``, ``model``, ``scores``, ``fallback`` or ``none``.

    ``automatic`` is what the rule would have taken, and is there if a given σ is so wide that all candidates
    look alike: above their median distance.
    """

    value: float
    source: str
    automatic: float | None = None

    @property
    def warning(self) -> str | None:
        """A sentence for the user, if this σ cannot tell candidates apart."""
        if self.automatic is None:
            return None
        return (
            f"sigma {self.value:g} is larger than the median distance of the candidates, so all of them look "
            f"alike and relevance is lost: use 'auto', which is {self.automatic:.3g} here"
        )


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


def prepared(vectors: FloatArray, distance: Distance) -> FloatArray:
    """The vectors as the distance wants them, float64: unit rows for the cosine, as they are otherwise."""
    if distance == "scaled_cosine":
        return unit_rows(vectors, np.float64)
    if float(np.abs(vectors).max()) > LARGEST_COMPONENT:
        raise InvalidInputError(
            f"Euclidean distances need components up to {LARGEST_COMPONENT:g}: scale them"
        )
    return vectors.astype(np.float64)


def distances(left: FloatArray, right: FloatArray, distance: Distance) -> FloatArray:
    """``(n, m)`` distances between prepared rows (:func:`prepared`).

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


def exact_distances(rows: FloatArray, gram: FloatArray, distance: Distance) -> FloatArray:
    """``(n, n)`` distances between prepared rows with their products, ``gram``; exact between near rows too.

    ``1 - cos`` cancels between near copies, so pairs with a cosine above .98 go by their difference:
    ``d = ‖a - b‖² / 4``. Rows that differ by rounding alone have a distance of exactly 0.
    """
    squares: FloatArray
    if distance == "scaled_cosine":
        squares = 2.0 - 2.0 * gram
        near = np.flatnonzero(squares.ravel() < 2.0 * _NEAR)
    else:
        lengths = gram.diagonal()
        sums = lengths[:, None] + lengths
        squares = sums - 2.0 * gram
        near = np.flatnonzero((squares <= _NEAR * sums).ravel())
    one, other = np.divmod(near, len(rows))
    upper = one < other
    one, other = one[upper], other[upper]
    for start in range(0, len(one), _PAIRS_AT_ONCE):
        i, j = one[start : start + _PAIRS_AT_ONCE], other[start : start + _PAIRS_AT_ONCE]
        apart = rows[i] - rows[j]
        found = row_dots(apart, apart)
        found[found <= _SAME * (1.0 if distance == "scaled_cosine" else lengths[i] + lengths[j])] = 0.0
        squares[i, j] = squares[j, i] = found
    np.fill_diagonal(squares, 0.0)
    if distance == "scaled_cosine":
        squares *= 0.25
        return squares
    return np.sqrt(squares, out=squares)


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


def choose_sigma(
    sigma: float | Auto,
    pairwise: FloatArray,
    distance: Distance,
    *,
    rounding: float = 0.0,
    model_sigma: float | None = None,
    divisor: float = DIVISOR,
) -> Sigma:
    """The σ that was given, or that of distinct candidates by their distances to one another, ``(n, n)``.

    Args:
        rounding: distances up to this are one candidate twice.
        model_sigma: the known σ of the embedding model, for a pool that is too small to tell.
        divisor: of the median distance.
    """
    given = None if sigma == "auto" else check_sigma(sigma)
    apart = pairwise.reshape(-1).take(_pairs(len(pairwise)))
    if len(apart) and not apart.min() > rounding:
        apart = apart[apart > rounding]
    if len(pairwise) < SMALLEST_POOL or len(apart) < SMALLEST_POOL:
        if given is not None:
            return Sigma(given, "given")
        return Sigma(FALLBACK[distance], "fallback") if model_sigma is None else Sigma(model_sigma, "model")
    middle = len(apart) // 2
    median = float(np.partition(apart, middle)[middle])
    if given is not None:
        return Sigma(given, "given", median / divisor if given > median else None)
    return Sigma(median / divisor, "candidates")


@lru_cache(maxsize=SAMPLE)
def _pairs(n: int) -> IntArray:
    """Where the pairs above the diagonal stand in a flattened ``(n, n)`` matrix."""
    return np.flatnonzero(np.triu(np.ones((n, n), dtype=bool), 1))
