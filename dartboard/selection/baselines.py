"""What Dartboard is measured against, behind the same signature."""

import math
from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass
from itertools import chain, combinations
from operator import itemgetter
from typing import Any

import numpy as np

from dartboard.deadline import check
from dartboard.errors import ConfigError
from dartboard.selection.greedy import Objective
from dartboard.selection.limits import Limits, LimitTracker
from dartboard.selection.pool import LARGEST_LOG, Pool, in_order_of
from dartboard.selection.result import Selection, explain
from dartboard.types import FloatArray

_MOST_SETS = 2_000_000


@dataclass(frozen=True, slots=True)
class _InOrder(ABC):
    """A method that puts the candidates in an order and takes them as far as the limits go."""

    name = ""

    def select(self, pool: Pool, limits: Limits) -> Selection:
        """The picks of one query."""
        pool = limits.apply(pool)
        tracker, order = LimitTracker(pool, limits), self._order(pool, limits)
        picks: list[int] = []
        for candidate in [*pool.find(limits.must_include), *order]:
            check()
            if len(picks) >= limits.most(len(pool)):
                break
            if tracker.open_candidates()[candidate]:
                tracker.admit(candidate)
                picks.append(candidate)
        return explain_picks(pool, limits, picks, method=self.name, **asdict(self))

    @abstractmethod
    def _order(self, pool: Pool, limits: Limits) -> list[int]: ...


@dataclass(frozen=True, slots=True)
class TopK(_InOrder):
    """The most relevant candidates, whatever they repeat: nearest neighbours."""

    name = "top_k"

    def _order(self, pool: Pool, limits: Limits) -> list[int]:
        return list(map(int, pool.by_relevance()))


@dataclass(frozen=True, slots=True)
class Random(_InOrder):
    """Candidates in random order: what chance covers."""

    seed: int = 0
    name = "random"

    def _order(self, pool: Pool, limits: Limits) -> list[int]:
        return list(map(int, np.random.default_rng(self.seed).permutation(len(pool))))


@dataclass(frozen=True, slots=True)
class NearDuplicateFilter(_InOrder):
    """Nearest neighbours, skipping what is within ``threshold`` cosine of a pick; skipped ones come last."""

    threshold: float = 0.9
    name = "near_duplicate_filter"

    def __post_init__(self) -> None:
        if not -1.0 <= self.threshold <= 1.0:
            raise ConfigError(f"threshold is a similarity in [-1, 1], got {self.threshold!r}")

    def _order(self, pool: Pool, limits: Limits) -> list[int]:
        kept: list[int] = []
        skipped: list[int] = []
        closest = np.full(pool.rows, -np.inf)
        for candidate in pool.find([*limits.seen, *limits.must_include]):
            np.maximum(closest, pool.closeness[pool.row_of[candidate]], out=closest)
        enough = len(pool) if limits.token_budget or limits.caps() or limits.seen else limits.most(len(pool))
        for candidate in pool.by_relevance().tolist():
            check()
            row = int(pool.row_of[candidate])
            if closest[row] >= self.threshold:
                skipped.append(candidate)
                continue
            kept.append(candidate)
            if len(kept) >= enough:
                break
            np.maximum(closest, pool.closeness[row], out=closest)
        return kept + skipped


@dataclass(frozen=True, slots=True)
class MMR:
    """Maximal marginal relevance (Carbonell & Goldstein, 1998), penalised against every pick so far.

    ``score(c) = relevance_weight · sim(q, c) - (1 - relevance_weight) · max_{g∈G} sim(c, g)``. If the order
    of a retriever or a pair scorer counts, sim(q, c) are the candidates' cosines reassigned in that order.

    Args:
        relevance_weight: in [0, 1]: 1 is nearest neighbours, 0 is novelty alone. Other libraries call it λ,
            or its complement diversity.

    Raises:
        ConfigError: the weight is outside [0, 1].

    Example:
        >>> from dartboard import select
        >>> vectors = [[1.0, 0.1], [1.0, 0.11], [0.5, 1.0]]
        >>> select(vectors, [1.0, 0.4], k=2, method=MMR(relevance_weight=0.5)).indices
        array([1, 2])
    """

    relevance_weight: float = 0.7
    name = "mmr"

    def __post_init__(self) -> None:
        if not 0.0 <= self.relevance_weight <= 1.0:
            raise ConfigError(f"relevance_weight must be in [0, 1], got {self.relevance_weight!r}")

    def select(self, pool: Pool, limits: Limits) -> Selection:
        """The picks of one query."""
        pool = limits.apply(pool)
        to_query = in_order_of(np.maximum(pool.relevance, -LARGEST_LOG), pool.similarity)
        tracker = LimitTracker(pool, limits)
        picks: list[int] = []
        closest = np.full(pool.rows, -np.inf)
        for row in pool.rows_of(limits.seen):
            np.maximum(closest, pool.closeness[row], out=closest)
        forced = pool.find(limits.must_include)
        while len(picks) < limits.most(len(pool)) and tracker.open_candidates().any():
            check()
            candidate = forced.pop(0) if forced else self._best(pool, to_query, tracker, closest)
            tracker.admit(candidate)
            picks.append(candidate)
            np.maximum(closest, pool.closeness[pool.row_of[candidate]], out=closest)
        return explain_picks(pool, limits, picks, method=self.name, **asdict(self))

    def _best(self, pool: Pool, to_query: FloatArray, tracker: LimitTracker, closest: FloatArray) -> int:
        weight = self.relevance_weight
        if not (closest > -np.inf).any():  # nothing to be different from: the most similar one, at any weight
            return int(np.argmax(np.where(tracker.open_candidates(), to_query, -np.inf)))
        scores = weight * to_query - (1.0 - weight) * closest[pool.row_of]
        return int(np.argmax(np.where(tracker.open_candidates(), scores, -np.inf)))


@dataclass(frozen=True, slots=True)
class Exhaustive:
    """The set with the largest objective, by trying all of them: an oracle for small pools."""

    name = "exhaustive"

    @np.errstate(all="ignore")
    def select(self, pool: Pool, limits: Limits) -> Selection:
        """The picks of one query; sets of ``k`` candidates, within a budget or a cap all that fit."""
        pool = limits.apply(pool).without_near_duplicates()
        most = limits.most(len(pool))
        exact = limits.token_budget is None and not limits.caps() and not limits.seen
        sizes = [most] if exact else list(range(1, most + 1))
        if (sets := sum(math.comb(len(pool), size) for size in sizes)) > _MOST_SETS:
            raise ConfigError(
                f"{sets:,} sets of {len(pool)} candidates are too many to try: at most {_MOST_SETS:,}. "
                "Lower k, or use Dartboard"
            )
        log_values = pool.log_weights + pool.log_kernel[pool.row_of]
        values = np.exp(log_values - log_values.max())
        seen = values[pool.find(limits.seen)].max(axis=0, initial=0.0)
        forced = set(pool.find(limits.must_include))
        best: tuple[float, tuple[int, ...]] = (-1.0, ())
        for chosen in chain.from_iterable(combinations(range(len(pool)), size) for size in sizes):
            check()
            if forced <= set(chosen) and _allowed(pool, limits, chosen):
                objective = float(np.maximum(values[list(chosen)].max(axis=0), seen).sum())
                best = max(best, (objective, chosen), key=itemgetter(0))
        picks = sorted(best[1], key=lambda c: (-pool.relevance[c], pool.positions[c]))
        return explain_picks(pool, limits, picks, method=self.name, **asdict(self))


@np.errstate(all="ignore")
def explain_picks(
    pool: Pool, limits: Limits, picks: list[int], *, method: str, **parameters: Any
) -> Selection:
    """The result of picks that any method made, measured by Dartboard's objective."""
    pool = pool.without_near_duplicates()
    objective = Objective(pool.log_weights, pool.log_kernel)
    for row in (seen := pool.rows_of(limits.seen)):
        objective.add(row)
    seen_cover = objective.covered.copy() if seen else None
    first = float(np.log(objective.alone.max())) if seen else None
    kept: list[int] = []
    log_gains: list[float] = []
    for pick in picks:
        row = int(pool.row_of[pick])
        log_gain = float(objective.log_gains(np.array([row]))[0])
        if limits.stops(log_gain, first):
            break
        first = log_gain if first is None else first
        objective.add(row)
        kept.append(pick)
        log_gains.append(log_gain)
    return explain(
        pool, limits, kept, objective, log_gains=log_gains, seen_cover=seen_cover, method=method, **parameters
    )


def _allowed(pool: Pool, limits: Limits, chosen: tuple[int, ...]) -> bool:
    tracker = LimitTracker(pool, limits)
    for candidate in chosen:
        if not tracker.open_candidates()[candidate]:
            return False
        tracker.admit(candidate)
    return True
