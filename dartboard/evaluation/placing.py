"""Where hits stand in rankings by score, without ranking anything else.

A passage stands as many places down as others have higher scores. Few passages of a ranking count, so that
counting is quicker than sorting: all scores of all queries are one array, and every hit is compared with the
part that is its query's.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import overload

import numpy as np

from dartboard.evaluation.runs import Ranking, ranked
from dartboard.types import FloatArray, IntArray

_AT_ONCE = 2_000_000
"""So many scores are compared at once at most."""


class Rankings(Sequence[Sequence[str]]):
    """Rankings as ids from the best down, put in order when somebody asks."""

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
    """Query, rank from 0 and name of each wanted passage that a ranking has, by query and then by rank."""
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
    """How many scores of its query exceed each hit's, and the hits whose score somebody else has, too."""
    starts = np.concatenate(([0], np.cumsum(lengths)))
    rank, equal = np.empty(len(query), dtype=np.intp), np.empty(len(query), dtype=np.intp)
    step = max(1, _AT_ONCE // max(1, int(lengths.max(initial=1))))
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
