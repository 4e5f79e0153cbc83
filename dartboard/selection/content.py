"""Rows by content: which are equal to the bit, and an order that does not depend on where they stood."""

from functools import cache

import numpy as np
import numpy.typing as npt

from dartboard.selection.compiled import compiled
from dartboard.types import FloatArray, IntArray

_ENTRIES = 128
"""So many entries of a row make its fingerprint; rows that agree in them are compared in full."""


def by_content(matrix: FloatArray, keep_order: bool = False) -> tuple[IntArray, IntArray]:
    """Distinct rows by position, and for every row which of these it equals.

    In an order that depends on content alone unless ``keep_order``.
    """
    keys = fingerprints(matrix)
    order = keys.argsort(kind="stable")
    ordered = keys[order]
    news = ordered[1:] != ordered[:-1]
    row_of = np.empty(len(matrix), dtype=np.intp)
    if news.all():
        first = order
        row_of[order] = np.arange(len(matrix))
    else:
        first, row_of = _grouped(matrix, order, np.concatenate(([True], news)))
    if keep_order:
        order = first.argsort()
        row_of = order.argsort()[row_of]
        first = first[order]
    return first, row_of


def by_closeness(cosines: FloatArray) -> IntArray | None:
    """Rows by their cosines with the query, the closest first; None where two rows have the same one.

    Equal rows have equal cosines, so there are no copies among rows whose cosines all differ, and the order
    does not depend on where they stood.
    """
    order = (-cosines).argsort()
    ordered = cosines[order]
    return None if np.count_nonzero(ordered[1:] == ordered[:-1]) else order


def _grouped(matrix: FloatArray, order: IntArray, starts: npt.NDArray[np.bool_]) -> tuple[IntArray, IntArray]:
    """Rows with equal fingerprints as one, provided that they are equal."""
    first = order[starts]
    row_of = np.empty(len(matrix), dtype=np.intp)
    row_of[order] = starts.cumsum() - 1
    if not np.array_equal(matrix[first][row_of], matrix):
        _, first, row_of = np.unique(matrix, axis=0, return_index=True, return_inverse=True)
        row_of = row_of.reshape(-1)
    return first, row_of


def fingerprints(matrix: FloatArray) -> npt.NDArray[np.uint64]:
    """``(n,)`` 64-bit fingerprints of the beginnings of rows, the same wherever a row stands."""
    if matrix.flags.c_contiguous and (matrix.dtype == np.float64 or matrix.shape[1] % 2 == 0):
        words = matrix
    else:
        words = np.ascontiguousarray(matrix[:, :_ENTRIES])
        if words.dtype == np.float32 and words.shape[1] % 2:
            words = np.pad(words, ((0, 0), (0, 1)))
    bits = words.view(np.uint64)[:, : _ENTRIES * words.itemsize // 8]
    multipliers = _multipliers(bits.shape[1])
    if machine := compiled():
        prints = np.empty(len(bits), np.uint64)
        machine.prints(bits, multipliers, prints)
    else:
        prints = np.einsum("ij,j->i", bits, multipliers)
    return prints


@cache
def _multipliers(count: int) -> npt.NDArray[np.uint64]:
    return np.random.default_rng(20240712).integers(2**63, size=count, dtype=np.uint64) | np.uint64(1)
