"""Plots of an evaluation (SVG); the style is in :mod:`dartboard.evaluation.plot_style`."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dartboard.errors import InvalidInputError
from dartboard.evaluation.measures import Measure
from dartboard.evaluation.plot_style import (
    COLOURS,
    INK,
    Drawing,
    as_svg,
    colour,
    error_bars,
    label_ends,
    label_style,
    line_style,
    merge_close,
    place_labels,
)
from dartboard.evaluation.summary import BOUNDS, best_of_families, family

if TYPE_CHECKING:
    from matplotlib.axes import Axes


_WITH_SETTINGS = ("mmr", "dedup")
"""Families whose members differ in one parameter."""


def trade_off(record: Mapping[str, Any]) -> str | None:
    """Quality against diversity, with a cross of intervals per system; one line per family."""
    headline = record["headline"]
    if "diversity" not in headline:
        return None
    points = {
        name: (measured[headline["diversity"]], measured[headline["quality"]])
        for name, measured in record["systems"].items()
        if family(name) not in BOUNDS
    }
    points = dict(sorted(points.items(), key=lambda point: point[0] != record["reference"]))
    with Drawing(10.4, 4.9) as (figure, (axes,)):
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
                xerr=error_bars(across),
                yerr=error_bars(up),
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
        styles = {label: label_style(names[0], record["reference"]) for label, names in merged.items()}
        crosses = [(a["low"], u["low"], a["high"], u["high"]) for a, u in points.values()]
        place_labels(axes, {label: where[names[0]] for label, names in merged.items()}, styles, crosses)
        return as_svg(figure, "Quality against diversity")


def against_k(record: Mapping[str, Any]) -> str | None:
    """The headline measures by k, for the best system of each family."""
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
    with Drawing(10.4, 3.3, panels=len(depths)) as (figure, panels):
        for axes, (name, ks) in zip(panels, depths.items(), strict=True):
            ends = {}
            for system in chosen:
                values = [record["systems"][system][f"{name}@{k}"]["mean"] for k in ks]
                axes.plot(ks, values, **line_style(system, record["reference"]))
                ends[system] = values[-1]
            axes.set_xticks(ks)
            axes.set_xlabel("k")
            axes.set_title(Measure(name).title, loc="left", fontsize=10.5, color=INK)
            label_ends(axes, ends, record["reference"])
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
        return as_svg(figure, f"{systems[0]} against {systems[1]}, query by query")


def sweep(record: Mapping[str, Any]) -> str | None:
    """Dartboard by σ, with the calibrated and the automatic σ."""
    found = record.get("sweep")
    if not found:
        return None
    red = COLOURS["dartboard"]
    with Drawing(10.4, 3.3, panels=len(found["measures"])) as (figure, panels):
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
                shown = found["sigmas"][0], found["sigmas"][-1]
                axes.axvspan(*np.clip((fit["low"], fit["high"]), *shown), color=blue, alpha=0.15, linewidth=0)
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
        return as_svg(figure, "Dartboard along sigma")


def redundancy(record: Mapping[str, Any]) -> str | None:
    """The measure with an increasing number of near-duplicates of every chunk."""
    levels = record.get("redundancy")
    if not levels or "systems" not in levels:
        return None
    values = {name: found for name, found in levels["systems"].items() if family(name) not in BOUNDS}
    places = list(range(len(levels["copies"])))
    with Drawing(10.4, 4.4) as (figure, (axes,)):
        for name, found in values.items():
            axes.plot(places, found, **line_style(name, record["reference"]))
        axes.set_xticks(places, [str(count) for count in levels["copies"]])
        axes.set_xlabel(f"near-copies of every chunk (cosine {levels['cosine']:g})")
        axes.set_ylabel(Measure.parse(levels["measure"]).title)
        label_ends(axes, {name: found[-1] for name, found in values.items()}, record["reference"])
        return as_svg(figure, "Recall against redundancy")


def _setting_of(system: str) -> str:
    """The family of a system that is one of several settings; otherwise its own name."""
    return family(system) if family(system) in _WITH_SETTINGS else system


def _mark(axes: "Axes", x: float, y: float, marker: str, tint: str, text: str, *, right: bool) -> None:
    """A point with its label, above to the right or below to the left."""
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


def outliers(ours: Iterable[float], theirs: Iterable[float], count: int = 3) -> tuple[list[int], list[int]]:
    """The indices where the first system is furthest ahead, and furthest behind."""
    gaps = list(enumerate(a - b for a, b in zip(ours, theirs, strict=True)))
    ahead = sorted((gap for gap in gaps if gap[1] > 0), key=lambda gap: (-gap[1], gap[0]))
    behind = sorted((gap for gap in gaps if gap[1] < 0), key=lambda gap: (gap[1], gap[0]))
    return [place for place, _ in ahead[:count]], [place for place, _ in behind[:count]]


Interval = Mapping[str, float]
"""``mean``, ``low`` and ``high``."""

_APART = 0.3
"""Horizontal offset between the points of one condition, so that intervals do not overlap."""


def condition_lines(
    conditions: Sequence[str],
    systems: Mapping[str, Sequence[Interval | None]],
    *,
    reference: str,
    quantity: str,
    title: str,
    level: tuple[float, str] | None = None,
    size: tuple[float, float] = (10.4, 5.2),
) -> str:
    """The same systems under several conditions: one line each, with intervals; None leaves a gap.

    ``level`` is a reference height and its label.
    """
    for name, found in systems.items():
        if len(found) != len(conditions):
            raise InvalidInputError(f"{name!r} has {len(found)} values for {len(conditions)} conditions")
    shifts = np.linspace(-_APART / 2, _APART / 2, len(systems)) if len(systems) > 1 else [0.0]
    with Drawing(*size) as (figure, (axes,)):
        if level is not None:
            axes.axhline(level[0], color=INK, linewidth=1, linestyle=(0, (4, 3)), alpha=0.6)
            axes.set_title(f"– – –  {level[1]}", loc="left", fontsize=9, color=INK)
        ends = {}
        for shift, (name, found) in zip(shifts, systems.items(), strict=True):
            known = [(place + shift, one) for place, one in enumerate(found) if one is not None]
            if not known:
                continue
            look = line_style(name, reference)
            axes.plot([x for x, _ in known], [one["mean"] for _, one in known], **look)
            bars = np.hstack([error_bars(one) for _, one in known])
            axes.errorbar(
                [x for x, _ in known],
                [one["mean"] for _, one in known],
                yerr=bars,
                fmt="none",
                ecolor=look["color"],
                elinewidth=1.6 if name == reference else 0.9,
                alpha=0.9 if name == reference else 0.45,
                zorder=look["zorder"] - 0.5,
            )
            ends[name] = known[-1][1]["mean"]
        axes.set_xlim(-0.5, len(conditions) - 0.6)
        axes.set_xticks(range(len(conditions)), conditions)
        axes.tick_params(axis="x", length=0)
        axes.grid(axis="x", visible=False)
        axes.set_ylabel(quantity)
        label_ends(axes, ends, reference)
        return as_svg(figure, title)
