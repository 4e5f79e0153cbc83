"""What a selection may contain: how many, how long, from where."""

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral, Real

import numpy as np
import numpy.typing as npt

from dartboard.errors import ConfigError, InvalidInputError
from dartboard.selection.pool import Pool
from dartboard.types import FloatArray, IntArray

RELEVANCE_BELOW = 0.0125
"""θ: where the gains of all candidates are below this share of P(t|q), the next picks go by relevance."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How much to select, and from what. Candidates are numbered as in the caller's arrays.

    Args:
        k: the largest number of picks.
        token_budget: the largest sum of ``costs``; instead of ``k`` or with it.
        costs: tokens of each candidate.
        savings: ``(i, j, tokens)``: candidates i and j cost so many tokens less together than apart, as two
            chunks do that overlap.
        min_gain_share: stop when a pick gains less than this share of the first gain; with ``seen``, of what
            the best candidate would have gained if nothing had been seen.
        max_per_source: the largest number of picks with the same entry of ``sources``.
        sources: the source of each candidate.
        max_per: the same for any fields, ``{"author": 2}``; ``fields`` has their values, one a candidate:
            ``{"author": ["Ann", …]}``. None, an unknown value, is not capped.
        must_include: these come first, and count towards k, the budget and the caps.
        seen: what the reader has already: it counts as covered before the first pick, costs nothing and is
            not picked again. Picks that would add nothing are left out, so there may be fewer than k.
        exclude: these are removed from the pool, unless they are ``seen``.
        min_similarity: candidates below this cosine are removed from the pool.
        relevance_below: once no candidate gains this share of P(t|q), the rest of the picks are the most
            relevant distinct candidates; 0 goes on by gain to the end. Shared among several questions.
        relevance_floor: under a token budget, what is below this cosine is not picked by relevance.

    Raises:
        ConfigError: neither k nor a budget, a value outside its range, or limits that contradict each other.

    Example:
        >>> Limits(token_budget=500, costs=[310, 290, 120], exclude=[1]).most(3)
        3
    """

    k: int | None = None
    token_budget: float | None = None
    costs: Sequence[float] | FloatArray | None = None
    savings: Sequence[tuple[int, int, float]] = ()
    min_gain_share: float = 0.0
    max_per_source: int | None = None
    sources: Sequence[Hashable] | None = None
    max_per: Mapping[str, int] | None = None
    fields: Mapping[str, Sequence[Hashable]] | None = None
    must_include: Sequence[int] = ()
    seen: Sequence[int] = ()
    exclude: Sequence[int] = ()
    min_similarity: float | None = None
    relevance_below: float = RELEVANCE_BELOW
    relevance_floor: float | None = None

    def __post_init__(self) -> None:
        for name in ("must_include", "seen", "exclude"):
            object.__setattr__(self, name, _positions(name, getattr(self, name)))
        if self.k is None and self.token_budget is None:
            raise ConfigError("say how much to select: k, token_budget, or both")
        if self.sources is not None and not isinstance(self.sources, (list, tuple)):
            # A column of a data frame is read by its labels, not by position.
            object.__setattr__(self, "sources", tuple(self.sources))
        if isinstance(self.fields, Mapping):
            object.__setattr__(self, "fields", {name: tuple(values) for name, values in self.fields.items()})
        _whole("k", self.k)
        _whole("max_per_source", self.max_per_source)
        budget = self.token_budget
        if budget is not None and (not _real(budget) or not 0 < budget < math.inf):
            raise ConfigError(f"token_budget must be a finite number > 0, got {budget!r}")
        if (budget is None) != (self.costs is None):
            raise ConfigError("token_budget and costs go together: a budget needs each candidate's tokens")
        if self.savings and self.costs is None:
            raise ConfigError("savings lower costs: give token_budget and costs, too")
        for name in ("min_gain_share", "relevance_below"):
            share = getattr(self, name)
            if not _real(share) or not 0.0 <= share <= 1.0:
                raise ConfigError(f"{name} must be in [0, 1], got {share!r}", field=name)
        if (self.max_per_source is None) != (self.sources is None):
            raise ConfigError("max_per_source and sources go together: a cap needs each candidate's source")
        _check_caps(self.max_per, self.fields)
        for name in ("min_similarity", "relevance_floor"):
            if (least := getattr(self, name)) is not None and not _real(least):
                raise ConfigError(f"{name} must be a number, got {least!r}", field=name)
        for name in ("exclude", "seen"):
            if both := set(self.must_include) & set(getattr(self, name)):
                raise ConfigError(f"candidate {min(both)} is both in must_include and in {name}")
        if len(set(self.must_include)) < len(self.must_include):
            raise ConfigError("must_include names a candidate twice", field="must_include")
        if self.k is not None and len(self.must_include) > self.k:
            raise ConfigError(f"must_include has {len(self.must_include)} candidates, more than k = {self.k}")

    def most(self, candidates: int) -> int:
        """How many of so many candidates may be picked."""
        return candidates if self.k is None else min(self.k, candidates)

    def caps(self) -> list[tuple[str, int, Sequence[Hashable]]]:
        """Each cap: its name, how many picks may share a value, and the candidates' values."""
        found: list[tuple[str, int, Sequence[Hashable]]] = []
        if self.max_per_source is not None and self.sources is not None:
            found.append(("max_per_source", self.max_per_source, self.sources))
        for field, most in (self.max_per or {}).items():
            found.append((f"max_per[{field!r}]", most, (self.fields or {})[field]))
        return found

    def stops(self, log_gain: float, first: float | None) -> bool:
        """Whether a next pick gains too little, given the log gain of the first one."""
        if not self.min_gain_share or first is None:
            return False
        return log_gain < first + math.log(self.min_gain_share)

    def apply(self, pool: Pool) -> Pool:
        """Check the limits against a pool and leave out what they exclude."""
        n = len(pool)
        columns = {"costs": self.costs, "sources": self.sources, **(self.fields or {})}
        for name, values in columns.items():
            if values is not None and len(values) != n:
                raise InvalidInputError(f"{name} has {len(values)} entries for {n} candidates: need one each")
        for name in ("must_include", "seen", "exclude"):
            for position in getattr(self, name):
                if not 0 <= position < n:
                    raise InvalidInputError(
                        f"{name}: no candidate {position}, positions go from 0 to {n - 1}"
                    )
        if self.costs is not None:
            costs = _costs(self.costs)
            _check_savings(self.savings, n)
            first = list(self.must_include)
            saved = sum(tokens for one, other, tokens in self.savings if one in first and other in first)
            if first and costs[first].sum() - saved > (self.token_budget or 0):
                raise ConfigError("must_include alone costs more than token_budget")
        for name, most, values in self.caps():
            if not all(isinstance(value, Hashable) for value in values):
                what = "sources" if name == "max_per_source" else f"the values of {name}"
                raise InvalidInputError(
                    f"{what} must be names, such as strings or numbers: found a list or the like"
                )
            forced = [values[i] for i in self.must_include if not _missing(values[i])]
            if forced and max(forced.count(value) for value in forced) > most:
                raise ConfigError(f"must_include alone breaks {name}")
        if not self.exclude and self.min_similarity is None:
            return pool
        keep = np.ones(n, dtype=bool)
        keep[list(self.exclude)] = False
        if self.min_similarity is not None:
            keep &= pool.similarity >= self.min_similarity
        keep[[*self.must_include, *self.seen]] = True
        return pool.restrict(keep)


class LimitTracker:
    """Which candidates, numbered as in the pool, may still be picked while a selection grows."""

    def __init__(self, pool: Pool, limits: Limits) -> None:
        self._open = np.ones(len(pool), dtype=bool)
        self._order, self._starts = pool.by_row()
        self._row_of = pool.row_of
        self._costs: FloatArray | None = None
        self._left = np.inf
        self._savings: dict[int, list[tuple[int, float]]] = {}
        if limits.seen:  # nor are copies and near-duplicates of what was seen picked, by any method
            seen = pool.units[pool.find(limits.seen)]
            self._open &= ~np.isin(pool.units, seen)
        self._caps: list[tuple[int, IntArray, IntArray]] = []  # most, value of each candidate, picks by value
        if limits.costs is not None and limits.token_budget is not None:
            self._costs = _costs(limits.costs)[pool.positions]
            self._left = float(limits.token_budget)
            self._add_savings(pool, limits.savings)
        for _, most, values in limits.caps():
            codes = {value: code for code, value in enumerate(dict.fromkeys(values))}
            known = [values[i] for i in pool.positions]
            code_of = np.array([-1 if _missing(value) else codes[value] for value in known])
            self._caps.append((most, code_of, np.zeros(len(codes), dtype=np.intp)))
        self.selective = self._costs is not None or bool(self._caps)

    def _add_savings(self, pool: Pool, savings: Sequence[tuple[int, int, float]]) -> None:
        place = {int(position): candidate for candidate, position in enumerate(pool.positions)}
        for one, other, tokens in savings:
            if one in place and other in place:
                for here, there in ((place[one], place[other]), (place[other], place[one])):
                    self._savings.setdefault(here, []).append((there, float(tokens)))

    def open_candidates(self) -> npt.NDArray[np.bool_]:
        """``(n,)`` the candidates that may still be picked."""
        if self._costs is None:
            return self._open
        return self._open & (self._costs <= self._left * (1 + 1e-12))

    def row_relevance(self, relevance: FloatArray) -> FloatArray:
        """``(rows,)`` the relevance of the most relevant candidate of each row."""
        by_row: FloatArray = relevance[self._order]
        return by_row if len(self._starts) == len(by_row) else np.maximum.reduceat(by_row, self._starts)

    def leaders(self) -> IntArray:
        """``(rows,)`` the candidate to pick for each row; -1 where none is left."""
        if not self.selective:
            return self._order[self._starts]
        leaders = np.full(len(self._starts), -1, dtype=np.intp)
        last_first = self._order[self.open_candidates()[self._order]][::-1]
        leaders[self._row_of[last_first]] = last_first
        return leaders

    def costs(self, candidates: IntArray) -> FloatArray | None:
        """What candidates cost, where there is a budget."""
        return None if self._costs is None else self._costs[candidates]

    def row_costs(self) -> FloatArray:
        """``(rows,)`` what the cheapest candidate of each row costs at least; only under a budget.

        No set costs less than the sum, if each candidate of a pair gets half of what the pair saves.
        """
        if self._costs is None:
            raise ConfigError("there is no token_budget")
        least = self._costs.copy()
        for candidate, savings in self._savings.items():
            least[candidate] = max(least[candidate] - sum(tokens for _, tokens in savings) / 2, 1e-9)
        return np.minimum.reduceat(least[self._order], self._starts)

    def admit(self, candidate: int) -> None:
        """Count a pick against the limits."""
        self._open[candidate] = False
        if self._costs is not None:
            self._left -= float(self._costs[candidate])
            for other, tokens in self._savings.get(candidate, ()):
                self._costs[other] = max(self._costs[other] - tokens, min(1.0, self._costs[other]))
        for most, code_of, taken in self._caps:
            if (code := code_of[candidate]) < 0:
                continue
            taken[code] += 1
            if taken[code] >= most:
                self._open &= code_of != code


def _real(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool) and not math.isnan(value)


def _missing(value: object) -> bool:
    """None, or NaN, as data frames have it."""
    return value is None or value != value


def _whole(name: str, value: object) -> None:
    if value is not None and (not isinstance(value, Integral) or isinstance(value, bool) or value < 1):
        raise ConfigError(f"{name} must be a whole number >= 1, got {value!r}")


def _check_caps(most: Mapping[str, int] | None, fields: Mapping[str, Sequence[Hashable]] | None) -> None:
    if most is None:
        return
    if not isinstance(most, Mapping) or not all(isinstance(field, str) and field for field in most):
        raise ConfigError(f'max_per is fields with a number each, such as {{"author": 2}}, got {most!r}')
    for field, value in most.items():
        _whole(f"max_per[{field!r}]", value)
        if value is None:
            raise ConfigError(f"max_per[{field!r}] must be a whole number >= 1, got None")
    if missing := sorted(set(most) - set(fields or {})):
        raise ConfigError(f"max_per needs each candidate's {missing[0]!r} in fields")


def _check_savings(savings: Sequence[tuple[int, int, float]], n: int) -> None:
    for one, other, tokens in savings:
        if not (
            0 <= one < n and 0 <= other < n and one != other and _real(tokens) and 0 <= tokens < math.inf
        ):
            raise InvalidInputError(
                f"savings are two candidates, 0 to {n - 1}, and tokens >= 0: got {(one, other, tokens)}"
            )


def _positions(name: str, values: Sequence[int]) -> tuple[int, ...]:
    positions = tuple(values)
    for value in positions:
        if not isinstance(value, Integral) or isinstance(value, bool):
            raise ConfigError(f"{name} holds positions, whole numbers from 0: got {value!r}")
    return tuple(int(value) for value in positions)


def _costs(values: Sequence[float] | FloatArray) -> FloatArray:
    try:
        costs = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        costs = np.array(np.nan)
    if costs.ndim != 1 or not (np.isfinite(costs).all() and (costs > 0).all()):
        raise InvalidInputError("costs must be a vector of finite numbers > 0, one a candidate")
    return costs
