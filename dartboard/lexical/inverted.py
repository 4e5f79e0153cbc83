"""Inverted index of learned sparse vectors: the score of a row is its dot product with the query.

Term ids may be any int32 numbers (a model's vocabulary, hashes): only existing ones take space, 8 bytes per
weight.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from dartboard.errors import InvalidInputError
from dartboard.lexical.postings import Mask, PostingList, Rows, Scorer, Sums, Weights, ranked

Terms = npt.NDArray[np.int32]


class InvertedIndex:
    """Sparse vectors by row, in the given order.

    ``rows[starts[t]:starts[t + 1]]`` contain ``terms[t]`` with these weights; the largest is ``peaks[t]``.
    """

    def __init__(
        self, size: int, terms: Terms, starts: npt.NDArray[np.int64], rows: Rows, weights: Weights
    ) -> None:
        self.terms, self.starts, self.rows, self.weights = terms, starts, rows, weights
        self._scorer = Scorer(size)
        self._peaks = np.maximum.reduceat(weights, starts[:-1]) if terms.size else weights

    @classmethod
    def build(cls, vectors: Iterable[tuple[Terms, Weights]]) -> "InvertedIndex":
        """Index pairs (terms, weights): unique terms, weights > 0; an empty pair is never found."""
        pairs = [_check(terms, weights, f"vector {row}") for row, (terms, weights) in enumerate(vectors)]
        lengths = [terms.size for terms, _ in pairs]
        terms = np.concatenate([np.zeros(0, np.int32), *(terms for terms, _ in pairs)])
        weights = np.concatenate([np.zeros(0, np.float32), *(weights for _, weights in pairs)])
        rows = np.repeat(np.arange(len(pairs), dtype=np.int32), lengths)
        order = np.argsort(terms, kind="stable")
        distinct, starts = np.unique(terms[order], return_index=True)
        bounds = np.append(starts, terms.size).astype(np.int64)
        return cls(len(pairs), distinct, bounds, rows[order], weights[order])

    def __len__(self) -> int:
        return self._scorer.size

    def top(
        self, terms: npt.ArrayLike, weights: npt.ArrayLike, k: int, mask: Mask | None = None
    ) -> tuple[npt.NDArray[np.intp], Weights]:
        """Rows and dot products > 0, best first, ties by lower row; ``mask`` selects the allowed rows."""
        return ranked(*self.best(terms, weights, k, mask), k)

    def best(
        self, terms: npt.ArrayLike, weights: npt.ArrayLike, k: int, mask: Mask | None = None
    ) -> tuple[Rows, Weights]:
        """Like :meth:`top`, in any order and with all rows that equal the k-th."""
        return self._scorer.best(self._lists(terms, weights), k, mask)

    def scores(self, terms: npt.ArrayLike, weights: npt.ArrayLike, mask: Mask | None = None) -> Weights:
        """The dot product of every row with the query, ``(n,)`` float32."""
        return self._scorer.all_scores(self._lists(terms, weights), mask)

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """The arrays by the names of the constructor."""
        return {"terms": self.terms, "starts": self.starts, "rows": self.rows, "weights": self.weights}

    def _lists(self, terms: npt.ArrayLike, weights: npt.ArrayLike) -> list[PostingList]:
        """The posting lists of the query's terms, the largest bound first, ties by term."""
        wanted, factors = _check(terms, weights, "query")
        if not self.terms.size:
            return []
        at = np.minimum(np.searchsorted(self.terms, wanted), self.terms.size - 1)
        there = self.terms[at] == wanted
        lists = [
            self._list(term, factor)
            for term, factor in sorted(zip(at[there].tolist(), factors[there].tolist(), strict=True))
        ]
        return sorted(lists, key=lambda part: -part.bound)

    def _list(self, term: int, factor: float) -> PostingList:
        part = slice(int(self.starts[term]), int(self.starts[term + 1]))
        stored = self.weights[part]

        def weigh(at: npt.NDArray[np.intp] | None) -> Sums:
            product: Sums = np.multiply(stored if at is None else stored[at], factor, dtype=np.float64)
            return product

        return PostingList(factor * float(self._peaks[term]), self.rows[part], weigh)


def _check(terms: npt.ArrayLike, weights: npt.ArrayLike, name: str) -> tuple[Terms, Weights]:
    """Check terms and weights, and return them as arrays."""
    ids, values = np.asarray(terms), np.asarray(weights, dtype=np.float32)
    if ids.size and ids.dtype.kind not in "iu":
        raise InvalidInputError(f"{name}: terms must be integers, got {ids.dtype}")
    if ids.ndim != 1 or ids.shape != values.shape:
        raise InvalidInputError(f"{name}: {ids.shape} terms with {values.shape} weights, need one each")
    if ids.size and (ids.min() < 0 or ids.max() >= 2**31):
        raise InvalidInputError(f"{name}: terms must be >= 0 and < 2**31")
    if not (np.isfinite(values).all() and (values > 0).all()):
        raise InvalidInputError(f"{name}: weights must be finite and > 0; leave other terms out")
    if ids.size > 1 and np.unique(ids).size != ids.size:
        raise InvalidInputError(f"{name}: a term occurs twice; add up its weights")
    return ids.astype(np.int32, copy=False), values
