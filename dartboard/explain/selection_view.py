"""The view of a :class:`~dartboard.selection.Selection`, computed on demand."""

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dartboard.errors import InvalidInputError, MissingExtraError
from dartboard.explain.html import as_html
from dartboard.explain.layout import radial_layout
from dartboard.explain.terminal import as_text
from dartboard.explain.view import Board, Pick, View, facts_of, questions_text
from dartboard.plain_text import counted
from dartboard.selection.kernels import distances, log_kernel, prepared
from dartboard.selection.result import Origin
from dartboard.types import FloatArray, IntArray, as_matrix, check_vector

if TYPE_CHECKING:
    from dartboard.selection.result import Selection

MOST = 300
"""The map shows at most this many candidates: the picks and the nearest to the query."""

_BLOCK = 8192
"""This many vectors at a time are converted to float64."""

_DISTANCES = {
    "scaled_cosine": "distance to the query, (1 − cosine) / 2",
    "euclidean": "Euclidean distance to the query",
}


def text_of(selection: "Selection") -> str:
    """The selection as a table."""
    return as_text(view_of(selection, board=False))


def html_of(selection: "Selection") -> str:
    """The selection as a map with gains."""
    return as_html(view_of(selection))


def view_of(selection: "Selection", *, board: bool = True) -> View:
    """The selection as plain values; ``board`` requests the map, which takes a few milliseconds."""
    picks = selection.indices.tolist()
    head = f"{len(picks)} of {_candidates(selection)} by {selection.method}"
    if selection.parameters:
        head += f" ({', '.join(f'{name} = {value}' for name, value in selection.parameters.items())})"
    facts, most = facts_of(
        coverage=float(selection.coverage[-1]) if picks else None,
        bound=selection.bound,
        sigma=selection.sigma,
        near_copies=selection.near_copies,
        method=selection.method,
    )
    served, covered = selection.question_of, selection.question_coverage
    questions = [
        (f"question {at}", float(share)) for at, share in enumerate([] if covered is None else covered)
    ]
    on_candidates = selection.targets is not None
    stands_for = selection.stands_for
    return View(
        head=head,
        facts=(*facts, *questions_text(questions, selection.covered_before)),
        picks=tuple(
            Pick(
                name=str(pick),
                similarity=float(selection.similarity[place]),
                gain=float(selection.gains[place]),
                coverage=float(selection.coverage[place]),
                stands_for=tuple(
                    str(one) if on_candidates else f"t{one}" for one in stands_for[place].tolist()
                ),
                notes=() if served is None else (f"for: question {served[place]}",),
            )
            for place, pick in enumerate(picks)
        ),
        targets_are="candidates" if on_candidates else "vocabulary",
        most=most,
        board=board_of(selection) if board and picks else None,
    )


def frame_of(selection: "Selection") -> Any:
    """The picks as a pandas DataFrame."""
    try:
        pandas = import_module("pandas")
    except ImportError as error:
        raise MissingExtraError("pandas", "pandas", "a data frame") from error
    return pandas.DataFrame(
        {
            "similarity": selection.similarity,
            "gain": selection.gains,
            "coverage": selection.coverage,
            "stands_for": [positions.tolist() for positions in selection.stands_for],
        },
        index=pandas.Index(selection.indices, name="position"),
    )


def _candidates(selection: "Selection") -> str:
    if selection.targets is not None:
        count = len(selection.targets)
    elif selection.relevance is not None:
        count = len(selection.relevance)
    else:
        return "the candidates"
    return counted(count, "candidate")


def board_of(selection: "Selection") -> Board | None:
    """The map; None if the result has no distances, or its arrays have changed."""
    if selection.origin is None or not len(selection):
        return None
    try:
        return _board(selection, selection.origin)
    except (InvalidInputError, IndexError):
        return None


def _board(selection: "Selection", origin: Origin) -> Board:
    known = (_by_vectors if origin.vectors else _by_distances)(selection, origin)
    positions, to_query = known.positions, known.to_query
    weight = _weights(selection, to_query)
    place_of = {position: place for place, position in enumerate(positions.tolist())}
    picks = [place_of[position] for position in selection.indices.tolist() if position in place_of]
    if len(picks) < len(selection):
        raise IndexError("a pick is not among the candidates")
    shown = _shown(picks, to_query)
    layout = radial_layout(to_query[shown], known.between(shown))
    order = np.full(len(shown), -1, dtype=np.intp)
    order[: len(picks)] = np.arange(len(picks))
    owners = selection.owners if selection.targets is not None else np.full(len(positions), -1, dtype=np.intp)
    return Board(
        points=layout.points,
        distance=to_query[shown],
        weight=weight[shown],
        order=order,
        owner=owners[shown],
        names=[str(position) for position in positions[shown].tolist()],
        total=len(positions),
        stress=layout.stress,
        distance_is=_DISTANCES[origin.distance] if origin.vectors else "distance to the query",
    )


class _Distances(NamedTuple):
    """Positions of candidates, their distances to the query, and a function for those between some."""

    positions: IntArray
    to_query: FloatArray
    between: Callable[[IntArray], FloatArray]


def _by_vectors(selection: "Selection", origin: Origin) -> _Distances:
    kind = origin.distance
    vectors = as_matrix(origin.candidates)
    positions = np.arange(len(vectors)) if selection.targets is None else selection.targets
    asked = prepared(check_vector(origin.query, name="query", dim=vectors.shape[1])[None], kind)

    def rows(some: IntArray) -> FloatArray:
        return prepared(vectors[positions[some]], kind)

    def between(shown: IntArray) -> FloatArray:
        some = rows(shown)
        return distances(some, some, kind)

    blocks = np.split(np.arange(len(positions)), range(_BLOCK, len(positions), _BLOCK))
    to_query = np.concatenate([distances(rows(block), asked, kind)[:, 0] for block in blocks])
    return _Distances(positions, to_query, between)


def _by_distances(selection: "Selection", origin: Origin) -> _Distances:
    pairwise: FloatArray = np.asarray(origin.candidates, dtype=np.float64)
    positions = np.arange(len(pairwise)) if selection.targets is None else selection.targets
    to_query: FloatArray = np.asarray(origin.query, dtype=np.float64)[positions]

    def between(shown: IntArray) -> FloatArray:
        some = pairwise[np.ix_(positions[shown], positions[shown])]
        mean: FloatArray = (some + some.T) / 2.0  # pair scores may be asymmetric
        np.fill_diagonal(mean, 0.0)
        return mean

    return _Distances(positions, to_query, between)


def _weights(selection: "Selection", to_query: FloatArray) -> FloatArray:
    """P(t|q) of the candidates; sums to 1."""
    relevance = selection.relevance
    if relevance is None or len(relevance) != len(to_query):
        relevance = log_kernel(to_query, selection.sigma.value)
    with np.errstate(under="ignore"):
        weight: FloatArray = np.exp(relevance - relevance.max())
    weight /= weight.sum()
    return weight


def _shown(picks: list[int], to_query: FloatArray) -> IntArray:
    """The picks in order, then the nearest others, at most ``MOST`` unless there are more picks."""
    nearest = np.argsort(to_query, kind="stable")
    others = nearest[~np.isin(nearest, picks)][: max(0, MOST - len(picks))]
    return np.concatenate((np.array(picks, dtype=np.intp), others))
