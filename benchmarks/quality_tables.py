"""What selection finds, from natural.json, held_out.json and quality.json: tables and pictures."""

from collections.abc import Mapping, Sequence
from math import sqrt
from statistics import fmean
from typing import Any

from dartboard.evaluation.plots import COLOURS, INK, Drawing, as_svg, standalone
from dartboard.evaluation.tables import best_bold, markdown

BySet = Mapping[str, Mapping[str, Any]]
"""Data set, condition."""

NAMES = {
    "perspectrum_train": "Perspectrum",
    "jest_versions": "jest",
    "hotpotqa_dev200": "HotpotQA",
    "musique_train100": "MuSiQue",
    "rgb_int_neutronrag": "RGB integration",
    "rgb_en_fact": "RGB fact",
    "scifact": "SciFact",
}
HELD_OUT = {"flask_versions": "Flask", "sqlalchemy_versions": "SQLAlchemy"}
CONDITIONS = {
    "clean": "as it is",
    "hybrid": "hybrid candidates",
    "text edits": "edited copies",
    "copies at .97": "copies at .97",
}
WITHOUT_REDUNDANCY = ("hotpotqa_dev200", "musique_train100", "scifact")
CLEAN = (*WITHOUT_REDUNDANCY, "rgb_int_neutronrag", "rgb_en_fact")
DEPTHS = ("@5", "@10")
OURS, NEAREST = "dartboard", "nearest neighbours"
DIVISORS = (3.5, 4.0, 4.5, 5.0, 6.0)

RIVALS = {
    NEAREST: ("cosine", None),
    "MMR 0.5": ("mmr-0.5", "LangChain MMR, arrays"),
    "MMR 0.7": ("mmr-0.7", "pyversity MMR"),
    "pyversity-dpp": ("pyversity-dpp", "pyversity DPP"),
    "filter 0.85": ("dedup-0.85", "near-duplicate filter"),
    "filter 0.90": ("dedup-0.90", "near-duplicate filter"),
    "filter 0.95": ("dedup-0.95", "near-duplicate filter"),
    OURS: ("dartboard", "dartboard, sigma auto"),
}
"""The rows of the main table: the name in natural.json, in quality.json and in selection.json."""

SHOWN = {
    NEAREST: "nearest neighbours",
    "MMR 0.5": "MMR, λ = .5 (LangChain)",
    "MMR 0.7": "MMR, λ = .7 (pyversity)",
    "pyversity-dpp": "DPP (pyversity)",
    "filter 0.85": "filter, cosine .85",
    "filter 0.90": "filter, cosine .90",
    "filter 0.95": "filter, cosine .95",
    OURS: "dartboard",
}

CORPORA: Mapping[str, tuple[str, Sequence[str]]] = {
    "no\nredundancy": ("clean", WITHOUT_REDUNDANCY),
    "similar, all\nrequired": ("clean", ("rgb_int_neutronrag", "rgb_en_fact")),
    "paraphrased\narguments": ("clean", ("perspectrum_train",)),
    "three releases\nof one manual": ("clean", ("jest_versions",)),
    "five edited\ncopies": ("text edits", tuple(NAMES)),
}
"""Kinds of corpora in order of their redundancy: the condition and the sets of each."""

_DRAWN = (OURS, "filter 0.85", "MMR 0.7", "MMR 0.5", "pyversity-dpp", NEAREST)
_KINDS = {
    "MMR": "mmr",
    "filter": "dedup",
    "nearest": "cosine",
    OURS: "dartboard",
    "pyversity-dpp": "pyversity",
}


def default(found: Mapping[str, BySet]) -> BySet:
    """The results of the default model, the first that was measured."""
    return next(iter(found.values()))


def main_table(natural: BySet, held_out: BySet, quality: BySet, times: Mapping[str, float]) -> str:
    """Held-out redundancy, the lowest share anywhere, the share without redundancy, and the time."""
    rows = []
    for name, (in_quality, timed) in RIVALS.items():
        sections = [held_out[one]["clean"]["systems"][name]["all"]["@5"]["found"] for one in HELD_OUT]
        clean = fmean(natural[one]["clean"]["systems"][name]["all"]["both"]["mean"] for one in CLEAN)
        ms = times.get(timed or "")
        rows.append(
            [
                SHOWN[name],
                *(f"{share:.1%}" for share in sections),
                f"{lowest({**natural, **held_out}, quality, name, in_quality):.2f}",
                f"{clean:.3f}",
                "–" if ms is None else f"{ms:.2f}",
            ]
        )
    columns = list(zip(*rows, strict=True))
    bold = [columns[0], *(best_bold(column, largest=at < 4) for at, column in enumerate(columns[1:]))]
    head = ["5 of 100 candidates", *HELD_OUT.values(), "lowest anywhere", "no redundancy", "ms, 10 of 100"]
    return markdown(head, list(zip(*bold, strict=True)))


def lowest(natural: BySet, quality: BySet, name: str, in_quality: str) -> float:
    """The lowest share of clean nearest neighbours over all sets, conditions and depths of both files."""
    shares = [
        cell["systems"][name]["all"][depth]["mean"]
        for by_condition in natural.values()
        for cell in by_condition.values()
        for depth in DEPTHS
    ]
    for by_condition in quality.values():
        clean = by_condition["clean"]["systems"]["cosine"]
        for cell in by_condition.values():
            shares += [cell["systems"][in_quality][k]["mean"] / clean[k]["mean"] for k in DEPTHS]
    return min(shares)


def held_out_table(held_out: BySet) -> str:
    """Both held-out sets, dense and hybrid candidates: section found among 5, share at 5 / 10."""
    head, columns = [""], []
    systems = _systems(held_out[next(iter(HELD_OUT))]["clean"]["systems"])
    for name, title in HELD_OUT.items():
        for condition, kind in (("clean", "dense"), ("hybrid", "hybrid")):
            cells = held_out[name][condition]["systems"]
            head += [f"{title}, {kind}: section found", "share"]
            columns.append(best_bold([f"{cells[one]['all']['@5']['found']:.1%}" for one in systems]))
            columns.append(best_bold([_pair(cells[one]["all"]) for one in systems]))
    return markdown(head, list(zip(systems, *columns, strict=True)))


def share_table(by_set: BySet, condition: str, half: str = "all") -> str:
    """Shares of clean nearest neighbours at 5 / 10 picks, every system, set by set."""
    names = [name for name in NAMES if condition in by_set.get(name, {})]
    systems = _systems(by_set[names[0]][condition]["systems"])
    columns = [
        best_bold([_pair(by_set[name][condition]["systems"][one][half]) for one in systems]) for name in names
    ]
    return markdown(["", *(NAMES[name] for name in names)], list(zip(systems, *columns, strict=True)))


def better(by_set: BySet, held_out: BySet) -> str:
    """Where a system beats dartboard by more than the 95 % interval: the best setting of each kind."""
    lines = []
    names = {**NAMES, **HELD_OUT}
    for condition, title in CONDITIONS.items():
        for name, by_condition in {**by_set, **held_out}.items():
            rows = by_condition.get(condition, {}).get("systems", {})
            ahead: dict[str, tuple[float, str]] = {}
            for system in _systems(rows):
                cell = rows[system].get("minus default", {}).get("both")
                if system == OURS or cell is None or cell["low"] <= 0:
                    continue
                said = f"{system} {cell['mean']:+.3f} ({cell['low']:+.2f} to {cell['high']:+.2f})"
                ahead[system.split()[0]] = max(ahead.get(system.split()[0], (0.0, "")), (cell["mean"], said))
            lines += [f"- {names[name]}, {title}: {said}" for _, said in ahead.values()]
    return "\n".join(lines) or "- Nowhere."


def number_table(by_set: BySet) -> str:
    """Coverage, first gain, σ and the likeliest σ, medians over all queries."""
    rows = []
    for name in NAMES:
        row = by_set[name]["clean"]["numbers"]
        ratio = row["sigma"] / row["sigma by likelihood"]
        rows.append(
            [
                NAMES[name],
                f"{row['coverage of 5 picks']:.2f}",
                f"{row['first gain']:.2f}",
                f"{row['sigma']:.3f}",
                f"{row['sigma by likelihood']:.3f}",
                f"{ratio:.2f}",
            ]
        )
    return markdown(["", "coverage of 5 picks", "first gain", "σ", "σ by likelihood", "ratio"], rows)


def divisor_table(by_set: BySet) -> str:
    """Mean shares over all clean sets and both depths, divisor by divisor."""
    rows = []
    for system in (*(f"median / {divisor:g}" for divisor in DIVISORS), OURS):
        cells = [mean_share(by_set, system, half) for half in ("choosing", "reporting")]
        rows.append([system, *(f"{one['mean']:.3f} ({one['low']:.2f}–{one['high']:.2f})" for one in cells)])
    return markdown(["", "choosing halves", "reporting halves"], rows)


def mean_share(by_set: BySet, system: str, half: str) -> dict[str, float]:
    """Over all clean sets and both depths, with a 95 % interval: sets are independent of each other."""
    cells = [by_set[name]["clean"]["systems"][system][half]["both"] for name in by_set]
    middle = fmean(cell["mean"] for cell in cells)
    wide = 1.96 * sqrt(sum(cell["sd"] ** 2 for cell in cells)) / len(cells)
    return {"mean": middle, "low": middle - wide, "high": middle + wide}


def chosen_divisor(by_set: BySet) -> float:
    """The smallest divisor whose mean on the choosing halves is within the interval of the best one."""
    found = {one: mean_share(by_set, f"median / {one:g}", "choosing") for one in DIVISORS}
    best = max(found.values(), key=lambda row: row["mean"])
    return min(one for one, row in found.items() if row["mean"] >= best["low"])


def redundancy_table(quality: BySet) -> str:
    """Added redundancy: mean share under each condition with its interval, and the lowest of all."""
    conditions = list(dict.fromkeys(one for by_condition in quality.values() for one in by_condition))
    systems = [one for one in quality[next(iter(quality))]["clean"]["systems"] if one not in _BOUNDS + _ASIDE]
    columns = []
    for condition in conditions:
        shares = [kept(quality, system, condition) for system in systems]
        columns.append(best_bold([f"{mean:.3f} ± {wide:.3f}" for mean, wide, _ in shares]))
    columns.append(best_bold([f"{lowest({}, quality, '', system):.3f}" for system in systems]))
    heads = [f"{one} ({kept(quality, OURS, one)[2]} sets)" for one in conditions]
    return markdown(["", *heads, "lowest of all"], list(zip(systems, *columns, strict=True)))


def kept(quality: BySet, system: str, condition: str) -> tuple[float, float, int]:
    """The mean over data sets of a system's share, half of its 95 % interval, and the number of sets."""
    cells = [by[condition]["systems"][system]["share"] for by in quality.values() if condition in by]
    wide = 1.96 * sqrt(sum(cell["sd"] ** 2 for cell in cells)) / len(cells)
    return fmean(cell["mean"] for cell in cells), wide, len(cells)


def clean_table(quality: BySet) -> str:
    """Where nothing is copied: recall of nearest neighbours and of Dartboard, set by set."""
    rows = []
    for name, by_condition in quality.items():
        systems = by_condition["clean"]["systems"]
        for depth in DEPTHS:
            theirs, ours = systems["cosine"][depth]["mean"], systems[OURS][depth]["mean"]
            rows.append([NAMES[name], depth[1:], f"{theirs:.3f}", f"{ours:.3f}", f"{ours / theirs:.1%}"])
    return markdown(["data set", "depth", "nearest neighbours", "Dartboard", "kept"], rows)


def worst_table(quality: BySet, count: int = 6) -> str:
    """The cells in which Dartboard keeps least of clean nearest neighbours."""
    cells = []
    for name, by_condition in quality.items():
        base = by_condition["clean"]["systems"]["cosine"]
        for condition, cell in by_condition.items():
            for depth in DEPTHS:
                shares = {
                    system: scores[depth]["mean"] / base[depth]["mean"]
                    for system, scores in cell["systems"].items()
                    if system not in _BOUNDS
                }
                first = max(shares, key=lambda system: shares[system])
                cells.append((shares[OURS], name, condition, depth, shares["cosine"], first, shares[first]))
    rows = [
        [NAMES[name], condition, depth[1:], f"{ours:.1%}", f"{theirs:.1%}", f"{first}, {most:.1%}"]
        for ours, name, condition, depth, theirs, first, most in sorted(cells)[:count]
    ]
    heads = [
        "data set",
        "condition",
        "depth",
        "Dartboard keeps",
        "nearest neighbours keep",
        "best in hindsight",
    ]
    return markdown(heads, rows)


def picture(by_set: BySet) -> str:
    """What some systems find, from corpora without redundancy to corpora full of it."""
    with Drawing(7.6, 4.2) as (figure, (axes,)):
        for system in _DRAWN:
            ours = system == OURS
            axes.plot(
                range(len(CORPORA)),
                [_level(by_set, one, system) for one in CORPORA],
                color=COLOURS[_KINDS[system if system in _KINDS else system.split()[0]]],
                linewidth=2.6 if ours else 1.3,
                linestyle="--" if system.endswith("0.5") else "-",
                marker="o",
                markersize=5 if ours else 3,
                zorder=4 if ours else 3,
                label=system,
            )
        axes.set_xticks(range(len(CORPORA)), list(CORPORA))
        axes.set_ylabel("found, share of clean nearest neighbours")
        axes.legend(frameon=False, fontsize=9, labelcolor=INK, loc="center left", bbox_to_anchor=(1.01, 0.5))
        return standalone(as_svg(figure, "What each system finds")) + "\n"


def divisor_picture(by_set: BySet) -> str:
    """Dartboard along the divisor of the rule, a line a kind of corpus."""
    tints = ("cosine", "pyversity", "dartboard", "mmr", "dedup")
    with Drawing(6.6, 3.9) as (figure, (axes,)):
        for corpus, tint in zip(CORPORA, tints, strict=True):
            values = [_level(by_set, corpus, f"median / {divisor:g}") for divisor in DIVISORS]
            label = corpus.replace("\n", " ")
            axes.plot(DIVISORS, values, color=COLOURS[tint], linewidth=1.8, marker="o", label=label)
        axes.axvline(4.5, color=INK, linewidth=1, linestyle=(0, (4, 3)), alpha=0.6)
        axes.axhline(1.0, color=INK, linewidth=1, alpha=0.3)
        axes.set_xlabel("median distance / σ;  dashed: the rule")
        axes.set_ylabel("found, share of clean nearest")
        axes.legend(
            frameon=False, fontsize=9, labelcolor=INK, loc="center", bbox_to_anchor=(0.5, 0.8), ncols=2
        )
        return standalone(as_svg(figure, "Dartboard along sigma")) + "\n"


_BOUNDS = ("oracle", "random")
_ASIDE = ("mmr-0.3", "mmr-0.9", "dedup-0.80", "pyversity-cover")
_BETWEEN = ("MMR 0.3", "MMR 0.9", "filter 0.80")


def _level(by_set: BySet, corpus: str, system: str) -> float:
    """The mean share of a system over the sets of one kind of corpus and both depths."""
    condition, names = CORPORA[corpus]
    cells = [by_set[name][condition]["systems"][system] for name in names if condition in by_set[name]]
    return fmean(cell["all"]["both"]["mean"] for cell in cells)


def _systems(rows: Mapping[str, Any]) -> list[str]:
    """The systems of the tables: without the sweep over σ, and without settings in between."""
    return [one for one in rows if not one.startswith("median") and one not in _BETWEEN]


def _pair(row: Mapping[str, Any]) -> str:
    return " / ".join(f"{row[depth]['mean']:.2f}" for depth in DEPTHS)
