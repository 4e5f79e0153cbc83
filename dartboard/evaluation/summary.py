"""The conclusion for a reader: which systems are better or worse than the reference, and by how much.

Markdown, HTML and terminal output all use it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from dartboard.evaluation.measures import Measure

LEVEL = 0.05

Verdict = Literal["reference", "ahead", "behind", "no difference"]

FAMILIES = ("dartboard", "cosine", "mmr", "dedup", "pyversity", "random", "oracle")

BOUNDS = ("random", "oracle")
"""Bounds instead of real systems: chance below, perfection above."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A line of the headline table; ``cells`` are further measures."""

    system: str
    mean: float
    low: float
    high: float
    cells: dict[str, float]
    verdict: Verdict
    difference: float
    p: float
    wins: int
    ties: int
    losses: int

    @property
    def said(self) -> str:
        """The difference as a word."""
        return {"ahead": "better", "behind": "worse"}.get(self.verdict, "same")


def family(system: str) -> str:
    """The family of a system; an unknown name is its own family."""
    head = system.split("-")[0]
    return head if head in FAMILIES else system


def rows(record: Mapping[str, Any]) -> list[Row]:
    """The headline table, best quality first, ties by name."""
    quality = record["headline"]["quality"]
    found = [_row(record, system, quality) for system in record["systems"]]
    return sorted(found, key=lambda row: (-row.mean, row.system))


def headline_table(record: Mapping[str, Any]) -> list[list[str]]:
    """The headline table as text, header first; the same cells in HTML and on a terminal."""
    title = record["measures"][record["headline"]["quality"]]
    more = headline_measures(record)
    header = [
        "system",
        title,
        "95 % interval",
        *(record["measures"][name] for name in more),
        f"against {record['reference']}",
        "p (Holm)",
        "win / tie / loss",
    ]
    return [header, *(_cells(row) for row in rows(record))]


def _cells(row: Row) -> list[str]:
    against = ["–", "–", "–"]
    if row.verdict != "reference":
        p = f"{row.p:.3f}" if row.p >= 0.001 else "< .001"
        against = [f"{signed(row.difference)} {row.said}", p, f"{row.wins} / {row.ties} / {row.losses}"]
    return [
        row.system,
        short(row.mean),
        f"{short(row.low)} – {short(row.high)}",
        *(short(value) for value in row.cells.values()),
        *against,
    ]


def all_measures(record: Mapping[str, Any]) -> list[list[str]]:
    """Every measure of every system as text, header first."""
    systems = [row.system for row in rows(record)]
    body = [
        [title, *(short(record["systems"][system][name]["mean"]) for system in systems)]
        for name, title in record["measures"].items()
    ]
    return [["measure", *systems], *body]


def facts(record: Mapping[str, Any]) -> str:
    """The size of the data set."""
    return f"{record['chunks']:,} chunks, {counted_queries(record, 'judged')}, {relevant_words(record)}."


def left_out(record: Mapping[str, Any]) -> list[str]:
    """What is missing in a report, and why."""
    reasons = [f"{name} was skipped: {reason}." for name, reason in record["skipped"].items()]
    levels = record.get("redundancy")
    if levels and "skipped" in levels:
        reasons.append(f"No comparison with near-copies: {levels['skipped']}.")
    return reasons


def headline_measures(record: Mapping[str, Any]) -> list[str]:
    """The measures besides quality in the headline table: few, and each differs between systems."""
    quality = Measure.parse(record["headline"]["quality"])
    if record.get("asked"):
        return [name for name in record["asked"] if name != str(quality)]
    wanted = (
        *("answer", "ndcg", "distinct_ndcg", "recall", "success", "alpha_ndcg"),
        *("distinct_share", "cluster_coverage", "diversity"),
    )
    names = [str(Measure(name, quality.k)) for name in wanted if name != quality.name]
    names = [name for name in names if name in record["measures"] and _tells_apart(record, name)]
    if quality.name == "set_recall" or len(names) > 4:
        names = [name for name in names if not name.startswith("recall@")]
    return names[:5]


def _tells_apart(record: Mapping[str, Any], measure: str) -> bool:
    means = {
        found[measure]["mean"] for name, found in record["systems"].items() if family(name) not in BOUNDS
    }
    return len(means) > 1 or len(record["systems"]) == 1


def best_of_families(record: Mapping[str, Any], *, bounds: bool = False) -> list[str]:
    """The best system of each family by quality; each variant of Dartboard counts."""
    chosen: dict[str, str] = {}
    for row in rows(record):
        name = family(row.system)
        key = row.system if name == "dartboard" else name
        if bounds or name not in BOUNDS:
            chosen.setdefault(key, row.system)
    return list(chosen.values())


def rival(record: Mapping[str, Any]) -> str | None:
    """The best system of another family than the reference's, without bounds."""
    own = family(record["reference"])
    others = (row.system for row in rows(record) if family(row.system) not in (own, *BOUNDS))
    return next(others, None)


def sentences(record: Mapping[str, Any]) -> list[str]:
    """The result in words."""
    table = {row.system: row for row in rows(record)}
    reference = table[record["reference"]]
    title = record["measures"][record["headline"]["quality"]]
    said = [
        f"{reference.system} reaches {title} {short(reference.mean)} "
        f"(95 % interval {short(reference.low)} to {short(reference.high)}, {counted_queries(record)})."
    ]
    groups: dict[Verdict, list[str]] = {"behind": [], "ahead": [], "no difference": []}
    for row in table.values():
        if row.verdict != "reference" and family(row.system) not in BOUNDS:
            groups[row.verdict].append(row.system)
    words = {
        "behind": "Significantly better than",
        "ahead": "Significantly worse than",
        "no difference": "No significant difference from",
    }
    said += [f"{words[kind]} {', '.join(names)}." for kind, names in groups.items() if names]
    said += _about_few_queries(record) + _about_diversity(record) + _about_copies(record)
    said += _about_answers(record)
    return said


def counted_queries(record: Mapping[str, Any], kind: str = "") -> str:
    """The number of judged queries as text; ``kind`` precedes the noun."""
    noun = "query" if record["judged"] == 1 else "queries"
    return " ".join(filter(None, (f"{record['judged']:,}", kind, noun)))


def relevant_words(record: Mapping[str, Any]) -> str:
    """The number of relevant chunks per query, and of distinct ones if that is lower."""
    relevant = record["relevant_per_query"]
    distinct = record.get("distinct_per_query", relevant)
    copies = f" ({distinct:.1f} distinct)" if distinct < relevant else ""
    least = f", from grade {record['least_grade']:g} on" if "least_grade" in record else ""
    return f"{relevant:.1f} relevant per query{copies}{least}"


def short(value: float) -> str:
    """Three decimals, without a leading zero."""
    text = f"{value:.3f}"
    return text.replace("0.", ".", 1) if text.startswith(("0.", "-0.")) else text


def signed(value: float) -> str:
    """The same with its sign."""
    return f"{'+' if value >= 0 else '−'}{short(abs(value))}"


def _row(record: Mapping[str, Any], system: str, quality: str) -> Row:
    measured = record["systems"][system]
    compared = record["comparisons"].get(quality, {}).get(system)
    verdict: Verdict = "reference"
    if compared is not None:
        sure = compared["p_holm"] < LEVEL
        verdict = ("ahead" if compared["difference"] > 0 else "behind") if sure else "no difference"
    shown = compared or {"difference": 0.0, "p_holm": 1.0, "wins": 0, "ties": 0, "losses": 0}
    return Row(
        system=system,
        mean=measured[quality]["mean"],
        low=measured[quality]["low"],
        high=measured[quality]["high"],
        cells={name: measured[name]["mean"] for name in headline_measures(record)},
        verdict=verdict,
        difference=shown["difference"],
        p=shown["p_holm"],
        wins=shown["wins"],
        ties=shown["ties"],
        losses=shown["losses"],
    )


def _about_few_queries(record: Mapping[str, Any]) -> list[str]:
    """Whether the smallest possible p-value for so few queries, after Holm, is above the level."""
    others = len(record["systems"]) - 1
    if others and 2.0 ** (1 - record["judged"]) * others >= LEVEL:
        are = "is" if record["judged"] == 1 else "are"
        return [f"{counted_queries(record)} {are} too few: no difference could come out significant."]
    return []


def _about_diversity(record: Mapping[str, Any]) -> list[str]:
    measure = record["headline"].get("diversity")
    if measure is None or "cosine" not in record["systems"] or record["reference"] == "cosine":
        return []
    ours, theirs = (record["systems"][name][measure]["mean"] for name in (record["reference"], "cosine"))
    if theirs <= 0:
        return []
    more = "more" if ours >= theirs else "less"
    picks = f"{record['reference']}'s picks are {abs(ours / theirs - 1):.0%} {more} diverse than cosine's"
    return [f"{picks} ({short(ours)} against {short(theirs)})."]


def _about_copies(record: Mapping[str, Any]) -> list[str]:
    levels = record.get("redundancy")
    if not levels or "systems" not in levels:
        return []
    values = levels["systems"]
    rivals = [name for name in values if family(name) not in (*BOUNDS, "dartboard", "cosine")]
    best = max(rivals, key=lambda name: values[name][-1], default=None)
    told = dict.fromkeys(name for name in (record["reference"], "cosine", best) if name in values)
    parts = [f"{name} {short(values[name][-1])} ({short(values[name][0])} without)" for name in told]
    if not parts:
        return []
    title = Measure.parse(levels["measure"]).title
    return [f"{title} with {levels['copies'][-1]} near-copies of every chunk: {', '.join(parts)}."]


def _about_answers(record: Mapping[str, Any]) -> list[str]:
    """How often a model named a known answer from the picks: the reference, and the best rival."""
    about = record.get("answer")
    if about is None:
        return []
    measure = f"answer@{about['k']}"
    means = {name: found[measure]["mean"] for name, found in record["systems"].items()}
    told = dict.fromkeys(filter(None, (record["reference"], rival(record))))
    parts = [f"{means[name]:.0%} ({name})" for name in told]
    return [
        f"With {about['k']} passages of each system, {about['model']} names a known answer to "
        f"{', '.join(parts)} of {about['queries']:,} questions."
    ]
