"""Measure selection on real data, clean and redundant, and write benchmarks/results/quality.json.

    python benchmarks/quality.py [--sets NAME …] [--conditions NAME …] [--fresh]

The data sets lie in the folder that DARTBOARD_DATA names, ../shared/data by default; none is part of this
project. Each is taken as it is, with five near-copies of every passage at cosine .97 and .90, and with five
copies by edits of the text, which the model embeds. A system is judged by the recall of the required passages
among its first 5 and 10 picks from the nearest 100, any copy counting, and by that recall as a share of what
nearest neighbours reach on the clean set.

What is measured already is kept, one data set and condition at a time, as long as the systems still pick the
same for its first queries; ``--fresh`` measures it again. ``benchmarks/tables.py`` makes the pages from it.
"""

import argparse
import hashlib
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from dartboard.datasets import load_dataset, progress_bar, with_redundancy
from dartboard.datasets.near_copies import EDITS
from dartboard.embeddings import CachedModel, EmbeddingModel, default_model
from dartboard.evaluation import EvaluationConfig, Judgements, Scores, evaluate_dataset
from dartboard.evaluation.questions import Triage
from dartboard.evaluation.registry import QUICK, choose
from dartboard.evaluation.runner import answer
from dartboard.types import Dataset, FloatArray

ROOT = Path(__file__).parent.parent
SETS = ("hotpotqa_dev200", "musique_train100", "rgb_int_neutronrag", "rgb_en_fact", "scifact")
CONDITIONS: dict[str, dict[str, Any]] = {
    "clean": {},
    "copies at .97": {"cosine": 0.97},
    "copies at .90": {"cosine": 0.90},
    "text edits": {"edits": tuple(EDITS)},
}
LEFT_OUT = {("scifact", "text edits")}
"""26,000 edited abstracts take an hour to embed on two cores: ask for them by --sets scifact."""

SYSTEMS = [*QUICK[:-2], "dartboard-0.09", "dartboard", "oracle"]
DEPTHS = (5, 10)
MEASURE = "set_recall"
"""Of what is required, else of what is relevant; copies count once."""
RESAMPLES = 2000
PROBED = 50


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--sets", nargs="+", help=f"by default {', '.join(SETS)}")
    parser.add_argument("--conditions", nargs="+", choices=list(CONDITIONS))
    parser.add_argument("--fresh", action="store_true", help="measure again what is there already")
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks" / "results" / "quality.json")
    options = parser.parse_args()
    data = Path(os.environ.get("DARTBOARD_DATA", ROOT.parent / "shared" / "data"))
    if not data.is_dir():
        sys.exit(f"no data in {data}: set DARTBOARD_DATA to the folder that holds {', '.join(SETS)}")
    cells = [
        (name, condition)
        for name in options.sets or SETS
        for condition in options.conditions or CONDITIONS
        if options.sets or (name, condition) not in LEFT_OUT
    ]
    bench = Bench(options.out, data, fresh=options.fresh)
    for name, condition in cells:
        started = time.perf_counter()
        new = bench.measure(name, condition)
        print(
            f"{name}, {condition}: {f'{time.perf_counter() - started:.0f} s' if new else 'kept'}", flush=True
        )


class Bench:
    """The file of results, filled cell by cell."""

    def __init__(self, out: Path, data: Path, *, fresh: bool) -> None:
        self._out, self._data, self._fresh = out, data, fresh
        self._found: dict[str, dict[str, Any]] = json.loads(out.read_text()) if out.exists() else {}
        self._model = CachedModel(default_model())
        self._clean: tuple[str, Dataset, FloatArray] | None = None

    def measure(self, name: str, condition: str) -> bool:
        """Fill a cell; False where it was filled already, by systems that pick the same."""
        clean, base = self._baseline(name)
        dataset = under(clean, condition, self._model)
        made_with = {"systems": SYSTEMS, "picks": behaviour(dataset), "model": self._model.fingerprint}
        cells = self._found.setdefault(name, {})
        if not self._fresh and cells.get(condition, {}).get("made_with") == made_with:
            return False
        cells[condition] = measured(dataset, base) | {"made_with": made_with}
        self._found[name] = {known: cells[known] for known in CONDITIONS if known in cells}
        order = [*SETS, *self._found]
        self._found = {one: self._found[one] for one in dict.fromkeys(order) if one in self._found}
        self._out.write_text(json.dumps(self._found, indent=1) + "\n")
        return True

    def _baseline(self, name: str) -> tuple[Dataset, FloatArray]:
        """A clean data set, and what nearest neighbours reach on it, ``(queries, depths)``."""
        if self._clean is None or self._clean[0] != name:
            with progress_bar() as listen:
                clean = load_dataset(name, self._data, self._model, progress=listen, fetch=False)
            found = evaluate_dataset(clean, _config(clean, ["cosine"])).scores["cosine"]
            self._clean = name, clean, _recalls(found, MEASURE)
        return self._clean[1:]


def under(clean: Dataset, condition: str, model: EmbeddingModel) -> Dataset:
    """The data set under a condition."""
    how = CONDITIONS[condition]
    if not how:
        return clean
    return with_redundancy(clean, copies=5, model=model if "edits" in how else None, **how)


def measured(dataset: Dataset, base: FloatArray) -> dict[str, Any]:
    """For each system the recall of the required passages, its share of the base, and p against Dartboard."""
    outcome = evaluate_dataset(dataset, _config(dataset, SYSTEMS))
    record = outcome.record
    scores: dict[str, dict[str, Any]] = {}
    for system, by_measure in record["systems"].items():
        scores[system] = {f"@{k}": by_measure[f"{MEASURE}@{k}"] for k in DEPTHS}
        scores[system]["diversity@5"] = by_measure["diversity@5"]["mean"]
        scores[system]["share"] = share(_recalls(outcome.scores[system], MEASURE), base)
    for k in DEPTHS:
        for system, compared in record["comparisons"][f"{MEASURE}@{k}"].items():
            scores[system][f"@{k}"] |= {
                "difference": compared["difference"],
                "p": compared["p_holm"],
            }
    return {
        "queries": record["judged"],
        "chunks": record["chunks"],
        "measure": MEASURE,
        "systems": scores,
        "skipped": record["skipped"],
    }


def share(recalls: FloatArray, base: FloatArray) -> dict[str, float]:
    """Recall over what nearest neighbours reach on the clean set, the mean of both depths.

    The interval and ``sd`` are bootstrapped over queries, the same ones above and below the line.
    """
    count = len(recalls)
    drawn = np.random.default_rng(0).multinomial(count, np.full(count, 1 / count), size=RESAMPLES)
    ratios = ((drawn @ recalls) / (drawn @ base)).mean(axis=1)
    low, high = np.quantile(ratios, [0.025, 0.975])
    return {
        name: round(float(value), 6)
        for name, value in {
            "mean": (recalls.mean(axis=0) / base.mean(axis=0)).mean(),
            "low": low,
            "high": high,
            "sd": ratios.std(ddof=1),
        }.items()
    }


def behaviour(dataset: Dataset) -> str:
    """What the systems pick for the first queries, as a hash: another σ changes it, mere speed does not."""
    judgements, triage = Judgements.of(dataset), Triage(dataset)
    systems, asked = choose(SYSTEMS, dataset, judgements).systems, judgements.query_ids[:PROBED]
    runs, _ = answer(triage, asked, systems, depth=max(DEPTHS))
    sigmas = [f"{triage.question(query_id).pool().sigma.value:.5g}" for query_id in asked]
    return hashlib.sha256(json.dumps([runs, sigmas]).encode()).hexdigest()[:16]


def _recalls(scores: Scores, measure: str) -> FloatArray:
    """``(queries, depths)``."""
    return np.stack([scores.values[f"{measure}@{k}"] for k in DEPTHS], axis=1)


def _config(dataset: Dataset, systems: list[str]) -> EvaluationConfig:
    return EvaluationConfig(
        datasets=[dataset.name],
        retrievers=systems,
        metrics=[MEASURE, "diversity@5"],
        k_values=list(DEPTHS),
        sigma_sweep=False,
        copies=[],
    )


if __name__ == "__main__":
    main()
