"""The map as SVG: candidates around the query, without scripts.

The distance from the centre is the exact distance to the query, and a dot's area is its weight. Picks have
numbers; a line connects a candidate with the pick that represents it. Colours are in the elements and, for
dark pages, in the style sheet.
"""

import math
from html import escape

import numpy as np

from dartboard.explain.style import LIGHT, PAPER, colour, number_colour, tint
from dartboard.explain.view import Board, percent
from dartboard.plain_text import shortened
from dartboard.types import FloatArray

SIZE = 400
_MIDDLE = SIZE / 2
_REACH = _MIDDLE - 26
_LARGEST = 13.0
_SMALLEST = 1.0
_ROOM = 9.0
"""A dot of this radius has room for its number."""

_TINY = 1e-30


def draw_map(board: Board) -> str:
    """One ``<svg>`` element."""
    places = np.stack((_MIDDLE + _REACH * board.points[:, 0], _MIDDLE - _REACH * board.points[:, 1]), axis=1)
    top = float(board.weight.max()) if len(board.weight) else 0.0
    size = _LARGEST * np.sqrt(board.weight / top) if top > 0 else np.full(len(board.weight), _SMALLEST)
    radii = np.maximum(size, _SMALLEST)
    label = f"Map of {len(board.names)} candidates around the query. The tables have the same numbers."
    return (
        f'<svg class="dbv-map" viewBox="0 0 {SIZE} {SIZE}" role="img" aria-label="{label}">'
        f"{_rings(board, places)}{_ties(board, places)}"
        f'<path class="dbv-eye" d="M{_MIDDLE - 6} {_MIDDLE}h12M{_MIDDLE} {_MIDDLE - 6}v12" '
        f'stroke="{LIGHT["ink"]}" stroke-width="2"/>'
        f"{_dots(board, places, radii)}{_picks(board, places, radii)}</svg>"
    )


def _rings(board: Board, places: FloatArray) -> str:
    """Circles at round distances, with labels where no dot is."""
    far = float(board.distance.max()) if len(board.distance) else 0.0
    if far <= _TINY:
        return ""
    gap = round_gap(far / 4)
    steps = [step * gap for step in range(1, math.floor(1.06 * far / gap) + 1)]
    lengths = np.array([_REACH * step / far for step in steps])
    way = _free_way(lengths, places)
    circles = [
        f'<circle class="dbv-ring{" dbv-odd" if place % 2 == 0 else ""}" cx="{_MIDDLE}" cy="{_MIDDLE}" '
        f'r="{length:.1f}" fill="{LIGHT["ring"] if place % 2 == 0 else PAPER}" stroke="{LIGHT["line"]}"/>'
        for place, length in enumerate(lengths)
    ]
    labels = [
        f'<text class="dbv-scale" x="{_MIDDLE + length * way[0]:.1f}" y="{_MIDDLE + length * way[1]:.1f}" '
        f'dy="0.36em" fill="{LIGHT["soft"]}">{step:.3g}</text>'
        for step, length in zip(steps, lengths, strict=True)
    ]
    return "".join([*reversed(circles), *labels])


def _free_way(lengths: FloatArray, places: FloatArray) -> FloatArray:
    """The direction in which labels at these lengths are farthest from any dot."""
    turns = np.arange(48) * math.pi / 24
    ways = np.stack((np.sin(turns), -np.cos(turns)), axis=1)
    labels = _MIDDLE + ways[:, None, :] * lengths[None, :, None]
    apart = np.sqrt(((labels[:, :, None, :] - places[None, None]) ** 2).sum(axis=-1)).min(axis=-1)
    room = np.minimum(apart, 40.0)
    best: FloatArray = ways[int((room.min(axis=1) + 0.1 * room.sum(axis=1)).argmax())]
    return best


def round_gap(about: float) -> float:
    """1, 2 or 5 times a power of ten, nearest to ``about`` by ratio."""
    power = 10.0 ** math.floor(math.log10(about))
    return min((step * power for step in (1, 2, 5, 10)), key=lambda step: abs(math.log(step / about)))


def _ties(board: Board, places: FloatArray) -> str:
    """Lines from candidates to the picks that represent them, one group per pick."""
    where = {int(order): place for place, order in enumerate(board.order) if order >= 0}
    groups = []
    for order, at in sorted(where.items()):
        tied = np.flatnonzero((board.owner == order) & (board.order < 0))
        x, y = places[at]
        lines = "".join(f"M{places[one][0]:.1f} {places[one][1]:.1f}L{x:.1f} {y:.1f}" for one in tied)
        if lines:
            groups.append(
                f'<path class="{tint(order)}" d="{lines}" stroke="{colour(order)}" stroke-opacity="0.5"/>'
            )
    return "".join(groups)


def _dots(board: Board, places: FloatArray, radii: FloatArray) -> str:
    """All candidates except the picks, large ones first, those without a pick below the others."""
    groups = []
    for order in sorted({int(owner) for owner in board.owner[board.order < 0]}):
        some = np.flatnonzero((board.owner == order) & (board.order < 0))
        dots = "".join(
            f'<circle cx="{places[one][0]:.1f}" cy="{places[one][1]:.1f}" r="{radii[one]:.1f}">'
            f"<title>{_said(board, int(one))}</title></circle>"
            for one in some[np.lexsort((some, -radii[some]))]
        )
        groups.append(
            f'<g class="{tint(order)}" fill="{colour(order)}" stroke="{colour(order)}" '
            f'fill-opacity="0.4">{dots}</g>'
        )
    return "".join(groups)


def _picks(board: Board, places: FloatArray, radii: FloatArray) -> str:
    """The picks with their numbers: inside if there is room, otherwise in a badge beside."""
    drawn = []
    chosen = sorted(np.flatnonzero(board.order >= 0).tolist(), key=lambda one: -board.order[one])
    taken = [places[one] for one in chosen]
    for at in chosen:
        order, radius, place = int(board.order[at]), float(radii[at]), places[at]
        circles = [(place, radius)]
        if radius < _ROOM:
            place = _beside(place, radius + _ROOM, taken)
            taken.append(place)
            circles.append((place, _ROOM))
        title = f"<title>{_said(board, at)}</title>"
        drawn += [
            f'<circle class="dbv-pick {tint(order)}" cx="{x:.1f}" cy="{y:.1f}" r="{size:.1f}" '
            f'fill="{colour(order)}" stroke="{PAPER}" stroke-width="1.5">{title}</circle>'
            for (x, y), size in circles
        ]
        drawn.append(
            f'<text class="dbv-no {tint(order)}" x="{place[0]:.1f}" y="{place[1]:.1f}" dy="0.36em" '
            f'pointer-events="none" fill="{number_colour(order)}">{order + 1}</text>'
        )
    return "".join(drawn)


def _beside(place: FloatArray, length: float, taken: list[FloatArray]) -> FloatArray:
    """The position of a dot's badge: away from the centre, or turned aside from picks and badges."""
    x, y = place - _MIDDLE
    outward = math.atan2(y, x) if x or y else -math.pi / 2
    turns = [turn * math.pi / 8 * side for turn in range(9) for side in (1, -1)]
    spots = [
        place + length * np.array((math.cos(outward + turn), math.sin(outward + turn))) for turn in turns
    ]
    others = np.array([one for one in taken if not np.array_equal(one, place)]).reshape(-1, 2)

    def merit(number: int) -> tuple[float, int]:
        gaps = np.sqrt(((others - spots[number]) ** 2).sum(axis=1))
        inside = min(spots[number]) >= _ROOM and max(spots[number]) <= SIZE - _ROOM
        return (min(2.2 * _ROOM, float(gaps.min(initial=SIZE))) if inside else -1.0, -number)

    return spots[max(range(len(spots)), key=merit)]


def _said(board: Board, at: int) -> str:
    """A candidate's data in one line."""
    said = f"{board.names[at]}: {state(board, at)}, distance {board.distance[at]:.3f}"
    return escape(shortened(f"{said}, {board.weight_is} {percent(float(board.weight[at]))}", 160))


def state(board: Board, at: int) -> str:
    """The relation of a candidate to the picks."""
    if board.order[at] >= 0:
        return f"pick {board.order[at] + 1}"
    return f"pick {board.owner[at] + 1} stands for it" if board.owner[at] >= 0 else "no pick stands for it"
