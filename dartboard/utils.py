"""The numerics that the specification names (Gaussian kernel, log-sum-exp, cosine), and unit vectors.

``cosine_distance`` here is the specification's ``1 - cos`` in [0, 2]. Selection works on the paper's
*scaled* cosine ``(1 - cos) / 2`` in [0, 1]; see :mod:`dartboard.selection.kernel`.
"""

import math
from typing import overload

import numpy as np
import numpy.typing as npt

from dartboard.errors import ConfigError, InvalidInputError
from dartboard.types import FloatArray, check_vector


def log_gaussian_kernel(a: npt.ArrayLike, b: npt.ArrayLike, sigma: float, eps: float = 1e-10) -> float:
    """Log density of a Gaussian: ``-log σ - ½ log 2π - ‖a-b‖² / 2σ²``.

    Args:
        a, b: vectors of the same length.
        sigma: σ, finite and at least 0.
        eps: the smallest σ that is used.

    Returns:
        The logarithm.

    Raises:
        ConfigError: sigma is negative or not finite.
        InvalidInputError: the vectors have different lengths, or are not finite.

    Example:
        >>> round(log_gaussian_kernel([0.0], [1.0], sigma=1.0), 4)
        -1.4189
    """
    if not math.isfinite(sigma) or sigma < 0:
        raise ConfigError(f"sigma must be a finite number >= 0, got {sigma}")
    left, right = _pair(a, b)
    spread = max(sigma, eps)
    with np.errstate(over="ignore"):
        squared = np.square((left - right) / spread).sum()
    return float(-math.log(spread) - 0.5 * math.log(2 * math.pi) - 0.5 * squared)


@overload
def logsumexp_stable(log_values: npt.ArrayLike, axis: None = None) -> float: ...
@overload
def logsumexp_stable(log_values: npt.ArrayLike, axis: int) -> FloatArray: ...
def logsumexp_stable(log_values: npt.ArrayLike, axis: int | None = None) -> float | FloatArray:
    """``log Σ exp(x)`` without overflow.

    Args:
        log_values: logarithms; ``-inf`` is probability 0, so an empty sum is ``-inf``.
        axis: along which to sum; None sums all.

    Returns:
        A number, or an array without the axis.

    Example:
        >>> round(logsumexp_stable([1000.0, 1000.0]), 4)
        1000.6931
    """
    values = np.asarray(log_values, dtype=np.float64)
    peak = np.max(values, axis=axis, keepdims=True, initial=-np.inf)
    shift = np.where(np.isfinite(peak), peak, 0.0)
    with np.errstate(divide="ignore", over="ignore"):
        total = np.log(np.sum(np.exp(values - shift), axis=axis, keepdims=True)) + shift
    return float(total.item()) if axis is None else np.squeeze(total, axis=axis)


def cosine_similarity(a: npt.ArrayLike, b: npt.ArrayLike) -> float:
    """Cosine of the angle between two vectors.

    Args:
        a, b: vectors of the same length.

    Returns:
        A number in [-1, 1].

    Raises:
        InvalidInputError: a vector is zero or not finite, or the lengths differ.

    Example:
        >>> cosine_similarity([1.0, 0.0], [2.0, 0.0])
        1.0
    """
    left, right = (check_vector(v, name=name).astype(np.float64) for v, name in ((a, "a"), (b, "b")))
    if left.shape != right.shape:
        raise InvalidInputError(f"vectors of different dimensions: {left.size} and {right.size}")
    left, right = (v / np.abs(v).max() for v in (left, right))
    return float(np.clip(left @ right / (np.linalg.norm(left) * np.linalg.norm(right)), -1.0, 1.0))


def cosine_distance(a: npt.ArrayLike, b: npt.ArrayLike) -> float:
    """``1 - cosine_similarity``.

    Args:
        a, b: vectors of the same length.

    Returns:
        A number in [0, 2]: 0 same direction, 2 opposite.

    Raises:
        InvalidInputError: as in :func:`cosine_similarity`.

    Example:
        >>> cosine_distance([1.0, 0.0], [0.0, 1.0])
        1.0
    """
    return 1.0 - cosine_similarity(a, b)


def unit_rows(rows: FloatArray, dtype: type | None = None) -> FloatArray:
    """Rows scaled to length 1, from any magnitude; worked out in float64.

    A row's result does not depend on the other rows. What has no direction is left for the caller to refuse:
    zeros stay zeros, infinity becomes NaN.

    Args:
        rows: ``(n, d)``; not written to.
        dtype: of the result; by default that of ``rows``.

    Example:
        >>> unit_rows(np.array([[3.0, 4.0], [0.0, 0.0]])).tolist()
        [[0.6, 0.8], [0.0, 0.0]]
    """
    wide: FloatArray = rows.astype(np.float64)
    with np.errstate(all="ignore"):
        squares = row_dots(wide, wide)
        extreme = np.flatnonzero(~((squares > 1e-280) & (squares < 1e280)))
        if extreme.size:  # squares of these rows leave the number format: divide by the largest entry first
            largest = np.abs(wide[extreme]).max(axis=1, keepdims=True, initial=0.0)
            wide[extreme] /= np.where(largest == 0.0, 1.0, largest)
            squares[extreme] = row_dots(wide[extreme], wide[extreme])
            squares[squares == 0.0] = 1.0
        wide /= np.sqrt(squares)[:, None]
        return wide.astype(rows.dtype if dtype is None else dtype, copy=False)


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


def _pair(a: npt.ArrayLike, b: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
    left, right = (np.asarray(v, dtype=np.float64) for v in (a, b))
    if left.shape != right.shape:
        raise InvalidInputError(f"vectors of different dimensions: {left.shape} and {right.shape}")
    if not (np.isfinite(left).all() and np.isfinite(right).all()):
        raise InvalidInputError("vectors must be finite: found NaN or infinity")
    return left, right
