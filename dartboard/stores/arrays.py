"""Vectors and words of a collection as arrays: a main part, newer rows behind it, and which rows are alive.

A row is a number that a store gives to a record; a replaced record gets a new, higher one. So an array of a
later state is an earlier one with rows at the end, and with a mask over those that are gone. After a tenth
of the rows has changed, both parts become one.

Exact search computes one float32 product over all rows. Every row that could be among the k best is then
scored again in float64. The margin for "could be" is the largest rounding error,
``2 · d · 2⁻²⁴ · |q| · max |x|``, so the result is exact, and equal vectors get equal scores.

Above 20,000 rows, a process that asks more than a few times builds FAISS' 4-bit codes in memory (André,
Kermarrec and Le Scouarnec, 2015): 2 dimensions share a code, a search scans all codes, and 8 k + 100 rows are
scored again from their vectors. FAISS does not validate files, so none is read or written.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from threading import Lock
from typing import Any

import numpy as np
import numpy.typing as npt

from dartboard.errors import StoreFormatError
from dartboard.lexical import BM25Index, InvertedIndex
from dartboard.types import FloatArray, IntArray

Rows = npt.NDArray[np.int64]
"""Row numbers, sorted."""
Mask = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float32]

EXACT_UP_TO = 20_000
"""Up to so many rows, one product is quick enough; so it is for fewer rows that a filter leaves."""
CODES_FROM = 8
"""The search that builds the codes: a command asks once or twice, a service for ever."""
_TRAINING_ROWS = 10_000
BLOCK = 8192
"""Rows of a matrix that are worked on at a time."""
_LEAST_CHANGES, _CHANGED_SHARE = 1000, 10


def too_much_changed(changes: int, rows: int) -> bool:
    """Whether the parts of an array should become one."""
    return changes > max(_LEAST_CHANGES, rows // _CHANGED_SHARE)


def unfit_arrays() -> StoreFormatError:
    """The error for arrays that somebody else put beside the records."""
    return StoreFormatError(
        "the arrays beside the store do not belong to its records: remove the folder that ends in .derived, "
        "and search again"
    )


def rounding_slack(dimension: int, query: FloatArray, longest: float) -> float:
    """Largest error of the order of two float32 products over ``dimension`` numbers."""
    return 2.0 * dimension * 2.0**-24 * float(np.linalg.norm(query.astype(np.float64))) * longest


def longest_of(matrix: Floats) -> float:
    """The largest length of a row, worked out in blocks."""
    parts = (matrix[start : start + BLOCK].astype(np.float64) for start in range(0, len(matrix), BLOCK))
    return max((float(np.linalg.norm(part, axis=1).max()) for part in parts), default=0.0)


def near_the_best(scores: FloatArray, k: int, slack: float) -> IntArray:
    """Positions of all scores that may be among the k best if each can be wrong by half the slack."""
    if scores.size <= k:
        return np.arange(scores.size)
    floor = np.partition(scores, scores.size - k)[scores.size - k]
    return np.flatnonzero(scores >= floor - slack)


def precise_scores(vectors: FloatArray, query: FloatArray) -> Floats:
    """Inner products in float64: equal rows get equal scores at every position."""
    products = vectors.astype(np.float64) * query.astype(np.float64)
    scores: Floats = products.sum(axis=1).astype(np.float32)
    return scores


def positions_of(rows: Rows, wanted: Rows) -> IntArray:
    """Positions of the wanted rows in sorted rows; rows that are not there are skipped."""
    if not rows.size or not wanted.size:
        return np.zeros(0, np.intp)
    first, last = int(rows[0]), int(rows[-1])
    if wanted.size > rows.size // 50 and last - first < 8 * rows.size:  # marks are faster than a lookup
        marks = np.zeros(last - first + 1, bool)
        marks[wanted[(wanted >= first) & (wanted <= last)] - first] = True
        return np.flatnonzero(marks[rows - first])
    at = np.minimum(np.searchsorted(rows, wanted), rows.size - 1)
    found: IntArray = at[rows[at] == wanted]
    return found


def mask_of(rows: Rows, wanted: Rows | None) -> Mask | None:
    """Which of the sorted rows are wanted; None if all are."""
    if wanted is None:
        return None
    mask = np.zeros(rows.size, bool)
    mask[positions_of(rows, wanted)] = True
    return None if mask.all() else mask


@dataclass(slots=True)
class _Codes:
    """The FAISS index of a matrix, once it was asked for often enough."""

    index: Any = None
    asked: int = 0
    lock: Lock = field(default_factory=Lock)


@dataclass(frozen=True, eq=False, kw_only=True)
class VectorArray:
    """The vectors of one field, ``(n, d)`` float32: ``main``, and ``tail`` for the rows behind it.

    ``alive`` is a mask over all rows, or None; ``longest`` is the largest length of a vector.
    """

    rows: Rows
    main: Floats
    tail: Floats
    alive: Mask | None = None
    longest: float = 1.0
    codes: _Codes = field(default_factory=_Codes)

    @classmethod
    def of(cls, rows: Rows, matrix: Floats, longest: float) -> "VectorArray":
        """All vectors in the main part."""
        return cls(rows=rows, main=matrix, tail=matrix[:0], longest=longest)

    @property
    def changes(self) -> int:
        """How many rows are new or gone since the main part was made."""
        dead = 0 if self.alive is None else self.alive.size - int(np.count_nonzero(self.alive))
        return len(self.tail) + dead

    def followed_by(self, new_rows: Rows, new: Floats, current: Rows, longest: float) -> "VectorArray":
        """The vectors at a later state, whose rows are ``current``."""
        rows = np.concatenate([self.rows, new_rows]) if new_rows.size else self.rows
        tail = np.concatenate([self.tail, new]) if new_rows.size else self.tail
        moved = replace(
            self,
            rows=rows,
            tail=tail,
            alive=None if rows.size == current.size else mask_of(rows, current),
            longest=max(longest, self.longest),
        )
        return moved.folded() if too_much_changed(moved.changes, rows.size) else moved

    def folded(self) -> "VectorArray":
        """The same vectors in one part."""
        if not self.changes:
            return self
        matrix = np.concatenate([self.main, self.tail])
        if self.alive is None:
            return VectorArray.of(self.rows, matrix, self.longest)
        return VectorArray.of(self.rows[self.alive], matrix[self.alive], self.longest)

    def take(self, rows: Rows) -> Floats:
        """The vectors of existing rows, in the given order."""
        at = np.minimum(np.searchsorted(self.rows, rows), len(self.rows) - 1)
        if (self.rows[at] != rows).any():
            raise unfit_arrays()
        if not len(self.tail):
            return self.main[at]
        old = at < len(self.main)
        vectors = np.empty((len(at), self.main.shape[1]), np.float32)
        vectors[old], vectors[~old] = self.main[at[old]], self.tail[at[~old] - len(self.main)]
        return vectors

    def best(
        self, query: Floats, k: int, allowed: Rows | None = None, *, exact: bool = False
    ) -> tuple[Rows, Floats]:
        """Rows and scores that include the k best, in any order.

        Args:
            query: ``(d,)``, in the form that the field compares.
            k: How many are wanted.
            allowed: The rows that may be returned; None for all.
            exact: Compare every row, even if there are codes.
        """
        size, slack = len(self.main), rounding_slack(query.size, query, self.longest)
        mask = self.alive
        if allowed is not None:
            mask = np.zeros(self.rows.size, bool)
            mask[positions_of(self.rows, allowed)] = True
            mask = mask if self.alive is None else mask & self.alive
        at = self._best_of_main(query, k, None if mask is None else mask[:size], slack, exact)
        rows, vectors = self.rows[at], self.main[at]
        if len(self.tail):
            newer = np.arange(len(self.tail)) if mask is None else np.flatnonzero(mask[size:])
            rows = np.concatenate([rows, self.rows[size + newer]])
            vectors = np.concatenate([vectors, self.tail[newer]])
        near = near_the_best(vectors @ query, k, slack)
        return rows[near], precise_scores(vectors[near], query)

    def _best_of_main(self, query: Floats, k: int, mask: Mask | None, slack: float, exact: bool) -> IntArray:
        size = len(self.main)
        places = None if mask is None else np.flatnonzero(mask)
        left = size if places is None else places.size
        if not exact and left > EXACT_UP_TO and (codes := self._codes()) is not None:
            return _scan(codes, query, min(8 * k + 100, left), None if places is None else mask)
        if places is None:
            return near_the_best(self.main @ query, k, slack)
        # One product over all rows is faster than gathering an eighth of them.
        scores = (self.main @ query)[places] if 8 * left > size else self.main[places] @ query
        best: IntArray = places[near_the_best(scores, k, slack)]
        return best

    def _codes(self) -> Any:
        """The codes, built at the eighth search; None before, and where FAISS is not installed."""
        if find_spec("faiss") is None:
            return None
        with self.codes.lock:
            self.codes.asked += 1
            if self.codes.index is None and self.codes.asked >= CODES_FROM:
                self.codes.index = _built(self.main)
            return self.codes.index

    def prepare(self) -> None:
        """Build the codes now if there are rows enough."""
        if len(self.main) > EXACT_UP_TO and find_spec("faiss") is not None:
            with self.codes.lock:
                self.codes.index = self.codes.index or _built(self.main)

    def describe(self) -> dict[str, Any]:
        """Kind and state, for statistics."""
        kind = "exact" if self.codes.index is None else "4-bit codes"
        return {"kind": kind, "rows": len(self.rows), "changes": self.changes}


def _built(matrix: Floats) -> Any:
    """FAISS' 4-bit codes over a matrix; on one thread, since on a busy machine two wait for each other."""
    import faiss

    codes = -(-matrix.shape[1] // 2)
    index: Any = faiss.index_factory(2 * codes, f"IVF1,PQ{codes}x4fs", faiss.METRIC_INNER_PRODUCT)
    index.cp.niter = index.pq.cp.niter = 10
    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(1)
    try:
        index.train(_padded(matrix[:: max(1, len(matrix) // _TRAINING_ROWS)], index.d))
        for start in range(0, len(matrix), BLOCK):
            index.add(_padded(matrix[start : start + BLOCK], index.d))
    finally:
        faiss.omp_set_num_threads(before)
    return index


def _scan(index: Any, query: Floats, count: int, mask: Mask | None) -> IntArray:
    """Positions of the ``count`` best by their codes."""
    import faiss

    given: dict[str, Any] = {"nprobe": 1}
    if mask is not None:
        bits = np.packbits(mask, bitorder="little")
        given["sel"] = faiss.IDSelectorBitmap(mask.size, faiss.swig_ptr(bits))
    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(1)
    try:
        asked = _padded(query[None], index.d)
        _, found = index.search(asked, count, params=faiss.SearchParametersIVF(**given))
    finally:
        faiss.omp_set_num_threads(before)
    positions: IntArray = found[0][found[0] >= 0].astype(np.intp)
    return positions


def _padded(vectors: FloatArray, dimension: int) -> Floats:
    """Rows padded to the index's dimension; trailing zeros do not change an inner product."""
    padded = np.pad(vectors, ((0, 0), (0, dimension - vectors.shape[1])))
    return np.ascontiguousarray(padded, dtype=np.float32)


@dataclass(frozen=True, eq=False, kw_only=True)
class TextArray:
    """The words of all texts; the index's mask says which rows are alive."""

    rows: Rows
    index: BM25Index

    def followed_by(self, new_rows: Rows, texts: Iterable[str], current: Rows) -> "TextArray":
        """The words at a later state, whose rows are ``current``."""
        rows = np.concatenate([self.rows, new_rows])
        alive = None if rows.size == current.size else mask_of(rows, current)
        index = self.index.followed_by(texts, alive)
        changes = rows.size - (index.tables[0].lengths.size if index.tables else 0)
        if alive is not None:
            changes += alive.size - int(np.count_nonzero(alive))
        moved = TextArray(rows=rows, index=index)
        return moved.folded() if too_much_changed(changes, rows.size) else moved

    def folded(self) -> "TextArray":
        """The same words in one table."""
        alive = self.index.alive
        if len(self.index.tables) == 1 and alive is None:
            return self
        return TextArray(rows=self.rows if alive is None else self.rows[alive], index=self.index.folded())

    def best(self, query: str, k: int, allowed: Rows | None = None) -> tuple[Rows, Floats]:
        """Rows and scores that include the k best, in any order."""
        at, scores = self.index.best(query, k, mask_of(self.rows, allowed))
        return self.rows[at], scores


@dataclass(frozen=True, eq=False, kw_only=True)
class SparseArray:
    """Sparse vectors of one field, in several inverted indexes of consecutive rows."""

    rows: Rows
    parts: tuple[InvertedIndex, ...]
    alive: Mask | None = None

    def followed_by(self, new_rows: Rows, vectors: list[Any], current: Rows) -> "SparseArray":
        """The sparse vectors at a later state, whose rows are ``current``."""
        rows = np.concatenate([self.rows, new_rows])
        parts = (*self.parts, InvertedIndex.build(vectors)) if vectors else self.parts
        return SparseArray(rows=rows, parts=parts, alive=mask_of(rows, current))

    @property
    def too_much_changed(self) -> bool:
        """Whether it should be built anew."""
        dead = 0 if self.alive is None else self.alive.size - int(np.count_nonzero(self.alive))
        return len(self.parts) > 8 or too_much_changed(
            self.rows.size - len(self.parts[0]) + dead, self.rows.size
        )

    def best(self, terms: Any, weights: Any, k: int, allowed: Rows | None = None) -> tuple[Rows, Floats]:
        """Rows and scores that include the k best, in any order."""
        mask = mask_of(self.rows, allowed)
        if self.alive is not None:
            mask = self.alive if mask is None else mask & self.alive
        found, first = [(np.zeros(0, np.int64), np.zeros(0, np.float32))], 0
        for part in self.parts:
            last = first + len(part)
            at, scores = part.best(terms, weights, k, None if mask is None else mask[first:last])
            found.append((self.rows[first + at], scores))
            first = last
        return np.concatenate([rows for rows, _ in found]), np.concatenate([scores for _, scores in found])
