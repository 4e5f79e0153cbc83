"""A run laid against the judgements: where in each list something counts, as flat arrays.

Most of what a run returns is not relevant. One pass over the lists keeps the hits alone, and every measure
is then a few NumPy calls over the hits of all queries together.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import compress
from typing import cast

import numpy as np
import numpy.typing as npt

from dartboard.evaluation.content import Content
from dartboard.evaluation.judgements import Judgements
from dartboard.evaluation.placing import Rankings, places_by_score
from dartboard.evaluation.runs import Run, ranked
from dartboard.types import FloatArray, IntArray


@dataclass(frozen=True, kw_only=True)
class Assessed:
    """``query`` and ``rank`` (from 0) of each hit, ``(h,)``, by query and then by rank; ``bases`` name them.

    ``lists`` are the picks of every judged query; those of a query that the run lacks are empty.
    """

    judgements: Judgements
    lists: Sequence[Sequence[str]]
    query: IntArray
    rank: IntArray
    bases: Sequence[str]
    content: Content | None = None

    def __len__(self) -> int:
        return len(self.lists)

    @cached_property
    def lengths(self) -> IntArray:
        """``(Q,)`` picks."""
        lists = self.lists.rankings if isinstance(self.lists, Rankings) else self.lists
        return np.array([len(picks) for picks in lists], dtype=np.intp)

    @cached_property
    def grade(self) -> FloatArray:
        """``(h,)`` the grade of each hit; 0 for what only a facet or a kernel names."""
        grades = self.judgements.grades
        return np.array(
            [grades[q].get(base, 0.0) for q, base in zip(self.query.tolist(), self.bases, strict=True)]
        )

    @cached_property
    def plain(self) -> "Assessed":
        """The same run by chunk ids, no chunk a copy of another: what the plain measures are about."""
        judgements = self.judgements
        if not judgements.grouped:
            return self
        run = dict(zip(judgements.query_ids, self.lists, strict=True))
        return assess(run, judgements.plain, self.content)

    @cached_property
    def set_hits(self) -> tuple[IntArray, IntArray]:
        """Hits and the sufficient sets that they are in, one entry a pair: place in the flat arrays, set."""
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
        """Hits and the facets that they cover, one entry a pair: place in the flat arrays, facet."""
        covers = self.judgements.facets_of
        pairs = [
            (h, facet)
            for h, (q, base) in enumerate(zip(self.query.tolist(), self.bases, strict=True))
            for facet in covers[q].get(base, ())
        ]
        flat = np.array(pairs, dtype=np.intp).reshape(-1, 2)
        return flat[:, 0], flat[:, 1]

    def count(self, hits: IntArray, weights: FloatArray | None = None) -> FloatArray:
        """``(Q,)`` hits of each query, or the sum of their weights."""
        return np.bincount(self.query[hits], weights, minlength=len(self)).astype(np.float64)

    def relevant_within(self, k: int | None) -> IntArray:
        """The relevant hits among the first k, as places in the flat arrays."""
        return np.flatnonzero((self.grade > 0) & self.within(k))

    def within(self, k: int | None) -> npt.NDArray[np.bool_]:
        """``(h,)`` which hits are among the first k of their list."""
        return self.rank < (np.iinfo(np.intp).max if k is None else k)


def assess(run: Run, judgements: Judgements, content: Content | None = None) -> Assessed:
    """Lay a run against the judgements."""
    base_of = judgements.base_of
    if not base_of:
        rankings = [run.get(query_id, {}) for query_id in judgements.query_ids]
        if all(isinstance(ranking, Mapping) for ranking in rankings):
            query, rank, hits = places_by_score(cast(list[Mapping[str, float]], rankings), judgements.known)
            return Assessed(
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
    return Assessed(
        judgements=judgements,
        lists=lists,
        query=np.repeat(np.arange(len(lists)), counts),
        rank=np.array(ranks, dtype=np.intp),
        bases=bases,
        content=content,
    )


def _first_places(names: Sequence[str], wanted: frozenset[str]) -> list[int]:
    """Where each wanted name stands first, in order."""
    if not wanted:
        return []
    places = list(compress(range(len(names)), map(wanted.__contains__, names)))
    if len(places) == len(wanted):
        return places
    return sorted({names[place]: place for place in reversed(places)}.values())
