"""The style of plots: colours, lines, and labels of points that do not overlap.

Plots are SVG inside of a page. Text and axes have a placeholder colour that becomes ``currentColor``, so that
a plot is readable on light and dark pages; :func:`standalone` gives it its own colours and background. Text
stays text: files are small and searchable.
"""

import io
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dartboard.errors import MissingExtraError
from dartboard.evaluation.summary import family

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


INK, GRID = "#010203", "#040506"
"""Placeholders for the page's colours."""

COLOURS = {
    "dartboard": "#e5484d",
    "cosine": "#7a7f87",
    "mmr": "#3b82f6",
    "dedup": "#d97706",
    "pyversity": "#16a34a",
    "random": "#9ca3af",
    "oracle": "#7a7f87",
}
_MARGIN = 10.0
"""Margin around a standalone plot."""

_OTHER = ("#a855f7", "#0d9488", "#db2777", "#65a30d")

_STYLE = {
    "svg.fonttype": "none",
    "svg.hashsalt": "dartboard",
    "font.family": "sans-serif",
    "font.size": 10,
    "text.color": INK,
    "axes.edgecolor": GRID,
    "axes.labelcolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": GRID,
    "grid.linewidth": 0.6,
    "xtick.color": INK,
    "ytick.color": INK,
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "savefig.facecolor": "none",
}


def colour(system: str) -> str:
    """The colour of a system's family."""
    name = family(system)
    return COLOURS.get(name) or _OTHER[sum(map(ord, name)) % len(_OTHER)]


def label_style(name: str, reference: str) -> dict[str, Any]:
    """The style of a system's label; the reference is emphasised."""
    ours = name == reference
    return {
        "color": colour(name),
        "fontsize": 10.5 if ours else 9,
        "fontweight": "bold" if ours else "normal",
    }


def line_style(name: str, reference: str) -> dict[str, Any]:
    """The style of a system's line."""
    ours = name == reference
    return {
        "color": colour(name),
        "linewidth": 2.6 if ours else 1.3,
        "marker": "o",
        "markersize": 5 if ours else 3,
        "zorder": 4 if ours else 3,
    }


def label_ends(axes: "Axes", ends: Mapping[str, float], reference: str) -> None:
    """Label lines at their ends, without overlaps."""
    low, high = axes.get_ylim()
    height = axes.get_window_extent().height / axes.figure.dpi * 72
    heights = spread_out(list(ends.values()), 12.0 / height * (high - low))
    for (name, end), at in zip(ends.items(), heights, strict=True):
        axes.annotate(
            name,
            (1.0, end),
            xycoords=("axes fraction", "data"),
            xytext=(1.02, (at - low) / (high - low)),
            textcoords="axes fraction",
            va="center",
            annotation_clip=False,
            **label_style(name, reference),
        )


def error_bars(interval: Mapping[str, float]) -> list[list[float]]:
    """An interval as lengths below and above its mean."""
    return [
        [max(0.0, interval["mean"] - interval["low"])],
        [max(0.0, interval["high"] - interval["mean"])],
    ]


class Drawing:
    """A figure with one or more panels in our style, closed at the end."""

    def __init__(self, width: float, height: float, panels: int = 1) -> None:
        self._size, self._panels = (width, height), panels

    def __enter__(self) -> "tuple[Figure, list[Axes]]":
        try:
            import matplotlib
            from matplotlib.backends.backend_svg import FigureCanvasSVG
            from matplotlib.figure import Figure
        except ImportError as error:
            raise MissingExtraError("matplotlib", "eval", "the plots of a report") from error
        self._context = matplotlib.rc_context(_STYLE)
        self._context.__enter__()
        figure = Figure(figsize=self._size, layout="constrained")
        FigureCanvasSVG(figure)
        return figure, list(figure.subplots(1, self._panels, squeeze=False)[0])

    def __exit__(self, *error: Any) -> None:
        self._context.__exit__(*error)


def as_svg(figure: "Figure", title: str) -> str:
    """The plot as an element: without file header and date, with the page's colours and font."""
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    drawn = buffer.getvalue()
    drawn = drawn[drawn.index("<svg") :]
    drawn = drawn.replace(INK, "currentColor").replace(GRID, "var(--grid)")
    drawn = re.sub(r"<metadata>.*?</metadata>", "", drawn, flags=re.DOTALL)
    drawn = re.sub(r"font: ([^;\"]*?)(\d[\d.]*px) [^;\"]*", r"font: \1\2 inherit", drawn)
    drawn = drawn.replace("font: ", "font-family: inherit; font: ")
    drawn = re.sub(r"<svg ", f'<svg role="img" aria-label="{title}" ', drawn, count=1)
    return _with_unique_ids(drawn, title)


def standalone(picture: str, *, ink: str = "#1c2024", grid: str = "#d5d8dc", paper: str = "#ffffff") -> str:
    """A plot as a file with its own colours and background, readable on any page and by any program."""
    picture = picture.replace("currentColor", ink).replace("var(--grid)", grid)
    picture = re.sub(r"font-family: inherit; font: ([^;\"]*?)inherit", r"font: \1sans-serif", picture)
    width, height = map(float, re.findall(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', picture)[0])
    frame = f"{-_MARGIN:g} {-_MARGIN:g} {width + 2 * _MARGIN:g} {height + 2 * _MARGIN:g}"
    picture = re.sub(r'viewBox="[^"]*"', f'viewBox="{frame}"', picture, count=1)
    opening = picture[: picture.index(">") + 1]
    place = dict(zip(("x", "y", "width", "height"), frame.split(), strict=True))
    sides = " ".join(f'{side}="{value}"' for side, value in place.items())
    return picture.replace(opening, f'{opening}<rect {sides} rx="6" fill="{paper}"/>', 1)


def _with_unique_ids(drawn: str, title: str) -> str:
    """Make ids unique on the page."""
    prefix = re.sub(r"\W+", "-", title.lower())
    drawn = re.sub(r'id="', f'id="{prefix}-', drawn)
    drawn = re.sub(r'href="#', f'href="#{prefix}-', drawn)
    return re.sub(r"url\(#", f"url(#{prefix}-", drawn)


Box = tuple[float, float, float, float]

_WIDTH, _HEIGHT = 0.56, 1.25
"""Width of a letter in units of its font size; approximate for any sans-serif font."""

_SIDES = ((1, 0), (-1, 0), (0, 1), (0, -1), (1, 1), (1, -1), (-1, 1), (-1, -1))


def place_labels(
    axes: "Axes",
    points: Mapping[str, tuple[float, float]],
    styles: Mapping[str, Mapping[str, Any]],
    crosses: Sequence[Box] = (),
) -> None:
    """Place each label beside its point where it covers least; the first points choose first.

    ``crosses`` are intervals around points (x and y from, x and y to), which labels should not cover either.
    Hand-written: matplotlib does not move labels, and adjustText would be another dependency.
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
    """The position that covers least; a farther one only if it saves more than a letter."""
    boxes = [(_box(*spot, width, height, side, far), far) for far in (1, 2, 3) for side in _SIDES]

    def cost(placed: tuple[Box, int]) -> float:
        box, far = placed
        covered = sum(_overlap(box, other) for other in taken)
        outside = (box[2] - box[0]) * (box[3] - box[1]) - _overlap(box, frame)
        return covered + 4 * outside + 25.0 * far

    return min(boxes, key=cost)[0]


def _arms(left: float, low: float, right: float, high: float) -> tuple[Box, Box]:
    """A cross as two thin boxes, slightly widened to keep a distance."""
    x, y = (left + right) / 2, (low + high) / 2
    return (left - 1, y - 2, right + 1, y + 2), (x - 2, low - 1, x + 2, high + 1)


def merge_close(
    points: Mapping[str, tuple[float, float]], kind: Callable[[str], str], near: float
) -> dict[str, list[str]]:
    """Labels with their points: close points of one kind share a label, ``dedup-0.80 … 0.95``.

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
    return {
        names[0] if len(names) == 1 else f"{names[0]} … {names[-1].split('-')[-1]}": names for names in groups
    }


def spread_out(values: Sequence[float], gap: float) -> list[float]:
    """The values in order, moved as little as possible to be ``gap`` apart."""

    def bottom(group: Sequence[int]) -> float:
        """The start of a group whose members are ``gap`` apart around their mean."""
        return sum(values[place] for place in group) / len(group) - gap * (len(group) - 1) / 2

    groups: list[list[int]] = []
    for place in sorted(range(len(values)), key=lambda place: (values[place], place)):
        groups.append([place])
        while len(groups) > 1 and bottom(groups[-2]) + gap * len(groups[-2]) > bottom(groups[-1]):
            last = groups.pop()
            groups[-1] += last
    moved = list(values)
    for group in groups:
        start = bottom(group)
        for step, place in enumerate(group):
            moved[place] = start + step * gap
    return moved


def _box(x: float, y: float, width: float, height: float, side: tuple[int, int], far: int) -> Box:
    away = 7.0 * far
    centre_x = x + side[0] * (away + width / 2)
    centre_y = y + side[1] * (away + height / 2)
    return (centre_x - width / 2, centre_y - height / 2, centre_x + width / 2, centre_y + height / 2)


def _overlap(one: Box, other: Box) -> float:
    width = min(one[2], other[2]) - max(one[0], other[0])
    height = min(one[3], other[3]) - max(one[1], other[1])
    return width * height if width > 0 and height > 0 else 0.0
