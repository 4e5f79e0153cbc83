"""Which rows contain which terms, how often: what BM25 needs to know of some passages."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from dartboard.lexical.analysis import Analyzer
from dartboard.lexical.postings import Mask, Rows
from dartboard.lexical.term_counts import Keys, Progress, count_terms


@dataclass(frozen=True, eq=False)
class TermTable:
    """``rows[starts[t]:starts[t + 1]]`` contain ``terms[t]``, ``counts`` times.

    A row is ``lengths`` terms long; ``most[t]`` is the largest count of a term, ``shortest[t]`` the smallest
    length of its rows. Nothing here depends on other passages, so a table stays valid when others are added
    or deleted.
    """

    terms: Sequence[str]
    starts: npt.NDArray[np.int64]
    rows: Rows
    counts: npt.NDArray[np.unsignedinteger[Any]]
    lengths: npt.NDArray[np.int32]
    most: npt.NDArray[np.unsignedinteger[Any]]
    shortest: npt.NDArray[np.int32]

    @classmethod
    def count(cls, texts: Iterable[str], analyzer: Analyzer, progress: Progress | None = None) -> "TermTable":
        """Count the terms of texts; their order gives the rows."""
        vocabulary, keys, counts, lengths = count_terms(texts, analyzer, progress)
        return cls._of(list(vocabulary), keys, counts, lengths)

    @classmethod
    def join(cls, tables: Sequence["TermTable"], alive: Sequence[Mask]) -> "TermTable":
        """One table for several, without the rows that are not alive."""
        vocabulary: dict[str, int] = {}
        keys, counts, lengths, first = [], [], [], 0
        for table, kept in zip(tables, alive, strict=True):
            numbers = np.fromiter(
                (vocabulary.setdefault(term, len(vocabulary)) for term in table.terms), np.int64
            )
            terms = np.repeat(numbers, np.diff(table.starts))
            moved = first + np.cumsum(kept) - 1
            there = kept[table.rows]
            keys.append(terms[there] << 32 | moved[table.rows[there]])
            counts.append(table.counts[there].astype(np.int64))
            lengths.append(table.lengths[kept])
            first += lengths[-1].size
        all_keys, all_counts = np.concatenate(keys), np.concatenate(counts)
        order = np.argsort(all_keys, kind="stable")
        return cls._of(list(vocabulary), all_keys[order], all_counts[order], np.concatenate(lengths))

    @classmethod
    def _of(cls, vocabulary: Sequence[str], keys: Keys, counts: Any, lengths: Any) -> "TermTable":
        """A table from sorted keys ``term << 32 | row``; terms without rows are left out."""
        numbers, rows = keys >> 32, (keys & 0xFFFFFFFF).astype(np.int32)
        starts = np.flatnonzero(np.diff(numbers, prepend=-1))
        counts = counts.astype(np.min_scalar_type(int(counts.max(initial=0))))
        lengths = lengths.astype(np.int32)
        return cls(
            [vocabulary[number] for number in numbers[starts].tolist()],
            np.append(starts, keys.size).astype(np.int64),
            rows,
            counts,
            lengths,
            np.maximum.reduceat(counts, starts) if starts.size else counts,
            np.minimum.reduceat(lengths[rows], starts) if starts.size else lengths[:0],
        )

    @cached_property
    def numbers(self) -> dict[str, int]:
        """The number of each term."""
        return {term: number for number, term in enumerate(self.terms)}

    def part(self, number: int | None) -> slice:
        """Where the list of a term stands in ``rows`` and ``counts``; an empty slice for None."""
        if number is None:
            return slice(0, 0)
        return slice(int(self.starts[number]), int(self.starts[number + 1]))
