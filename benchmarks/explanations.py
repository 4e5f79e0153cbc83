"""The pictures and tables of docs/explanation/, from what the benchmarks measured."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from benchmarks.quality_tables import OURS, BySet, kept
from dartboard.evaluation.plots import COLOURS, INK, Drawing, as_svg, line_style, standalone
from dartboard.evaluation.tables import markdown

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SIZE = (6.6, 3.9)
"""Small enough for its text to be read on a phone."""

TINTS = {
    "clean": COLOURS["cosine"],
    "copies at .97": COLOURS["dartboard"],
    "copies at .90": COLOURS["dedup"],
    "text edits": COLOURS["mmr"],
}


def coverage_picture(found: Mapping[str, Any]) -> str:
    """What each method covers, pick by pick, and what no set of that size can exceed."""
    ks = range(1, len(found["ceiling"]) + 1)
    with Drawing(*SIZE) as (figure, (axes,)):
        axes.fill_between(ks, found["ceiling"], 1.0, color=COLOURS["cosine"], alpha=0.15, linewidth=0)
        axes.annotate("no set reaches this", (1.2, 0.95), fontsize=9, color=INK, va="top")
        for place, (name, values) in enumerate(found["coverage"].items()):
            axes.plot(ks, values, **line_style(name, OURS, 0 if name == OURS else place))
        axes.set_xlabel("picks")
        axes.set_ylabel("coverage")
        axes.set_ylim(0.0, 1.0)
        axes.set_xticks(list(ks))
        axes.legend(frameon=False, fontsize=9, labelcolor=INK, loc="lower right")
        return standalone(as_svg(figure, "Coverage pick by pick"))


def gains_picture(found: Mapping[str, Any]) -> str:
    """The gains of Dartboard's picks: each is at most as large as the one before."""
    gains = found["gains"]
    with Drawing(6.6, 2.6) as (figure, (axes,)):
        axes.bar(range(1, len(gains) + 1), gains, color=COLOURS["dartboard"], width=0.7)
        axes.set_xlabel("pick")
        axes.set_ylabel("gain")
        axes.set_xticks(range(1, len(gains) + 1))
        axes.grid(axis="x", visible=False)
        return standalone(as_svg(figure, "Gains"))


def weight_picture(quality: BySet) -> str:
    """MMR along λ, a line a condition: the best λ is another one in each."""
    weights = [float(name.split("-")[1]) for name in _family(quality, "mmr")]
    lines = {
        condition: [kept(quality, f"mmr-{weight:g}", condition)[0] for weight in weights]
        for condition in TINTS
    }
    levels = {condition: kept(quality, OURS, condition)[0] for condition in lines}
    with Drawing(*SIZE) as (figure, (axes,)):
        _lines(axes, weights, lines)
        for condition, level in levels.items():
            axes.plot([1.0], [level], marker="*", markersize=11, color=TINTS[condition], clip_on=False)
        axes.set_xticks([*weights, 1.0], [*(f"{weight:g}" for weight in weights), "★"])
        axes.set_xlabel("λ of MMR (weight of relevance);  ★ Dartboard, untuned")
        axes.set_ylim(0.4, 1.05)
        return standalone(as_svg(figure, "MMR along lambda"))


def _lines(axes: "Axes", xs: Sequence[float], lines: Mapping[str, Sequence[float]]) -> None:
    for condition, values in lines.items():
        axes.plot(xs, values, color=TINTS[condition], linewidth=1.8, marker="o", markersize=4)
        axes.plot([], [], color=TINTS[condition], linewidth=1.8, marker="o", markersize=4, label=condition)
    axes.axhline(1.0, color=INK, linewidth=1, linestyle=(0, (4, 3)), alpha=0.6)
    axes.set_ylabel("recall, share of clean nearest")
    axes.legend(frameon=False, fontsize=9, labelcolor=INK, loc="lower center", ncols=2)


def copies_table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Of k picks, how many repeat an earlier one to the bit."""
    kinds = (("published: log-sums of totals", "published"), ("dartboard: gains", "dartboard"))
    cells = [[title, *(f"{row[key]:.1f}" for row in rows)] for title, key in kinds]
    return markdown(["σ", *(f"{row['sigma']:g}" for row in rows)], cells)


def knob_table(found: Mapping[str, Any]) -> str:
    """A few settings of both knobs in numbers."""
    chosen = [("nearest neighbours", found["cosine"])]
    chosen += [(f"MMR, λ = {row['at']:g}", row) for row in found["weights"] if row["at"] in _SHOWN_WEIGHTS]
    chosen += [
        (f"Dartboard, σ × {row['at']:g}", row) for row in found["factors"] if row["at"] in _SHOWN_FACTORS
    ]
    rows = [
        [title, f"{row['facts']:.1f}", f"{row['themes']:.1f}", f"{row['similarity']:.3f}"]
        for title, row in chosen
    ]
    return markdown(["", "different facts, of 5", "themes", "cosine to the question"], rows)


_SHOWN_WEIGHTS = (0.0, 0.3, 0.5, 0.7, 0.9, 1.0)
_SHOWN_FACTORS = (0.0625, 0.25, 0.5, 1.0, 2.0, 4.0, 16.0)


def _family(quality: BySet, kind: str) -> list[str]:
    first = next(iter(next(iter(quality.values())).values()))
    return [name for name in first["systems"] if name.startswith(f"{kind}-")]
