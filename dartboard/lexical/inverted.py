"""Inverted index of learned sparse vectors: the score of a row is its dot product with the query.

Term ids may be any int32 numbers (a model's vocabulary, hashes): only existing ones take space, 8 bytes per
weight.
"""

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import numpy.typing as npt

from dartboard.errors import InvalidInputError, StoreFormatError
from dartboard.lexical.postings import Mask, Postings, Weights
from dartboard.lexical.saved_arrays import load_arrays, save_arrays

_KIND = "sparse-vectors"

Terms = npt.NDArray[np.int32]


class InvertedIndex:
    """Sparse vectors by row, in the given order."""

    def __init__(self, terms: Terms, postings: Postings) -> None:
        self._terms = terms
        self._postings = postings

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
        return cls(distinct, Postings.build(len(pairs), bounds, rows[order], weights[order]))

    def __len__(self) -> int:
        return self._postings.size

    def top(
        self, terms: npt.ArrayLike, weights: npt.ArrayLike, k: int, mask: Mask | None = None
    ) -> tuple[npt.NDArray[np.intp], Weights]:
        """Rows and dot products > 0, best first, ties by lower row; ``mask`` selects the allowed rows."""
        found, factors = self._known(terms, weights)
        return self._postings.top(found, factors, k, mask)

    def scores(self, terms: npt.ArrayLike, weights: npt.ArrayLike, mask: Mask | None = None) -> Weights:
        """The dot product of every row with the query, ``(n,)`` float32."""
        found, factors = self._known(terms, weights)
        return self._postings.scores(found, factors, mask)

    def save(self, folder: str | Path) -> None:
        """Write the index to a folder, atomically replacing an existing one."""
        save_arrays(folder, _KIND, {"size": len(self)}, {"terms": self._terms, **self._postings.arrays()})

    @classmethod
    def load(cls, folder: str | Path, mmap: bool = True) -> "InvertedIndex":
        """Load and verify a saved index; by default its arrays are memory-mapped."""
        header, arrays = load_arrays(folder, _KIND, mmap=mmap)
        try:
            terms = arrays.pop("terms")
            postings = Postings(int(header["size"]), **arrays)
        except (KeyError, TypeError, ValueError) as error:
            raise StoreFormatError(f"{folder} is not a complete index: {error}. Build it again") from error
        fault = postings.fault()
        if not fault and (terms.shape != postings.peaks.shape or terms.dtype != np.int32):
            fault = "terms that do not match their lists"
        if fault:
            raise StoreFormatError(f"the index in {folder} holds {fault}. Build it again")
        return cls(terms, postings)

    def _known(self, terms: npt.ArrayLike, weights: npt.ArrayLike) -> tuple[npt.NDArray[np.intp], Weights]:
        """The posting lists of the query's terms; terms without rows are dropped."""
        wanted, factors = _check(terms, weights, "query")
        if not self._terms.size:
            return np.zeros(0, np.intp), np.zeros(0, np.float32)
        at = np.minimum(np.searchsorted(self._terms, wanted), self._terms.size - 1)
        there = self._terms[at] == wanted
        return at[there], factors[there]


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
