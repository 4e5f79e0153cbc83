"""A Dartboard selection step by step: the marginal gain of every candidate, and the runner-up.

With target weights ``w`` that sum to 1, kernel ``K``, and ``m_t`` the best kernel value of the picks so far,

    gain_c = Σ_t w_t · max(0, K[c,t] - m_t).

Picks, gains and coverage are those of the :class:`~dartboard.selection.Selection`. The gains of other
candidates are computed in logarithms, which separate them at any σ.
"""

from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
import numpy.typing as npt

from dartboard.deadline import check
from dartboard.selection import Limits, Pool, Selection
from dartboard.selection.greedy import Objective
from dartboard.selection.limits import LimitTracker
from dartboard.types import FloatArray, IntArray

Criterion = Literal["probability", "gain", "gain_per_token", "required"]

DESCRIBED: Final = {"use_attribute_docstrings": True}
"""For pydantic: the docstring below a field is its description."""

AGREEMENT = 1e-9
"""Gains that differ by less than this share are equal."""


@dataclass(frozen=True, slots=True)
class RunnerUp:
    """The best candidate that was not picked, except for copies of the pick."""

    __pydantic_config__ = DESCRIBED

    index: int
    """The candidate."""
    gain: float
    """What it would have added."""
    behind: float | None
    """The share of the pick's value by which it lost, by the step's criterion: 0 is a tie, 1 is nothing at
    all; null if the pick itself has none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One pick of Dartboard."""

    __pydantic_config__ = DESCRIBED

    pick: int
    """The candidate."""
    gain: float
    """What it adds, as a share of what all candidates cover."""
    coverage: float
    """What is covered with it."""
    uncovered: float
    """What is left."""
    criterion: Criterion
    """By what it was the best."""
    runner_up: RunnerUp | None
    """The best that lost, copies of the pick aside; null if no other candidate could be picked."""
    stands_for: list[int]
    """Candidates that it covers at least by half and better than other picks."""
    gains: list[float | None]
    """What each candidate would have added here; null for those picked or seen before, or excluded."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Trace:
    """The steps; for each candidate the pick that stands in for it best (-1: none), and how well (0 to 1).

    ``seen_cover`` is how well a candidate was covered before the first step: by what the reader has seen, and
    by the picks of earlier pages.
    """

    steps: list[Step]
    covered_by: IntArray
    cover: FloatArray
    seen_cover: FloatArray


def trace(pool: Pool, limits: Limits, selection: Selection, *, offset: int = 0) -> Trace:
    """How ``selection`` was made from ``pool``, whose targets are its candidates, within ``limits``.

    Numbers are positions of candidates in the pool. The steps begin after the first ``offset`` picks.
    """
    size = len(pool)
    kept = limits.apply(pool).without_near_duplicates()
    picks = kept.find(selection.indices.tolist())
    seen = kept.find(limits.seen)
    log_gains = _log_gains(kept, seen, picks)
    rules = _criteria(kept, limits, picks, log_gains, selection.by_relevance)
    tracker, stands_for = LimitTracker(kept, limits), selection.stands_for
    steps = []
    for number, (pick, rule) in enumerate(zip(picks, rules, strict=True)):
        unpicked = np.ones(len(kept), dtype=bool)
        unpicked[[*seen, *picks[:number]]] = False
        gains = np.full(size, np.nan)
        with np.errstate(under="ignore"):
            gains[kept.positions[unpicked]] = np.exp(log_gains[number][unpicked])
        rival = _runner_up(kept, tracker, pick, _values(kept, limits, rule, log_gains[number]))
        steps.append(
            Step(
                pick=int(selection.indices[number]),
                gain=float(selection.gains[number]),
                coverage=float(selection.coverage[number]),
                uncovered=1.0 - float(selection.coverage[number]),
                criterion=rule,
                runner_up=rival and RunnerUp(rival[0], float(gains[rival[0]]), rival[1]),
                stands_for=stands_for[number].tolist(),
                gains=[None if gain != gain else gain for gain in gains.tolist()],
            )
        )
        tracker.admit(pick)
    covered_by, cover = _cover(kept, picks[offset:], size)
    _, seen_cover = _cover(kept, [*seen, *picks[:offset]], size)
    return Trace(steps=steps[offset:], covered_by=covered_by, cover=cover, seen_cover=seen_cover)


def _log_gains(pool: Pool, seen: list[int], picks: list[int]) -> FloatArray:
    """``(picks, n)`` log gain of every candidate before each pick, as shares of what all cover together."""
    objective, rows = Objective(pool.log_weights, pool.log_kernel), np.arange(pool.rows)
    for row in dict.fromkeys(pool.row_of[seen].tolist()):
        objective.add(row)
    found = np.empty((len(picks), len(pool)))
    for number, pick in enumerate(picks):
        check()
        found[number] = objective.log_gains(rows)[pool.row_of]
        objective.add(int(pool.row_of[pick]))
    return found


def _criteria(
    pool: Pool,
    limits: Limits,
    picks: list[int],
    log_gains: FloatArray,
    by_relevance: npt.NDArray[np.bool_] | None,
) -> list[Criterion]:
    """The criterion of each pick."""
    turned = np.zeros(len(picks), dtype=bool) if by_relevance is None else by_relevance
    forced = len(limits.must_include)
    rules: list[Criterion] = ["required"] * min(forced, len(picks))
    if limits.token_budget is not None:
        by_gain = _largest_gains(pool, limits, [int(pick) for pick in np.array(picks)[~turned]], log_gains)
        chosen: Criterion = "gain" if by_gain else "gain_per_token"
        return rules + ["probability" if turned[at] else chosen for at in range(len(rules), len(picks))]
    for number in range(len(rules), len(picks)):
        by_gain = number > 0 or bool(limits.seen)  # the first pick is the most probable target
        adds = by_gain and not turned[number] and log_gains[number][picks[number]] > -np.inf
        rules.append("gain" if adds else "probability")
    return rules


def _largest_gains(pool: Pool, limits: Limits, picks: list[int], log_gains: FloatArray) -> bool:
    """Whether every pick had the largest gain among the candidates that still fitted the budget."""
    tracker = LimitTracker(pool, limits)
    for number, pick in enumerate(picks):
        if number >= len(limits.must_include):
            best = float(log_gains[number][tracker.open_candidates()].max())
            if log_gains[number][pick] < best - AGREEMENT:
                return False
        tracker.admit(pick)
    return True


def _values(pool: Pool, limits: Limits, rule: Criterion, log_gains: FloatArray) -> FloatArray:
    """``(n,)``: the values that candidates were compared by, as logarithms."""
    if rule == "probability":
        return pool.relevance
    if rule == "gain_per_token" and limits.costs is not None:
        costs: npt.NDArray[np.float64] = np.asarray(limits.costs, dtype=np.float64)[pool.positions]
        least = limits.relevance_below / (1 if pool.questions is None else len(pool.questions))
        with np.errstate(divide="ignore"):  # who gains too little is not picked for being cheap
            return np.where(log_gains >= np.log(least), log_gains - np.log(costs), -np.inf)
    return log_gains


def _runner_up(
    pool: Pool, tracker: LimitTracker, pick: int, values: FloatArray
) -> tuple[int, float | None] | None:
    """The best other candidate that could have been picked, and its distance to the pick."""
    others = tracker.open_candidates() & (pool.row_of != pool.row_of[pick])
    open_values = np.where(others, values, -np.inf)
    rival = int(open_values.argmax())
    if open_values[rival] == -np.inf:
        return None
    with np.errstate(under="ignore"):
        lost = -float(np.expm1(min(0.0, values[rival] - values[pick])))
    behind = None if values[pick] == -np.inf else lost
    return int(pool.positions[rival]), behind


def _cover(pool: Pool, picks: list[int], size: int) -> tuple[IntArray, FloatArray]:
    covered_by, cover = np.full(size, -1, dtype=np.intp), np.zeros(size)
    if not picks:
        return covered_by, cover
    logs = pool.log_kernel[pool.row_of[picks]]
    if pool.target_of is not None:
        logs = logs[:, pool.target_of]
    best = logs.argmax(axis=0)
    peak = logs.max(axis=0)
    names = np.where(peak > -np.inf, pool.positions[np.array(picks)[best]], -1)
    covered_by[pool.positions] = names
    with np.errstate(under="ignore"):
        cover[pool.positions] = np.minimum(np.exp(peak), 1.0)
    return covered_by, cover
