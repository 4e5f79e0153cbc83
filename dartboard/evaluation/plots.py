"""Plots of an evaluation, as SVG inside of a page.

Text and axes have a placeholder colour that becomes ``currentColor``, so that a plot is readable on light and
dark pages; :func:`standalone` gives it its own colours and background. Text stays text: files are small and
searchable.
"""

import io
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dartboard.errors import MissingExtraError
from dartboard.evaluation.measures import Measure
from dartboard.evaluation.summary import BOUNDS, best_of_families, family

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
_OTHER = ("#a855f7", "#0d9488", "#db2777", "#65a30d")
_DASHES = ("-", (0, (5, 2)), (0, (3, 2, 1, 2)), (0, (1, 1.5)))
_MARGIN = 10.0
"""Margin around a standalone plot."""

_STYLE = {
    "svg.fonttype": "none",
    "svg.hashsalt": "dartboard",
    "font.family": "sans-serif",
    "font.size": 10,
    "text.color": INK,
    "legend.frameon": False,
    "legend.fontsize": 9,
    "legend.labelcolor": INK,
    "axes.edgecolor": GRID,
    "axes.labelcolor": INK,
    "axes.titlecolor": INK,
    "axes.titlesize": 10.5,
    "axes.titlelocation": "left",
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
    """The plot as an element: without file header and date, with the page's colours, font and unique ids."""
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    drawn = buffer.getvalue()
    drawn = drawn[drawn.index("<svg") :]
    drawn = drawn.replace(INK, "currentColor").replace(GRID, "var(--grid)")
    drawn = re.sub(r"<metadata>.*?</metadata>", "", drawn, flags=re.DOTALL)
    drawn = re.sub(r"font: ([^;\"]*?)(\d[\d.]*px) [^;\"]*", r"font: \1\2 inherit", drawn)
    drawn = drawn.replace("font: ", "font-family: inherit; font: ")
    drawn = re.sub(r"<svg ", f'<svg role="img" aria-label="{title}" ', drawn, count=1)
    prefix = re.sub(r"\W+", "-", title.lower())
    drawn = re.sub(r'id="', f'id="{prefix}-', drawn)
    drawn = re.sub(r'href="#', f'href="#{prefix}-', drawn)
    return re.sub(r"url\(#", f"url(#{prefix}-", drawn)


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


def colour(system: str) -> str:
    """The colour of a system's family."""
    name = family(system)
    return COLOURS.get(name) or _OTHER[sum(map(ord, name)) % len(_OTHER)]


def line_style(name: str, reference: str, place: int = 0) -> dict[str, Any]:
    """The style of a system's line; ``place`` tells the members of a family apart."""
    ours = name == reference
    return {
        "color": colour(name),
        "linestyle": _DASHES[place % len(_DASHES)],
        "linewidth": 2.6 if ours else 1.3,
        "marker": "o",
        "markersize": 5 if ours else 3,
        "zorder": 4 if ours else 3,
        "label": name,
    }


def legend_beside(axes: "Axes") -> None:
    """A legend to the right of a panel."""
    axes.legend(loc="center left", bbox_to_anchor=(1.01, 0.5))


def trade_off(record: Mapping[str, Any]) -> str | None:
    """Quality against diversity, a family a colour; a line joins the settings of one method."""
    headline = record["headline"]
    if "diversity" not in headline:
        return None
    families: dict[str, list[str]] = {}
    for name in sorted(record["systems"], key=lambda name: name != record["reference"]):
        if family(name) not in BOUNDS:
            families.setdefault(family(name), []).append(name)
    with Drawing(10.4, 4.9) as (figure, (axes,)):
        for kind, names in families.items():
            across, up = (
                [record["systems"][name][headline[side]] for name in names]
                for side in ("diversity", "quality")
            )
            ours, tint = record["reference"] in names, colour(kind)
            xs, ys = [one["mean"] for one in across], [one["mean"] for one in up]
            bars: dict[str, Any] = {
                "xerr": _bars(across),
                "yerr": _bars(up),
                "ecolor": tint + "66",
                "elinewidth": 1,
            }
            label = names[0] if len(names) == 1 else f"{names[0]} … {names[-1].removeprefix(kind + '-')}"
            order = 4 if ours else 3
            joined = "-" if kind in ("mmr", "dedup") else "none"
            axes.plot(xs, ys, color=tint, linewidth=1, linestyle=joined, alpha=0.5, zorder=2)
            axes.errorbar(
                xs, ys, fmt="o", color=tint, markersize=9 if ours else 6, label=label, zorder=order, **bars
            )
            if len(names) > 1:  # the first setting is hollow
                axes.plot(xs[:1], ys[:1], "o", color=tint, markerfacecolor="white", zorder=order + 1)
        axes.set_xlabel(f"{record['measures'][headline['diversity']]}: less alike →")
        axes.set_ylabel(f"{record['measures'][headline['quality']]}: better →")
        axes.margins(0.08)
        legend_beside(axes)
        return as_svg(figure, "Quality against diversity")


def against_k(record: Mapping[str, Any]) -> str | None:
    """The headline measures by k, for the best system of each family."""
    depths: dict[str, list[int]] = {}
    for name in dict.fromkeys(Measure.parse(name).name for name in record["headline"].values()):
        measures = (one for one in map(Measure.parse, record["measures"]) if one.name == name and one.k)
        ks = sorted(one.k for one in measures if one.k and (name != "diversity" or one.k > 1))
        if len(ks) > 1:
            depths[name] = ks
    if not depths:
        return None
    with Drawing(10.4, 3.3, panels=len(depths)) as (figure, panels):
        for axes, (name, ks) in zip(panels, depths.items(), strict=True):
            for system in best_of_families(record):
                values = [record["systems"][system][f"{name}@{k}"]["mean"] for k in ks]
                axes.plot(ks, values, **line_style(system, record["reference"]))
            axes.set_xticks(ks)
            axes.set_xlabel("k")
            axes.set_title(Measure(name).title)
        legend_beside(panels[-1])
        return as_svg(figure, "Measures against k")


def query_scatter(
    record: Mapping[str, Any],
    measure: str,
    systems: tuple[str, str],
    values: tuple[Sequence[float], Sequence[float]],
    outliers: Mapping[int, str],
) -> str:
    """Query by query, one system against another; ``outliers`` are indices of queries to label."""
    ours, theirs = (np.round(np.asarray(side, dtype=np.float64), 2) for side in values)
    spots, counts = np.unique(np.stack([theirs, ours]), axis=1, return_counts=True)
    with Drawing(5.2, 4.8) as (figure, (axes,)):
        axes.plot([0, 1], [0, 1], color=INK, linewidth=0.8, linestyle=(0, (4, 4)), alpha=0.5, zorder=1)
        shade = np.where(
            spots[1] > spots[0],
            colour(systems[0]),
            np.where(spots[1] < spots[0], colour(systems[1]), "#9ca3af"),
        )
        sizes = 22 * np.sqrt(counts) ** 1.4
        axes.scatter(spots[0], spots[1], s=sizes, c=shade, alpha=0.75, linewidths=0, zorder=3)
        letters: dict[tuple[float, float], str] = {}
        for place, letter in outliers.items():
            spot = float(theirs[place]), float(ours[place])
            letters[spot] = letters.get(spot, "") + letter
        for spot, text in letters.items():
            axes.annotate(text, spot, xytext=(6, 5), textcoords="offset points", fontweight="bold")
        axes.set_xlim(-0.06, 1.12)
        axes.set_ylim(-0.06, 1.12)
        axes.set_aspect("equal")
        axes.set_xlabel(f"{systems[1]}: {record['measures'][measure]}")
        axes.set_ylabel(f"{systems[0]}: {record['measures'][measure]}")
        return as_svg(figure, f"{systems[0]} against {systems[1]}, query by query")


def sweep(record: Mapping[str, Any]) -> str | None:
    """Dartboard by σ, with the calibrated and the automatic σ."""
    found = record.get("sweep")
    if not found:
        return None
    sigmas, auto, fit = found["sigmas"], found["auto"], found["calibrated"]
    red, blue = COLOURS["dartboard"], COLOURS["mmr"]
    with Drawing(10.4, 3.3, panels=len(found["measures"])) as (figure, panels):
        for axes, name in zip(panels, found["measures"], strict=True):
            axes.set_xscale("log")
            axes.plot(sigmas, found["values"][name], color=red, linewidth=2, marker="o", markersize=3.5)
            if "cosine" in record["systems"]:
                level = record["systems"]["cosine"][name]["mean"]
                grey = COLOURS["cosine"]
                axes.axhline(level, color=grey, linewidth=1, linestyle=(0, (4, 3)), label="cosine")
            if fit:
                within = np.clip((fit["low"], fit["high"]), sigmas[0], sigmas[-1])
                axes.axvspan(*within, color=blue, alpha=0.15, linewidth=0)
                text = f"calibrated {fit['value']:.3f}"
                axes.plot([fit["value"]], [fit["values"][name]], "D", color=blue, ms=8, zorder=5, label=text)
            text = f"auto {auto['sigma']:.3f}"
            axes.plot([auto["sigma"]], [auto["values"][name]], "*", color=red, ms=13, zorder=5, label=text)
            axes.set_title(record["measures"].get(name, name))
            axes.set_xlabel("σ")
            ticks = [sigma for sigma in (0.01, 0.03, 0.1, 0.3) if sigmas[0] <= sigma <= sigmas[-1]]
            axes.set_xticks(ticks, [f"{sigma:g}" for sigma in ticks])
            axes.minorticks_off()
        legend_beside(panels[-1])
        return as_svg(figure, "Dartboard along sigma")


def redundancy(record: Mapping[str, Any]) -> str | None:
    """The measure with an increasing number of near-duplicates of every chunk."""
    levels = record.get("redundancy")
    if not levels or "systems" not in levels:
        return None
    places = list(range(len(levels["copies"])))
    seen: dict[str, int] = {}
    with Drawing(10.4, 4.4) as (figure, (axes,)):
        for name, found in levels["systems"].items():
            if family(name) in BOUNDS:
                continue
            member = seen.get(family(name), 0)
            seen[family(name)] = member + 1
            axes.plot(places, found, **line_style(name, record["reference"], member))
        axes.set_xticks(places, [str(count) for count in levels["copies"]])
        axes.set_xlabel(f"near-copies of every chunk (cosine {levels['cosine']:g})")
        axes.set_ylabel(Measure.parse(levels["measure"]).title)
        legend_beside(axes)
        return as_svg(figure, "Recall against redundancy")


def outliers(ours: Iterable[float], theirs: Iterable[float], count: int = 3) -> tuple[list[int], list[int]]:
    """The indices where the first system is furthest ahead, and furthest behind."""
    gaps = list(enumerate(a - b for a, b in zip(ours, theirs, strict=True)))
    ahead = sorted((gap for gap in gaps if gap[1] > 0), key=lambda gap: (-gap[1], gap[0]))
    behind = sorted((gap for gap in gaps if gap[1] < 0), key=lambda gap: (gap[1], gap[0]))
    return [place for place, _ in ahead[:count]], [place for place, _ in behind[:count]]


def _bars(intervals: Sequence[Mapping[str, float]]) -> list[list[float]]:
    """Intervals as lengths below and above their means."""
    below = [max(0.0, one["mean"] - one["low"]) for one in intervals]
    return [below, [max(0.0, one["high"] - one["mean"]) for one in intervals]]
