"""Posting lists with exact search: for each term the sorted rows that contain it, with a weight each.

The score of a row is ``Σ_t q_t · w[t, row]`` over the query's terms, all factors > 0, added in float64. A
search processes the lists by decreasing upper bound (query weight × the list's largest weight), so rare terms
come first. When the k-th best sum so far exceeds what all remaining lists could add, no new row can enter.
The remaining lists are then looked up only for known rows, and rows that cannot catch up are dropped
(MaxScore: Turtle and Flood, 1995). The results are bit-identical to a search without this shortcut.
"""

from dataclasses import dataclass, field
from threading import local
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from dartboard.errors import InvalidInputError

Rows = npt.NDArray[np.int32]
Weights = npt.NDArray[np.float32]
Mask = npt.NDArray[np.bool_]
_Sums = npt.NDArray[np.float64]

_LOOKUP_PRICE = 16
"""Cost of looking up a row in a list, relative to adding one row of the list."""
_SLACK = 1 - 1e-6
"""A row this close below the threshold is kept, because scores are compared after rounding to float32."""


class _List(NamedTuple):
    bound: float
    rows: Rows
    weights: Weights
    factor: float


@dataclass(frozen=True, slots=True, eq=False)
class Postings:
    """``rows[starts[t]:starts[t + 1]]`` contain term t, with these weights; ``peaks[t]`` is the largest."""

    size: int
    starts: npt.NDArray[np.int64]
    rows: Rows
    weights: Weights
    peaks: Weights
    _scratch: local = field(default_factory=local, init=False)

    @classmethod
    def build(cls, size: int, starts: npt.NDArray[np.int64], rows: Rows, weights: Weights) -> "Postings":
        """Postings of ``size`` rows from concatenated, non-empty lists."""
        peaks = np.maximum.reduceat(weights, starts[:-1]) if starts.size > 1 else np.zeros(0, np.float32)
        return cls(size, starts, rows, weights, peaks)

    def top(
        self, terms: npt.NDArray[np.integer[Any]], factors: npt.NDArray[Any], k: int, mask: Mask | None = None
    ) -> tuple[npt.NDArray[np.intp], Weights]:
        """The k best rows with scores > 0, best first, ties by lower row."""
        if k < 1:
            raise InvalidInputError(f"k must be >= 1, got {k}")
        rows, sums = self._candidates(self._lists(terms, factors), k, self._check_mask(mask))
        scores = sums.astype(np.float32)
        if rows.size > k:
            keep = scores >= np.partition(scores, rows.size - k)[rows.size - k]
            rows, scores = rows[keep], scores[keep]
        order = np.lexsort((rows, -scores))[:k]
        order = order[scores[order] > 0]
        return rows[order].astype(np.intp), scores[order]

    def scores(
        self, terms: npt.NDArray[np.integer[Any]], factors: npt.NDArray[Any], mask: Mask | None = None
    ) -> Weights:
        """The score of every row, ``(size,)``; 0 without shared terms or where the mask is False."""
        allowed = self._check_mask(mask)
        sums = np.zeros(self.size)
        for part in self._lists(terms, factors):
            sums[part.rows] += np.multiply(part.weights, part.factor, dtype=np.float64)
        if allowed is not None:
            sums[~allowed] = 0.0
        return sums.astype(np.float32)

    def position(self, term: int, row: int) -> int | None:
        """The position of the posting of this term and row."""
        start, stop = int(self.starts[term]), int(self.starts[term + 1])
        at = start + int(np.searchsorted(self.rows[start:stop], row))
        return at if at < stop and self.rows[at] == row else None

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """The arrays by field name."""
        return {"starts": self.starts, "rows": self.rows, "weights": self.weights, "peaks": self.peaks}

    def fault(self) -> str | None:
        """Why these arrays, read from a file, are not valid postings; None if they are."""
        starts, rows, weights = self.starts, self.rows, self.weights
        kinds = ((starts, np.int64), (rows, np.int32), (weights, np.float32), (self.peaks, np.float32))
        if any(array.ndim != 1 or array.dtype != kind for array, kind in kinds):
            return "arrays of the wrong type"
        if starts.size != self.peaks.size + 1 or rows.size != weights.size:
            return "arrays of different lengths"
        if starts[0] != 0 or starts[-1] != rows.size or (np.diff(starts) <= 0).any():
            return "posting lists that do not follow each other"
        if rows.size and (rows.min() < 0 or rows.max() >= self.size):
            return "rows that do not exist"
        return None

    def _check_mask(self, mask: Mask | None) -> Mask | None:
        if mask is None:
            return None
        if not isinstance(mask, np.ndarray) or mask.dtype != np.bool_ or mask.shape != (self.size,):
            raise InvalidInputError(f"mask must be {self.size} booleans, one for each row")
        return mask

    def _lists(self, terms: npt.NDArray[np.integer[Any]], factors: npt.NDArray[Any]) -> list[_List]:
        """The query's lists by decreasing bound, ties by term."""
        lists = []
        for term, factor in zip(terms.tolist(), factors.tolist(), strict=True):
            part = slice(int(self.starts[term]), int(self.starts[term + 1]))
            lists.append((-factor * float(self.peaks[term]), term, part, factor))
        lists.sort(key=lambda entry: entry[:2])
        return [
            _List(-bound, self.rows[part], self.weights[part], factor) for bound, _, part, factor in lists
        ]

    def _candidates(self, lists: list[_List], k: int, mask: Mask | None) -> tuple[Rows, _Sums]:
        """Every row that may be among the k best, once, with its sum."""
        # One zero per row. The thread's array is removed while in use, so that a failure leaves none dirty.
        kept: _Sums | None = self._scratch.__dict__.pop("sums", None)
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


def _kth(values: _Sums, k: int, floor: float) -> float:
    """A value slightly below the k-th largest, which is known to be at least ``floor``."""
    high = values[values >= floor]
    return max(floor, float(np.partition(high, high.size - k)[high.size - k]) * _SLACK)


def _add(part: _List, sums: _Sums, mask: Mask | None) -> Rows:
    """Add a whole list; returns the rows that were 0 before."""
    rows, weights = part.rows, part.weights
    if mask is not None:
        allowed = mask[rows]
        rows, weights = rows[allowed], weights[allowed]
    before = sums[rows]
    sums[rows] = before + np.multiply(weights, part.factor, dtype=np.float64)
    new: Rows = rows[before == 0]
    return new


def _look_up(lists: list[_List], rows: Rows, reached: _Sums, k: int, floor: float) -> tuple[Rows, _Sums]:
    """Add lists for these rows only, dropping rows that cannot be among the k best."""
    to_come = sum(part.bound for part in lists)
    for part in lists:
        if rows.size > 2 * k:
            keep = reached >= floor - to_come
            rows, reached = rows[keep], reached[keep]
        at = np.searchsorted(part.rows, rows)
        at[at == part.rows.size] = 0
        there = np.flatnonzero(part.rows[at] == rows)
        reached[there] += np.multiply(part.weights[at[there]], part.factor, dtype=np.float64)
        to_come -= part.bound
        if rows.size > 2 * k:
            floor = _kth(reached, k, floor)
    return rows, reached
