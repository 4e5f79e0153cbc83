"""BM25 over passages that may be added and deleted.

For a query's terms q (with repetitions) and a passage D of length ``|D|``::

    score(D) = Σ_q idf(q) · f · (k1 + 1) / (f + k1 · (1 - b + b · |D| / avgdl))
    idf(q)   = ln(1 + (N - n + 1/2) / (n + 1/2))

where f is the frequency of q in D, n the number of passages with q, N the number of all passages, and avgdl
the mean length. Lengths are in terms (after stop words; an identifier counts with its parts). This idf is
never negative, so a term in most passages still counts a little.

An index holds counts only; idf and mean length are those of the passages that are alive at the query. So a
write changes no stored number: new passages become one more table of terms, deleted ones are masked.

Hand-written: bm25s imports SciPy and, if present, numba and JAX (about a second), fills an array over all
passages for every query, and is built anew after every write. It is the oracle of the tests.
"""

import math
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TypedDict

import numpy as np
import numpy.typing as npt

from dartboard.errors import ConfigError, InvalidInputError
from dartboard.lexical.analysis import Analyzer
from dartboard.lexical.postings import Mask, PostingList, Rows, Scorer, Sums, Weights, position, ranked
from dartboard.lexical.term_counts import Progress
from dartboard.lexical.term_table import TermTable

_MOST_TABLES = 5
"""With more tables, all but the first are joined."""


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

    Args:
        tables: The terms of consecutive rows.
        alive: ``(n,)`` bool: the rows that count and can be found; None for all.
        k1: How much repeated occurrences of a term add, >= 0.
        b: How much long passages are penalised, 0 to 1.
        analyzer: Splits texts into terms.

    Raises:
        ConfigError: k1 or b is out of range.
    """

    def __init__(
        self,
        tables: Iterable[TermTable],
        *,
        alive: Mask | None = None,
        k1: float = 1.2,
        b: float = 0.75,
        analyzer: Analyzer | None = None,
    ) -> None:
        _check_parameters(k1, b)
        self.k1, self.b, self.analyzer = k1, b, analyzer or Analyzer()
        self.tables = tuple(tables)
        self.alive = alive
        self._firsts = np.cumsum([0, *(table.lengths.size for table in self.tables)]).tolist()
        lengths = np.concatenate([np.zeros(0, np.int32), *(table.lengths for table in self.tables)])
        counted = lengths if alive is None else lengths[alive]
        self._count = counted.size
        self._mean = float(counted.mean()) if counted.any() else 1.0
        self._norms = (k1 * (1 - b + b * lengths / self._mean)).astype(np.float32)
        self._scorers = [Scorer(table.lengths.size) for table in self.tables]

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
        return cls([TermTable.count(texts, analyzer, progress)], k1=k1, b=b, analyzer=analyzer)

    def __len__(self) -> int:
        return int(self._firsts[-1])

    def top(self, query: str, k: int, mask: Mask | None = None) -> tuple[npt.NDArray[np.intp], Weights]:
        """Rows and scores > 0, best first, ties by lower row; ``mask`` selects the allowed rows."""
        return ranked(*self.best(query, k, mask), k)

    def best(self, query: str, k: int, mask: Mask | None = None) -> tuple[Rows, Weights]:
        """Like :meth:`top`, in any order and with all rows that equal the k-th."""
        found = [
            (first + rows, scores)
            for first, scorer, lists, part in self._parts(query, mask)
            for rows, scores in [scorer.best(lists, k, part)]
        ]
        return np.concatenate([rows for rows, _ in found]), np.concatenate([scores for _, scores in found])

    def scores(self, query: str, mask: Mask | None = None) -> Weights:
        """The score of every passage, ``(n,)`` float32; 0 without shared terms or where the mask is False."""
        return np.concatenate(
            [scorer.all_scores(lists, part) for _, scorer, lists, part in self._parts(query, mask)]
        )

    def explain(self, query: str, row: int) -> list[TermScore]:
        """The summands of a passage's score, one per distinct term of the query, in its order."""
        if not 0 <= row < len(self):
            raise InvalidInputError(f"row must be in 0 … {len(self) - 1}, got {row}")
        table = int(np.searchsorted(self._firsts, row, side="right")) - 1
        return [
            self._explain(term, times, table, row - self._firsts[table])
            for term, times in Counter(self.analyzer.terms(query)).items()
        ]

    def followed_by(self, texts: Iterable[str], alive: Mask | None) -> "BM25Index":
        """This index with more rows; ``alive`` is for all rows, old and new.

        Rows that are not alive stay, and keep their numbers, until :meth:`folded`.
        """
        new = TermTable.count(texts, self.analyzer)
        tables = (*self.tables, new) if new.lengths.size or not self.tables else self.tables
        if len(tables) > _MOST_TABLES:
            every = [np.ones(table.lengths.size, bool) for table in tables[1:]]
            tables = (tables[0], TermTable.join(tables[1:], every))
        return BM25Index(tables, alive=alive, k1=self.k1, b=self.b, analyzer=self.analyzer)

    def folded(self) -> "BM25Index":
        """The same passages in one table, without the rows that are not alive."""
        alive = np.ones(len(self), bool) if self.alive is None else self.alive
        joined = TermTable.join(self.tables, np.split(alive, self._firsts[1:-1]))
        return BM25Index([joined], k1=self.k1, b=self.b, analyzer=self.analyzer)

    def _explain(self, term: str, times: int, table: int, row: int) -> TermScore:
        df = self._frequency(term)
        idf = float(_idf(df, self._count))
        length = int(self.tables[table].lengths[row])
        part = self.tables[table].part(self.tables[table].numbers.get(term))
        at = position(self.tables[table].rows[part], row)
        if at is None:
            return TermScore(term=term, tf=0, df=df, idf=idf, length=length, score=0.0)
        tf = int(self.tables[table].counts[part][at])
        score = times * idf * tf * (self.k1 + 1) / (tf + self._norms[self._firsts[table] + row])
        return TermScore(term=term, tf=tf, df=df, idf=idf, length=length, score=float(score))

    def _frequency(self, term: str) -> int:
        """In how many passages that are alive a term occurs."""
        total = 0
        for first, table in zip(self._firsts, self.tables, strict=False):
            rows = table.rows[table.part(table.numbers.get(term))]
            total += rows.size if self.alive is None else int(np.count_nonzero(self.alive[first + rows]))
        return total

    def _parts(
        self, query: str, mask: Mask | None
    ) -> Iterator[tuple[int, Scorer, list[PostingList], Mask | None]]:
        """For each table its first row, what adds up its lists, the query's lists, and the allowed rows.

        All tables add up the terms in one order, so that equal passages get equal scores in each.
        """
        if self.alive is not None:
            mask = self.alive if mask is None else mask & self.alive
        asked = Counter(self.analyzer.terms(query))
        factors = {term: times * _idf(self._frequency(term), self._count) for term, times in asked.items()}
        order = sorted(asked, key=lambda term: (-factors[term], term))
        for first, table, scorer in zip(self._firsts, self.tables, self._scorers, strict=False):
            last = first + table.lengths.size
            lists = [
                self._list(table, self._norms[first:last], table.numbers[term], factors[term])
                for term in order
                if term in table.numbers
            ]
            yield first, scorer, lists, None if mask is None else mask[first:last]

    def _list(self, table: TermTable, norms: Weights, number: int, factor: float) -> PostingList:
        """The posting list of a term; its bound is what the shortest row with the largest count would get."""
        rows, counts = table.rows[table.part(number)], table.counts[table.part(number)]
        scale = factor * (self.k1 + 1)
        most, shortest = float(table.most[number]), float(table.shortest[number])
        bound = scale * most / (most + self.k1 * (1 - self.b + self.b * shortest / self._mean))

        def weigh(at: npt.NDArray[np.intp] | None) -> Sums:
            some, tf = (rows, counts) if at is None else (rows[at], counts[at])
            found = tf.astype(np.float32)
            return np.multiply(found / (found + norms[some]), scale, dtype=np.float64)

        return PostingList(bound, rows, weigh)


def _check_parameters(k1: float, b: float) -> None:
    if not (math.isfinite(k1) and k1 >= 0):
        raise ConfigError(f"k1 must be a finite number >= 0 (1.2 is usual), got {k1}")
    if not 0 <= b <= 1:
        raise ConfigError(f"b must be in [0, 1] (0.75 is usual), got {b}")


def _idf(df: int, total: int) -> float:
    return math.log1p((total - df + 0.5) / (df + 0.5))
