"""A run matched with the judgements: the hits of every list, as flat arrays.

Most results of a run are not relevant. One pass over the lists keeps only the hits, and every measure is then
a few NumPy calls over the hits of all queries.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import compress
from typing import Self

import numpy as np
import numpy.typing as npt

from dartboard.evaluation.judgements import Content, Judgements
from dartboard.types import FloatArray, IntArray

Ranking = Sequence[str] | Mapping[str, float]
Run = Mapping[str, Ranking]
"""For each query a list, which is a ranking, or a mapping of ids to scores.

A mapping is sorted by decreasing score, **ties by decreasing id**, as in trec_eval, so that published
figures are reproduced. :mod:`dartboard.datasets.trec` reads and writes the files.
"""


def ranked(ranking: Ranking) -> Sequence[str]:
    """Ids, best first; ties by decreasing id, as in trec_eval."""
    if not isinstance(ranking, Mapping):
        return ranking
    names = list(ranking)
    scores = np.fromiter(ranking.values(), dtype=np.float64, count=len(names))
    order = scores.argsort()[::-1]
    ordered = scores[order]
    if (ordered[1:] == ordered[:-1]).any():
        return sorted(sorted(names, reverse=True), key=ranking.__getitem__, reverse=True)
    return [names[place] for place in order.tolist()]


@dataclass(frozen=True, kw_only=True)
class JudgedRun:
    """``query`` and ``rank`` (from 0) of each hit, ``(h,)``, sorted by query and rank, with their ``bases``.

    ``lists`` are the picks of every judged query; empty if the run lacks the query.
    """

    judgements: Judgements
    lists: Sequence[Sequence[str]]
    query: IntArray
    rank: IntArray
    bases: Sequence[str]
    content: Content | None = None

    @classmethod
    def of(cls, run: Run, judgements: Judgements, content: Content | None = None) -> Self:
        """Match a run with the judgements.

        Args:
            run: For each query id, chunk ids, best first, or ids with scores.
            judgements: What is relevant.
            content: Vectors and clusters of the chunks, for metrics that need them.
        """
        base_of = judgements.base_of
        lists: list[Sequence[str]] = []
        counts, ranks, bases = [], [], []
        for query_id, known in zip(judgements.query_ids, judgements.known, strict=True):
            picks = ranked(run.get(query_id, ()))
            lists.append(picks)
            names = [base_of.get(name, name) for name in picks] if base_of else picks
            found = _first_places(names, known.intersection(names))
            counts.append(len(found))
            ranks += found
            bases += [names[rank] for rank in found]
        return cls(
            judgements=judgements,
            lists=lists,
            query=np.repeat(np.arange(len(lists)), counts),
            rank=np.array(ranks, dtype=np.intp),
            bases=bases,
            content=content,
        )

    def __len__(self) -> int:
        return len(self.lists)

    @cached_property
    def lengths(self) -> IntArray:
        """``(Q,)`` picks."""
        return np.array([len(picks) for picks in self.lists], dtype=np.intp)

    @cached_property
    def grade(self) -> FloatArray:
        """``(h,)``: the grade of each hit; 0 if only a facet or a kernel names it."""
        grades = self.judgements.grades
        return np.array(
            [grades[q].get(base, 0.0) for q, base in zip(self.query.tolist(), self.bases, strict=True)]
        )

    @cached_property
    def plain(self) -> Self:
        """The same run by chunk ids, for the plain measures: copies count as different chunks."""
        judgements = self.judgements
        if not judgements.grouped:
            return self
        run = dict(zip(judgements.query_ids, self.lists, strict=True))
        return self.of(run, judgements.plain, self.content)

    @cached_property
    def set_hits(self) -> tuple[IntArray, IntArray]:
        """Hits and the sufficient sets that contain them, one entry per pair: index of the hit, set."""
        sets = self.judgements.sufficient
        first = np.searchsorted(self.judgements.set_queries, np.arange(len(sets)))
        pairs = [
            (h, first[q] + number)
            for h, (q, base) in enumerate(zip(self.query.tolist(), self.bases, strict=True))
            for number, members in enumerate(sets[q])
            if base in members
        ]
        flat = np.array(pairs, dtype=np.intp).reshape(-1, 2)
        return flat[:, 0], flat[:, 1]

    @cached_property
    def facet_hits(self) -> tuple[IntArray, IntArray]:
        """Hits and the facets that they cover, one entry per pair: index of the hit, facet."""
        covers = self.judgements.facets_of
        pairs = [
            (h, facet)
            for h, (q, base) in enumerate(zip(self.query.tolist(), self.bases, strict=True))
            for facet in covers[q].get(base, ())
        ]
        flat = np.array(pairs, dtype=np.intp).reshape(-1, 2)
        return flat[:, 0], flat[:, 1]

    def count(self, hits: IntArray, weights: FloatArray | None = None) -> FloatArray:
        """``(Q,)``: hits of each query, or the sum of their weights."""
        return np.bincount(self.query[hits], weights, minlength=len(self)).astype(np.float64)

    def relevant_within(self, k: int | None) -> IntArray:
        """The indices of the hits among the first k whose grade counts as relevant."""
        return np.flatnonzero((self.grade >= self.judgements.least_grade) & self.within(k))

    def graded_within(self, k: int | None) -> IntArray:
        """The indices of the hits among the first k with any grade."""
        return np.flatnonzero((self.grade > 0) & self.within(k))

    def within(self, k: int | None) -> npt.NDArray[np.bool_]:
        """``(h,)``: which hits are among the first k of their list."""
        return self.rank < (np.iinfo(np.intp).max if k is None else k)


def _first_places(names: Sequence[str], wanted: frozenset[str]) -> list[int]:
    """The first index of each wanted name, in order."""
    if not wanted:
        return []
    places = list(compress(range(len(names)), map(wanted.__contains__, names)))
    if len(places) == len(wanted):
        return places
    return sorted({names[place]: place for place in reversed(places)}.values())
