"""The map as SVG: candidates around the query, without scripts.

The distance from the centre is the exact distance to the query, and a dot's area is its weight. Picks have
numbers; a line connects a candidate with the pick that represents it. Colours are Okabe and Ito's, darkened
for contrast, and always come with a number.
"""

import math
from html import escape

import numpy as np

from dartboard.explain.result_view import Map, percent
from dartboard.plain_text import shortened
from dartboard.types import FloatArray

COLOURS = ("#0072b2", "#c44f00", "#007d5b", "#a8477d", "#8a6d00", "#2d7fb8", "#7a6f00", "#4c545c")
ALONE = "#7d858d"
"""Candidates that no pick represents."""

INK, SOFT, LINE, PAPER = "#1b1e22", "#565d66", "#d9dad6", "#ffffff"

SIZE = 400
_MIDDLE = SIZE / 2
_REACH = _MIDDLE - 26
_LARGEST, _SMALLEST = 13.0, 1.0
_ROOM = 9.0
"""A dot of this radius has room for its number."""


def colour(pick: int) -> str:
    """The colour of a pick; -1 stands for none."""
    return ALONE if pick < 0 else COLOURS[pick % len(COLOURS)]


def draw_map(drawn: Map) -> str:
    """One ``<svg>`` element."""
    places = np.stack((_MIDDLE + _REACH * drawn.points[:, 0], _MIDDLE - _REACH * drawn.points[:, 1]), axis=1)
    radii = np.maximum(_LARGEST * np.sqrt(drawn.weight / (drawn.weight.max() or 1.0)), _SMALLEST)
    label = f"Map of {len(drawn.names)} candidates around the query. The tables have the same numbers."
    others = sorted(range(drawn.picks, len(places)), key=lambda place: -radii[place])
    parts = [
        f'<svg class="dbv-map" viewBox="0 0 {SIZE} {SIZE}" width="100%" role="img" aria-label="{label}" '
        'font-family="system-ui,sans-serif" font-size="11" text-anchor="middle">',
        *_rings(float(drawn.distance.max())),
        *(_line(drawn, places, place) for place in others if drawn.owner[place] >= 0),
        f'<path d="M{_MIDDLE - 6} {_MIDDLE}h12M{_MIDDLE} {_MIDDLE - 6}v12" stroke="{INK}" stroke-width="2"/>',
        *(_dot(drawn, places, radii, place, 'fill-opacity="0.4"') for place in others),
    ]
    for place in reversed(range(drawn.picks)):  # the first on top
        parts.append(_dot(drawn, places, radii, place, f'class="dbv-pick" stroke="{PAPER}"'))
        parts.append(_number(places[place], float(radii[place]), place))
    return "".join([*parts, "</svg>"])


def _rings(farthest: float) -> list[str]:
    """Circles at round distances, labelled on the left, where the map has least weight."""
    if farthest <= 0:
        return []
    gap = round_gap(farthest / 4)
    steps = [step * gap for step in range(1, math.floor(1.06 * farthest / gap) + 1)]
    rings = [
        f'<circle class="dbv-ring" cx="{_MIDDLE}" cy="{_MIDDLE}" r="{_REACH * step / farthest:.1f}" '
        f'fill="none" stroke="{LINE}"/>'
        for step in steps
    ]
    labels = [
        f'<text class="dbv-scale" x="{_MIDDLE - _REACH * step / farthest:.1f}" y="{_MIDDLE}" dy="0.36em" '
        f'fill="{SOFT}" stroke="{PAPER}" stroke-width="4" paint-order="stroke">{step:.3g}</text>'
        for step in steps
    ]
    return rings + labels


def round_gap(about: float) -> float:
    """1, 2 or 5 times a power of ten, nearest to ``about`` by ratio."""
    power = 10.0 ** math.floor(math.log10(about))
    return min((step * power for step in (1, 2, 5, 10)), key=lambda step: abs(math.log(step / about)))


def _line(drawn: Map, places: FloatArray, place: int) -> str:
    """From a candidate to the pick that represents it."""
    owner = int(drawn.owner[place])
    (x1, y1), (x2, y2) = places[place], places[owner]
    return (
        f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" '
        f'stroke="{colour(owner)}" stroke-opacity="0.5"/>'
    )


def _dot(drawn: Map, places: FloatArray, radii: FloatArray, place: int, style: str) -> str:
    """A candidate, with its data for who points at it."""
    said = f"{drawn.names[place]}: {drawn.state(place)}, distance {drawn.distance[place]:.3f}, "
    said += f"{drawn.weight_is} {percent(float(drawn.weight[place]))}"
    pick = place if place < drawn.picks else int(drawn.owner[place])
    return (
        f'<circle cx="{places[place][0]:.1f}" cy="{places[place][1]:.1f}" r="{radii[place]:.1f}" '
        f'fill="{colour(pick)}" {style}><title>{escape(shortened(said, 160))}</title></circle>'
    )


def _number(place: FloatArray, radius: float, pick: int) -> str:
    """A pick's number: on its dot if there is room, otherwise beside it, away from the centre."""
    x, y = place
    fill, halo = PAPER, ""
    if radius < _ROOM:
        outward = math.atan2(y - _MIDDLE, x - _MIDDLE)
        x, y = x + (radius + 8) * math.cos(outward), y + (radius + 8) * math.sin(outward)
        fill, halo = colour(pick), f' stroke="{PAPER}" stroke-width="3" paint-order="stroke"'
    return (
        f'<text class="dbv-no" x="{x:.1f}" y="{y:.1f}" dy="0.36em" pointer-events="none" fill="{fill}" '
        f'font-weight="700"{halo}>{pick + 1}</text>'
    )
