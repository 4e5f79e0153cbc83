"""A query's neighbourhood: who stands alone there, and who is a copy of whom.

Copies are known by their words where these are known (:mod:`dartboard.selection.wording`), else by how all
lie together (:mod:`dartboard.selection.copies`). :mod:`dartboard.selection.bandwidth` says what follows.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from dartboard.selection.copies import crowded, near_copies
from dartboard.selection.kernels import Distance, distances
from dartboard.selection.wording import Texts, compare, repeated, telling
from dartboard.types import FloatArray, IntArray

_DIVISOR = 4.0
"""What the query may mean is judged at σ = median / 4, whatever σ becomes."""

SAMPLE = 256
"""Of larger pools, so many candidates are looked at."""

NEAR, FAR = 0.25, 0.35
"""Neighbours up to so many medians away are near by; from there on a candidate stands alone."""
SEPARATE, TOGETHER = 0.15, 0.25
"""Two throws at what the query may mean hit neighbours with this probability where it is crowded."""
COPIED = ((4.0, 0.25), (20.0, 0.5))
"""Copies by words are set aside where, at σ = median over the first, this share of probability has one."""
ONE_TOPIC = 0.9
"""A group by distances with more of the probability is a topic, whose passages the query asks for."""

_Number = TypeVar("_Number", float, FloatArray)


class Words(NamedTuple):
    """What words say about candidates, in the order in which these were read, the most relevant first."""

    order: IntArray
    copies: npt.NDArray[np.bool_]
    apart: npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Neighbourhood:
    """The candidates that copies are looked for among; in a large pool, those nearest to the query.

    ``rows`` are their positions among all, ``apart`` their distances to one another; ``to_query`` are the
    distances of all to the query.
    """

    rows: IntArray
    apart: FloatArray
    to_query: FloatArray
    distance: Distance
    median: float

    @classmethod
    def of(
        cls,
        vectors: FloatArray,
        distance: Distance,
        median: float,
        to_query: FloatArray,
        apart: FloatArray | None,
    ) -> "Neighbourhood":
        """That of a query among candidates, whose distances are worked out where they are not known."""
        rows = np.arange(len(to_query))
        if len(to_query) > SAMPLE:
            rows = np.sort(np.argsort(to_query, kind="stable")[:SAMPLE])
            apart = None if apart is None else apart[np.ix_(rows, rows)]
        if apart is None:
            apart = distances(vectors[rows], vectors[rows], distance)
        return cls(rows, apart, to_query, distance, median)

    def read(self, texts: Texts | None) -> Words | None:
        """What their words say, where there are enough."""
        order = np.argsort(self.to_query[self.rows], kind="stable")
        found = texts(self.rows[order]) if texts is not None else ()
        return Words(order, *compare(found)) if found and telling(found) else None

    def groups(self, words: Words | None) -> IntArray | None:
        """The group of each candidate, by words where these are known; None where no copies matter."""
        found = self._by_distance() if words is None else self._by_words(words)
        if found is None:
            return None
        groups = np.arange(len(self.to_query))
        groups[self.rows] = self.rows[found]
        weights = probability(self.to_query, self.median)
        if words is None and np.bincount(groups, weights).max() > ONE_TOPIC * weights.sum():
            return None
        return groups

    def crowd_by(self, words: Words, groups: IntArray | None = None, *, few: bool = False) -> "Crowd":
        """How crowded it is where neighbours that are told apart do not count.

        Of groups, only those that stand for them count. Among ``few``, all others are neighbours.
        """
        some = words.order if groups is None else leading(groups[self.rows], self.to_query[self.rows])
        place = np.empty_like(words.order)
        place[words.order] = np.arange(len(place))
        apart = np.zeros((len(some), len(some))) if few else self.apart[np.ix_(some, some)]
        apart[words.apart[np.ix_(place[some], place[some])]] = np.inf
        return crowd_among(apart, self.to_query[self.rows[some]], self.median, self.distance)

    def _by_words(self, words: Words) -> IntArray | None:
        asked, copied = self.to_query[self.rows[words.order]], words.copies.sum(axis=1) > 1
        for divisor, least in COPIED:
            weights = probability(asked, self.median, divisor)
            if weights[copied].sum() >= least * weights.sum():
                break
        else:
            return None
        found = np.empty_like(words.order)
        found[words.order] = words.order[repeated(words.copies, words.apart)]
        return found

    def _by_distance(self) -> IntArray | None:
        apart, wide = as_cosine(self.apart, self.distance), as_cosine(self.median, self.distance)
        return near_copies(apart, wide) if crowded(nearest(apart), wide) else None


def leading(groups: IntArray, to_query: FloatArray) -> IntArray:
    """The candidate of each group that is nearest to the query, the first of several; in their own order."""
    order = np.argsort(to_query, kind="stable")
    _, firsts = np.unique(groups[order], return_index=True)
    leaders: IntArray = np.sort(order[firsts])
    return leaders


class Crowd(NamedTuple):
    """How crowded what the query may mean is: see :func:`standing_alone` and :func:`standing_together`."""

    alone: float
    together: float


def crowd_among(apart: FloatArray, to_query: FloatArray, median: float, distance: Distance) -> Crowd:
    """That of candidates by their distances, ``(n, n)``."""
    alone = float(standing_alone(nearest(apart), to_query, median, distance))
    return crowd_by_pairs(alone, lambda: apart[below(len(apart))], to_query, median, distance)


def crowd_by_pairs(
    alone: float,
    between: Callable[[], FloatArray],
    to_query: FloatArray,
    median: float,
    distance: Distance,
) -> Crowd:
    """That of candidates of which so much stands ``alone``, by distances of pairs as :func:`below` has them.

    What is together is never more than what does not stand alone. Where that is too little to count, pairs
    are not asked for, and 0 is as good as any number.
    """
    if alone >= 1.0 - SEPARATE:
        return Crowd(alone, 0.0)
    return Crowd(alone, standing_together(between(), to_query, median, distance))


def standing_together(between: FloatArray, to_query: FloatArray, median: float, distance: Distance) -> float:
    """The probability that two draws from P(t|q) are two candidates that are near each other."""
    ratio = as_cosine(between / median, distance)
    close = np.flatnonzero(ratio < FAR)
    near = np.minimum((FAR - ratio[close]) / (FAR - NEAR), 1.0)
    weights = probability(to_query, median)
    one, other = below(len(to_query))
    return 2.0 * float((weights[one[close]] * weights[other[close]]) @ near) / float(weights.sum()) ** 2


@lru_cache(maxsize=16)
def below(n: int) -> tuple[IntArray, IntArray]:
    """The pairs of n rows, as the places below the diagonal of a matrix, row by row."""
    return np.tril_indices(n, -1)


def standing_alone(
    nearest: FloatArray, to_query: FloatArray, median: FloatArray | float, distance: Distance
) -> FloatArray:
    """The share of the probability P(t|q) whose candidates have no neighbour near by.

    ``nearest`` and ``to_query`` are ``(…, n)``, ``median`` is ``(…)``. An average, and no quantile, so that
    a little rounding changes it a little.
    """
    wide = np.asarray(median, dtype=np.float64)[..., None]
    weights = probability(to_query, wide)
    ratio = as_cosine(nearest / wide, distance)
    alone = np.clip((ratio - NEAR) / (FAR - NEAR), 0.0, 1.0)
    share: FloatArray = (weights * alone).sum(axis=-1) / weights.sum(axis=-1)
    return share


def probability(to_query: FloatArray, median: FloatArray | float, divisor: float = _DIVISOR) -> FloatArray:
    """P(t|q) at the median over four, or over another number, up to a factor."""
    closest = to_query.min(axis=-1, keepdims=True)
    with np.errstate(under="ignore"):
        weights: FloatArray = np.exp(
            (closest - to_query) * (closest + to_query) * (0.5 * (divisor / median) ** 2)
        )
    return weights


def nearest(pairwise: FloatArray) -> FloatArray:
    """How far each is from the nearest other one."""
    diagonal = pairwise.diagonal().copy()
    np.fill_diagonal(pairwise, np.inf)
    found: FloatArray = pairwise.min(axis=1)
    np.fill_diagonal(pairwise, diagonal)
    return found


def as_cosine(value: _Number, distance: Distance) -> _Number:
    """The scaled cosine goes with the square of the Euclidean distance."""
    return value * value if distance == "euclidean" else value
