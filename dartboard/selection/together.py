"""The greedy walk for a block of queries at once, over kernels ``(b, n, n)`` in float32.

Every step of the walk is made for all queries before the next. A query whose first pick, or any later one,
does not lead by more than rounding may have done is not ``sure``: whoever asked has to select it alone.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dartboard.selection.coverage import rounding_32
from dartboard.selection.dense import HALF
from dartboard.selection.states import SMALLEST
from dartboard.types import FloatArray, IntArray

_SMALLEST = SMALLEST[np.dtype(np.float32)]


class Walks(NamedTuple):
    """Walks by query: which are ``sure``, picks, gains as shares, owners of targets, and the bound."""

    sure: npt.NDArray[np.bool_]
    picks: IntArray
    gains: FloatArray
    log_gains: FloatArray
    coverage: FloatArray
    owners: IntArray
    bound: FloatArray


def walks(
    cosines: FloatArray, relevance: FloatArray, sigma: FloatArray, k: int, sure: npt.NDArray[np.bool_]
) -> Walks:
    """Walks of ``k`` picks, by ``cosines``, which are overwritten, and log-probabilities ``(b, n)``.

    Queries that are not ``sure`` to begin with are not walked.
    """
    made = _walked(cosines, relevance, sigma, k, sure)
    shares = made.gains / made.total[:, None]
    coverage = np.minimum(shares.cumsum(axis=1), 1.0)
    alone, still = (most / made.total for most in made.most)
    reached = coverage[:, -1]
    bound = np.minimum(1.0, reached / np.minimum(1.0, np.minimum(alone, reached + still)))
    return Walks(made.sure, made.picks, shares, np.log(shares), coverage, made.owners, bound)


class _Made(NamedTuple):
    """What a block's walk leaves: ``most`` has the sums of the largest bounds before and after it."""

    sure: npt.NDArray[np.bool_]
    picks: IntArray
    gains: FloatArray
    owners: IntArray
    total: FloatArray
    most: tuple[FloatArray, FloatArray]


def _walked(
    kernel: FloatArray, relevance: FloatArray, sigma: FloatArray, k: int, sure: npt.NDArray[np.bool_]
) -> _Made:
    n, each, rounding = kernel.shape[1], np.arange(len(kernel)), rounding_32(sigma)
    kernel -= 1.0
    kernel *= (1.0 / (np.sqrt(8.0) * sigma)).astype(np.float32)[:, None, None]
    kernel *= kernel
    np.negative(kernel, out=kernel)
    np.exp(kernel, out=kernel)
    weights = np.exp(relevance - relevance.max(axis=1, keepdims=True)).astype(np.float32)
    column = weights[:, :, None]
    alone = np.matmul(kernel, column)[:, :, 0]
    slack = rounding.astype(np.float32)[:, None] * alone
    rise = np.empty_like(kernel)

    def gains_now() -> FloatArray:
        np.subtract(kernel, covered[:, None, :], out=rise)
        np.maximum(rise, 0.0, out=rise)
        now: FloatArray = np.matmul(rise, column)[:, :, 0]
        return now

    picks = np.empty((len(kernel), k), dtype=np.intp)
    gains = np.empty((len(kernel), k))
    picks[:, 0] = best = relevance.argmax(axis=1)
    gains[:, 0] = alone[each, best]
    lead = relevance[each, best] - rounding
    sure = sure & ((relevance >= lead[:, None]).sum(axis=1) == 1)
    covered = kernel[each, best]
    for step in range(1, k):
        now = gains_now()
        picks[:, step] = best = now.argmax(axis=1)
        gains[:, step] = now[each, best]
        level = now[each, best] - slack[each, best]
        sure &= ((now + slack >= level[:, None]).sum(axis=1) == 1) & (level > _SMALLEST)
        np.maximum(covered, kernel[each, best], out=covered)
    chosen = np.take_along_axis(kernel, picks[:, :, None], axis=1)
    owners = np.where(covered >= HALF, chosen.argmax(axis=1), -1)
    largest = (alone + slack, gains_now() + slack)
    before, after = (np.partition(most, n - k, axis=1)[:, n - k :].sum(axis=1) for most in largest)
    total = weights.sum(axis=1, dtype=np.float64)
    return _Made(sure, picks, gains, owners, total, (before, after))
