"""A result as plain values, separate from how they are drawn.

:func:`view_of` makes the view of a :class:`~dartboard.types.RetrievalResult`. That has the picks with their
vectors and similarities, but not the other candidates, so its map shows only the picks. A result from
elsewhere may lack any metadata; the view shows what exists.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dartboard.errors import InvalidInputError
from dartboard.explain.layout import radial_layout
from dartboard.plain_text import counted, shortened
from dartboard.types import Chunk, FloatArray, IntArray, RetrievalResult

SOURCES = {
    "given": "as given",
    "candidates": "from the candidates",
    "calibration": "from calibration",
    "model": "the embedding model's: the candidates are too few to tell",
    "fallback": "the default: the candidates are too few to tell",
    "scores": "the standard deviation of the scores",
}
"""The origin of σ, as text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pick:
    """One line of a result; None for unknown values.

    ``stands_for`` are the names of what the pick covers best, its own among them where it covers itself.
    ``notes`` are lines below it: the question that it serves, its copies.
    """

    name: str
    similarity: float | None = None
    gain: float | None = None
    coverage: float | None = None
    stands_for: tuple[str, ...] | None = None
    text: str = ""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Board:
    """The map. Arrays have one entry for each of the ``m`` candidates shown, including the picks.

    ``points``, ``(m, 2)``, are in the unit disc with the query in the centre, ``distance`` is to the query,
    and ``weight`` (up to 1) gives the areas. ``order`` is a pick's position among the picks, otherwise -1;
    ``owner`` is the position of the pick that represents a candidate, otherwise -1. ``total`` counts all
    candidates.
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
    """A whole result: ``head`` describes it, ``facts`` say how it was made.

    ``most`` is the upper bound of what any set within the same limits can cover.
    """

    head: str
    facts: tuple[str, ...]
    picks: tuple[Pick, ...]
    names_are: str = "index"
    targets_are: str = "candidates"
    most: float | None = None
    board: Board | None = None


def percent(share: float) -> str:
    """A share as text: 59 %, 9.5 %, <0.1 %."""
    if not share > 0.0:
        return "0 %"
    if share < 0.0005:
        return "<0.1 %"
    if share < 0.0995:
        return f"{100 * share:.1f} %"
    if 0.995 <= share < 1.0 - 1e-9:
        return f"{100 * share:.1f} %" if share < 0.9995 else ">99.9 %"
    return f"{100 * share:.0f} %"


def coverage_text(coverage: float, bound: float) -> tuple[str, float | None]:
    """The coverage of the picks as text, and the upper bound for any set within the same limits.

    ``bound`` is the ratio of the two.
    """
    words = f"covers {percent(coverage)} of the probable targets"
    if not 0.0 < bound <= 1.0 or coverage <= 0.0:
        return words, None
    if bound > 1.0 - 1e-9:
        return f"{words}: no set within the same limits covers more", coverage
    most = min(1.0, coverage / bound)
    if most > 0.9995:
        return words, most
    return f"{words}; no set within the same limits covers more than {percent(most)}", most


def sigma_text(sigma: float, source: str) -> str:
    """σ and its origin."""
    if math.isnan(sigma):
        return "probabilities as given, without a σ"
    return f"σ {sigma:.3g} {SOURCES.get(source, f'from {source}')}"


def removed_text(count: int, method: str) -> str:
    """How many candidates are near-duplicates; Dartboard removes them, other methods may pick them."""
    fate = "removed" if method in ("dartboard", "exhaustive") else "among them"
    return f"{counted(count, 'near-duplicate')} {fate}"


def facts_of(
    *,
    coverage: float | None,
    bound: float | None,
    sigma: tuple[float, str] | None,
    near_copies: int,
    method: str,
) -> tuple[tuple[str, ...], float | None]:
    """How a set was made, one sentence per known fact, and the upper bound of coverage."""
    facts, most = [], None
    if coverage is not None and bound is not None:
        words, most = coverage_text(coverage, bound)
        facts.append(words)
    if sigma is not None:
        facts.append(sigma_text(*sigma))
    if near_copies:
        facts.append(removed_text(near_copies, method))
    return tuple(facts), most


def questions_text(covered: Sequence[tuple[str, float]], before: float | None) -> list[str]:
    """How far each of several questions is covered, and what was covered before the first pick."""
    said = [f"covers {percent(coverage)} of {question}" for question, coverage in covered]
    return said if not before else [*said, f"{percent(before)} was covered before, by what was seen"]


def question_facts(known: Mapping[str, Any]) -> list[str]:
    """The same for what a result knows; nothing where there is one question and nothing was seen."""
    try:
        covered = [(_quoted(one["text"]), float(one["coverage"])) for one in known.get("questions", ())]
        return questions_text(covered, float(known.get("covered_before", 0.0)))
    except (TypeError, ValueError, LookupError):
        return []


def pick_notes(known: Mapping[str, Any], place: int, *, all_copies: bool = True) -> tuple[str, ...]:
    """The lines below a pick: of several questions the one that it serves, then its copies.

    ``all_copies`` lists those, too, that say the same.
    """
    try:
        served = [known["questions"][known["serves"][place]]["text"]] if "serves" in known else []
        copies = [_copy_text(one) for one in known.get("copies", {place: ()})[place]]
    except (TypeError, ValueError, LookupError):
        return ()
    kept = [text for text in copies if all_copies or text.startswith(_DIFFERS)]
    more = [f"and {len(kept) - _MOST_COPIES} more"] if len(kept) > _MOST_COPIES else []
    return (*(f"for: {shortened(text, _LONGEST_QUESTION)}" for text in served), *kept[:_MOST_COPIES], *more)


def _copy_text(copy: Mapping[str, Any]) -> str:
    """``differs: "2024" vs "2025" in old.md (version 1)``; ``copy: old.md (version 1)`` where it does not."""
    about = [f"{name} {value}" for name, value in copy.items() if name not in ("id", "differs")]
    where = shortened(f"{copy['id']} ({', '.join(about)})" if about else copy["id"], _LONGEST_QUESTION)
    if "differs" not in copy:
        return f"copy: {where}"
    pairs = "; ".join(f'"{shortened(one, 40)}" vs "{shortened(other, 40)}"' for one, other in copy["differs"])
    return f"{_DIFFERS} {pairs or 'some words'} in {where}"


def _quoted(text: object) -> str:
    return f"“{shortened(text, _LONGEST_QUESTION)}”"


def stands_for_text(pick: Pick, most: int) -> str:
    """What a pick represents, at most ``most`` names."""
    if pick.stands_for is None:
        return ""
    others = [name for name in pick.stands_for if name != pick.name]
    if not others:
        return "itself" if pick.stands_for else "nothing new"
    more = " …" if len(others) > most else ""
    own = "itself and " if len(others) < len(pick.stands_for) else ""
    return f"{own}{len(others)}: {', '.join(others[:most])}{more}"


_LONGEST_QUERY = 200
_LONGEST_QUESTION = 80
_MOST_COPIES = 3
_DIFFERS = "differs:"


def view_of(result: RetrievalResult, *, board: bool = True) -> View:
    """The result as plain values; ``board`` requests the map."""
    known, count = result.metadata, len(result.chunks)
    gains = _numbers(known, "gain", count)
    coverage, similarity = _numbers(known, "coverage", count), _numbers(known, "similarity", count)
    bound, sigma = known.get("bound"), known.get("sigma")
    facts, most = facts_of(
        coverage=coverage[-1] if coverage else None,
        bound=bound if isinstance(bound, float) else None,
        sigma=(sigma, str(known.get("sigma_source", "given"))) if isinstance(sigma, float) else None,
        near_copies=int(known.get("near_copies") or 0),
        method=str(known.get("method")),
    )
    return View(
        head=f"“{shortened(result.query, _LONGEST_QUERY)}”",
        facts=(*_warned(known), _counted(known, count), *facts, *question_facts(known)),
        picks=tuple(
            Pick(
                name=_named(chunk),
                similarity=_at(similarity, place),
                gain=_at(gains, place),
                coverage=_at(coverage, place),
                stands_for=_stands_for(known, place, count, chunk),
                text=chunk.text,
                notes=pick_notes(known, place),
            )
            for place, chunk in enumerate(result.chunks)
        ),
        names_are="passage",
        targets_are=str(known.get("targets", "candidates")),
        most=most,
        board=_board(result, similarity, gains) if board else None,
    )


def _numbers(known: Mapping[str, Any], name: str, count: int) -> list[float] | None:
    """One finite number per pick, or None."""
    values = known.get(name)
    if not isinstance(values, Sequence) or isinstance(values, str) or len(values) != count:
        return None
    try:
        numbers = [float(value) for value in values]
    except (TypeError, ValueError):
        return None
    return numbers if np.isfinite(numbers).all() else None


def _at(numbers: list[float] | None, place: int) -> float | None:
    return None if numbers is None else numbers[place]


def _counted(known: Mapping[str, Any], count: int) -> str:
    found = f" of {known['candidates']} candidates" if "candidates" in known else ""
    method = f" by {known['method']}" if "method" in known else ""
    retriever = f", found by {known['retriever']}" if "retriever" in known else ""
    return f"{counted(count, 'passage')}{found}{method}{retriever}"


def _warned(known: Mapping[str, Any]) -> tuple[str, ...]:
    """The message that nothing relevant was found, if the result has one."""
    relevance = known.get("relevance")
    message = relevance.get("message") if isinstance(relevance, Mapping) else None
    return (message,) if isinstance(message, str) and message else ()


def _named(chunk: Chunk) -> str:
    """A passage's location, otherwise its id."""
    source = chunk.metadata.get("source")
    return source if isinstance(source, str) and source else chunk.id


def _stands_for(known: Mapping[str, Any], place: int, count: int, chunk: Chunk) -> tuple[str, ...] | None:
    """The ids that a pick represents; its own id is replaced by its displayed name."""
    told = known.get("stands_for")
    if not isinstance(told, Sequence) or len(told) != count or not isinstance(told[place], Sequence):
        return None
    return tuple(_named(chunk) if one == chunk.id else str(one) for one in told[place])


def _board(
    result: RetrievalResult, similarity: list[float] | None, gains: list[float] | None
) -> Board | None:
    """The picks by their vectors, if these belong to the similarities."""
    count = len(result.chunks)
    if similarity is None or count < 2 or result.metadata.get("variant") == "crossencoder":
        return None
    unit = _unit([chunk.embedding for chunk in result.chunks])
    if unit is None:
        return None
    to_query = np.clip((1.0 - np.array(similarity)) / 2.0, 0.0, 1.0)
    between = np.clip((1.0 - unit @ unit.T) / 2.0, 0.0, 1.0)
    np.fill_diagonal(between, 0.0)
    try:
        layout = radial_layout(to_query, between)
    except InvalidInputError:
        return None
    equal = np.full(count, 1.0 / count)
    return Board(
        points=layout.points,
        distance=to_query,
        weight=equal if gains is None or not sum(gains) > 0 else np.array(gains),
        order=np.arange(count),
        owner=np.full(count, -1, dtype=np.intp),
        names=[_named(chunk) for chunk in result.chunks],
        total=count,
        stress=layout.stress,
        weight_is="equal" if gains is None else "gain",
        distance_is="distance to the query, (1 − cosine) / 2",
    )


def _unit(embeddings: Sequence[FloatArray]) -> FloatArray | None:
    """Unit rows; None if vectors are missing or differ in dimension."""
    rows = [np.asarray(embedding, dtype=np.float64) for embedding in embeddings]
    if any(row.ndim != 1 or row.shape != rows[0].shape for row in rows):
        return None
    lengths = np.array([np.linalg.norm(row) for row in rows])
    if not (np.isfinite(lengths).all() and (lengths > 0).all()):
        return None
    unit: FloatArray = np.stack(rows) / lengths[:, None]
    return unit
