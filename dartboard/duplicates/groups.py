"""Groups of chunks that say nearly the same, by their vectors, and the chunks that together say most.

No fixed cosine suits two encoders, so the threshold comes from σ, as in selection: two chunks are similar if
each covers the other at least by half, exp(-d² / 2σ²) ≥ ½ with d = (1 - cos) / 2.

Groups come from leader clustering in the given order: a chunk joins the first leader that it is similar to,
or leads a group. Only leaders are compared, block by block, so memory does not grow with the square of the
corpus. Most pairs are decided by a quarter of the dimensions: in the eigenbasis of the vectors a product of
the first ones, plus the product of the lengths of what is left, is never below the cosine (Cauchy-Schwarz).
"""

import heapq
import math

import numpy as np
import numpy.typing as npt

from dartboard.deadline import check
from dartboard.duplicates.corpus import Listener, silent
from dartboard.errors import ConfigError
from dartboard.types import FloatArray, IntArray

LARGEST_POOL = 100_000_000
"""Pairs of neighbours that are kept in memory (8 bytes each) to pick the most informative chunks."""

_ROWS, _COLUMNS = 512, 32_768
_ROUNDING = 1e-5
_LEAST_COVER = 0.1


def similarity_of(sigma: float) -> float:
    """The smallest cosine of two chunks that cover each other at least by half."""
    return max(-1.0, 1.0 - 2.0 * sigma * math.sqrt(2.0 * math.log(2.0)))


def similar_groups(vectors: FloatArray, similarity: float, *, listen: Listener = silent) -> IntArray:
    """``(n,)``: for each row the position of the first one of its group.

    Args:
        vectors: ``(n, d)`` float32 of length 1.
        similarity: the smallest cosine of a row and the leader of its group.
        listen: told how many rows are done.

    Example:
        >>> similar_groups(np.array([[1, 0], [0, 1], [0.8, 0.6]], dtype=np.float32), 0.75)
        array([0, 1, 0])
    """
    least, n = np.float32(similarity - _ROUNDING), len(vectors)
    bound = _upper_bounds(vectors)
    group = np.full(n, -1)
    leaders = np.empty(n, dtype=np.int64)
    of_leaders = np.empty_like(bound)
    count = 0
    for start in range(0, n, _ROWS):
        rows = np.arange(start, min(start + _ROWS, n))
        for first in range(0, count, _COLUMNS):
            check()
            last = min(first + _COLUMNS, count)
            possible = (bound[rows] @ of_leaders[first:last].T >= least).any(axis=0)
            if possible.any():
                near = leaders[first:last][possible]
                close = vectors[rows] @ vectors[near].T >= least
                joins = close.any(axis=1)
                group[rows[joins]] = near[close[joins].argmax(axis=1)]
                rows = rows[~joins]
        close = vectors[rows] @ vectors[rows].T >= least
        for place, row in enumerate(rows):
            if group[row] < 0:
                leaders[count], of_leaders[count] = row, bound[row]
                count += 1
                joins = close[place] & (group[rows] < 0)
                joins[place] = True
                group[rows[joins]] = row
        listen("comparing vectors", min(start + _ROWS, n), n)
    return group


def _upper_bounds(vectors: FloatArray) -> FloatArray:
    """``(n, d/4 + 1)``: rows whose products are at least the cosines."""
    few = max(1, vectors.shape[1] // 4)
    basis = np.linalg.eigh((vectors.T @ vectors).astype(np.float64))[1][:, ::-1][:, :few]
    first = vectors @ basis.astype(np.float32)
    left = np.sqrt(np.maximum(1.0 - np.einsum("ij,ij->i", first, first), 0.0) + _ROUNDING)
    return np.concatenate([first, left[:, None]], axis=1)


def most_informative(
    vectors: FloatArray, sigma: float, count: int, *, listen: Listener = silent
) -> list[int]:
    """The rows that together cover most of all rows, each as probable a target as the others.

    That is Dartboard without a query: greedy picks by marginal gain. A row that another covers by less than
    a tenth counts as not covered by it, so that only neighbours have to be kept in memory.

    Args:
        vectors: ``(n, d)`` float32 of length 1, near-duplicates removed.
        sigma: how far a row covers others.
        count: how many rows, at most n.
        listen: told how many rows are compared.

    Returns:
        Positions, the most informative first.

    Raises:
        ConfigError: the rows have so many neighbours that memory would not suffice.
    """
    rows = _neighbours(vectors, sigma, listen)
    covered = np.zeros(len(vectors), dtype=np.float32)

    def gain(row: int) -> float:
        near, cover = rows[row]
        return float(np.maximum(cover - covered[near], 0.0).sum())

    # A gain never grows while rows are picked, so an old gain is an upper bound (Minoux, 1978).
    bounds = [(-gain(row), row) for row in range(len(rows))]
    heapq.heapify(bounds)
    picks: list[int] = []
    while len(picks) < count:
        row = heapq.heappop(bounds)[1]
        now = (-gain(row), row)
        if bounds and bounds[0] < now:
            heapq.heappush(bounds, now)
            continue
        picks.append(row)
        near, cover = rows[row]
        covered[near] = np.maximum(covered[near], cover)
    return picks


def _neighbours(
    vectors: FloatArray, sigma: float, listen: Listener
) -> list[tuple[npt.NDArray[np.int32], FloatArray]]:
    """For each row the rows that it covers by a tenth at least, and how well it covers them."""
    n, found, size = len(vectors), list[tuple[npt.NDArray[np.int32], FloatArray]](), 0
    for start in range(0, n, _ROWS // 4):
        check()
        apart = (1.0 - vectors[start : start + _ROWS // 4] @ vectors.T) / 2.0
        cover = np.exp(np.square(apart) / np.float32(-2.0 * sigma**2))
        cover[np.arange(len(cover)), np.arange(start, start + len(cover))] = 1.0
        for row in cover:
            near = np.flatnonzero(row >= _LEAST_COVER).astype(np.int32)
            found.append((near, row[near]))
            size += len(near)
        if size > LARGEST_POOL:
            raise ConfigError(
                f"the first {len(found):,} of {n:,} chunks have {size:,} neighbours, more than fit into "
                "memory: split the collection, or give a smaller sigma by a higher similarity"
            )
        listen("comparing vectors", min(start + _ROWS // 4, n), n)
    return found
