# ruff: noqa: E501 - prose
"""docs/benchmarks/natural.md and natural-tables.md, and tables of other pages, from results/natural.json."""

from collections.abc import Mapping, Sequence
from math import sqrt
from statistics import mean
from typing import Any

from dartboard.evaluation.plot_style import COLOURS, INK, Drawing, as_svg, standalone

Found = Mapping[str, Mapping[str, Mapping[str, Any]]]
"""Model, data set, condition."""

NAMES = {
    "perspectrum_train": "Perspectrum",
    "jest_versions": "jest",
    "hotpotqa_dev200": "HotpotQA",
    "musique_train100": "MuSiQue",
    "rgb_en_int": "RGB integration",
    "rgb_en_fact": "RGB fact",
    "scifact": "SciFact",
}
HELD_OUT = {"flask_versions": "Flask", "sqlalchemy_versions": "SQLAlchemy"}
CONDITIONS = ("clean", "hybrid", "text edits", "copies at .97")
NEAREST, OURS = "nearest neighbours", "dartboard"
DIVISORS = (3.5, 4.0, 4.5, 5.0, 6.0)
DEPTHS = ("@5", "@10")
HALVES = {"choosing": "choosing half", "reporting": "reporting half", "all": "all queries"}

CORPORA: Mapping[str, tuple[str, Sequence[str]]] = {
    "no\nredundancy": ("clean", ("hotpotqa_dev200", "musique_train100", "scifact")),
    "similar, all\nrequired": ("clean", ("rgb_en_int", "rgb_en_fact")),
    "paraphrased\narguments": ("clean", ("perspectrum_train",)),
    "three releases\nof one manual": ("clean", ("jest_versions",)),
    "five edited\ncopies": ("text edits", tuple(NAMES)),
}
"""Kinds of corpora in order of their redundancy: the condition and the sets of each."""

SHOWN = (OURS, "filter 0.85", "MMR 0.7", "MMR 0.5", "VRSD", "AdaGReS", NEAREST)
_KINDS = {"MMR": "mmr", "filter": "dedup", NEAREST: "cosine", OURS: "dartboard"}

INTRODUCTION = """\
This page shows how much each system finds on corpora with natural redundancy, and where others beat dartboard.
Figures are what a system finds among 5 or 10 picks of 100, **as a share of what nearest neighbours find on the
clean set**:

- Perspectrum: facets. A facet is a cluster of paraphrases of one argument.
- jest: the section asked for, in any of three releases of the documentation.
- The other sets: the required passages, or the relevant ones where none is marked as required.

`dartboard` uses its defaults: near-duplicates removed by text, automatic σ. AdaGReS (arXiv 2512.25052) and VRSD
(arXiv 2407.04573) are our implementations of the papers. The encoder is all-MiniLM-L6-v2. We chose σ's divisor on the
*choosing half* of the queries and repeat tables on the *reporting half*.

Candidates on this page are dense: the nearest 100 by vectors. With hybrid candidates, the default of an index, all
systems start from a better order and the lead is smaller: 1.09 instead of 1.23 on jest at 5 picks, 1.146 and 1.066
instead of 1.213 and 1.108 on the held-out sets, and on MuSiQue nearest neighbours are better. Intervals, hybrid
candidates, other encoders and the choice of σ: [All tables](natural-tables.md).

Bold marks the best value of a column at each depth."""

TABLES = """\
The long tables of [Natural redundancy](natural.md), which explains systems and measure.
Intervals are 95 % bootstraps over queries. Bold marks the best value of a column. `median / d` uses vectors alone, with σ = median distance / d."""

HYBRID = """\
The 100 best candidates by vectors and BM25, the default of an index. Shares are of the first 5 / 10 in that
order. All systems except VRSD use this order as relevance."""

EDITS = """\
Five edited copies of every passage (truncated, sentences shuffled, boilerplate added, wording revised). Shares
are of nearest neighbours on the clean set. Copies of a passage count once."""

NOISE = """\
Five copies of every passage, made by noise on the vector at cosine .97. They have no texts, so `dartboard`
uses vectors alone. Real corpora do not contain such copies."""

ENCODERS = """\
Other encoders, all queries, clean. WordLlama is static (a mean of token vectors). paraphrase-MiniLM-L3-v2 uses
the tokenizer of the default model, which has the same vocabulary."""

UNSEEN = """\
Made after the rule was fixed, and measured once: the documentation of Flask (1.1.4, 2.0.3, 2.2.5) and of
SQLAlchemy (1.3.24, 1.4.54, 2.0.36), queries as on jest. Share of nearest neighbours among 5 / 10 picks, different
sections among 5 picks, and how often the section asked for is among them (success@5)."""

FACETS = """\
The other tables count each relevant passage of RGB fact. Here any passage of a facet is enough. 5 / 10 picks:"""

CHOICE = """\
Mean share over all clean sets and both depths. The criterion is the smallest divisor (the widest σ) whose mean on
the choosing halves lies within the 95 % interval of the best. The reporting halves are not held out: we had seen
their results when we chose the divisor."""

NUMBERS = """\
Medians over all queries of `dartboard` on the clean sets. `dartboard calibrate` fits σ by likelihood to the
labelled pairs."""


def page(found: Found, held_out: Found) -> str:
    """docs/benchmarks/natural.md: the tables that most readers want."""
    first = default(found)
    lines = ["# Natural redundancy", "", INTRODUCTION, "", PICTURE.format("../images/natural.svg"), ""]
    lines += ["## Clean, 5 / 10 picks", "", pair_table(first, "clean", "all"), ""]
    lines += ["## Three releases of one documentation", "", sections_table(first), ""]
    lines += ["## Held-out sets", "", UNSEEN, "", held_out_table(default(held_out), "clean"), ""]
    lines += ["## Coverage, gains and σ", "", NUMBERS, "", number_table(first), ""]
    lines += ["## Where something else is better", "", BETTER, "", *better(first)]
    return "\n".join(lines) + "\n"


def tables_page(found: Found, held_out: Found) -> str:
    """docs/benchmarks/natural-tables.md: everything else."""
    first = default(found)
    lines = ["# Natural redundancy: all tables", "", TABLES, ""]
    for depth in DEPTHS:
        lines += [f"## Clean, {depth[1:]} picks, all queries", "", share_table(first, "clean", depth), ""]
    lines += ["## Both halves", "", "5 / 10 picks; clean.", ""]
    for half in ("choosing", "reporting"):
        lines += [f"The {HALVES[half]}:", "", pair_table(first, "clean", half, sweep=True), ""]
    lines += ["## The divisor", "", CHOICE, "", divisor_table(first), "", choice(first), ""]
    lines += ["## Hybrid candidates", "", HYBRID, "", pair_table(first, "hybrid", "all"), ""]
    lines += ["## Held-out sets, hybrid", "", held_out_table(default(held_out), "hybrid"), ""]
    lines += ["## Edited copies", "", EDITS, "", pair_table(first, "text edits", "all"), ""]
    lines += ["## Facets of RGB fact", "", FACETS, "", facet_table(first), ""]
    lines += ["## Other encoders", "", ENCODERS, ""]
    for model in list(found)[1:]:
        lines += [f"{model}:", "", pair_table(found[model], "clean", "all"), ""]
    lines += ["## Copies by noise", "", NOISE, "", pair_table(first, "copies at .97", "all")]
    return "\n".join(lines) + "\n"


PICTURE = "![What each system finds, from corpora without redundancy to corpora full of it]({})"
BETTER = """\
The best setting of each system, where it beats `dartboard` by more than the 95 % interval of the difference (mean
of both depths, no correction for multiple comparisons):"""


def default(found: Found) -> Mapping[str, Mapping[str, Any]]:
    """The results of the default model, the first that was measured."""
    return next(iter(found.values()))


def sets(by_set: Mapping[str, Mapping[str, Any]], condition: str) -> list[str]:
    """The sets that were measured under a condition."""
    return [name for name in NAMES if condition in by_set.get(name, {})]


def share_table(by_set: Mapping[str, Mapping[str, Any]], condition: str, depth: str) -> str:
    """Shares with intervals, system by system."""
    return _table(
        by_set, condition, lambda row: _interval(row["all"][depth]).replace(" ", "<br>"), sweep=True
    )


def pair_table(
    by_set: Mapping[str, Mapping[str, Any]], condition: str, half: str, *, sweep: bool = False
) -> str:
    """Shares among 5 / 10 picks."""
    return _table(by_set, condition, lambda row: pair(row[half]), sweep=sweep)


def pair(row: Mapping[str, Any]) -> str:
    """Shares among 5 / 10 picks."""
    return "/".join(f"{row[depth]['mean']:.3f}" for depth in DEPTHS)


def _interval(cell: Mapping[str, float]) -> str:
    return f"{cell['mean']:.3f} ({cell['low']:.2f}–{cell['high']:.2f})"


def _systems(rows: Mapping[str, Any], *, sweep: bool = False) -> list[str]:
    """The systems of a table; a sweep over σ (``median / d``) only where it is asked for."""
    return [system for system in rows if sweep or not system.startswith("median")]


def _table(by_set: Mapping[str, Mapping[str, Any]], condition: str, cell: Any, *, sweep: bool = False) -> str:
    names = sets(by_set, condition)
    if not names:
        return "Not measured."
    lines = ["| | " + " | ".join(NAMES[name] for name in names) + " |", "|---" * (len(names) + 1) + "|"]
    systems = _systems(by_set[names[0]][condition]["systems"], sweep=sweep)
    rows = [[cell(by_set[name][condition]["systems"][system]) for name in names] for system in systems]
    columns = [best_bold(column) for column in zip(*rows, strict=True)]
    for system, cells in zip(systems, zip(*columns, strict=True), strict=True):
        lines.append(f"| {system} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def best_bold(cells: Sequence[str], *, largest: bool = True) -> list[str]:
    """The cells with the best value in bold; of cells such as ``1.08/1.05``, the best value at each depth."""
    parts = [cell.split("/") for cell in cells]
    for depth in range(len(parts[0])):
        values = [_value(part[depth]) for part in parts]
        known = [value for value in values if value is not None]
        best = max(known) if largest else min(known)
        for part, value in zip(parts, values, strict=True):
            if value == best:
                part[depth] = f"**{part[depth]}**"
    return ["/".join(part) for part in parts]


def _value(shown: str) -> float | None:
    number = shown.split("<br>")[0].split(" ")[0].removesuffix("%")
    return float(number) if number.replace(".", "").isdigit() else None


def sections_table(by_set: Mapping[str, Mapping[str, Any]]) -> str:
    """jest: different sections among five picks, and success@5, half by half."""
    lines = [
        "| | " + " | ".join(f"sections of 5, success@5: {half}" for half in HALVES.values()) + " |",
        "|---|---|---|---|",
    ]
    systems = by_set["jest_versions"]["clean"]["systems"]
    for system in _systems(systems):
        row = systems[system]
        cells = [f"{row['sections@5'][half]:.2f}, {row[half]['@5']['found']:.3f}" for half in HALVES]
        lines.append(f"| {system} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def held_out_table(by_set: Mapping[str, Mapping[str, Any]], condition: str) -> str:
    """Held-out sets: shares, different sections among five picks, success@5."""
    heads = [f"{name}: share | sections of 5 | success@5" for name in HELD_OUT.values()]
    lines = ["| | " + " | ".join(heads) + " |", "|---" * (3 * len(heads) + 1) + "|"]
    for system in _systems(by_set[next(iter(HELD_OUT))][condition]["systems"]):
        rows = [by_set[name][condition]["systems"][system] for name in HELD_OUT]
        cells = [
            f"{pair(row['all'])} | {row['sections@5']['all']:.2f} | {row['all']['@5']['found']:.3f}"
            for row in rows
        ]
        lines.append(f"| {system} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def facet_table(by_set: Mapping[str, Mapping[str, Any]]) -> str:
    """Facets found on RGB fact, as shares of nearest neighbours."""
    found = {name: by_set["rgb_en_fact"].get(name, {}).get("systems", {}) for name in CONDITIONS}
    cells = {name: systems for name, systems in found.items() if "facets" in systems.get(OURS, {})}
    lines = ["| | " + " | ".join(cells) + " |", "|---" * (len(cells) + 1) + "|"]
    for system in _systems(cells["clean"]):
        rows = [by_system[system] for by_system in cells.values()]
        lines.append(f"| {system} | " + " | ".join(pair(row["facets"]) for row in rows) + " |")
    return "\n".join(lines)


def mean_share(by_set: Mapping[str, Mapping[str, Any]], system: str, half: str) -> dict[str, float]:
    """Over all clean sets and both depths, with a 95 % interval: sets are independent of each other."""
    cells = [by_set[name]["clean"]["systems"][system][half]["both"] for name in sets(by_set, "clean")]
    middle = mean(cell["mean"] for cell in cells)
    wide = 1.96 * sqrt(sum(cell["sd"] ** 2 for cell in cells)) / len(cells)
    return {"mean": middle, "low": middle - wide, "high": middle + wide}


def divisor_table(by_set: Mapping[str, Mapping[str, Any]]) -> str:
    """Mean shares, divisor by divisor."""
    lines = ["| | choosing halves | reporting halves |", "|---|---|---|"]
    for system in (*(f"median / {divisor:g}" for divisor in DIVISORS), OURS):
        cells = [_interval(mean_share(by_set, system, half)) for half in ("choosing", "reporting")]
        lines.append(f"| {system} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def chosen_divisor(by_set: Mapping[str, Mapping[str, Any]]) -> float:
    """The smallest divisor whose mean on the choosing halves is within the interval of the best one."""
    found = {one: mean_share(by_set, f"median / {one:g}", "choosing") for one in DIVISORS}
    best = max(found.values(), key=lambda row: row["mean"])
    return min(one for one, row in found.items() if row["mean"] >= best["low"])


def choice(by_set: Mapping[str, Mapping[str, Any]]) -> str:
    """What the choosing halves say, in a sentence or two."""
    found = {one: mean_share(by_set, f"median / {one:g}", "choosing") for one in DIVISORS}
    best = max(found, key=lambda one: found[one]["mean"])
    within = [f"{one:g}" for one, row in found.items() if row["mean"] >= found[best]["low"]]
    return (
        f"The best mean is that of {best:g}. Within its interval lie {', '.join(within)}, so the rule uses "
        f"{chosen_divisor(by_set):g}. Its lowest share of any clean set at 5 or 10 picks is "
        f"{lowest(by_set, f'median / {chosen_divisor(by_set):g}'):.3f} on the choosing halves, "
        f"{lowest(by_set, f'median / {chosen_divisor(by_set):g}', 'reporting'):.3f} on the reporting ones."
    )


def lowest(by_set: Mapping[str, Mapping[str, Any]], system: str, half: str = "choosing") -> float:
    """The lowest share of any clean set at any depth."""
    rows = [by_set[name]["clean"]["systems"][system][half] for name in sets(by_set, "clean")]
    return float(min(row[depth]["mean"] for row in rows for depth in DEPTHS))


_INTENT = "median / 4 minus median / 6"


def intent_table(by_set: Mapping[str, Mapping[str, Any]]) -> str:
    """A wide σ against a narrow one, and each against the default, set by set."""
    lines = [
        "| | median / 4 minus median / 6 | median / 4 minus default | median / 6 minus default |",
        "|---|---|---|---|",
    ]
    for name in sets(by_set, "clean"):
        shown = [_signed(cell) for cell in _intents(by_set[name]["clean"])]
        lines.append(f"| {NAMES[name]} | " + " | ".join(shown) + " |")
    return "\n".join(lines)


def intent(by_set: Mapping[str, Mapping[str, Any]]) -> str:
    """Where these differences are more than chance, in words."""
    found = {NAMES[name]: _intents(by_set[name]["clean"]) for name in sets(by_set, "clean")}
    apart, coverage, evidence = (
        [f"{name} ({cells[i]['mean']:+.3f})" for name, cells in found.items() if _beyond(cells[i], up=i > 0)]
        for i in range(3)
    )
    return (
        f"The two differ by more than the interval on {_listed(apart)}. Against the default, median / 4 "
        f"gains more than its interval on {_listed(coverage)}, and median / 6 on {_listed(evidence)}."
    )


def _intents(cell: Mapping[str, Any]) -> list[Mapping[str, float]]:
    rows = cell["systems"]
    return [
        cell[_INTENT]["both"],
        *(rows[f"median / {divisor:g}"]["minus default"]["both"] for divisor in (4.0, 6.0)),
    ]


def _beyond(cell: Mapping[str, float], *, up: bool) -> bool:
    return cell["low"] > 0 or (not up and cell["high"] < 0)


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names) or "no set"


def _signed(cell: Mapping[str, float]) -> str:
    return f"{cell['mean']:+.3f} ({cell['low']:+.2f} to {cell['high']:+.2f})"


def number_table(by_set: Mapping[str, Mapping[str, Any]]) -> str:
    """Coverage, first gain, σ and its ratio to the likeliest one."""
    lines = [
        "| | coverage of 5 picks | first gain | σ | σ by likelihood | ratio |",
        "|---|---|---|---|---|---|",
    ]
    for name in sets(by_set, "clean"):
        row = by_set[name]["clean"]["numbers"]
        lines.append(
            f"| {NAMES[name]} | {row['coverage of 5 picks']:.2f} | {row['first gain']:.2f} | "
            f"{row['sigma']:.3f} | {row['sigma by likelihood']:.3f} | "
            f"{row['sigma'] / row['sigma by likelihood']:.2f} |"
        )
    return "\n".join(lines)


def better(by_set: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Where another system beats the default by more than the interval of the difference."""
    said = []
    for condition in CONDITIONS:
        for name in sets(by_set, condition):
            rows = by_set[name][condition]["systems"]
            ahead = {
                system: row["minus default"]["both"]
                for system, row in rows.items()
                if system != OURS
                and not system.startswith("median")
                and row["minus default"]["both"]["low"] > 0
            }
            families: dict[str, str] = {}
            for system, cell in ahead.items():
                kind = system.split()[0]
                if kind not in families or cell["mean"] > ahead[families[kind]]["mean"]:
                    families[kind] = system
            said += [
                f"- {NAMES[name]}, {condition}: {system}, {_signed(ahead[system])}"
                for system in families.values()
            ]
    return said or ["- None."]


def headline(found: Found) -> str:
    """The headline table of docs/benchmarks/index.md."""
    by_set = default(found)
    jest, views = (by_set[name]["clean"]["systems"] for name in ("jest_versions", "perspectrum_train"))
    hybrid = by_set["jest_versions"]["hybrid"]["systems"]
    flat = {
        kind: [
            by_set[name][kind]["systems"][OURS]["all"]["both"]["mean"]
            for name in CORPORA["no\nredundancy"][1]
        ]
        for kind in ("clean", "hybrid")
    }
    musique = by_set["musique_train100"]["hybrid"]["systems"][OURS]["all"]["both"]["mean"]
    systems = (NEAREST, "MMR 0.5", "MMR 0.7", "filter 0.85", "pyversity-dpp", OURS)
    figures = {
        "jest: different sections in 5": [f"{jest[one]['sections@5']['all']:.2f}" for one in systems],
        "jest: section asked for is found": [f"{jest[one]['all']['@5']['found']:.1%}" for one in systems],
        "jest, hybrid candidates: section asked for is found": [
            f"{hybrid[one]['all']['@5']['found']:.1%}" for one in systems
        ],
        "Perspectrum: different arguments found": [
            f"{views[one]['all']['@5']['found']:.1%}" for one in systems
        ],
    }
    rows = ["| 5 picks of 100 | " + " | ".join(systems) + " |", "|---" * (len(systems) + 1) + "|"]
    for title, cells in figures.items():
        rows.append(f"| {title} | " + " | ".join(best_bold(cells)) + " |")
    text = (
        f"Bold: the best value. On three sets without redundancy (HotpotQA, MuSiQue, SciFact) dartboard finds "
        f"{min(flat['clean']):.3f} to {max(flat['clean']):.3f} of what nearest neighbours find (mean of 5 and 10 "
        f"picks), and {min(flat['hybrid']):.3f} to {max(flat['hybrid']):.3f} with hybrid candidates. There, nearest "
        f"neighbours are better on MuSiQue ({musique:.3f}, [more than chance](natural.md#where-something-else-is-better)). "
        "The two RGB sets are left out, because there every similar passage is required: see the next table."
    )
    return "\n".join([*rows, "", text])


def three_numbers(found: Found, selection: Mapping[str, Any]) -> str:
    """The table at the top of the README."""
    ms = next(row["ms"] for row in selection["single"] if (row["n"], row["k"]) == (100, 10))
    jest, hybrid = (default(found)["jest_versions"][kind]["systems"] for kind in ("clean", "hybrid"))
    systems = (NEAREST, "MMR 0.5", OURS)
    figures = {
        "different sections among the 5": [f"{jest[one]['sections@5']['all']:.2f}" for one in systems],
        "queries whose section is among the 5": [f"{jest[one]['all']['@5']['found']:.1%}" for one in systems],
        "the same, hybrid candidates (default)": [
            f"{hybrid[one]['all']['@5']['found']:.1%}" for one in systems
        ],
        "time to select 10 of 100 vectors": [
            "–",
            f"{ms['LangChain MMR, arrays']:.2f} ms",
            f"{ms['dartboard, sigma auto']:.2f} ms",
        ],
    }
    rows = [
        "| | nearest neighbours | MMR (LangChain, λ = .5) | dartboard |",
        "|---|---|---|---|",
    ]
    for title, cells in figures.items():
        rows.append(
            f"| {title} | " + " | ".join(best_bold(cells, largest=not title.startswith("time"))) + " |"
        )
    searched = selection["search"]["dense"]["median_ms"]
    text = (
        f"Bold: best. Times are for synthetic vectors; in a search over jest, selection takes {searched:.1f} ms, because "
        "it also compares texts. [All benchmarks](docs/benchmarks/index.md)."
    )
    return "\n".join([*rows, "", text])


def short_table(found: Found) -> str:
    """Shares of a few systems on the reporting halves, for docs/benchmarks/index.md."""
    by_set = default(found)
    names = sets(by_set, "clean")
    lines = ["| | " + " | ".join(NAMES[name] for name in names) + " |", "|---" * (len(names) + 1) + "|"]
    systems = ("MMR 0.7", "filter 0.85", "AdaGReS", "VRSD", OURS)
    columns = []
    for name in names:
        rows = [by_set[name]["clean"]["systems"][system]["reporting"] for system in systems]
        columns.append(best_bold(["/".join(f"{row[depth]['mean']:.2f}" for depth in DEPTHS) for row in rows]))
    for system, cells in zip(systems, zip(*columns, strict=True), strict=True):
        lines.append(f"| {system} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def level(by_set: Mapping[str, Mapping[str, Any]], corpus: str, system: str) -> float | None:
    """The mean share of a system over the sets of one kind of corpus and both depths."""
    condition, names = CORPORA[corpus]
    rows = [by_set[name][condition]["systems"][system] for name in names if condition in by_set.get(name, {})]
    return mean(row["all"]["both"]["mean"] for row in rows) if rows else None


def picture(found: Found) -> str:
    """What some systems find, from corpora without redundancy to corpora full of it."""
    by_set = default(found)
    corpora = [one for one in CORPORA if level(by_set, one, OURS) is not None]
    with Drawing(7.6, 4.2) as (figure, (axes,)):
        for system in SHOWN:
            values = [level(by_set, one, system) for one in corpora]
            ours = system == OURS
            axes.plot(
                range(len(corpora)),
                values,
                color=_colour(system),
                linewidth=2.6 if ours else 1.3,
                linestyle="--" if system.endswith("0.5") else "-",
                marker="o",
                markersize=5 if ours else 3,
                zorder=4 if ours else 3,
                label=system,
            )
        axes.set_xticks(range(len(corpora)), corpora)
        axes.set_ylabel("found, share of clean nearest neighbours")
        axes.legend(frameon=False, fontsize=9, labelcolor=INK, loc="center left", bbox_to_anchor=(1.01, 0.5))
        return standalone(as_svg(figure, "What each system finds")) + "\n"


def divisor_picture(found: Found) -> str:
    """Dartboard along the divisor of the rule, a line a kind of corpus."""
    by_set = default(found)
    corpora = [one for one in CORPORA if level(by_set, one, OURS) is not None]
    tints = [COLOURS["cosine"], COLOURS["pyversity"], COLOURS["dartboard"], COLOURS["mmr"], COLOURS["dedup"]]
    with Drawing(6.6, 3.9) as (figure, (axes,)):
        for corpus, tint in zip(corpora, tints, strict=False):
            values = [level(by_set, corpus, f"median / {divisor:g}") for divisor in DIVISORS]
            label = corpus.replace("\n", " ")
            axes.plot(DIVISORS, values, color=tint, linewidth=1.8, marker="o", markersize=4, label=label)
        axes.axvline(4.5, color=INK, linewidth=1, linestyle=(0, (4, 3)), alpha=0.6)
        axes.axhline(1.0, color=INK, linewidth=1, alpha=0.3)
        axes.set_xlabel("median distance / σ;  dashed: the rule")
        axes.set_ylabel("found, share of clean nearest")
        axes.legend(
            frameon=False, fontsize=9, labelcolor=INK, loc="center", bbox_to_anchor=(0.5, 0.8), ncols=2
        )
        return standalone(as_svg(figure, "Dartboard along sigma"))


def _colour(system: str) -> str:
    kind = _KINDS.get(system) or _KINDS.get(system.split()[0])
    return COLOURS[kind] if kind else {"AdaGReS": "#a855f7", "VRSD": "#0d9488"}[system]
