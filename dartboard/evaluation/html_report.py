"""Results as one self-contained HTML page: no scripts, fonts or pictures from elsewhere."""

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from statistics import fmean
from typing import Any

from dartboard.evaluation import plots
from dartboard.evaluation.measures import Measure, Scores
from dartboard.evaluation.plot_style import colour
from dartboard.evaluation.summary import (
    BOUNDS,
    Row,
    counted_queries,
    family,
    headline_measures,
    headline_table,
    relevant_words,
    rival,
    rows,
    sentences,
    short,
    signed,
)
from dartboard.version import __version__

_CSS = """
:root { --page:#fff; --ink:#1c2024; --soft:#60646c; --line:#e3e5e8; --grid:#d5d8dc; --card:#f7f8f9;
  --good:#18794e; --bad:#c62a2f; --us:#e5484d; color-scheme: light dark }
@media (prefers-color-scheme: dark) { :root { --page:#16181b; --ink:#eceef0; --soft:#9ba1a6; --line:#2f3337;
  --grid:#3a3f44; --card:#1d2024; --good:#4cc38a; --bad:#ff8589; --us:#ff6369 } }
* { box-sizing: border-box }
body { margin:0; background:var(--page); color:var(--ink); font:15px/1.5 system-ui, sans-serif }
main { max-width:1120px; margin:0 auto; padding:28px 20px 60px }
h1 { font-size:26px; margin:0 0 4px } h2 { font-size:21px; margin:44px 0 2px }
h3 { font-size:15px; margin:0 0 2px }
p { margin:4px 0 } .soft { color:var(--soft) } .lead { font-size:17px; margin:10px 0 14px; max-width:78ch }
.lead li { margin:3px 0 } ul { padding-left:20px }
table { border-collapse:collapse; width:100%; font-variant-numeric:tabular-nums }
th { text-align:right; font-weight:600; color:var(--soft); font-size:12.5px; padding:6px 8px;
  border-bottom:1px solid var(--line); vertical-align:bottom }
td { text-align:right; padding:5px 8px; border-bottom:1px solid var(--line); white-space:nowrap }
th:first-child, td:first-child { text-align:left } td.text { text-align:left; white-space:normal }
tr.us td { font-weight:700 } tr.bound td { color:var(--soft); font-style:italic }
.scroll { overflow-x:auto }
.bar { position:relative; width:180px; height:16px; display:inline-block; vertical-align:middle;
  background:var(--card); border-radius:3px }
.bar i { position:absolute; left:0; top:0; bottom:0; border-radius:3px; opacity:.85 }
.bar b { position:absolute; top:7px; height:2px; background:var(--ink) }
.dot { display:inline-block; width:9px; height:9px; border-radius:50%; margin-right:7px }
.ahead { color:var(--good) } .behind { color:var(--bad) }
.grid { display:grid; gap:18px; margin-top:22px;
  grid-template-columns:repeat(auto-fit, minmax(min(100%, 500px), 1fr)) }
figure { margin:0 }
.card { background:var(--card); border:1px solid var(--line); border-radius:8px; padding:14px 16px }
.card svg { width:100%; height:auto; display:block; margin-top:6px } .wide { grid-column:1/-1 }
details { margin-top:18px } summary { cursor:pointer; font-weight:600 }
footer { margin-top:50px; color:var(--soft); font-size:13px }
"""


def page(
    records: Sequence[Mapping[str, Any]],
    scores: Mapping[str, Mapping[str, Scores]],
    queries: Mapping[str, Mapping[str, str]],
) -> str:
    """The report; ``scores[dataset][system]`` and ``queries[dataset][query_id]`` belong to the records."""
    names = ", ".join(record["dataset"] for record in records)
    body = [
        f"<h1>Evaluation: {escape(names)}</h1>",
        _overview(records),
        *(
            _section(record, scores[record["dataset"]], queries[record["dataset"]], titled=len(records) > 1)
            for record in records
        ),
        f"<footer>{_FOOT.format(version=escape(__version__))}</footer>",
    ]
    return document(f"Evaluation: {names}", [part for part in body if part])


def document(title: str, body: Sequence[str]) -> str:
    """A complete page with inline styles; nothing is fetched."""
    policy = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        f"<title>{escape(title)}</title><style>{_CSS}</style></head><body><main>\n"
        + "\n".join(body)
        + "\n</main></body></html>\n"
    )


_FOOT = (
    "dartboard {version}. Bars and crosses are means with 95 % bootstrap intervals over queries. "
    "“Better” and “worse” are paired permutation tests, corrected over systems (Holm), at .05. "
    "Where chunks are copies of one another, set, facet and “distinct” measures count them once, the others "
    "one by one. Oracle and random are bounds, not rivals."
)


def _section(
    record: Mapping[str, Any], scores: Mapping[str, Scores], queries: Mapping[str, str], *, titled: bool
) -> str:
    facts = f"{record['chunks']:,} chunks · {counted_queries(record, 'judged')} · {relevant_words(record)}"
    lead = "".join(f"<li>{escape(sentence)}</li>" for sentence in sentences(record))
    cards = [
        card("Quality against diversity", _NOTES["trade_off"], plots.trade_off(record), wide=True),
        card("With near-copies in the corpus", _NOTES["copies"], plots.redundancy(record), wide=True),
        card("How much σ matters", _NOTES["sweep"], plots.sweep(record), wide=True),
        card("Deeper lists", _NOTES["depth"], plots.against_k(record), wide=True),
        _queries_card(record, scores, queries),
    ]
    return "\n".join(
        [
            "<section>" + (f"<h2>{escape(record['dataset'])}</h2>" if titled else ""),
            f"<p class='soft'>{facts}</p>",
            f"<ul class='lead'>{lead}</ul>",
            _headline(record),
            _left_out(record),
            f"<div class='grid'>{''.join(cards)}</div>",
            _details(record),
            "</section>",
        ]
    )


_NOTES = {
    "trade_off": "Up is better, right is less repetition. Crosses are 95 % intervals; "
    "a line joins the settings of one method.",
    "copies": "Every chunk gets near-copies, and systems choose from as many candidates as before; "
    "finding any copy counts. A flat line is a system that repetition does not hurt.",
    "sweep": "★ σ from each question’s candidates: what “auto” does. "
    "◆ the likeliest σ given the labels, with its interval.",
    "depth": "The best setting of each method.",
}


def _table(head: Sequence[str], rows: Iterable[str]) -> str:
    """A table that scrolls horizontally if it is too wide; ``head`` are cells, ``rows`` whole elements."""
    top = "".join(f"<th>{cell}</th>" for cell in head)
    return (
        f"<div class='scroll'><table><thead><tr>{top}</tr></thead>"
        f"<tbody>{''.join(rows)}</tbody></table></div>"
    )


def _row_class(system: str, reference: str) -> str:
    return "us" if system == reference else "bound" if family(system) in BOUNDS else ""


def _headline(record: Mapping[str, Any]) -> str:
    """The first table: one bar per system, and a coloured verdict."""
    more = headline_measures(record)
    title = record["measures"][record["headline"]["quality"]]
    head = ["system", escape(title), "", *(escape(record["measures"][name]) for name in more)]
    head += [f"against {escape(record['reference'])}", "win / tie / loss"]
    table = rows(record)
    best = {name: max(r.cells[name] for r in table if family(r.system) not in BOUNDS) for name in more}
    return _table(head, (_headline_row(row, record, best) for row in table))


def _headline_row(row: Row, record: Mapping[str, Any], best: Mapping[str, float]) -> str:
    tint = colour(row.system)
    bar = (
        f"<span class='bar'><i style='width:{100 * row.mean:.1f}%;background:{tint}'></i>"
        f"<b style='left:{100 * row.low:.1f}%;width:{max(0.0, 100 * (row.high - row.low)):.1f}%'></b></span>"
    )
    cells = [
        f"<span class='dot' style='background:{tint}'></span>{escape(row.system)}",
        short(row.mean),
        bar,
        *(f"<b>{short(v)}</b>" if v == best[name] else short(v) for name, v in row.cells.items()),
    ]
    if row.verdict == "reference":
        cells += ["–", "–"]
    else:
        cells += [
            f"{signed(row.difference)} <span class='{row.verdict.split()[0]}'>{row.said}</span>",
            f"{row.wins} / {row.ties} / {row.losses}",
        ]
    kind = _row_class(row.system, record["reference"])
    return f"<tr class='{kind}'>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>"


def _overview(records: Sequence[Mapping[str, Any]]) -> str:
    """One line per system over several data sets; best mean first."""
    if len(records) < 2:
        return ""
    found = {
        name: [_quality(record, name) for record in records]
        for name in dict.fromkeys(system for record in records for system in record["systems"])
    }
    head = [
        f"{escape(record['dataset'])}<br>{escape(record['measures'][record['headline']['quality']])}"
        for record in records
    ]
    best = [
        max((values[place] or 0.0) for name, values in found.items() if family(name) not in BOUNDS)
        for place in range(len(records))
    ]
    body = []
    for name in sorted(found, key=lambda name: (-fmean(value or 0.0 for value in found[name]), name)):
        cells = "".join(
            f"<td>{'–' if value is None else f'<b>{short(value)}</b>' if value == top else short(value)}</td>"
            for value, top in zip(found[name], best, strict=True)
        )
        kind = _row_class(name, records[0]["reference"])
        body.append(f"<tr class='{kind}'><td>{escape(name)}</td>{cells}</tr>")
    return _table(["system", *head], body)


def _quality(record: Mapping[str, Any], system: str) -> float | None:
    if system not in record["systems"]:
        return None
    return float(record["systems"][system][record["headline"]["quality"]]["mean"])


def card(title: str, note: str, picture: str | None, *, wide: bool = False) -> str:
    """A picture with its title and how to read it; nothing where there is none."""
    if picture is None:
        return ""
    kind = "card wide" if wide else "card"
    return f"<figure class='{kind}'><h3>{title}</h3><p class='soft'>{note}</p>{picture}</figure>"


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
    listed = "".join(
        f"<tr><td>{mark}</td><td class='text'>{escape(_clip(queries.get(ids[place], ids[place])))}</td>"
        f"<td>{short(values[0][place])}</td><td>{short(values[1][place])}</td></tr>"
        for place, mark in marks.items()
    )
    table = (
        f"<div class='scroll'><table><thead><tr><th></th><th style='text-align:left'>query</th>"
        f"<th>{escape(ours)}</th><th>{escape(other)}</th></tr></thead><tbody>{listed}</tbody></table></div>"
        if listed
        else "<p>No query tells the two apart.</p>"
    )
    note = f"Above the diagonal {escape(ours)} is better. Larger dots are more queries."
    return (
        f"<figure class='card wide'><h3>Query by query: {escape(ours)} and {escape(other)}</h3>"
        f"<p class='soft'>{note}</p><div class='grid' style='margin-top:0;align-items:center'>"
        f"<div>{picture}</div><div>{table}</div></div></figure>"
    )


def _scatter_measure(record: Mapping[str, Any]) -> str:
    """nDCG at the greatest depth, with copies counted once; otherwise the headline measure.

    If several passages share a facet, the headline measure, because nDCG would reward repetition.
    """
    quality = str(record["headline"]["quality"])
    measures = [Measure.parse(name) for name in record["measures"]]
    gains = "distinct_ndcg" if any(m.name == "distinct_ndcg" for m in measures) else "ndcg"
    depths = [m.k for m in measures if m.name == gains and m.k]
    if not depths or Measure.parse(quality).name == "subtopic_recall":
        return quality
    return f"{gains}@{max(depths)}"


def _clip(text: str, longest: int = 130) -> str:
    return text if len(text) <= longest else text[: longest - 1].rstrip() + "…"


def _left_out(record: Mapping[str, Any]) -> str:
    reasons = [f"{name} was skipped: {reason}" for name, reason in record["skipped"].items()]
    levels = record.get("redundancy")
    if levels and "skipped" in levels:
        reasons.append(f"No comparison with near-copies: {levels['skipped']}")
    return "".join(f"<p class='soft'>{escape(reason)}.</p>" for reason in reasons)


def _details(record: Mapping[str, Any]) -> str:
    """All numbers, in a collapsed section."""
    systems = [row.system for row in rows(record)]
    measured = (
        f"<tr><td>{escape(title)}</td>"
        + "".join(_with_interval(record["systems"][system][name]) for system in systems)
        + "</tr>"
        for name, title in record["measures"].items()
    )
    header, *lines = headline_table(record)
    tests = ("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in line) + "</tr>" for line in lines)
    return (
        f"<details><summary>All measures</summary>{_table(['measure', *map(escape, systems)], measured)}"
        f"</details><details><summary>Tests in numbers</summary>{_table([*map(escape, header)], tests)}"
        "</details>"
    )


def _with_interval(found: Mapping[str, float]) -> str:
    return f"<td title='{short(found['low'])} – {short(found['high'])}'>{short(found['mean'])}</td>"
