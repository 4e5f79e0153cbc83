"""Groups of chunks: by equal texts, by nearly the same words, and by their vectors.

No fixed cosine suits two encoders, so the threshold comes from σ, as in selection: two chunks are similar if
each covers the other at least by half, exp(-d² / 2σ²) ≥ ½ with d = (1 - cos) / 2.

All groups come from leader clustering in the given order: a chunk joins the first leader that it is a
duplicate of, or leads a group. So each member is a direct duplicate of its leader, if not of the others.
"""

import math
from collections.abc import Hashable, Sequence

import numpy as np

from dartboard.deadline import check
from dartboard.duplicates.corpus import Corpus, Listener, silent
from dartboard.near_duplicates import VERSION, group_fingerprints
from dartboard.types import FloatArray, IntArray

_ROWS, _COLUMNS = 512, 8192
_ROUNDING = 1e-5


def similarity_of(sigma: float) -> float:
    """The smallest cosine of two chunks that cover each other at least by half."""
    return max(-1.0, 1.0 - 2.0 * sigma * math.sqrt(2.0 * math.log(2.0)))


def exact_groups(corpus: Corpus, order: IntArray) -> IntArray:
    """``(n,)``: for each chunk the position of the first one, in this order, with the same text."""
    return _from_order(order, _equal([corpus.digests[at] for at in order]))


def text_groups(corpus: Corpus, order: IntArray) -> IntArray:
    """``(n,)``: for each chunk the leader of its group by words; equal ones where a text has no words."""
    words = [corpus.fingerprints[at] for at in order]
    equal = _equal([corpus.digests[at] for at in order])
    groups = np.where([len(one) > len(VERSION) for one in words], group_fingerprints(words), equal)
    return _from_order(order, groups)


def similar_groups(vectors: FloatArray, similarity: float, *, listen: Listener = silent) -> IntArray:
    """``(n,)``: for each row the position of the leader of its group.

    Rows are compared block by block, so memory does not grow with the square of the corpus.

    Args:
        vectors: ``(n, d)`` float32 of length 1.
        similarity: the smallest cosine of a row and its leader.
        listen: told how many rows are done.

    Example:
        >>> similar_groups(np.array([[1, 0], [0, 1], [0.8, 0.6]], dtype=np.float32), 0.75)
        array([0, 1, 0])
    """
    least, n = np.float32(similarity - _ROUNDING), len(vectors)
    group, leads = np.full(n, -1), np.zeros(n, dtype=bool)
    for start in range(0, n, _ROWS):
        rows = np.arange(start, min(start + _ROWS, n))
        for first in range(0, start, _COLUMNS):
            check()
            last = min(first + _COLUMNS, start)
            close = (vectors[rows] @ vectors[first:last].T >= least) & leads[first:last]
            joins = close.any(axis=1)
            group[rows[joins]] = first + close[joins].argmax(axis=1)
            rows = rows[~joins]
        close = vectors[rows] @ vectors[rows].T >= least
        for place, row in enumerate(rows):
            if group[row] < 0:
                leads[row] = True
                group[rows[close[place] & (group[rows] < 0)]] = row
                group[row] = row
        listen("comparing vectors", min(start + _ROWS, n), n)
    return group


def members(groups: IntArray) -> list[IntArray]:
    """The positions of each group of more than one, in order, the largest group first."""
    order = np.argsort(groups, kind="stable")
    parts = np.split(order, np.flatnonzero(np.diff(groups[order])) + 1)
    return sorted((part for part in parts if len(part) > 1), key=lambda part: (-len(part), part[0]))


def _equal(values: Sequence[Hashable]) -> IntArray:
    first: dict[Hashable, int] = {}
    return np.array([first.setdefault(value, at) for at, value in enumerate(values)], dtype=np.int64)


def _from_order(order: IntArray, groups: IntArray) -> IntArray:
    """Groups of chunks in an order, as positions of the chunks themselves."""
    found = np.empty_like(order)
    found[order] = order[groups]
    return found
