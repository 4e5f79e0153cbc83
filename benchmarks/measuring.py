"""What the decisions' measurements share: real data by name, some of its queries, systems compared."""

import atexit
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from statistics import median
from typing import Any, TypeVar

import numpy as np

from dartboard.blas import one_thread_each
from dartboard.datasets import load_dataset, progress_bar
from dartboard.embeddings import EmbeddingModel
from dartboard.evaluation import Content, Judgements, Scores, System, evaluate
from dartboard.evaluation.measures import Measure
from dartboard.evaluation.questions import Triage
from dartboard.evaluation.runner import answer
from dartboard.statistics import bootstrap, compare, holm
from dartboard.types import Dataset

ROOT = Path(__file__).parent.parent
TIMED = 20

T = TypeVar("T")


def load(name: str, encoder: EmbeddingModel) -> Dataset:
    """A data set of the folder, embedded."""
    with progress_bar() as listen:
        return load_dataset(name, data_folder(name), encoder, progress=listen, fetch=False)


FOLDERS = {"rgb_int_neutronrag": "rgb_en_int"}
"""Data sets whose folder has another name: there, that of a file which is not the same data set."""


@cache
def data_folder(name: str) -> Path:
    """The folder of data sets, which has to hold this one; with a link where it has another name there."""
    data = Path(os.environ.get("DARTBOARD_DATA", ROOT.parent / "shared" / "data"))
    if (data / name).is_dir():
        return data
    other = data / FOLDERS.get(name, name)
    if not other.is_dir():
        sys.exit(f"{data / name} is missing: set DARTBOARD_DATA to the folder that holds {name}")
    links = Path(tempfile.mkdtemp(prefix="dartboard-data-"))
    atexit.register(shutil.rmtree, links)
    (links / name).symlink_to(other.resolve(), target_is_directory=True)
    return links


def some_queries(dataset: Dataset, some: slice) -> Dataset:
    """The data set with some of its queries."""
    ids = dataset.query_ids[some]
    known = dataset.metadata
    by_query = {
        kind: {query_id: known[kind][query_id] for query_id in ids if query_id in known[kind]}
        for kind in ("qrels", "facets", "kernels")
        if kind in known
    }
    return replace(
        dataset,
        queries=dataset.queries[some],
        query_ids=ids,
        ground_truth={query_id: dataset.ground_truth[query_id] for query_id in ids},
        metadata={**known, **by_query, "query_embeddings": known["query_embeddings"][some]},
    )


def measured(
    dataset: Dataset, systems: Sequence[System], *, triage_k: int = 100, timed: bool = True
) -> dict[str, Any]:
    """Recall of the required passages with intervals and p values against the first system; diversity; ms."""
    judgements, content, triage = Judgements.of(dataset), Content.of(dataset), Triage(dataset, triage_k)
    measures = [Measure("set_recall", 5), Measure("set_recall", 10), Measure("diversity", 5)]
    runs, _ = answer(triage, judgements.query_ids, systems, depth=10, workers=1)
    scores: dict[str, Scores] = {
        name: evaluate(run, judgements, measures, content=content) for name, (run,) in runs.items()
    }
    first, *others = scores
    rows: dict[str, Any] = {}
    for name, found in scores.items():
        columns = np.stack(list(found.values.values()), axis=1)
        low, high = bootstrap(columns)
        rows[name] = {
            measure: {"mean": mean, "low": float(low[place]), "high": float(high[place])}
            for place, (measure, mean) in enumerate(found.means.items())
        }
    for system in systems if timed else ():
        rows[system.name]["ms"] = cpu_ms(
            lambda question, one=system: one.rank(question, 10, 0),
            [triage.question(query_id) for query_id in judgements.query_ids[:TIMED]],
        )
    for measure in ("set_recall@5", "set_recall@10"):
        base = scores[first].values[measure][:, None]
        p_values = {name: compare(scores[name].values[measure][:, None], base)[0].p for name in others}
        for name, p in holm(p_values).items():
            rows[name][measure]["p"] = p
    return rows


def cpu_ms(work: Callable[[T], object], given: Sequence[T]) -> float:
    """The median milliseconds of processor time for one of them: another program's work does not count."""
    with one_thread_each():
        taken = []
        for one in given:
            started = time.process_time()
            work(one)
            taken.append(time.process_time() - started)
    return 1000 * median(taken)


def rounded(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.4g}")
    if isinstance(value, dict):
        return {key: rounded(one) for key, one in value.items()}
    return [rounded(one) for one in value] if isinstance(value, list) else value
