"""Results in a folder: JSON first; Markdown and HTML are made from it.

::

    results.json               means, intervals, comparisons, sweep, redundancy
    per_query/DATASET.json     every measure of every query and system
    runs/DATASET/SYSTEM.trec   TREC run files; for a system with seeds, one per seed
    report.md, report.html     for people; the page stands alone
    timings.json               seconds per question: the only file that differs between runs
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import fmean, median
from typing import Any

from dartboard.datasets.trec import write_run
from dartboard.evaluation.experiment import Outcome, rounded
from dartboard.evaluation.html_report import page
from dartboard.evaluation.journal import file_name
from dartboard.evaluation.measures import Scores
from dartboard.evaluation.settings import EvaluationConfig
from dartboard.evaluation.summary import all_measures, facts, headline_table, left_out, sentences, short
from dartboard.evaluation.tables import markdown as table
from dartboard.version import __version__

FORMAT = 1


def write_report(
    outcomes: Sequence[Outcome], config: EvaluationConfig, queries: Mapping[str, Mapping[str, str]]
) -> Path:
    """Write the results of one or more data sets into ``config.output_dir``.

    Args:
        outcomes: Results of :func:`~dartboard.evaluation.evaluate_dataset`, one per data set.
        config: The configuration that they were made with.
        queries: ``queries[dataset][query_id]`` are the texts of the queries.

    Returns:
        The path of ``report.html``.
    """
    folder = Path(config.output_dir)
    records = [outcome.record for outcome in outcomes]
    asked = {key: value for key, value in asdict(config).items() if key not in ("output_dir", "workers")}
    _write_json(
        folder / "results.json",
        {"format": FORMAT, "dartboard": __version__, "config": asked, "datasets": records},
    )
    for outcome in outcomes:
        _write_details(folder, outcome)
    timings = {
        one.record["dataset"]: {
            system: {"mean": rounded(fmean(seconds)), "median": rounded(median(seconds))}
            for system, seconds in one.seconds.items()
        }
        for one in outcomes
    }
    _write_json(folder / "timings.json", {"seconds_per_question": timings})
    (folder / "report.md").write_text(markdown(records), encoding="utf-8")
    scores = {outcome.record["dataset"]: outcome.scores for outcome in outcomes}
    (folder / "report.html").write_text(page(records, scores, queries), encoding="utf-8")
    return folder / "report.html"


def _write_details(folder: Path, outcome: Outcome) -> None:
    name = file_name(outcome.record["dataset"])
    table = _per_query(outcome.scores)
    if outcome.added:
        table["added"] = _per_query(outcome.added)
    _write_json(folder / "per_query" / f"{name}.json", rounded(table), indent=None)
    for system, seeded in outcome.runs.items():
        for seed, run in enumerate(seeded):
            file = file_name(system if len(seeded) == 1 else f"{system}-seed{seed}")
            candidates = outcome.candidates if system in outcome.selecting else {}
            whole = {one: _whole(picks, candidates.get(one, {})) for one, picks in run.items()}
            write_run(whole, folder / "runs" / name / f"{file}.trec", tag=file)


def _whole(picks: Sequence[str], candidates: Mapping[str, float]) -> dict[str, float]:
    """The picks in order with scores above 1, then the other candidates with their cosine."""
    chosen = {one: 1.0 + len(picks) - place for place, one in enumerate(picks)}
    return {**candidates, **chosen}


def _per_query(scores: Mapping[str, Scores]) -> dict[str, Any]:
    return {
        "query_ids": list(next(iter(scores.values())).query_ids),
        "systems": {
            system: {measure: column.tolist() for measure, column in found.values.items()}
            for system, found in scores.items()
        },
    }


def _write_json(path: Path, value: Any, indent: int | None = 1) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(value, indent=indent, ensure_ascii=False, allow_nan=False)
    path.write_text(text + "\n", encoding="utf-8")


def markdown(records: Sequence[Mapping[str, Any]]) -> str:
    """A Markdown report on one or more data sets: the headline, every measure, and what was skipped."""
    return "# Evaluation\n\n" + "\n".join(_section(record) for record in records)


def _section(record: Mapping[str, Any]) -> str:
    parts = [
        f"## {record['dataset']}",
        facts(record),
        "\n".join(f"- {sentence}" for sentence in [*sentences(record), *left_out(record)]),
        _table(headline_table(record)),
        "### All measures",
        _table(all_measures(record)),
    ]
    levels = record.get("redundancy")
    if levels and "systems" in levels:
        header = ["near-copies of each chunk", *(str(count) for count in levels["copies"])]
        body = [[name, *(short(value) for value in values)] for name, values in levels["systems"].items()]
        parts.append(f"### {levels['measure']} with near-copies at cosine {levels['cosine']:g}")
        parts.append(_table([header, *body]))
    return "\n\n".join(parts) + "\n"


def _table(cells: Sequence[Sequence[str]]) -> str:
    return table(cells[0], cells[1:])
