"""Compare sets of picks: their redundancy, and the overlap of methods."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from dartboard.explain.trace import DESCRIBED
from dartboard.selection import Selection
from dartboard.types import FloatArray


@dataclass(frozen=True, slots=True, kw_only=True)
class PickedSet:
    """What one method picked. Candidates are named by their place in the list."""

    __pydantic_config__ = DESCRIBED

    picks: list[int]
    """Candidates in the order of selection."""
    pairwise_diversity: float
    """1 - mean cosine over pairs of picks."""
    redundancy: float
    """Mean over picks of the cosine to the nearest other pick; 0 for fewer than two."""
    mean_similarity: float
    """Mean cosine of the picks to the question."""
    coverage: float
    """What the set covers by Dartboard's objective, of what all candidates cover."""
    covered_before: float
    """What of it was covered before the first pick, by `seen` and by earlier pages."""
    serves: list[int] | None
    """Of several questions, the one that each pick serves most."""
    question_coverage: list[float] | None
    """Of several questions, how far each is covered, of 1."""
    tokens: int
    """The length of all picks."""
    parameters: dict[str, Any]
    """The method's parameters."""
    matrix: list[list[float]]
    """Cosines of the picks to one another."""


def picked_set(
    selection: Selection, cosines: FloatArray, similarity: FloatArray, tokens: Sequence[int]
) -> PickedSet:
    """The set of a selection; ``cosines`` are those between candidates, ``similarity`` to the query."""
    picks = [int(pick) for pick in selection.indices]
    matrix = cosines[np.ix_(picks, picks)]
    pairs = matrix[np.triu_indices(len(picks), 1)]
    before = float(selection.coverage[0] - selection.gains[0]) if picks else selection.covered_before
    by_question = selection.question_coverage
    return PickedSet(
        picks=picks,
        pairwise_diversity=min(1.0, 1.0 - float(pairs.mean())) if len(picks) > 1 else 0.0,
        redundancy=redundancy(matrix),
        mean_similarity=float(similarity[picks].mean()) if picks else 0.0,
        coverage=float(selection.coverage[-1]) if picks else before,
        covered_before=max(before, 0.0),
        serves=None if selection.question_of is None else selection.question_of.tolist(),
        question_coverage=None if by_question is None else by_question.tolist(),
        tokens=sum(tokens[pick] for pick in picks),
        parameters=dict(selection.parameters),
        matrix=matrix.tolist(),
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
