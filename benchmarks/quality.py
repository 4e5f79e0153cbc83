"""Measure selection on real data, clean and redundant, and write docs/benchmarks/quality.md.

    python benchmarks/quality.py [--sets NAME …] [--out DIR]

The data sets lie in the folder that DARTBOARD_DATA names, ../shared/data by default; none is part of this
project. Each is taken as it is and with five near-copies of every passage, at cosine .97 and .90. A system is
judged by the recall of the required passages among its first 5 and 10 picks from the nearest 100, any copy
counting, and by that recall as a share of what nearest neighbours reach on the clean set.
"""

import argparse
import json
import os
import sys
from pathlib import Path
from typing import Any

from dartboard.datasets import load_dataset, progress_bar, with_redundancy
from dartboard.embeddings import CachedModel, default_model
from dartboard.evaluation import EvaluationConfig, evaluate_dataset
from dartboard.types import Dataset

ROOT = Path(__file__).parent.parent
SETS = ("hotpotqa_dev200", "musique_train100", "rgb_en_int", "rgb_en_fact", "scifact")
CONDITIONS: dict[str, float | None] = {"clean": None, "copies at .97": 0.97, "copies at .90": 0.90}
SYSTEMS = [
    "cosine",
    "mmr-0.5", "mmr-0.7", "mmr-0.9",
    "dedup-0.80", "dedup-0.85", "dedup-0.90", "dedup-0.95",
    "dartboard-0.09", "dartboard",
]  # fmt: skip
DEPTHS = (5, 10)


def measured(dataset: Dataset) -> dict[str, Any]:
    """Recall of the required passages for each system, with intervals and what differs from Dartboard."""
    measure = "set_recall" if dataset.metadata.get("kernels") else "recall"
    config = EvaluationConfig(
        datasets=[dataset.name],
        retrievers=SYSTEMS,
        metrics=[measure],
        k_values=list(DEPTHS),
        sigma_sweep=False,
        copies=[],
    )
    record = evaluate_dataset(dataset, config).record
    scores = {
        system: {f"@{k}": by_measure[f"{measure}@{k}"] for k in DEPTHS}
        for system, by_measure in record["systems"].items()
    }
    for k in DEPTHS:
        for system, compared in record["comparisons"][f"{measure}@{k}"].items():
            scores[system][f"@{k}"]["p_against_dartboard"] = compared["permutation_holm"]
    return {"queries": record["judged"], "chunks": record["chunks"], "measure": measure, "systems": scores}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--sets", nargs="+", default=list(SETS))
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks" / "results" / "quality.json")
    options = parser.parse_args()
    data = Path(os.environ.get("DARTBOARD_DATA", ROOT.parent / "shared" / "data"))
    if not data.is_dir():
        sys.exit(f"no data in {data}: set DARTBOARD_DATA to the folder that holds {', '.join(options.sets)}")
    model = CachedModel(default_model())
    found = json.loads(options.out.read_text()) if options.out.exists() else {}
    for name in options.sets:
        with progress_bar() as listen:
            clean = load_dataset(name, data, model, progress=listen, fetch=False)
        for condition, cosine in CONDITIONS.items():
            dataset = clean if cosine is None else with_redundancy(clean, copies=5, cosine=cosine)
            found.setdefault(name, {})[condition] = measured(dataset)
            options.out.write_text(json.dumps(found, indent=1) + "\n")
            print(name, condition, flush=True)


if __name__ == "__main__":
    main()
