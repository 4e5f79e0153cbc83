"""Put names beside points so that they can be read."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Box = tuple[float, float, float, float]

_WIDTH, _HEIGHT = 0.56, 1.25
"""Of a letter, in units of its font size; near enough for any sans-serif."""

_SIDES = ((1, 0), (-1, 0), (0, 1), (0, -1), (1, 1), (1, -1), (-1, 1), (-1, -1))


def place_labels(
    axes: "Axes",
    points: Mapping[str, tuple[float, float]],
    styles: Mapping[str, Mapping[str, Any]],
    crosses: Sequence[Box] = (),
) -> None:
    """Each name on the side of its point where it covers least; the first points choose first.

    ``crosses`` are intervals around points, which names should not cover either: x and y from, x and y to.
    """
    figure = axes.get_figure(root=True)
    if figure is None:
        return
    figure.draw_without_rendering()
    scale = 72.0 / figure.dpi

    def on_paper(x: float, y: float) -> tuple[float, float]:
        across, up = axes.transData.transform((x, y)) * scale
        return float(across), float(up)

    frame = axes.get_window_extent()
    inside: Box = (frame.x0 * scale, frame.y0 * scale, frame.x1 * scale, frame.y1 * scale)
    spots = {name: on_paper(*point) for name, point in points.items()}
    taken: list[Box] = [(x - 5, y - 5, x + 5, y + 5) for x, y in spots.values()]
    taken += [arm for cross in crosses for arm in _arms(*on_paper(*cross[:2]), *on_paper(*cross[2:]))]
    for name, spot in spots.items():
        size = float(styles[name]["fontsize"])
        best = _best_box(spot, len(name) * size * _WIDTH, size * _HEIGHT, taken, inside)
        taken.append(best)
        axes.annotate(
            name,
            points[name],
            xytext=((best[0] + best[2]) / 2 - spot[0], (best[1] + best[3]) / 2 - spot[1]),
            textcoords="offset points",
            ha="center",
            va="center",
            **styles[name],
        )


def _best_box(
    spot: tuple[float, float], width: float, height: float, taken: Sequence[Box], frame: Box
) -> Box:
    """Where a name covers least; further off only for the sake of more than a letter."""
    boxes = [(_box(*spot, width, height, side, far), far) for far in (1, 2, 3) for side in _SIDES]

    def cost(placed: tuple[Box, int]) -> float:
        box, far = placed
        covered = sum(_overlap(box, other) for other in taken)
        return covered + 4 * _outside(box, frame) + 25.0 * far

    return min(boxes, key=cost)[0]


def _arms(left: float, low: float, right: float, high: float) -> tuple[Box, Box]:
    """A cross as two thin boxes, widened a little so that names keep their distance."""
    x, y = (left + right) / 2, (low + high) / 2
    return (left - 1, y - 2, right + 1, y + 2), (x - 2, low - 1, x + 2, high + 1)


def merge_close(
    points: Mapping[str, tuple[float, float]], kind: Callable[[str], str], near: float
) -> dict[str, list[str]]:
    """Labels with the points that each names: neighbours of one kind share one, ``dedup-0.80 … 0.95``.

    ``near`` is a share of the range of all points.
    """
    wide = [max(side) - min(side) or 1.0 for side in zip(*points.values(), strict=True)]
    groups: list[list[str]] = []
    for name in points:
        for group in groups:
            apart = zip(points[group[-1]], points[name], wide, strict=True)
            if kind(group[-1]) == kind(name) and all(abs(a - b) <= near * w for a, b, w in apart):
                group.append(name)
                break
        else:
            groups.append([name])
    return {_shared_name(names): names for names in groups}


def _shared_name(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{names[0]} … {names[-1].split('-')[-1]}"


def spread_out(values: Sequence[float], gap: float) -> list[float]:
    """The values in their order, moved as little as needed to stand ``gap`` apart."""
    order = sorted(range(len(values)), key=lambda place: (values[place], place))
    groups: list[list[int]] = []
    for place in order:
        groups.append([place])
        while len(groups) > 1 and _top(groups[-2], values, gap) + gap > _bottom(groups[-1], values, gap):
            last = groups.pop()
            groups[-1] += last
    moved = list(values)
    for group in groups:
        start = _bottom(group, values, gap)
        for step, place in enumerate(group):
            moved[place] = start + step * gap
    return moved


def _bottom(group: Sequence[int], values: Sequence[float], gap: float) -> float:
    centre = sum(values[place] for place in group) / len(group)
    return centre - gap * (len(group) - 1) / 2


def _top(group: Sequence[int], values: Sequence[float], gap: float) -> float:
    return _bottom(group, values, gap) + gap * (len(group) - 1)


def _box(x: float, y: float, width: float, height: float, side: tuple[int, int], far: int) -> Box:
    away = 7.0 * far
    centre_x = x + side[0] * (away + width / 2)
    centre_y = y + side[1] * (away + height / 2)
    return (centre_x - width / 2, centre_y - height / 2, centre_x + width / 2, centre_y + height / 2)


def _overlap(one: Box, other: Box) -> float:
    width = min(one[2], other[2]) - max(one[0], other[0])
    height = min(one[3], other[3]) - max(one[1], other[1])
    return width * height if width > 0 and height > 0 else 0.0


def _outside(box: Box, frame: Box) -> float:
    area = (box[2] - box[0]) * (box[3] - box[1])
    return area - _overlap(box, frame)
