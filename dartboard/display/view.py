"""What a result shows of itself: plain values, apart from how they are drawn."""

import math
from dataclasses import dataclass

from dartboard.types import FloatArray, IntArray

SOURCES = {
    "given": "as given",
    "candidates": "from the candidates",
    "calibration": "from calibration",
    "model": "the embedding model's: the candidates are too few to tell",
    "fallback": "the default: the candidates are too few to tell",
    "scores": "the spread of the scores",
}
"""Where a σ comes from, in words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pick:
    """One line of a result; None for what the result does not know.

    ``stands_for`` are the names of what the pick covers best, its own among them where it covers itself.
    """

    name: str
    similarity: float | None = None
    gain: float | None = None
    coverage: float | None = None
    stands_for: tuple[str, ...] | None = None
    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Board:
    """The map. Arrays run along the ``m`` candidates that are shown, the picks among them.

    ``points``, ``(m, 2)``, are in the unit disc with the query in the middle, ``distance`` is to the query,
    ``weight`` (up to 1) is what areas show. ``order`` is the place of a pick among the picks, else -1;
    ``owner`` the place of the pick that stands for a candidate, else -1. ``total`` counts all candidates.
    """

    points: FloatArray
    distance: FloatArray
    weight: FloatArray
    order: IntArray
    owner: IntArray
    names: list[str]
    total: int
    stress: float
    weight_is: str = "P(t|q)"
    distance_is: str = "distance to the query"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class View:
    """A whole result: ``head`` says what it is, ``facts`` how it was made.

    ``most`` is what no set within the same limits can cover more than.
    """

    head: str
    facts: tuple[str, ...]
    picks: tuple[Pick, ...]
    names_are: str = "index"
    targets_are: str = "candidates"
    most: float | None = None
    board: Board | None = None


def percent(share: float) -> str:
    """A share for people: 59 %, 9.5 %, <0.1 %."""
    if not share > 0.0:
        return "0 %"
    if share < 0.0005:
        return "<0.1 %"
    if share < 0.0995:
        return f"{100 * share:.1f} %"
    if 0.995 <= share < 1.0 - 1e-9:
        return f"{100 * share:.1f} %" if share < 0.9995 else ">99.9 %"
    return f"{100 * share:.0f} %"


def covered(coverage: float, bound: float) -> tuple[str, float | None]:
    """What the picks cover, in words, and the most that any set within the same limits could.

    ``bound`` is what they cover as a share of that.
    """
    words = f"covers {percent(coverage)} of what the query may mean"
    if not 0.0 < bound <= 1.0 or coverage <= 0.0:
        return words, None
    if bound > 1.0 - 1e-9:
        return f"{words}: no set within the same limits covers more", coverage
    most = min(1.0, coverage / bound)
    if most > 0.9995:
        return words, most
    return f"{words}; no set within the same limits covers more than {percent(most)}", most


def spread(sigma: float, source: str) -> str:
    """σ and where it comes from."""
    if math.isnan(sigma):
        return "probabilities as given, without a σ"
    return f"σ {sigma:.3g} {SOURCES.get(source, f'from {source}')}"


def aside(count: int) -> str:
    """That candidates were removed as near-duplicates of others."""
    return f"{count} near-duplicate{'' if count == 1 else 's'} removed"


def told(pick: Pick, most: int) -> str:
    """What a pick stands for, ``most`` names at most."""
    if pick.stands_for is None:
        return ""
    others = [name for name in pick.stands_for if name != pick.name]
    if not others:
        return "itself" if pick.stands_for else "nothing new"
    more = " …" if len(others) > most else ""
    own = "itself and " if len(others) < len(pick.stands_for) else ""
    return f"{own}{len(others)}: {', '.join(others[:most])}{more}"
