"""Exact search over posting lists: for each term the sorted rows that contain it, with a weight each.

The score of a row is the sum of its weights in the query's lists, all > 0, added in float64. Lists are
processed in the given order, best by decreasing bound (the largest weight), so that rare terms come first.
When the k-th best sum so far exceeds what all remaining lists could add, no new row can enter. The remaining
lists are then looked up only for known rows, and rows that cannot catch up are dropped (MaxScore: Turtle and
Flood, 1995). The results are bit-identical to a search without this shortcut.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from threading import local
from typing import Any

import numpy as np
import numpy.typing as npt

Rows = npt.NDArray[np.int32]
Weights = npt.NDArray[np.float32]
Mask = npt.NDArray[np.bool_]
Sums = npt.NDArray[np.float64]

_LOOKUP_PRICE = 16
"""Cost of looking up a row in a list, relative to adding one row of the list."""
_SLACK = 1 - 1e-6
"""A row this close below the threshold is kept, because scores are compared after rounding to float32."""


@dataclass(frozen=True, slots=True, eq=False)
class PostingList:
    """The rows of one term of a query.

    ``weigh(at)`` gives the weights at these positions of ``rows`` (None for all); none exceeds ``bound``.
    """

    bound: float
    rows: Rows
    weigh: Callable[[npt.NDArray[np.intp] | None], Sums]


@dataclass(frozen=True, slots=True, eq=False)
class Scorer:
    """Adds up posting lists over ``size`` rows; keeps one array of zeros for each thread."""

    size: int
    _scratch: local = field(default_factory=local)

    def best(self, lists: Sequence[PostingList], k: int, mask: Mask | None = None) -> tuple[Rows, Weights]:
        """The rows that score at least as much as the k-th best, with their scores > 0, in any order."""
        rows, sums = self._candidates(lists, k, mask)
        scores = sums.astype(np.float32)
        if (scores == 0).any():  # a product too small for float32 is no hit
            rows, scores = rows[scores > 0], scores[scores > 0]
        if rows.size > k:
            keep = scores >= np.partition(scores, rows.size - k)[rows.size - k]
            rows, scores = rows[keep], scores[keep]
        return rows, scores

    def all_scores(self, lists: Sequence[PostingList], mask: Mask | None = None) -> Weights:
        """The score of every row, ``(size,)``; 0 without shared terms or where the mask is False."""
        sums = np.zeros(self.size)
        for part in lists:
            sums[part.rows] += part.weigh(None)
        if mask is not None:
            sums[~mask] = 0.0
        return sums.astype(np.float32)

    def _candidates(self, lists: Sequence[PostingList], k: int, mask: Mask | None) -> tuple[Rows, Sums]:
        """Every row that may be among the k best, once, with its sum."""
        # The thread's array is removed while in use, so that a failure leaves none dirty.
        kept: Sums | None = self._scratch.__dict__.pop("sums", None)
        sums = np.zeros(self.size) if kept is None else kept
        found: list[Rows] = [np.zeros(0, np.int32)]
        count, done, floor = 0, 0, 0.0
        to_come = sum(part.bound for part in lists)
        for part in lists:
            if count >= k and part.rows.size > _LOOKUP_PRICE * k:
                found = [np.concatenate(found)]
                floor = _kth(sums[found[0]], k, floor)
                if to_come < floor:
                    break
            new = _add(part, sums, mask)
            found.append(new)
            count, done = count + new.size, done + 1
            to_come -= part.bound
        rows = np.concatenate(found)
        reached = sums[rows]
        sums[rows] = 0.0
        self._scratch.sums = sums
        return _look_up(lists[done:], rows, reached, k, floor) if done < len(lists) else (rows, reached)


def ranked(rows: Rows, scores: Weights, k: int) -> tuple[npt.NDArray[np.intp], Weights]:
    """The k best, best first, ties by lower row."""
    order = np.lexsort((rows, -scores))[:k]
    return rows[order].astype(np.intp), scores[order]


def position(rows: npt.NDArray[Any], row: int) -> int | None:
    """Where a row stands among sorted rows; None if it is not there."""
    at = int(np.searchsorted(rows, row))
    return at if at < rows.size and rows[at] == row else None


def _kth(values: Sums, k: int, floor: float) -> float:
    """A value slightly below the k-th largest, which is known to be at least ``floor``."""
    high = values[values >= floor]
    return max(floor, float(np.partition(high, high.size - k)[high.size - k]) * _SLACK)


def _add(part: PostingList, sums: Sums, mask: Mask | None) -> Rows:
    """Add a whole list; returns the rows that were 0 before."""
    rows = part.rows
    if mask is None:
        weights = part.weigh(None)
    else:
        allowed = np.flatnonzero(mask[rows])
        rows, weights = rows[allowed], part.weigh(allowed)
    before = sums[rows]
    sums[rows] = before + weights
    new: Rows = rows[before == 0]
    return new


def _look_up(
    lists: Sequence[PostingList], rows: Rows, reached: Sums, k: int, floor: float
) -> tuple[Rows, Sums]:
    """Add lists for these rows only, dropping rows that cannot be among the k best."""
    to_come = sum(part.bound for part in lists)
    for part in lists:
        if rows.size > 2 * k:
            keep = reached >= floor - to_come
            rows, reached = rows[keep], reached[keep]
        at = np.searchsorted(part.rows, rows)
        at[at == part.rows.size] = 0
        there = np.flatnonzero(part.rows[at] == rows)
        reached[there] += part.weigh(at[there])
        to_come -= part.bound
        if rows.size > 2 * k:
            floor = _kth(reached, k, floor)
    return rows, reached
