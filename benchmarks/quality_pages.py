# ruff: noqa: E501 - prose
"""docs/benchmarks/quality.md, quality.html with the recall of every set, and the plot of both."""

from html import escape
from typing import Any

from benchmarks.quality_tables import (
    DEPTHS,
    REFERENCE,
    Found,
    better_than_ours,
    caption,
    conditions,
    hindsight_table,
    mark,
    missing,
    share_table,
    shares,
    systems,
    tally,
)
from dartboard.evaluation.html_report import card, document
from dartboard.evaluation.plot_style import colour, standalone
from dartboard.evaluation.plots import condition_lines
from dartboard.evaluation.summary import BOUNDS, family, short

INTRODUCTION = (
    "*Recall* counts the required passages among 5 or 10 picks from the nearest 100; copies count once. *Share* is "
    "recall divided by that of nearest neighbours (`cosine`) on the clean set, mean of both depths. Each set is measured "
    "clean, with five copies of every passage by noise on the vectors (cosine .97 and .90), and with five edited copies "
    "of the text. Names contain the MMR weight or the threshold. `dartboard` uses automatic σ, `dartboard-0.09` a fixed "
    "one. Intervals are 95 % bootstraps over queries. *Significant* is a permutation test, Holm-corrected, 5 %."
)
BOLD = "Bold marks the best value: of a column in the first table, of a row in the second."
MARKS = "▲ and ▼ are significantly better and worse than `dartboard`."
HINDSIGHT = "Shares, with the best MMR weight and threshold of each row in brackets. Without labels you cannot know them."
LEAD = "This page shows how much recall each selection method keeps on corpora with added redundancy."
ASIDE = (
    "Variants that read texts: [decisions.md](../decisions.md). Copies at .90 lie at the threshold of `dedup-0.90`, so "
    "rounding decides which ones it drops."
)


def markdown_page(found: Found) -> str:
    """What every system keeps of clean nearest neighbours, over all sets."""
    lead = f"{LEAD} Recall set by set: [All tables](quality.html)."
    lines = ["# Quality with added redundancy", "", lead, "", f"{INTRODUCTION} {BOLD}", "", _aside(found), ""]
    lines += ["![Share of clean recall under redundancy](../images/redundancy.svg)", "", caption(found), ""]
    lines += ["## All together: share of clean nearest neighbours", "", share_table(found), ""]
    lines += ["## Against the best setting, picked with hindsight", "", HINDSIGHT, "", hindsight_table(found)]
    lines += ["", "## Where something else is significantly better", "", *losses(found), ""]
    lines += ["Number of sets, conditions and depths:", "", _tally_table(found)]
    return "\n".join(lines) + "\n"


def html_page(found: Found) -> str:
    """Recall set by set with pictures, in one file."""
    body = [
        "<h1>Quality with added redundancy</h1>",
        f"<p class='lead'>{LEAD}</p>",
        "<div class='grid'>",
        card("What redundancy costs", _NOTE, redundancy_plot(found), wide=True),
        "</div>",
        f"<p>{_plain(f'{INTRODUCTION} {MARKS}')}</p><p>{_plain(_aside(found))}</p>",
        "<h2>Where something else is significantly better than Dartboard</h2>",
        "<ul>" + "".join(f"<li>{escape(line.removeprefix('- '))}</li>" for line in losses(found)) + "</ul>",
    ]
    for name, by_condition in found.items():
        first = next(iter(by_condition.values()))
        body += [
            f"<h2>{escape(name)}</h2>",
            f"<p class='soft'>{first['queries']} queries · {first['chunks']:,} passages</p>",
            "<div class='grid'>",
            card("Share of clean recall", _NOTE, _set_plot(name, by_condition), wide=True),
            "</div>",
            *(_html_table(by_condition, depth) for depth in DEPTHS),
        ]
    return document("Quality with added redundancy", body)


_NOTE = (
    "Recall as a share of what nearest neighbours reach on the clean corpus; bars are 95 % intervals. "
    "A flat line at 1: redundancy costs this system nothing."
)


def redundancy_plot(found: Found) -> str:
    """Shares over all data sets, a line a system."""
    names = conditions(found)
    lines = {
        system: [shares(found, system, condition) for condition in names]
        for system in systems(found)
        if family(system) not in BOUNDS
    }
    counts = {name: sum(name in by_condition for by_condition in found.values()) for name in names}
    titles = [
        name if counts[name] == len(found) else f"{name}\n({counts[name]} of {len(found)} sets)"
        for name in names
    ]
    return _plot(titles, lines, "What redundancy costs")


def readme_picture(found: Found) -> str:
    """The redundancy plot as a file of its own."""
    return standalone(redundancy_plot(found)) + "\n"


def _set_plot(name: str, by_condition: Any) -> str:
    first = next(iter(by_condition.values()))
    lines = {
        system: [cell["systems"][system]["share"] for cell in by_condition.values()]
        for system in first["systems"]
        if family(system) not in BOUNDS
    }
    return _plot(list(by_condition), lines, f"What redundancy costs on {name}")


def _plot(names: list[str], lines: Any, title: str) -> str:
    return condition_lines(
        names,
        lines,
        reference=REFERENCE,
        quantity="recall, as a share of clean nearest neighbours",
        title=title,
        level=(1.0, "nearest neighbours on the clean corpus"),
    )


def _aside(found: Found) -> str:
    gaps = missing(found)
    return (f"Not measured: {', '.join(gaps)}. " if gaps else "") + ASIDE


def losses(found: Found) -> list[str]:
    """Where something is significantly better than Dartboard, as a list."""
    said = better_than_ours(found)
    return [f"- {line}" for line in said] or ["- None."]


def _tally_table(found: Found) -> str:
    """How often Dartboard is better, no different, worse."""
    lines = ["| against | Dartboard better | no difference | worse |", "|---|---|---|---|"]
    lines += [
        f"| {system} | {better} | {same} | {less} |" for system, (better, same, less) in tally(found).items()
    ]
    return "\n".join(lines)


def _html_table(by_condition: Any, depth: str) -> str:
    first = next(iter(by_condition.values()))
    head = "".join(f"<th>{escape(cell)}</th>" for cell in (f"recall{depth}", *by_condition))
    body = ""
    for system in first["systems"]:
        kind = "us" if system == REFERENCE else "bound" if family(system) in BOUNDS else ""
        dot = f"<span class='dot' style='background:{colour(system)}'></span>"
        cells = "".join(_html_cell(cell["systems"][system][depth]) for cell in by_condition.values())
        body += f"<tr class='{kind}'><td>{dot}{escape(system)}</td>{cells}</tr>"
    return (
        f"<div class='scroll'><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div><p></p>"
    )


def _html_cell(score: Any) -> str:
    kind = {" ▲": "ahead", " ▼": "behind"}.get(mark(score), "")
    interval = f"<span class='soft'>{short(score['low'])} – {short(score['high'])}</span>"
    return f"<td><span class='{kind}'>{short(score['mean'])}{mark(score)}</span> {interval}</td>"


def _plain(text: str) -> str:
    """The few marks of Markdown that the introduction uses, as HTML."""
    parts = escape(text).replace("[decisions.md](../decisions.md)", "docs/decisions.md").split("`")
    return "".join(
        f"<code>{part}</code>" if place % 2 else part.replace("*", "") for place, part in enumerate(parts)
    )
