"""A result as plain values, separate from how they are drawn.

:func:`view_of` makes the view of a :class:`~dartboard.types.RetrievalResult` or of a
:class:`~dartboard.selection.Selection`. A selection knows all its candidates, a result only its picks, so the
map of a result shows these. A result that was made elsewhere has no explanation: its view shows the texts.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from dartboard.explain.layout import radial_layout
from dartboard.plain_text import counted, shortened
from dartboard.selection.kernel import distances, log_kernel, prepared
from dartboard.types import Chunk, Explanation, FloatArray, IntArray, RetrievalResult

if TYPE_CHECKING:
    from dartboard.selection import Selection

MOST = 300
"""The map shows at most this many candidates: the picks and the nearest to the query."""

SOURCES = {
    "given": "as given",
    "candidates": "from the candidates",
    "calibration": "from calibration",
    "model": "the embedding model's: the candidates are too few to tell",
    "fallback": "the default: the candidates are too few to tell",
    "scores": "the standard deviation of the scores",
}
"""The origin of σ, as text."""

_MOST_COPIES = 3
_LONGEST_QUESTION = 80
_BLOCK = 8192


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

    def stands_for_text(self, most: int) -> str:
        """What the pick represents, at most ``most`` names."""
        if self.stands_for is None:
            return ""
        others = [name for name in self.stands_for if name != self.name]
        if not others:
            return "itself" if self.stands_for else "nothing new"
        more = " …" if len(others) > most else ""
        own = "itself and " if len(others) < len(self.stands_for) else ""
        return f"{own}{len(others)}: {', '.join(others[:most])}{more}"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Map:
    """Where candidates are drawn. Arrays have one entry for each of the ``m`` shown, the picks first.

    ``points``, ``(m, 2)``, are in the unit disc with the query in the centre, ``distance`` is to the query,
    and ``weight`` (up to 1) gives the areas. ``owner`` is the position of the pick that represents a
    candidate, otherwise -1. ``total`` counts all candidates, ``picks`` those that were picked.
    """

    points: FloatArray
    distance: FloatArray
    weight: FloatArray
    owner: IntArray
    names: list[str]
    picks: int
    total: int
    stress: float
    weight_is: str = "P(t|q)"
    distance_is: str = "distance to the query"

    def state(self, place: int) -> str:
        """The relation of a candidate to the picks."""
        if place < self.picks:
            return f"pick {place + 1}"
        owner = self.owner[place]
        return f"pick {owner + 1} stands for it" if owner >= 0 else "no pick stands for it"


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
    map: Map | None = None


def view_of(result: "RetrievalResult | Selection", *, with_map: bool = True) -> View:
    """The result as plain values; the map takes some milliseconds."""
    if isinstance(result, RetrievalResult):
        view = _of_result(result)
        return replace(view, map=_map_of_result(result)) if with_map else view
    view = _of_selection(result)
    return replace(view, map=_map_of_selection(result)) if with_map and len(result) else view


def percent(share: float) -> str:
    """A share as text: 59 %, 9.5 %, <0.1 %."""
    if not share > 0.0:
        return "0 %"
    if share < 0.0005:
        return "<0.1 %"
    if 0.9995 <= share < 1.0 - 1e-9:
        return ">99.9 %"
    digits = 1 if share < 0.0995 or 0.995 <= share < 1.0 - 1e-9 else 0
    return f"{100 * share:.{digits}f} %"


def coverage_facts(coverage: float, bound: float) -> tuple[str, float | None]:
    """What the picks cover as text, and the upper bound for any set; ``bound`` is the ratio of the two."""
    words = f"covers {percent(coverage)} of the probable targets"
    if not bound > 0.0 or coverage <= 0.0:
        return words, None
    most = min(1.0, coverage / bound)
    if bound > 1.0 - 1e-9:
        words += ": no set within the same limits covers more"
    elif most <= 0.9995:
        words += f"; no set within the same limits covers more than {percent(most)}"
    return words, most


def sigma_text(sigma: float, source: str) -> str:
    """σ and its origin."""
    if math.isnan(sigma):
        return "probabilities as given, without a σ"
    return f"σ {sigma:.3g} {SOURCES.get(source, f'from {source}')}"


def removed_text(count: int, method: str) -> str:
    """How many candidates are near-duplicates; Dartboard removes them, other methods may pick them."""
    fate = "removed" if method in ("dartboard", "exhaustive") else "among them"
    return f"{counted(count, 'near-duplicate')} {fate}"


def question_facts(known: Explanation) -> list[str]:
    """How far each of several questions is covered, and what was covered before the first pick."""
    said = [f"covers {percent(one['coverage'])} of {_quoted(one['text'])}" for one in known.questions or ()]
    if known.covered_before:
        said.append(_before_text(known.covered_before))
    return said


def pick_notes(known: Explanation | None, place: int, *, all_copies: bool = True) -> tuple[str, ...]:
    """The lines below a pick: of several questions the one that it serves, then its copies.

    ``all_copies`` lists those, too, that say the same.
    """
    if known is None:
        return ()
    notes = []
    if known.questions and known.serves:
        notes.append(f"for: {shortened(known.questions[known.serves[place]]['text'], _LONGEST_QUESTION)}")
    copies = [one for one in known.copies[place] if all_copies or "differs" in one] if known.copies else []
    notes += [_copy_text(one) for one in copies[:_MOST_COPIES]]
    if len(copies) > _MOST_COPIES:
        notes.append(f"and {len(copies) - _MOST_COPIES} more")
    return tuple(notes)


def _copy_text(copy: Mapping[str, Any]) -> str:
    """``differs: "2024" vs "2025" in old.md (version 1)``; ``copy: old.md (version 1)`` where it does not."""
    about = [f"{name} {value}" for name, value in copy.items() if name not in ("id", "differs")]
    where = shortened(f"{copy['id']} ({', '.join(about)})" if about else copy["id"], _LONGEST_QUESTION)
    if "differs" not in copy:
        return f"copy: {where}"
    pairs = "; ".join(f'"{shortened(one, 40)}" vs "{shortened(other, 40)}"' for one, other in copy["differs"])
    return f"differs: {pairs or 'some words'} in {where}"


def _quoted(text: str, most: int = _LONGEST_QUESTION) -> str:
    return f"“{shortened(text, most)}”"


def _before_text(share: float) -> str:
    return f"{percent(share)} was covered before, by what was seen"


def _named(chunk: Chunk) -> str:
    """A passage's location, otherwise its id."""
    source = chunk.metadata.get("source")
    return source if isinstance(source, str) and source else chunk.id


def _of_result(result: RetrievalResult) -> View:
    known, count = result.explanation, len(result.chunks)
    facts, most = [counted(count, "passage")], None
    if known is not None:
        by = f" by {known.method}" if known.method else ""
        retriever = f", found by {known.retriever}" if known.retriever else ""
        facts = [f"{facts[0]} of {known.candidates} candidates{by}{retriever}"]
        if message := known.relevance.get("message"):
            facts.insert(0, message)
        if known.coverage and known.bound is not None:
            words, most = coverage_facts(known.coverage[-1], known.bound)
            facts.append(words)
        if known.sigma is not None:
            facts.append(sigma_text(known.sigma, known.sigma_source or "given"))
        facts += known.warnings or []
        if known.near_copies:
            facts.append(removed_text(known.near_copies, str(known.method)))
        facts += question_facts(known)
    return View(
        head=_quoted(result.query, 200),
        facts=tuple(facts),
        picks=tuple(_pick(known, place, chunk) for place, chunk in enumerate(result.chunks)),
        names_are="passage",
        targets_are=(known and known.targets) or "candidates",
        most=most,
    )


def _pick(known: Explanation | None, place: int, chunk: Chunk) -> Pick:
    name = _named(chunk)
    if known is None:
        return Pick(name=name, text=chunk.text)
    stands_for = None
    if known.stands_for:
        stands_for = tuple(name if one == chunk.id else str(one) for one in known.stands_for[place])
    return Pick(
        name=name,
        similarity=known.similarity[place] if known.similarity else None,
        gain=known.gain[place] if known.gain else None,
        coverage=known.coverage[place] if known.coverage else None,
        stands_for=stands_for,
        text=chunk.text,
        notes=pick_notes(known, place),
    )


def _of_selection(selection: "Selection") -> View:
    count, on_candidates = len(selection), selection.targets is not None
    of = selection.targets if on_candidates else selection.relevance
    head = f"{count} of {'the candidates' if of is None else counted(len(of), 'candidate')}"
    head += f" by {selection.method}"
    if selection.parameters:
        head += f" ({', '.join(f'{name} = {value}' for name, value in selection.parameters.items())})"
    facts, most = [], None
    if count:
        words, most = coverage_facts(float(selection.coverage[-1]), selection.bound)
        facts.append(words)
    facts.append(sigma_text(selection.sigma.value, selection.sigma.source))
    if selection.sigma.warning:
        facts.append(selection.sigma.warning)
    if selection.near_copies:
        facts.append(removed_text(selection.near_copies, selection.method))
    if selection.question_coverage is not None:
        shares = enumerate(selection.question_coverage.tolist())
        facts += [f"covers {percent(share)} of question {number}" for number, share in shares]
    if selection.covered_before:
        facts.append(_before_text(selection.covered_before))
    served = selection.question_of
    return View(
        head=head,
        facts=tuple(facts),
        picks=tuple(
            Pick(
                name=str(pick),
                similarity=float(selection.similarity[place]),
                gain=float(selection.gains[place]),
                coverage=float(selection.coverage[place]),
                stands_for=tuple(str(one) if on_candidates else f"t{one}" for one in targets.tolist()),
                notes=() if served is None else (f"for: question {served[place]}",),
            )
            for place, (pick, targets) in enumerate(zip(selection, selection.stands_for, strict=True))
        ),
        targets_are="candidates" if on_candidates else "vocabulary",
        most=most,
    )


def _map_of_result(result: RetrievalResult) -> Map | None:
    """The picks by their vectors; None where similarities are not cosines."""
    known, count = result.explanation, len(result.chunks)
    if known is None or count < 2 or not known.similarity or known.variant == "crossencoder":
        return None
    vectors = prepared(np.stack([chunk.embedding for chunk in result.chunks]), "scaled_cosine")
    return _map(
        to_query=np.clip((1.0 - np.array(known.similarity)) / 2.0, 0.0, 1.0),
        between=lambda shown: distances(vectors[shown], vectors[shown], "scaled_cosine"),
        weight=np.array(known.gain) if known.gain and sum(known.gain) > 0 else np.full(count, 1.0 / count),
        picks=np.arange(count),
        owner=np.full(count, -1),
        names=[_named(chunk) for chunk in result.chunks],
        weight_is="gain" if known.gain else "equal",
        distance_is="distance to the query, (1 − cosine) / 2",
    )


def _map_of_selection(selection: "Selection") -> Map | None:
    """The candidates that limits admit; None if the selection has no distances."""
    origin = selection.origin
    if origin is None:
        return None
    given = np.asarray(origin.candidates, dtype=None if origin.vectors else np.float64)
    positions = np.arange(len(given)) if selection.targets is None else selection.targets
    if origin.vectors:
        kind = origin.distance
        asked = prepared(np.atleast_2d(origin.query), kind)
        blocks = np.split(positions, range(_BLOCK, len(positions), _BLOCK))
        parts = [distances(prepared(given[rows], kind), asked, kind).min(axis=1) for rows in blocks]
        to_query = np.concatenate(parts)
        cosine = kind == "scaled_cosine"
        ring = "distance to the query, (1 − cosine) / 2" if cosine else "Euclidean distance to the query"

        def between(shown: IntArray) -> FloatArray:
            some = prepared(given[positions[shown]], kind)
            return distances(some, some, kind)

    else:
        to_query = np.asarray(origin.query, dtype=np.float64)[positions]
        ring = "distance to the query"

        def between(shown: IntArray) -> FloatArray:
            some = given[np.ix_(positions[shown], positions[shown])]
            mean: FloatArray = (some + some.T) / 2.0  # pair scores may be asymmetric
            return mean

    relevance = selection.relevance
    if relevance is None or len(relevance) != len(to_query):
        relevance = log_kernel(to_query, selection.sigma.value)
    with np.errstate(under="ignore"):
        weight = np.exp(relevance - relevance.max())
    place_of = {position: place for place, position in enumerate(positions.tolist())}
    return _map(
        to_query=to_query,
        between=between,
        weight=weight / weight.sum(),
        picks=np.array([place_of[position] for position in selection]),
        owner=np.full(len(positions), -1) if selection.targets is None else selection.owners,
        names=[str(position) for position in positions.tolist()],
        distance_is=ring,
    )


def _map(
    *,
    to_query: FloatArray,
    between: Callable[[IntArray], FloatArray],
    weight: FloatArray,
    picks: IntArray,
    owner: IntArray,
    names: Sequence[str],
    weight_is: str = "P(t|q)",
    distance_is: str,
) -> Map:
    """The picks in order, then the nearest others, at most ``MOST`` unless there are more picks.

    ``between`` gives the distances between candidates by their places.
    """
    nearest = np.argsort(to_query, kind="stable")
    others = nearest[~np.isin(nearest, picks)][: max(0, MOST - len(picks))]
    shown = np.concatenate((picks, others))
    apart = between(shown)
    np.fill_diagonal(apart, 0.0)
    layout = radial_layout(to_query[shown], apart)
    return Map(
        points=layout.points,
        distance=to_query[shown],
        weight=weight[shown],
        owner=owner[shown],
        names=[names[place] for place in shown.tolist()],
        picks=len(picks),
        total=len(names),
        stress=layout.stress,
        weight_is=weight_is,
        distance_is=distance_is,
    )
