"""What a selection says about itself: gains, coverage, what each pick represents, how far from the best.

The bound is submodularity's online bound. With the gains Δ that every candidate still has after G, no k
candidates can reach more than ``f(G) + (the k largest Δ)``, nor more than the k largest objectives of
single candidates, nor more than all candidates together; under a budget, candidates fill a knapsack by
gain per token instead, the last one in part (Leskovec et al., 2007).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from dartboard.errors import MissingExtraError
from dartboard.selection.kernel import Sigma
from dartboard.selection.limits import Limits, LimitTracker
from dartboard.selection.pool import Origin, Pool
from dartboard.types import FloatArray, IntArray

if TYPE_CHECKING:
    from dartboard.selection.greedy import Objective

HALF = 0.5
"""A pick represents a target if it covers it at least this well."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Selection:
    """Picks in order, and why. Functions such as :func:`select` make it.

    It can be used as an index: ``vectors[selection]``, ``frame.iloc[selection]``. It prints as a table, and
    in a notebook as a map with gains.

    Args:
        indices: positions of the picks among the candidates, in order.
        gains, coverage: one for each pick, as shares of what the whole pool would cover: gains add up to the
            last coverage, whatever the method.
        log_gains: logarithms of the gains, also of those too small for a plain number.
        similarity: cosine of each pick to the query.
        bound: no set within the same limits covers more than ``coverage[-1] / bound``.
        owners: for each target the pick that covers it, or -1.
        targets: positions of the targets, or None for a vocabulary.
        sigma: the σ that was used, its source, and a warning where it is too wide to tell candidates apart.
        method, parameters: who picked, and with which parameters.
        by_relevance: which picks of Dartboard were picked for their relevance because no candidate gained
            ``relevance_below`` any more.
        relevance: log P(t|q) up to a constant.
        origin: what the picks were selected from, for drawing.
        near_copies: how many candidates are near-duplicates of a more relevant one. Dartboard picks them
            only if nothing else is left; other methods may pick them.
        covered_before: with ``seen``, the share that was covered before the first pick; ``coverage`` includes
            it.
        question_of: of several questions, the one that each pick serves most.
        question_gains: ``(picks, m)`` how each gain splits between the questions.
        question_coverage: ``(m,)`` how much of the probable targets of each question is covered in the end.

    Example:
        >>> from dartboard import select
        >>> found = select([[1.0, 0.1], [1.0, 0.11], [0.5, 1.0]], [1.0, 0.4], k=2, sigma=0.1)
        >>> found.indices, found.stands_for
        (array([1, 2]), (array([0, 1]), array([2])))
    """

    indices: IntArray
    gains: FloatArray
    log_gains: FloatArray
    coverage: FloatArray
    similarity: FloatArray
    bound: float
    owners: IntArray
    targets: IntArray | None
    sigma: Sigma
    method: str
    parameters: dict[str, Any] = field(default_factory=dict)
    by_relevance: npt.NDArray[np.bool_] | None = None
    relevance: FloatArray | None = None
    origin: Origin | None = None
    near_copies: int = 0
    covered_before: float = 0.0
    question_of: IntArray | None = None
    question_gains: FloatArray | None = None
    question_coverage: FloatArray | None = None

    def __len__(self) -> int:
        return len(self.indices)

    def __iter__(self) -> Iterator[int]:
        return iter(self.indices.tolist())

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> npt.NDArray[Any]:
        return np.array(self.indices, dtype=dtype, copy=copy)

    def after(self, offset: int) -> "Selection":
        """The picks from number ``offset`` on: the page that follows the first ``offset`` picks."""
        if not offset:
            return self
        columns: tuple[str, ...] = ("indices", "gains", "log_gains", "coverage", "similarity")
        columns += ("by_relevance", "question_of", "question_gains")
        page: dict[str, Any] = {
            name: None if (all_ := getattr(self, name)) is None else all_[offset:] for name in columns
        }
        return replace(self, owners=np.maximum(self.owners - offset, -1), **page)

    @property
    def stands_for(self) -> tuple[IntArray, ...]:
        """For each pick, the targets that it covers best of all picks, and at least by half.

        They are positions of candidates, the pick's own among them, or entries of the vocabulary.
        """
        order = self.owners.argsort(kind="stable")
        edges = self.owners[order].searchsorted(np.arange(len(self) + 1))
        named = order if self.targets is None else self.targets[order]
        return tuple(named[start:end] for start, end in pairwise(edges))

    def to_frame(self) -> Any:
        """A pandas DataFrame, one row a pick, under the candidates' positions; ``stands_for`` has its own."""
        try:
            pandas = import_module("pandas")
        except ImportError as error:
            raise MissingExtraError("pandas", "pandas", "a data frame") from error
        return pandas.DataFrame(
            {
                "similarity": self.similarity,
                "gain": self.gains,
                "coverage": self.coverage,
                "stands_for": [positions.tolist() for positions in self.stands_for],
            },
            index=pandas.Index(self.indices, name="position"),
        )

    def __repr__(self) -> str:
        from dartboard.explain.result_view import view_of
        from dartboard.explain.text_table import as_text

        return as_text(view_of(self, with_map=False))

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        from dartboard.explain.html_card import as_html
        from dartboard.explain.result_view import view_of

        return as_html(view_of(self))


def explain(
    pool: Pool,
    limits: Limits,
    picks: list[int],
    objective: "Objective",
    *,
    log_gains: Sequence[float],
    by_relevance: Sequence[bool] | None = None,
    seen_cover: FloatArray | None = None,
    method: str,
    **parameters: Any,
) -> Selection:
    """The result of picks in order; ``seen_cover``, ``(T,)``, is what was covered before the first one."""
    chosen = np.array(picks, dtype=np.intp)
    gains = np.exp(np.array(log_gains, dtype=np.float64))
    before = 0.0 if seen_cover is None else min(float(seen_cover @ objective.weights), 1.0)
    coverage = np.minimum(before + gains.cumsum(), 1.0)
    kernel = objective.kernel[pool.row_of[chosen]]
    owner = np.full(kernel.shape[1], -1, dtype=np.intp)
    if len(chosen):  # the first pick that covers a target best, well, and no worse than what was seen
        enough = HALF if seen_cover is None else np.maximum(seen_cover, HALF)
        owner = np.where(kernel.max(axis=0) >= enough, kernel.argmax(axis=0), -1)
    if pool.target_of is not None and len(chosen):
        # Of picks that cover a target equally well, as a vector and its multiple do, its own comes first.
        own, place = pool.target_of[chosen], np.arange(len(chosen))
        itself = (np.array(log_gains) > -np.inf) & (
            kernel[place, own] >= np.maximum(kernel[:, own].max(axis=0), HALF)
        )
        owner[own[itself]] = place[itself]
    return Selection(
        indices=pool.positions[chosen],
        gains=gains,
        log_gains=np.array(log_gains, dtype=np.float64),
        coverage=coverage,
        similarity=pool.similarity[chosen],
        owners=owner if pool.target_of is None else owner[pool.target_of],
        targets=None if pool.target_of is None else pool.positions,
        covered_before=before,
        bound=_bound(pool, limits, objective, before, float(coverage[-1])) if len(chosen) else 0.0,
        sigma=pool.sigma,
        method=method,
        parameters=parameters,
        by_relevance=None if by_relevance is None else np.array(by_relevance, dtype=bool),
        relevance=pool.relevance,
        origin=pool.origin,
        near_copies=pool.near_copies,
        **_by_question(pool, objective, kernel, chosen, seen_cover),
    )


def _by_question(
    pool: Pool, objective: "Objective", kernel: FloatArray, picks: IntArray, seen_cover: FloatArray | None
) -> dict[str, Any]:
    """How each gain, and what is covered in the end, splits between several questions."""
    if pool.questions is None:
        return {}
    shares = pool.questions
    if pool.target_of is not None:  # a target is its most relevant candidate
        order = np.lexsort((-pool.relevance, pool.target_of))
        shares = shares[:, order[np.searchsorted(pool.target_of[order], np.arange(kernel.shape[1]))]]
    mass = shares * objective.weights  # (m, T), sums to 1
    before = np.zeros(kernel.shape[1]) if seen_cover is None else seen_cover
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


def _bound(pool: Pool, limits: Limits, objective: "Objective", before: float, reached: float) -> float:
    if not reached:
        return 0.0
    size = len(pool) if limits.k is None else limits.k
    costs = None if limits.token_budget is None else LimitTracker(pool, limits).row_costs()
    alone = before + _most(objective.alone, size, costs, limits.token_budget)
    still = _most(objective.upper_bounds(2 * size), size, costs, limits.token_budget)
    most = min(1.0, (1.0 + 1e-12) * min(alone, reached + still))  # no rounding makes it too small
    return min(1.0, reached / most)


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
