"""BM25 over posting lists.

For a query's terms q (with repetitions) and a passage D of length ``|D|``::

    score(D) = Σ_q idf(q) · f · (k1 + 1) / (f + k1 · (1 - b + b · |D| / avgdl))
    idf(q)   = ln(1 + (N - n + 1/2) / (n + 1/2))

where f is the frequency of q in D, n the number of passages with q, N the number of all passages, and avgdl
the mean length. Lengths are in terms (after stop words; an identifier counts with its parts). This idf is
never negative, so a term in most passages still counts a little.

Everything except the query is known beforehand, so each posting stores its final summand, as in bm25s (Lù,
2024); a search adds up a few lists. bm25s itself is the oracle of the tests and not the engine: it imports
SciPy and, if present, numba and JAX (about a second), fills an array over all passages for every query, and
masks by multiplying scores. The posting lists here are those of :mod:`dartboard.lexical.postings`, shared
with learned sparse vectors.
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
    """One summand of a passage's score, with its factors."""

    term: str
    tf: int
    df: int
    idf: float
    length: int
    score: float


class BM25Index:
    """BM25 over passages, numbered (rows) in the given order. Immutable.

    Hand-written: bm25s imports SciPy and fills an array over all passages for every query (see above).
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
        """Index the texts; a text without terms (empty, only stop words) keeps its row and is never found.

        Args:
            texts: The passages; their order gives the rows.
            k1: How much repeated occurrences of a term add, >= 0.
            b: How much long passages are penalised, 0 to 1.
            analyzer: Splits texts into terms.
            progress: Called with the number of finished texts and of all texts.

        Raises:
            ConfigError: k1 or b is out of range.
            InvalidInputError: a text is not a string.

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
        """Rows and scores > 0, best first, ties by lower row; ``mask`` selects the allowed rows."""
        return self._postings.top(*self._query(query), k, mask)

    def scores(self, query: str, mask: Mask | None = None) -> Weights:
        """The score of every passage, ``(n,)`` float32; 0 without shared terms or where the mask is False."""
        return self._postings.scores(*self._query(query), mask)

    def explain(self, query: str, row: int) -> list[TermScore]:
        """The summands of a passage's score, one per distinct term of the query, in its order."""
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
        """Write the index to a folder, atomically replacing an existing one."""
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
        """Load and verify a saved index; by default its arrays are memory-mapped."""
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
            raise StoreFormatError(f"{folder} is not a complete index: {error}. Build it again") from error
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
        """The query's known terms, and how often each occurs."""
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
