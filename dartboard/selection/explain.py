"""From picks to a :class:`Selection`: gains, coverage, what each pick represents, how far from the best.

The bound is submodularity's online bound. With the gains Δ that every candidate still has after G, no k
candidates can reach more than ``f(G) + (the k largest Δ)``, nor more than the k largest objectives of
single candidates, nor more than all candidates together; under a budget, candidates fill a knapsack by
gain per token instead, the last one in part (Leskovec et al., 2007).
"""

from typing import Any

import numpy as np

from dartboard.selection.greedy import LazyGreedy
from dartboard.selection.limits import Limits, LimitTracker
from dartboard.selection.objective import Objective
from dartboard.selection.pool import Pool
from dartboard.selection.result import Selection
from dartboard.types import FloatArray, IntArray

HALF = 0.5
"""A pick represents a target if it covers it at least this well."""


def explain(
    pool: Pool, limits: Limits, picks: list[int], greedy: LazyGreedy, *, method: str, **parameters: Any
) -> Selection:
    """The result of greedy picks; picks beyond those of ``greedy`` are copies, which gain nothing."""
    chosen = np.array(picks, dtype=np.intp)
    log_gains = np.full(len(picks), -np.inf)
    log_gains[: len(greedy.log_gains)] = greedy.log_gains
    gains = np.exp(log_gains)
    coverage = np.minimum(greedy.share_before + gains.cumsum(), 1.0)
    kernel = greedy.objective.rows(pool.row_of[chosen])
    owner = np.full(kernel.shape[1], -1, dtype=np.intp)
    if len(chosen):  # the first pick that covers a target best, well, and no worse than what was seen
        enough = HALF if greedy.covered_before is None else np.maximum(greedy.covered_before, HALF)
        owner[:] = np.where(kernel.max(axis=0) >= enough, kernel.argmax(axis=0), -1)
    if pool.target_of is not None and len(chosen):
        # Of picks that cover a target equally well, as a vector and its multiple do, its own comes first.
        own, place = pool.target_of[chosen], np.arange(len(chosen))
        itself = (log_gains > -np.inf) & (kernel[place, own] >= np.maximum(kernel[:, own].max(axis=0), HALF))
        owner[own[itself]] = place[itself]
    return Selection(
        indices=pool.positions[chosen],
        gains=gains,
        log_gains=log_gains,
        coverage=coverage,
        similarity=pool.similarity[chosen],
        owners=owner if pool.target_of is None else owner[pool.target_of],
        targets=None if pool.target_of is None else pool.positions,
        covered_before=greedy.share_before,
        bound=_bound(pool, limits, greedy, float(coverage[-1])) if len(chosen) else 0.0,
        sigma=pool.sigma,
        method=method,
        parameters=parameters,
        relevance=pool.relevance,
        origin=pool.origin,
        near_copies=pool.near_copies,
        **_by_question(pool, greedy, kernel, chosen),
    )


def _by_question(pool: Pool, greedy: LazyGreedy, kernel: FloatArray, picks: IntArray) -> dict[str, Any]:
    """How each gain, and what is covered in the end, splits between several questions."""
    if pool.questions is None:
        return {}
    shares = pool.questions
    if pool.target_of is not None:  # a target is its most relevant candidate
        order = np.lexsort((-pool.relevance, pool.target_of))
        shares = shares[:, order[np.searchsorted(pool.target_of[order], np.arange(greedy.objective.targets))]]
    mass = (shares * greedy.objective.weights).astype(np.float64)  # (m, T), sums to 1
    before = np.zeros(kernel.shape[1]) if greedy.covered_before is None else greedy.covered_before
    covered = np.maximum.accumulate(np.vstack([before, kernel]), axis=0)
    gains = np.diff(covered, axis=0) @ mass.T
    idle = gains.sum(axis=1) <= 0.0  # picks that only fill up to k: by their own shares
    best = gains.argmax(axis=1)
    if pool.target_of is not None and idle.any():
        best[idle] = pool.questions[:, picks[idle]].argmax(axis=0)
    whole = np.where(mass.sum(axis=1) > 0, mass.sum(axis=1), 1.0)
    return {
        "question_gains": gains,
        "question_of": best,
        "question_coverage": np.minimum(mass @ covered[-1] / whole, 1.0),
    }


@np.errstate(under="ignore")
def explain_picks(
    pool: Pool, limits: Limits, picks: list[int], *, method: str, **parameters: Any
) -> Selection:
    """The result of picks that another method made, measured by Dartboard's objective."""
    pool = pool.without_near_duplicates()
    objective = Objective(pool.log_weights, pool.kernel)
    greedy = LazyGreedy(objective, pool.relevance)
    greedy.absorb(pool.rows_of(limits.seen))
    kept: list[int] = []
    for pick in picks:
        row = np.array([pool.row_of[pick]])
        log_gain = float(objective.log_gains(row)[0])
        if limits.stops(log_gain, greedy.first_log_gain):
            break
        greedy.add(int(row[0]), log_gain)
        kept.append(pick)
    return explain(pool, limits, kept, greedy, method=method, **parameters)


def _bound(pool: Pool, limits: Limits, greedy: LazyGreedy, reached: float) -> float:
    if not reached:
        return 0.0
    size = len(pool) if limits.k is None else limits.k
    costs = None if limits.token_budget is None else LimitTracker(pool, limits).row_costs()
    objective = greedy.objective
    alone = greedy.share_before + _most(objective.alone + objective.slack, size, costs, limits.token_budget)
    still = _most(greedy.refresh(2 * size), size, costs, limits.token_budget)
    rounding = float(objective.slack[objective.picks].sum())
    return min(1.0, reached / min(1.0, alone, reached + still + rounding))


def _most(gains: FloatArray, size: int, costs: FloatArray | None, budget: float | None) -> float:
    """The most that a set within the limits could add up to."""
    largest = gains if size >= len(gains) else np.partition(gains, len(gains) - size)[-size:]
    total = float(largest.sum())
    if costs is None or budget is None:
        return total
    order = np.argsort(-gains / costs)
    spent = np.cumsum(costs[order])
    whole = int(np.searchsorted(spent, budget, side="right"))
    filled = float(gains[order[:whole]].sum())
    if whole < len(order):
        before = float(spent[whole - 1]) if whole else 0.0
        filled += float(gains[order[whole]] / costs[order[whole]]) * (budget - before)
    return min(total, filled)
