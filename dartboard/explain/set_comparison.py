"""Compare sets of picks: their redundancy, the overlap of methods, and their stability when σ changes."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from dartboard.deadline import check
from dartboard.evaluation.metrics import intra_list_distance
from dartboard.selection import Dartboard, Limits, Pool, Selection
from dartboard.types import LARGEST_SIGMA, SMALLEST_SIGMA, Chunk, FloatArray


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PickedSet:
    """One method's picks in order, as positions among the candidates.

    ``redundancy`` is the mean over picks of the cosine to the nearest other pick, 0 for fewer than two;
    ``coverage`` is Dartboard's objective of the set, ``covered_before`` what of it was covered before the
    first pick, by what was seen and by earlier pages; ``matrix``, ``(k, k)``, has the cosines of the picks.
    Of several questions, ``serves`` is the one that each pick serves most, and ``question_coverage`` how far
    each is covered.
    """

    picks: list[int]
    pairwise_diversity: float
    redundancy: float
    mean_similarity: float
    coverage: float
    covered_before: float
    serves: list[int] | None
    question_coverage: list[float] | None
    tokens: int
    parameters: dict[str, Any]
    matrix: FloatArray


def picked_set(
    selection: Selection,
    chunks: Sequence[Chunk],
    cosines: FloatArray,
    similarity: FloatArray,
    tokens: Sequence[int],
) -> PickedSet:
    """The set of a selection; ``cosines`` are those between candidates, ``similarity`` to the query."""
    picks = [int(pick) for pick in selection.indices]
    matrix = cosines[np.ix_(picks, picks)]
    before = float(selection.coverage[0] - selection.gains[0]) if picks else selection.covered_before
    by_question = selection.question_coverage
    return PickedSet(
        picks=picks,
        # The evaluation's pairwise diversity is twice this distance; computed with one product.
        pairwise_diversity=min(1.0, 2.0 * intra_list_distance([chunks[pick] for pick in picks])),
        redundancy=redundancy(matrix),
        mean_similarity=float(similarity[picks].mean()) if picks else 0.0,
        coverage=float(selection.coverage[-1]) if picks else before,
        covered_before=max(before, 0.0),
        serves=None if selection.question_of is None else selection.question_of.tolist(),
        question_coverage=None if by_question is None else by_question.tolist(),
        tokens=sum(tokens[pick] for pick in picks),
        parameters=dict(selection.parameters),
        matrix=matrix,
    )


def redundancy(cosines: FloatArray) -> float:
    """The mean over rows of the largest cosine, ``(k, k)``, to another; 0 for fewer than two."""
    if len(cosines) < 2:
        return 0.0
    others = np.where(np.eye(len(cosines), dtype=bool), -np.inf, cosines)
    return float(others.max(axis=1).mean())


def overlap(sets: Mapping[str, PickedSet]) -> dict[str, int]:
    """How many picks each two methods have in common, as ``{"one|other": n}``."""
    return {
        f"{one}|{other}": len(set(sets[one].picks) & set(sets[other].picks))
        for one, other in combinations(sets, 2)
    }


STEPS = 25
REACH = 8.0
"""σ ranges from an eighth of the automatic value to eight times it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Survival:
    """``picks[i]`` are the picks at ``sigmas[i]``, in order."""

    sigmas: list[float]
    picks: list[list[int]]


def sigma_range(centre: float) -> tuple[float, float]:
    """The range of σ around an automatic one."""
    return max(SMALLEST_SIGMA, centre / REACH), min(LARGEST_SIGMA, centre * REACH)


def survival(
    pool_at: Callable[[float], Pool], limits: Limits, centre: float, *, offset: int = 0, steps: int = STEPS
) -> Survival:
    """The picks at ``steps`` σ, evenly spaced on a log scale around ``centre``, which is one of them.

    ``offset`` leaves out the picks of earlier pages, which ``limits`` count.
    """
    sigmas = spaced(centre, steps)
    picks = []
    for sigma in sigmas:
        check()
        picks.append(Dartboard().select(pool_at(sigma), limits).after(offset).indices.tolist())
    return Survival(sigmas=sigmas, picks=picks)


def spaced(centre: float, steps: int = STEPS) -> list[float]:
    """``steps`` increasing σ, log-spaced; the one nearest to ``centre`` is replaced by it."""
    low, high = sigma_range(centre)
    sigmas: Sequence[float] = np.geomspace(low, high, steps).tolist()
    nearest = min(range(steps), key=lambda place: abs(np.log(sigmas[place] / centre)))
    return [centre if place == nearest else sigma for place, sigma in enumerate(sigmas)]
