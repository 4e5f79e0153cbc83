"""A run matched with the judgements: the hits of every list, as flat arrays.

Most results of a run are not relevant. One pass over the lists keeps only the hits, and every measure is then
a few NumPy calls over the hits of all queries.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, compress
from typing import Self, cast, overload

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
        if not base_of:
            rankings = [run.get(query_id, {}) for query_id in judgements.query_ids]
            if all(isinstance(ranking, Mapping) for ranking in rankings):
                query, rank, hits = places_by_score(
                    cast(list[Mapping[str, float]], rankings), judgements.known
                )
                return cls(
                    judgements=judgements,
                    lists=Rankings(rankings),
                    query=query,
                    rank=rank,
                    bases=hits,
                    content=content,
                )
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
        lists = self.lists.rankings if isinstance(self.lists, Rankings) else self.lists
        return np.array([len(picks) for picks in lists], dtype=np.intp)

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
        """The indices of the relevant hits among the first k."""
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


_SCORES_PER_BLOCK = 2_000_000
"""Scores that are compared at a time, so that a block fits into memory."""


class Rankings(Sequence[Sequence[str]]):
    """Rankings as ids, best first, sorted on demand."""

    def __init__(self, rankings: Sequence[Ranking]) -> None:
        self.rankings = rankings
        self._lists: dict[int, Sequence[str]] = {}

    def __len__(self) -> int:
        return len(self.rankings)

    @overload
    def __getitem__(self, place: int) -> Sequence[str]: ...
    @overload
    def __getitem__(self, place: slice) -> list[Sequence[str]]: ...
    def __getitem__(self, place: int | slice) -> Sequence[str] | list[Sequence[str]]:
        if isinstance(place, slice):
            return [self[one] for one in range(*place.indices(len(self)))]
        if not -len(self) <= place < len(self):
            raise IndexError(place)
        place %= len(self)
        if place not in self._lists:
            self._lists[place] = ranked(self.rankings[place])
        return self._lists[place]

    def __iter__(self) -> Iterator[Sequence[str]]:
        return (self[place] for place in range(len(self)))


def places_by_score(
    rankings: Sequence[Mapping[str, float]], wanted: Sequence[frozenset[str]]
) -> tuple[IntArray, IntArray, list[str]]:
    """Query, rank from 0 and name of each wanted passage in a ranking, sorted by query and rank.

    A passage's rank is the number of higher scores. Few passages of a ranking count, so counting is faster
    than sorting: every hit is compared with the scores of its query.
    """
    lengths = np.fromiter(map(len, rankings), dtype=np.intp, count=len(rankings))
    scores = np.fromiter(
        chain.from_iterable(ranking.values() for ranking in rankings), dtype=np.float64, count=lengths.sum()
    )
    found = [
        (place, name, ranking[name])
        for place, (ranking, names) in enumerate(zip(rankings, wanted, strict=True))
        for name in (names if len(names) < len(ranking) else names.intersection(ranking))
        if name in ranking
    ]
    query = np.array([place for place, _, _ in found], dtype=np.intp)
    own = np.array([score for _, _, score in found], dtype=np.float64)
    names = [name for _, name, _ in found]
    rank, tied = _counts(scores, lengths, query, own)
    for place in np.unique(query[tied]).tolist():
        listed = {name: there for there, name in enumerate(ranked(rankings[place]))}
        for hit in np.flatnonzero(query == place).tolist():
            rank[hit] = listed[names[hit]]
    order = np.lexsort((rank, query))
    return query[order], rank[order], [names[hit] for hit in order.tolist()]


def _counts(
    scores: FloatArray, lengths: IntArray, query: IntArray, own: FloatArray
) -> tuple[IntArray, IntArray]:
    """How many scores of its query exceed each hit's, and which hits have a tied score."""
    starts = np.concatenate(([0], np.cumsum(lengths)))
    rank, equal = np.empty(len(query), dtype=np.intp), np.empty(len(query), dtype=np.intp)
    step = max(1, _SCORES_PER_BLOCK // max(1, int(lengths.max(initial=1))))
    for start in range(0, len(query), step):
        some = slice(start, start + step)
        sizes = lengths[query[some]]
        edges = np.concatenate(([0], np.cumsum(sizes)))
        inside = np.arange(edges[-1]) - np.repeat(edges[:-1], sizes)
        others = scores[np.repeat(starts[query[some]], sizes) + inside]
        mine = np.repeat(own[some], sizes)
        rank[some] = np.add.reduceat(others > mine, edges[:-1], dtype=np.intp)
        equal[some] = np.add.reduceat(others == mine, edges[:-1], dtype=np.intp)
    return rank, np.flatnonzero(equal != 1)
