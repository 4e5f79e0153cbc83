"""From picks to a :class:`Selection`: gains, coverage, what each pick stands for, how far from the best.

The bound is submodularity's online bound. With the gains Δ that every candidate still has after G, no k
candidates can reach more than ``f(G) + (the k largest Δ)``, nor more than the k largest objectives of
single candidates, nor more than all candidates together; under a budget, candidates fill a knapsack by
gain per token instead, the last one in part.
"""

from typing import Any

import numpy as np

from dartboard.selection.greedy import LogState, State, Walk, log_sum_rows
from dartboard.selection.limits import Gate, Limits
from dartboard.selection.pool import Pool
from dartboard.selection.result import Selection
from dartboard.types import FloatArray, IntArray

HALF = 0.5
"""A pick stands for a target if it is at least this good a stand-in as the best candidate."""


def explain(
    pool: Pool,
    limits: Limits,
    picks: list[int],
    walk: Walk,
    log_gains: FloatArray,
    *,
    method: str,
    **parameters: Any,
) -> Selection:
    """The result of a walk that has just added ``picks``, with the log gains it met."""
    chosen = np.array(picks, dtype=np.intp)
    rows = pool.row_of[chosen]
    own, log_total = _ceiling(pool, walk.state)
    with np.errstate(under="ignore"):
        gains = np.exp(log_gains - log_total)
    coverage = np.minimum(np.cumsum(gains), 1.0)
    return Selection(
        indices=pool.positions[chosen],
        gains=gains,
        log_gains=log_gains,
        coverage=coverage,
        similarity=pool.similarity[chosen],
        stands_for=_stands_for(pool, walk.state, rows, own),
        bound=_bound(pool, limits, walk, log_gains, log_total),
        sigma=pool.sigma,
        method=method,
        parameters=parameters,
    )


def explain_picks(pool: Pool, limits: Limits, picks: list[int], *, method: str, **parameters: Any) -> Selection:
    """The same for picks that another method made, measured by Dartboard's objective."""
    rows = pool.row_of[np.array(picks, dtype=np.intp)]
    exact = Walk(LogState(pool.log_weights, pool.kernel.rows(rows)), pool.relevance)
    walk = Walk(pool.kernel.states(pool.log_weights)[0](), pool.relevance)
    for place, row in enumerate(rows):
        exact.add(place)
        walk.add(int(row))
    return explain(pool, limits, picks, walk, np.array(exact.gains), method=method, **parameters)


def _ceiling(pool: Pool, state: State) -> tuple[FloatArray | None, float]:
    """The best kernel value of each target, None where that is 1 for all; and the log of all that can be covered."""
    if pool.targets_are == "rows":
        return None, float(log_sum_rows(pool.log_weights[None])[0])
    return state.ceiling()


def _stands_for(pool: Pool, state: State, rows: IntArray, own: FloatArray | None) -> tuple[IntArray, ...]:
    if not len(rows):
        return ()
    kernel = state.kernel(rows)
    nearest = kernel.argmax(axis=0)
    good = kernel[nearest, np.arange(kernel.shape[1])] >= (HALF if own is None else HALF * own)
    owner = np.where(good, nearest, len(rows))
    if pool.targets_are == "rows":
        owner = owner[pool.row_of]
    order = np.argsort(owner, kind="stable")
    edges = np.searchsorted(owner[order], np.arange(len(rows) + 1))
    names = np.arange(len(owner)) if pool.targets_are == "vocabulary" else pool.positions
    named = names[order]
    return tuple(named[a:b] for a, b in zip(edges[:-1], edges[1:], strict=True))


def _bound(pool: Pool, limits: Limits, walk: Walk, log_gains: FloatArray, log_total: float) -> float:
    if not len(log_gains):
        return 0.0
    reached = float(log_sum_rows(log_gains[None])[0])
    size = len(pool) if limits.k is None else limits.k
    walk.refresh(2 * size)
    costs = None if limits.token_budget is None else Gate(pool, limits).row_costs()
    state = walk.state
    with np.errstate(over="ignore", under="ignore"):
        alone, still = (
            _most(np.exp(state.log(np.maximum(values, state.zero)) - reached), size, costs, limits.token_budget)
            for values in (state.alone(), walk.bounds)
        )
        return 1.0 / max(1.0, min(float(np.exp(log_total - reached)), alone, 1.0 + still))


def _most(shares: FloatArray, size: int, costs: FloatArray | None, budget: float | None) -> float:
    """The most that a set within the limits could add up to."""
    largest = shares if size >= len(shares) else np.partition(shares, len(shares) - size)[-size:]
    total = float(largest.sum())
    if costs is None or budget is None:
        return total
    order = np.argsort(-shares / costs)
    spent = np.cumsum(costs[order])
    whole = int(np.searchsorted(spent, budget, side="right"))
    filled = float(shares[order[:whole]].sum())
    if whole < len(order):
        before = float(spent[whole - 1]) if whole else 0.0
        filled += float(shares[order[whole]] / costs[order[whole]]) * (budget - before)
    return min(total, filled)
