"""Results as Markdown: the headline, every measure, and what was left out."""

from collections.abc import Mapping, Sequence
from typing import Any

from dartboard.evaluation.summary import (
    Row,
    counted_queries,
    headline_measures,
    relevant_words,
    rows,
    sentences,
    short,
    signed,
)


def markdown(records: Sequence[Mapping[str, Any]]) -> str:
    """A report on one or more data sets."""
    return "# Evaluation\n\n" + "\n".join(_section(record) for record in records)


def headline_table(record: Mapping[str, Any]) -> list[list[str]]:
    """The headline as text, header first; the same cells on a page and on a terminal."""
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


def _section(record: Mapping[str, Any]) -> str:
    facts = f"{record['chunks']:,} chunks, {counted_queries(record, 'judged')}, {relevant_words(record)}"
    parts = [
        f"## {record['dataset']}\n",
        f"{facts}.\n",
        "".join(f"- {sentence}\n" for sentence in sentences(record)),
        _table(headline_table(record)),
        _skipped(record),
        "### All measures\n",
        _table(_all_measures(record)),
        _levels(record),
    ]
    return "\n".join(part for part in parts if part)


def _all_measures(record: Mapping[str, Any]) -> list[list[str]]:
    systems = [row.system for row in rows(record)]
    header = ["measure", *systems]
    body = [
        [title, *(short(record["systems"][system][name]["mean"]) for system in systems)]
        for name, title in record["measures"].items()
    ]
    return [header, *body]


def _levels(record: Mapping[str, Any]) -> str:
    levels = record.get("redundancy")
    if not levels:
        return ""
    if "skipped" in levels:
        return f"No comparison with near-copies: {levels['skipped']}.\n"
    header = ["near-copies of each chunk", *(str(count) for count in levels["copies"])]
    body = [[name, *(short(value) for value in values)] for name, values in levels["systems"].items()]
    title = f"### {levels['measure']} with near-copies at cosine {levels['cosine']:g}\n\n"
    return title + _table([header, *body])


def _skipped(record: Mapping[str, Any]) -> str:
    return "".join(f"- {name} was skipped: {reason}\n" for name, reason in record["skipped"].items())


def _table(cells: Sequence[Sequence[str]]) -> str:
    header, *body = ["| " + " | ".join(line) + " |" for line in cells]
    rule = "|" + "---|" * len(cells[0])
    return "\n".join([header, rule, *body]) + "\n"
