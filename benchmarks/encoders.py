"""Compare encoders: does one rule for σ suit them all?

    python -m benchmarks.encoders --models default onnx:PATH … [--sets NAME …]

Writes benchmarks/results/encoders.json cell by cell: model, data set, condition. What is measured already is
kept, as long as Dartboard still picks the same for its first queries.

Measured as in ``benchmarks/natural.py``: what a system finds among 5 and 10 picks of the nearest 100, as a
share of what nearest neighbours with the same encoder find on the clean set.
"""

import argparse
import json
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean
from typing import Any

from benchmarks.measuring import ROOT, load
from benchmarks.natural import MEASURES, NEAREST, Cell, Divided, shares, under
from dartboard.embeddings import CachedModel, EmbeddingModel
from dartboard.embeddings.by_name import model_by_name
from dartboard.evaluation import System
from dartboard.evaluation.baselines import SelectionSystem
from dartboard.evaluation.tables import markdown
from dartboard.selection import MMR, Dartboard, NearDuplicateFilter, TopK

RESULTS = ROOT / "benchmarks" / "results" / "encoders.json"

OURS, FIXED = "dartboard", "dartboard, σ = 0.09"
SYSTEMS: tuple[System, ...] = (
    SelectionSystem(NEAREST, TopK()),
    *(SelectionSystem(f"MMR {weight:g}", MMR(relevance_weight=weight)) for weight in (0.5, 0.7)),
    *(
        SelectionSystem(f"filter {threshold:.2f}", NearDuplicateFilter(threshold=threshold))
        for threshold in (0.85, 0.90, 0.95)
    ),
    SelectionSystem(FIXED, Dartboard(), sigma=0.09),
    Divided(4.5),
    SelectionSystem(OURS, Dartboard()),
)

REDUNDANT = {
    "copies at .97": ("rgb_en_fact", "musique_train100", "hotpotqa_dev200", "rgb_int_neutronrag"),
    "text edits": ("rgb_en_fact", "musique_train100", "perspectrum_train"),
}
"""Where copies are added. Edited texts have to be encoded: those of the three smallest corpora."""

NATURAL = "jest_versions"
"""Redundant as it is: three releases of one documentation."""

CONDITIONS = ("clean", *REDUNDANT)
ORDER = (
    "rgb_en_fact",
    "musique_train100",
    "perspectrum_train",
    "hotpotqa_dev200",
    "jest_versions",
    "rgb_int_neutronrag",
)
"""The data sets, those first that are encoded soonest."""


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--models", nargs="+", default=["default"], help="names of models, as everywhere")
    parser.add_argument("--sets", nargs="+", choices=ORDER, default=ORDER)
    parser.add_argument("--conditions", nargs="+", choices=CONDITIONS, default=CONDITIONS)
    options = parser.parse_args()
    for name in options.models:
        model = CachedModel(model_by_name(name))
        for dataset in options.sets:
            for condition, cell in measured_shares(model, dataset, options.conditions):
                _save(model.name, dataset, condition, cell)
                print(f"{name}, {dataset}, {condition}", flush=True)


def measured_shares(
    model: EmbeddingModel, name: str, conditions: Sequence[str]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """The cells of a model and a data set that are missing, or that Dartboard would pick differently now."""
    clean = load(name, model)
    base = Cell(clean, model, "clean")
    known = _results().get("shares", {}).get(model.name, {}).get(name, {})
    for condition in conditions:
        if name not in REDUNDANT.get(condition, (name,)):
            continue
        cell = base if condition == "clean" else Cell(under(clean, condition, model), model, condition)
        picks = cell.behaviour()
        if known.get(condition, {}).get("picks") == picks:
            continue
        found = base.found(SYSTEMS[0], MEASURES[name])
        yield (
            condition,
            {
                "picks": picks,
                "queries": len(found),
                "numbers": cell.numbers(),
                "systems": {
                    system.name: shares(cell.found(system, MEASURES[name]), found) for system in SYSTEMS
                },
            },
        )


def _results() -> dict[str, Any]:
    return dict(json.loads(RESULTS.read_text())) if RESULTS.exists() else {}


def _save(model: str, name: str, condition: str, cell: Mapping[str, Any]) -> None:
    """Merge a cell into the file."""
    found = _results()
    found.setdefault("shares", {}).setdefault(model, {}).setdefault(name, {})[condition] = cell
    text = json.dumps(found, indent=1)
    RESULTS.write_text(re.sub(r"\n {6,}", "", text) + "\n")  # one line a system


def with_natural(found: Mapping[str, Any], natural: Mapping[str, Any]) -> dict[str, Any]:
    """The results and, where a cell is missing, that of ``benchmarks/natural.py``, which measures the same.

    There is no fixed σ in those.
    """
    ours = {system.name for system in SYSTEMS}
    merged: dict[str, Any] = {}
    for model in found["shares"]:
        for name in ORDER:
            for condition in CONDITIONS:
                if name not in REDUNDANT.get(condition, (name,)):
                    continue
                cell = found["shares"].get(model, {}).get(name, {}).get(condition)
                there = natural.get(model, {}).get(name, {}).get(condition)
                if cell is None and there is not None:
                    systems = {key: row["all"] for key, row in there["systems"].items() if key in ours}
                    cell = {"numbers": there["numbers"], "systems": systems}
                if cell is not None:
                    merged.setdefault(model, {}).setdefault(name, {})[condition] = cell
    return {**found, "shares": merged}


def share_table(found: Mapping[str, Any], kind: str) -> str:
    """Markdown: the mean and the lowest share of each system with each encoder.

    ``kind`` is ``clean`` (sets without copies), ``redundant`` (copies added, or three releases), or ``all``.
    An encoder that was measured without added copies only is in the first.
    """
    by_model = found["shares"]
    copied = [model for model in by_model if any(len(cells) > 1 for cells in by_model[model].values())]
    models = list(by_model) if kind == "clean" else copied
    values: dict[tuple[str, str], list[float]] = {}
    for model in models:
        known = _rows(found, model, kind)
        for one in SYSTEMS:
            if all(one.name in row for row in known):
                values[model, one.name] = [row[one.name]["both"]["mean"] for row in known]
    best = {
        model: max(min(v) for (of, name), v in values.items() if of == model and name != NEAREST)
        for model in models
    }
    rows = []
    for one in SYSTEMS:
        cells = []
        for model in models:
            shown = values.get((model, one.name))
            mark = "**" if shown and one.name != NEAREST and min(shown) == best[model] else ""
            cells.append(f"{fmean(shown):.3f} / {mark}{min(shown):.3f}{mark}" if shown else "")
        rows.append([_LABELS.get(one.name, one.name), *cells])
    counts = (str(len(_rows(found, model, kind))) for model in models)
    return markdown(["", *models], [*rows, ["data sets × conditions", *counts]])


_LABELS = {
    "median / 4.5": "σ = median / 4.5, vectors alone (no near-duplicate guard)",
    OURS: "dartboard (σ = median / 4.5, guard)",
    FIXED: "σ = .09, guard",
}


def _rows(found: Mapping[str, Any], model: str, kind: str) -> list[Mapping[str, Any]]:
    """The systems' shares in the cells of a kind."""
    return [
        cell["systems"]
        for name, cells in found["shares"][model].items()
        for condition, cell in cells.items()
        if kind in ("all", "redundant" if condition != "clean" or name == NATURAL else "clean")
    ]


def _throughput(encoder: EmbeddingModel, texts: list[str]) -> float:
    """Texts a second of processor time: another program's work does not count."""
    encoder.encode_documents(texts[:8])
    started = time.process_time()
    encoder.encode_documents(texts, batch_size=8)
    return len(texts) / (time.process_time() - started)


if __name__ == "__main__":
    main()
