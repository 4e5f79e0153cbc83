"""From picks to a :class:`Selection`: gains, coverage, what each pick stands for, how far from the best.

The bound is submodularity's online bound. With the gains Δ that every candidate still has after G, no k
candidates can reach more than ``f(G) + (the k largest Δ)``, nor more than the k largest objectives of
single candidates, nor more than all candidates together; under a budget, candidates fill a knapsack by
gain per token instead, the last one in part.
"""

from typing import Any

import numpy as np

from dartboard.selection.bandwidth import Sigma
from dartboard.selection.dense import HALF
from dartboard.selection.greedy import State, Uncertain, Walk
from dartboard.selection.limits import Gate, Limits
from dartboard.selection.origin import Origin
from dartboard.selection.pool import Pool
from dartboard.selection.result import Selection
from dartboard.selection.states import Answer, LogState
from dartboard.types import FloatArray, IntArray


def explain(
    pool: Pool, limits: Limits, picks: list[int], walk: Walk, *, method: str, **parameters: Any
) -> Selection:
    """The result of a walk; picks beyond its own are copies, which gain nothing."""
    chosen = np.array(picks, dtype=np.intp)
    log_gains = walk.state.log_shares(np.array(walk.gains))
    if len(log_gains) < len(picks):
        log_gains = np.concatenate((log_gains, np.full(len(picks) - len(log_gains), -np.inf)))
    return _selection(pool, limits, chosen, log_gains, walk, method, parameters)


def explain_answer(pool: Pool, answer: Answer, *, method: str) -> Selection:
    """The result of a walk that came with its explanation."""
    picks = pool.leaders()[answer.rows]
    return told(
        answer,
        indices=pool.positions[picks],
        similarity=pool.similarity[picks],
        row_of=pool.row_of,
        positions=pool.positions,
        relevance=pool.relevance,
        sigma=pool.sigma,
        origin=pool.origin,
        near_copies=pool.aside,
        method=method,
    )


def told(
    answer: Answer,
    *,
    indices: IntArray,
    similarity: FloatArray,
    row_of: IntArray,
    positions: IntArray,
    relevance: FloatArray,
    sigma: Sigma,
    origin: Origin | None,
    near_copies: int,
    method: str,
) -> Selection:
    """An answer in rows, told in candidates."""
    coverage = np.minimum(answer.gains.cumsum(), 1.0)
    reached = float(coverage[-1])
    return Selection(
        indices=indices,
        gains=answer.gains,
        log_gains=np.log(answer.gains),
        coverage=coverage,
        similarity=similarity,
        owners=answer.owners[row_of],
        targets=positions,
        bound=min(1.0, reached / min(1.0, answer.alone, reached + answer.still)),
        sigma=sigma,
        method=method,
        relevance=relevance,
        origin=origin,
        near_copies=near_copies,
    )


def explain_picks(
    pool: Pool, limits: Limits, picks: list[int], *, method: str, **parameters: Any
) -> Selection:
    """The result of picks that another method made, measured by Dartboard's objective."""
    pool = pool.without_copies()
    chosen = np.array(picks, dtype=np.intp)
    rows = pool.row_of[chosen]
    exact = Walk(LogState(pool.log_weights, pool.kernel.rows(rows)), pool.relevance)
    for place in range(len(rows)):
        exact.add_any(place)
    log_gains = np.array(exact.gains) - pool.log_total()
    if limits.min_gain_share:
        small = log_gains[1:] < log_gains[:1] + np.log(limits.min_gain_share)
        count = 1 + int(small.argmax()) if small.any() else len(chosen)
        chosen, log_gains = chosen[:count], log_gains[:count]
    with np.errstate(under="ignore"):
        walk = Walk(_first_state(pool), pool.relevance)
        for row in pool.row_of[chosen]:
            walk.add(int(row), 0.0)
        return _selection(pool, limits, chosen, log_gains, walk, method, parameters)


def _first_state(pool: Pool) -> State:
    """The fastest state that the pool's numbers allow."""
    for make_state in pool.states():
        try:
            return make_state()
        except Uncertain:
            continue
    if pool.refine is None:
        raise AssertionError("logarithms are never out of range")
    return _first_state(pool.refine())


def _selection(
    pool: Pool,
    limits: Limits,
    chosen: IntArray,
    log_gains: FloatArray,
    walk: Walk,
    method: str,
    parameters: dict[str, Any],
) -> Selection:
    with np.errstate(under="ignore"):
        gains = np.exp(log_gains)
    coverage = np.minimum(gains.cumsum(), 1.0)
    owner = owners(walk.state.kernel(pool.row_of[chosen]))
    return Selection(
        indices=pool.positions[chosen],
        gains=gains,
        log_gains=log_gains,
        coverage=coverage,
        similarity=pool.similarity[chosen],
        owners=owner[pool.row_of] if pool.targets_are == "rows" else owner,
        targets=None if pool.targets_are == "vocabulary" else pool.positions,
        bound=_bound(pool, limits, walk, float(coverage[-1])) if len(chosen) else 0.0,
        sigma=pool.sigma,
        method=method,
        parameters=parameters,
        relevance=pool.relevance,
        origin=pool.origin,
        near_copies=pool.aside,
    )


def owners(kernel: FloatArray) -> IntArray:
    """For each target, the first pick (a row of ``kernel``) that stands for it best and well; -1: none."""
    if not len(kernel):
        return np.full(kernel.shape[1], -1, dtype=np.intp)
    best: IntArray = kernel.argmax(axis=0)
    best[kernel.max(axis=0) < HALF] = -1
    return best


def _bound(pool: Pool, limits: Limits, walk: Walk, reached: float) -> float:
    size = len(pool) if limits.k is None else limits.k
    costs = None if limits.token_budget is None else Gate(pool, limits).row_costs()
    walk.refresh(2 * size)
    alone = _most(
        walk, walk.state.ceilings(walk.state.alone(), slice(None)), size, costs, limits.token_budget
    )
    still = _most(walk, walk.bounds, size, costs, limits.token_budget)
    return min(1.0, reached / min(1.0, alone, reached + still)) if reached else 0.0


def _most(walk: Walk, gains: FloatArray, size: int, costs: FloatArray | None, budget: float | None) -> float:
    """The most that a set within the limits could add up to."""
    largest = gains if size >= len(gains) else np.partition(gains, len(gains) - size)[-size:]
    total = float(walk.state.shares(largest).sum())
    if costs is None or budget is None:
        return total
    shares = walk.state.shares(gains)
    order = np.argsort(-shares / costs)
    spent = np.cumsum(costs[order])
    whole = int(np.searchsorted(spent, budget, side="right"))
    filled = float(shares[order[:whole]].sum())
    if whole < len(order):
        before = float(spent[whole - 1]) if whole else 0.0
        filled += float(shares[order[whole]] / costs[order[whole]]) * (budget - before)
    return min(total, filled)
