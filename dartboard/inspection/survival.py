"""Which passages stay when σ changes: Dartboard's picks along σ, from much smaller to much larger."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from dartboard.deadline import check
from dartboard.selection import Dartboard, Limits, Pool
from dartboard.types import LARGEST_SIGMA, SMALLEST_SIGMA

STEPS = 25
REACH = 8.0
"""σ goes from an eighth of the automatic value to eight times it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Survival:
    """``picks[i]`` is what is picked at ``sigmas[i]``, in order."""

    sigmas: list[float]
    picks: list[list[int]]


def sigma_range(centre: float) -> tuple[float, float]:
    """The σ worth looking at around an automatic one."""
    return max(SMALLEST_SIGMA, centre / REACH), min(LARGEST_SIGMA, centre * REACH)


def survival(
    pool_at: Callable[[float], Pool], limits: Limits, centre: float, *, steps: int = STEPS
) -> Survival:
    """The picks at ``steps`` σ, evenly spaced on a log scale around ``centre``, which is one of them."""
    sigmas = spaced(centre, steps)
    picks = []
    for sigma in sigmas:
        check()
        picks.append([int(pick) for pick in Dartboard().select(pool_at(sigma), limits).indices])
    return Survival(sigmas=sigmas, picks=picks)


def spaced(centre: float, steps: int = STEPS) -> list[float]:
    """``steps`` rising σ, log-spaced; the nearest to ``centre`` is ``centre``."""
    low, high = sigma_range(centre)
    sigmas: Sequence[float] = np.geomspace(low, high, steps).tolist()
    nearest = min(range(steps), key=lambda place: abs(np.log(sigmas[place] / centre)))
    return [centre if place == nearest else sigma for place, sigma in enumerate(sigmas)]
