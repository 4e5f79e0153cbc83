"""Results as one self-contained HTML page: no scripts, fonts or pictures from elsewhere."""

from collections.abc import Mapping, Sequence
from html import escape
from importlib.resources import files
from statistics import fmean
from typing import Any

from dartboard.evaluation import plots
from dartboard.evaluation.measures import Measure, Scores
from dartboard.evaluation.plots import colour
from dartboard.evaluation.summary import (
    BOUNDS,
    all_measures,
    facts,
    family,
    headline_measures,
    headline_table,
    left_out,
    rival,
    rows,
    sentences,
    short,
    signed,
)
from dartboard.evaluation.tables import html as table
from dartboard.version import __version__

_FOOT = (
    "dartboard {version}. Bars and crosses are means with 95 % bootstrap intervals over queries. “Better” "
    "and “worse” are paired permutation tests, corrected over systems (Holm), at .05. nDCG has gains "
    "2^grade − 1, as in the specification; trec_eval and BEIR report linear ones (measure ndcg_linear). "
    "Where chunks are copies of one another, set, facet and “distinct” measures count them once, the others "
    "one by one. Oracle and random are bounds, not rivals."
)
_NOTES = {
    "trade_off": "Up is better, right is less repetition. Crosses are 95 % intervals; "
    "a line joins the settings of one method, from the hollow point on.",
    "copies": "Every chunk gets near-copies, and systems choose from as many candidates as before; "
    "finding any copy counts. A flat line is a system that repetition does not hurt.",
    "sweep": "★ σ from each question’s candidates: what “auto” does. "
    "◆ the likeliest σ given the labels, with its interval.",
    "depth": "The best setting of each method.",
}


def page(
    records: Sequence[Mapping[str, Any]],
    scores: Mapping[str, Mapping[str, Scores]],
    queries: Mapping[str, Mapping[str, str]],
) -> str:
    """The report; ``scores[dataset][system]`` and ``queries[dataset][query_id]`` belong to the records."""
    title = f"Evaluation: {', '.join(record['dataset'] for record in records)}"
    body = [f"<h1>{escape(title)}</h1>", _overview(records)]
    for record in records:
        name = record["dataset"]
        body.append(_section(record, scores[name], queries[name], titled=len(records) > 1))
    body.append(f"<footer>{_FOOT.format(version=escape(__version__))}</footer>")
    style = (files("dartboard.evaluation") / "report.css").read_text("utf-8")
    policy = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        f"<title>{escape(title)}</title><style>{style}</style></head><body><main>\n"
        + "\n".join(filter(None, body))
        + "\n</main></body></html>\n"
    )


def _section(
    record: Mapping[str, Any], scores: Mapping[str, Scores], queries: Mapping[str, str], *, titled: bool
) -> str:
    cards = [
        _card("Quality against diversity", _NOTES["trade_off"], plots.trade_off(record)),
        _card("With near-copies in the corpus", _NOTES["copies"], plots.redundancy(record)),
        _card("How much σ matters", _NOTES["sweep"], plots.sweep(record)),
        _card("Deeper lists", _NOTES["depth"], plots.against_k(record)),
        _queries_card(record, scores, queries),
    ]
    return "\n".join(
        [
            "<section>" + (f"<h2>{escape(record['dataset'])}</h2>" if titled else ""),
            f"<p class='soft'>{escape(facts(record))}</p>",
            "<ul class='lead'>" + "".join(f"<li>{escape(said)}</li>" for said in sentences(record)) + "</ul>",
            _headline(record),
            "".join(f"<p class='soft'>{escape(reason)}</p>" for reason in left_out(record)),
            f"<div class='grid'>{''.join(cards)}</div>",
            _details(record),
            "</section>",
        ]
    )


def _row_class(system: str, reference: str) -> str:
    return "us" if system == reference else "bound" if family(system) in BOUNDS else ""


def _headline(record: Mapping[str, Any]) -> str:
    """The first table: one bar per system, and a coloured verdict."""
    more = headline_measures(record)
    found = rows(record)
    best = {name: max(r.cells[name] for r in found if family(r.system) not in BOUNDS) for name in more}
    head = ["system", record["measures"][record["headline"]["quality"]], ""]
    head += [record["measures"][name] for name in more]
    head += [f"against {record['reference']}", "win / tie / loss"]
    body = []
    for row in found:
        tint = colour(row.system)
        width = max(0.0, 100 * (row.high - row.low))
        against = ["–", "–"]
        if row.verdict != "reference":
            verdict = f"<span class='{row.verdict.split()[0]}'>{row.said}</span>"
            against = [f"{signed(row.difference)} {verdict}", f"{row.wins} / {row.ties} / {row.losses}"]
        body.append(
            [
                f"<span class='dot' style='background:{tint}'></span>{escape(row.system)}",
                short(row.mean),
                f"<span class='bar'><i style='width:{100 * row.mean:.1f}%;background:{tint}'></i>"
                f"<b style='left:{100 * row.low:.1f}%;width:{width:.1f}%'></b></span>",
                *(f"<b>{short(v)}</b>" if v == best[name] else short(v) for name, v in row.cells.items()),
                *against,
            ]
        )
    return table([*map(escape, head)], body, [_row_class(row.system, record["reference"]) for row in found])


def _overview(records: Sequence[Mapping[str, Any]]) -> str:
    """One line per system over several data sets; best mean first."""
    if len(records) < 2:
        return ""
    names = list(dict.fromkeys(system for record in records for system in record["systems"]))
    found = {name: [_quality(record, name) for record in records] for name in names}
    names.sort(key=lambda name: (-fmean(value or 0.0 for value in found[name]), name))
    tops = [
        max(found[name][place] or 0.0 for name in names if family(name) not in BOUNDS)
        for place in range(len(records))
    ]
    body = []
    for name in names:
        cells = ["–" if value is None else short(value) for value in found[name]]
        both = zip(found[name], cells, tops, strict=True)
        body.append(
            [escape(name), *(f"<b>{cell}</b>" if value == top else cell for value, cell, top in both)]
        )
    head = [
        f"{escape(record['dataset'])}<br>{escape(record['measures'][record['headline']['quality']])}"
        for record in records
    ]
    return table(["system", *head], body, [_row_class(name, records[0]["reference"]) for name in names])


def _quality(record: Mapping[str, Any], system: str) -> float | None:
    if system not in record["systems"]:
        return None
    return float(record["systems"][system][record["headline"]["quality"]]["mean"])


def _card(title: str, note: str, content: str | None) -> str:
    """Content with its title and how to read it; nothing where there is none."""
    if content is None:
        return ""
    return f"<figure class='card wide'><h3>{title}</h3><p class='soft'>{note}</p>{content}</figure>"


def _queries_card(record: Mapping[str, Any], scores: Mapping[str, Scores], queries: Mapping[str, str]) -> str:
    """Query by query against the best rival, with the outliers by name."""
    other = rival(record)
    if other is None:
        return ""
    ours, measure = record["reference"], _scatter_measure(record)
    values = (scores[ours].values[measure].tolist(), scores[other].values[measure].tolist())
    ahead, behind = plots.outliers(*values)
    marks = {place: chr(ord("A") + number) for number, place in enumerate([*ahead, *behind])}
    picture = plots.query_scatter(record, measure, (ours, other), values, marks)
    ids = list(scores[ours].query_ids)
    listed = [
        [mark, _clip(queries.get(ids[place], ids[place])), *(short(side[place]) for side in values)]
        for place, mark in marks.items()
    ]
    named = table(
        ["", "query", escape(ours), escape(other)],
        [[mark, f"<span class='text'>{escape(text)}</span>", *rest] for mark, text, *rest in listed],
    )
    said = named if listed else "<p>No query tells the two apart.</p>"
    return _card(
        f"Query by query: {escape(ours)} and {escape(other)}",
        f"Above the diagonal {escape(ours)} is better. Larger dots are more queries.",
        f"<div class='grid pair'><div>{picture}</div><div>{said}</div></div>",
    )


def _scatter_measure(record: Mapping[str, Any]) -> str:
    """nDCG at the greatest depth, with copies counted once; otherwise the headline measure.

    If several passages share a facet, the headline measure, because nDCG would reward repetition.
    """
    quality = str(record["headline"]["quality"])
    measures = [Measure.parse(name) for name in record["measures"]]
    gains = "distinct_ndcg" if any(one.name == "distinct_ndcg" for one in measures) else "ndcg"
    depths = [one.k for one in measures if one.name == gains and one.k]
    if not depths or Measure.parse(quality).name == "subtopic_recall":
        return quality
    return f"{gains}@{max(depths)}"


def _clip(text: str, longest: int = 130) -> str:
    return text if len(text) <= longest else text[: longest - 1].rstrip() + "…"


def _details(record: Mapping[str, Any]) -> str:
    """All numbers, in collapsed sections."""
    parts = {"All measures": all_measures(record), "Tests in numbers": headline_table(record)}
    shown = []
    for title, (header, *lines) in parts.items():
        whole = table([*map(escape, header)], [[*map(escape, line)] for line in lines])
        shown.append(f"<details><summary>{title}</summary>{whole}</details>")
    return "".join(shown)
