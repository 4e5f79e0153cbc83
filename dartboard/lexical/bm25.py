"""BM25 over posting lists.

For a query's terms q, each as often as it occurs in the query, and a passage D of length ``|D|``::

    score(D) = Σ_q idf(q) · f · (k1 + 1) / (f + k1 · (1 - b + b · |D| / avgdl))
    idf(q)   = ln(1 + (N - n + 1/2) / (n + 1/2))

with f the times that q occurs in D, n the passages that hold q, of N, lengths in terms (after stop words;
an identifier counts with its parts), and avgdl their mean. This idf is never negative, so a term that
most passages hold still counts for a little.

Everything but the query is known beforehand, so each posting keeps its finished summand, as bm25s does it
(Lù, 2024); a search adds up a few lists. bm25s itself is the oracle of the tests and not the engine: it
imports SciPy and, where present, numba and JAX (about a second), fills an array over all passages for
every query, and masks by multiplying scores. Here the lists are those of
:mod:`dartboard.lexical.postings`, shared with learned sparse vectors.
"""

import math
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any, TypedDict

import numpy as np
import numpy.typing as npt

from dartboard.errors import ConfigError, InvalidInputError, StoreFormatError
from dartboard.lexical.analysis import Analyzer
from dartboard.lexical.postings import Mask, Postings, Weights
from dartboard.lexical.saved_arrays import load_arrays, save_arrays
from dartboard.lexical.term_counts import Progress, count_terms

_KIND = "bm25"


class TermScore(TypedDict):
    """One summand of a passage's score, with all that goes into it."""

    term: str
    tf: int
    df: int
    idf: float
    length: int
    score: float


class BM25Index:
    """BM25 over the terms of passages, by row in the order they were given. It never changes.

    Written by hand: bm25s imports SciPy and fills an array over all passages for every query (see above).
    """

    def __init__(
        self,
        *,
        vocabulary: dict[str, int],
        postings: Postings,
        counts: npt.NDArray[np.unsignedinteger[Any]],
        lengths: npt.NDArray[np.int32],
        k1: float,
        b: float,
        analyzer: Analyzer,
    ) -> None:
        self.k1, self.b, self.analyzer = k1, b, analyzer
        self._vocabulary = vocabulary
        self._postings = postings
        self._counts = counts
        self._lengths = lengths

    @classmethod
    def build(
        cls,
        texts: Iterable[str],
        *,
        k1: float = 1.2,
        b: float = 0.75,
        analyzer: Analyzer | None = None,
        progress: Progress | None = None,
    ) -> "BM25Index":
        """An index of the texts; one without terms (empty, stop words alone) keeps its row, never found.

        Args:
            texts: the passages; their order gives the rows.
            k1: how much a further occurrence of a term adds, >= 0.
            b: how much long passages are held back, 0 to 1.
            analyzer: how texts become terms.
            progress: called with how many texts are done, of how many.

        Raises:
            ConfigError: k1 or b is out of range.
            InvalidInputError: a text is no string.

        Example:
            >>> BM25Index.build(["green tea", "black tea"]).top("green", 1)
            (array([0]), array([0.6931472], dtype=float32))
        """
        _check_parameters(k1, b)
        analyzer = analyzer or Analyzer()
        vocabulary, keys, tf, lengths = count_terms(texts, analyzer, progress)
        terms = (keys >> 32).astype(np.int32)
        rows = (keys & 0xFFFFFFFF).astype(np.int32)
        df = np.bincount(terms, minlength=len(vocabulary))
        starts = np.concatenate([[0], np.cumsum(df)]).astype(np.int64)
        mean = lengths.mean() if lengths.any() else 1.0
        norms = k1 * (1 - b + b * lengths / mean)
        impacts = (_idf(df, len(lengths))[terms] * (tf * (k1 + 1) / (tf + norms[rows]))).astype(np.float32)
        return cls(
            vocabulary=vocabulary,
            postings=Postings.build(len(lengths), starts, rows, impacts),
            counts=tf.astype(np.min_scalar_type(int(tf.max(initial=0)))),
            lengths=lengths,
            k1=k1,
            b=b,
            analyzer=analyzer,
        )

    def __len__(self) -> int:
        return self._postings.size

    def top(self, query: str, k: int, mask: Mask | None = None) -> tuple[npt.NDArray[np.intp], Weights]:
        """Rows and scores > 0, best first, equal scores by lower row; ``mask`` says which rows may."""
        return self._postings.top(*self._query(query), k, mask)

    def scores(self, query: str, mask: Mask | None = None) -> Weights:
        """The score of every passage, ``(n,)`` float32; 0 where no term is shared or the mask says no."""
        return self._postings.scores(*self._query(query), mask)

    def explain(self, query: str, row: int) -> list[TermScore]:
        """The summands of a passage's score, one for each distinct term of the query, in its order."""
        if not 0 <= row < len(self):
            raise InvalidInputError(f"row must be in 0 … {len(self) - 1}, got {row}")
        return [
            self._explain(term, times, row) for term, times in Counter(self.analyzer.terms(query)).items()
        ]

    def _explain(self, term: str, times: int, row: int) -> TermScore:
        length = int(self._lengths[row])
        at = self._vocabulary.get(term)
        if at is None:
            idf = float(_idf(np.zeros(1), len(self))[0])
            return TermScore(term=term, tf=0, df=0, idf=idf, length=length, score=0.0)
        df = int(self._postings.starts[at + 1] - self._postings.starts[at])
        where = self._postings.position(at, row)
        return TermScore(
            term=term,
            tf=0 if where is None else int(self._counts[where]),
            df=df,
            idf=float(_idf(np.array([df]), len(self))[0]),
            length=length,
            score=0.0 if where is None else times * float(self._postings.weights[where]),
        )

    def save(self, folder: str | Path) -> None:
        """Write the index to a folder, replacing the one that is there in one step."""
        blob = np.frombuffer("\n".join(self._vocabulary).encode(), dtype=np.uint8)
        header = {
            "size": len(self),
            "terms": len(self._vocabulary),
            "k1": self.k1,
            "b": self.b,
            "analyzer": self.analyzer.to_json(),
        }
        other = {"counts": self._counts, "lengths": self._lengths, "vocabulary": blob}
        save_arrays(folder, _KIND, header, {**self._postings.arrays(), **other})

    @classmethod
    def load(cls, folder: str | Path, mmap: bool = True) -> "BM25Index":
        """The index that was saved, checked; by default its arrays stay on disk until they are touched."""
        header, arrays = load_arrays(folder, _KIND, mmap=mmap)
        try:
            counts, lengths = arrays.pop("counts"), arrays.pop("lengths")
            blob = arrays.pop("vocabulary")
            names = blob.tobytes().decode().split("\n") if blob.size else []
            index = cls(
                vocabulary={term: at for at, term in enumerate(names)},
                postings=Postings(int(header["size"]), **arrays),
                counts=counts,
                lengths=lengths,
                k1=float(header["k1"]),
                b=float(header["b"]),
                analyzer=Analyzer.from_json(header["analyzer"]),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise StoreFormatError(f"{folder} is no complete index: {error}. Build it again") from error
        if fault := index._fault():
            raise StoreFormatError(f"the index in {folder} holds {fault}. Build it again")
        return index

    def _fault(self) -> str | None:
        if fault := self._postings.fault():
            return fault
        if len(self._vocabulary) != self._postings.peaks.size:
            return "a vocabulary that does not match its lists"
        if self._counts.shape != self._postings.rows.shape or self._counts.dtype.kind != "u":
            return "counts that do not match its lists"
        if self._lengths.shape != (len(self),) or self._lengths.dtype != np.int32:
            return "lengths that do not match its rows"
        return None

    def _query(self, query: str) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.float64]]:
        """The query's terms that the index knows, and how often each occurs."""
        known = Counter(
            at for term in self.analyzer.terms(query) if (at := self._vocabulary.get(term)) is not None
        )
        return np.array(list(known), dtype=np.intp), np.array(list(known.values()), dtype=np.float64)


def _check_parameters(k1: float, b: float) -> None:
    if not (math.isfinite(k1) and k1 >= 0):
        raise ConfigError(f"k1 must be a finite number >= 0 (1.2 is usual), got {k1}")
    if not 0 <= b <= 1:
        raise ConfigError(f"b must be in [0, 1] (0.75 is usual), got {b}")


def _idf(df: npt.NDArray[Any], total: int) -> npt.NDArray[np.float64]:
    return np.log1p((total - df + 0.5) / (df + 0.5))
