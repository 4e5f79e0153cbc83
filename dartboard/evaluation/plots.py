"""Results as pictures: SVG that sits inside a page and takes its colours for text and lines from it.

Text and axes are drawn in a stand-in colour that becomes ``currentColor``, so one picture is readable on a
light and on a dark page. Text stays text: small files, and a reader can search them.
"""

import io
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dartboard.errors import MissingExtraError
from dartboard.evaluation.labels import merge_close, place_labels, spread_out
from dartboard.evaluation.measures import Measure
from dartboard.evaluation.summary import BOUNDS, best_of_families, family

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK, GRID = "#010203", "#040506"
"""Stand-ins for the page's own colours."""

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

_WITH_SETTINGS = ("mmr", "dedup")
"""Families whose members differ in one number."""

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


def trade_off(record: Mapping[str, Any]) -> str | None:
    """Quality against diversity, a cross of intervals a system; one family is one line."""
    headline = record["headline"]
    if "diversity" not in headline:
        return None
    points = {
        name: (measured[headline["diversity"]], measured[headline["quality"]])
        for name, measured in record["systems"].items()
        if family(name) not in BOUNDS
    }
    points = dict(sorted(points.items(), key=lambda point: point[0] != record["reference"]))
    with _figure(10.4, 4.9) as (figure, (axes,)):
        for kind in dict.fromkeys(map(family, points)):
            members = [name for name in points if family(name) == kind]
            if kind in _WITH_SETTINGS and len(members) > 1:
                xs, ys = ([points[name][side]["mean"] for name in members] for side in (0, 1))
                axes.plot(xs, ys, color=colour(kind), linewidth=1, alpha=0.5, zorder=2)
        for name, (across, up) in points.items():
            ours = name == record["reference"]
            axes.errorbar(
                across["mean"],
                up["mean"],
                xerr=_error(across),
                yerr=_error(up),
                fmt="o",
                color=colour(name),
                markersize=9 if ours else 6,
                linewidth=1,
                alpha=1.0,
                zorder=4 if ours else 3,
                ecolor=colour(name) + "66",
            )
        axes.set_xlabel(f"{record['measures'][headline['diversity']]}: less alike →")
        axes.set_ylabel(f"{record['measures'][headline['quality']]}: better →")
        axes.margins(0.12)
        where = {name: (a["mean"], u["mean"]) for name, (a, u) in points.items()}
        merged = merge_close(where, _setting_of, near=0.03)
        styles = {label: _label_style(names[0], record) for label, names in merged.items()}
        crosses = [(a["low"], u["low"], a["high"], u["high"]) for a, u in points.values()]
        place_labels(axes, {label: where[names[0]] for label, names in merged.items()}, styles, crosses)
        return _svg(figure, "Quality against diversity")


def against_k(record: Mapping[str, Any]) -> str | None:
    """The headline measures along k, for the best system of each family."""
    chosen = best_of_families(record)
    names = [Measure.parse(name).name for name in record["headline"].values()]
    depths = {
        name: sorted(m.k for m in map(Measure.parse, record["measures"]) if m.name == name and m.k)
        for name in names
    }
    depths = {name: [k for k in ks if name != "diversity" or k > 1] for name, ks in depths.items()}
    depths = {name: ks for name, ks in depths.items() if len(ks) > 1}
    if not depths:
        return None
    with _figure(10.4, 3.3, panels=len(depths)) as (figure, panels):
        for axes, (name, ks) in zip(panels, depths.items(), strict=True):
            ends = {}
            for system in chosen:
                values = [record["systems"][system][f"{name}@{k}"]["mean"] for k in ks]
                axes.plot(ks, values, **_line_style(system, record))
                ends[system] = values[-1]
            axes.set_xticks(ks)
            axes.set_xlabel("k")
            axes.set_title(Measure(name).title, loc="left", fontsize=10.5, color=INK)
            _label_ends(axes, ends, record)
        return _svg(figure, "Measures against k")


def query_scatter(
    record: Mapping[str, Any],
    measure: str,
    systems: tuple[str, str],
    values: tuple[Sequence[float], Sequence[float]],
    outliers: Mapping[int, str],
) -> str:
    """Query by query, one system against another; ``outliers`` name the queries at some places."""
    ours, theirs = (np.round(np.asarray(side, dtype=np.float64), 2) for side in values)
    spots, counts = np.unique(np.stack([theirs, ours]), axis=1, return_counts=True)
    with _figure(5.2, 4.8) as (figure, (axes,)):
        axes.plot([0, 1], [0, 1], color=INK, linewidth=0.8, linestyle=(0, (4, 4)), alpha=0.5, zorder=1)
        shade = np.where(
            spots[1] > spots[0],
            colour(systems[0]),
            np.where(spots[1] < spots[0], colour(systems[1]), "#9ca3af"),
        )
        axes.scatter(
            spots[0], spots[1], s=22 * np.sqrt(counts) ** 1.4, c=shade, alpha=0.75, linewidths=0, zorder=3
        )
        axes.set_xlim(-0.06, 1.06)
        axes.set_ylim(-0.06, 1.06)
        axes.set_aspect("equal")
        axes.set_xlabel(f"{systems[1]}: {record['measures'][measure]}")
        axes.set_ylabel(f"{systems[0]}: {record['measures'][measure]}")
        where = {name: (float(theirs[place]), float(ours[place])) for place, name in outliers.items()}
        place_labels(
            axes, where, {name: {"color": INK, "fontsize": 9, "fontweight": "bold"} for name in where}
        )
        return _svg(figure, f"{systems[0]} against {systems[1]}, query by query")


def sweep(record: Mapping[str, Any]) -> str | None:
    """Dartboard along σ, with the σ that labels and candidates choose."""
    found = record.get("sweep")
    if not found:
        return None
    red = COLOURS["dartboard"]
    with _figure(10.4, 3.3, panels=len(found["measures"])) as (figure, panels):
        for axes, name in zip(panels, found["measures"], strict=True):
            axes.set_xscale("log")
            axes.plot(
                found["sigmas"], found["values"][name], color=red, linewidth=2, marker="o", markersize=3.5
            )
            if "cosine" in record["systems"]:
                level = record["systems"]["cosine"][name]["mean"]
                axes.axhline(level, color=COLOURS["cosine"], linewidth=1, linestyle=(0, (4, 3)))
                axes.annotate(
                    "cosine",
                    (found["sigmas"][0], level),
                    textcoords="offset points",
                    xytext=(0, 4),
                    fontsize=9,
                    color=COLOURS["cosine"],
                )
            auto, fit = found["auto"], found["calibrated"]
            right = fit is None or fit["value"] <= auto["sigma"]
            if fit:
                blue = COLOURS["mmr"]
                axes.axvspan(fit["low"], fit["high"], color=blue, alpha=0.15, linewidth=0)
                text = f"calibrated {fit['value']:.3f}"
                _mark(axes, fit["value"], fit["values"][name], "D", blue, text, right=not right)
            text = f"auto {auto['sigma']:.3f}"
            _mark(axes, auto["sigma"], auto["values"][name], "*", red, text, right=right)
            axes.set_title(record["measures"].get(name, name), loc="left", fontsize=10.5, color=INK)
            axes.set_xlabel("σ")
            ticks = [s for s in (0.01, 0.03, 0.1, 0.3) if found["sigmas"][0] <= s <= found["sigmas"][-1]]
            axes.set_xticks(ticks, [f"{s:g}" for s in ticks])
            axes.minorticks_off()
            axes.margins(y=0.18)
        return _svg(figure, "Dartboard along sigma")


def redundancy(record: Mapping[str, Any]) -> str | None:
    """The measure with more and more near-copies of every chunk."""
    levels = record.get("redundancy")
    if not levels or "systems" not in levels:
        return None
    values = {name: found for name, found in levels["systems"].items() if family(name) not in BOUNDS}
    places = list(range(len(levels["copies"])))
    with _figure(10.4, 4.4) as (figure, (axes,)):
        for name, found in values.items():
            axes.plot(places, found, **_line_style(name, record))
        axes.set_xticks(places, [str(count) for count in levels["copies"]])
        axes.set_xlabel(f"near-copies of every chunk (cosine {levels['cosine']:g})")
        axes.set_ylabel(Measure.parse(levels["measure"]).title)
        _label_ends(axes, {name: found[-1] for name, found in values.items()}, record)
        return _svg(figure, "Recall against redundancy")


def _setting_of(system: str) -> str:
    """What a system is a setting of; most are settings of nothing but themselves."""
    return family(system) if family(system) in _WITH_SETTINGS else system


def _label_style(name: str, record: Mapping[str, Any]) -> dict[str, Any]:
    ours = name == record["reference"]
    return {
        "color": colour(name),
        "fontsize": 10.5 if ours else 9,
        "fontweight": "bold" if ours else "normal",
    }


def _line_style(name: str, record: Mapping[str, Any]) -> dict[str, Any]:
    ours = name == record["reference"]
    return {
        "color": colour(name),
        "linewidth": 2.6 if ours else 1.3,
        "marker": "o",
        "markersize": 5 if ours else 3,
        "zorder": 4 if ours else 3,
    }


def _label_ends(axes: "Axes", ends: Mapping[str, float], record: Mapping[str, Any]) -> None:
    """Name lines where they end, moved apart where they would overlap."""
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
            **_label_style(name, record),
        )


def _mark(axes: "Axes", x: float, y: float, marker: str, tint: str, text: str, *, right: bool) -> None:
    """A point with its name, above to the right or below to the left."""
    axes.plot([x], [y], marker=marker, color=tint, markersize=13 if marker == "*" else 8, zorder=5)
    axes.annotate(
        text,
        (x, y),
        textcoords="offset points",
        xytext=(9, 8) if right else (-9, -13),
        ha="left" if right else "right",
        fontsize=9,
        fontweight="bold",
        color=tint,
    )


def _error(interval: Mapping[str, float]) -> list[list[float]]:
    return [
        [max(0.0, interval["mean"] - interval["low"])],
        [max(0.0, interval["high"] - interval["mean"])],
    ]


class _figure:
    """A figure of one or more panels in the house style, closed afterwards."""

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


def _svg(figure: "Figure", title: str) -> str:
    """The picture as an element: no file header, no date, the page's colours and font."""
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


def _with_unique_ids(drawn: str, title: str) -> str:
    """Ids that no other picture on the page has."""
    prefix = re.sub(r"\W+", "-", title.lower())
    drawn = re.sub(r'id="', f'id="{prefix}-', drawn)
    drawn = re.sub(r'href="#', f'href="#{prefix}-', drawn)
    return re.sub(r"url\(#", f"url(#{prefix}-", drawn)


def outliers(ours: Iterable[float], theirs: Iterable[float], count: int = 3) -> tuple[list[int], list[int]]:
    """Where the first system is furthest ahead, and where furthest behind."""
    gaps = list(enumerate(a - b for a, b in zip(ours, theirs, strict=True)))
    ahead = sorted((gap for gap in gaps if gap[1] > 0), key=lambda gap: (-gap[1], gap[0]))
    behind = sorted((gap for gap in gaps if gap[1] < 0), key=lambda gap: (gap[1], gap[0]))
    return [place for place, _ in ahead[:count]], [place for place, _ in behind[:count]]
