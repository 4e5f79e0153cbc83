"""Measure the rule for σ on redundancy that people made, and write benchmarks/results/natural.json.

    python benchmarks/natural.py [--sets NAME …] [--conditions NAME …] [--models NAME …] [--fresh]

The data sets lie in the folder that DARTBOARD_DATA names, ../shared/data by default; none is part of this
project. Every second query of a set chooses the divisor of the rule, the others report. A system is judged
by what it finds among its first 5 and 10 picks from 100 candidates, as a share of what nearest neighbours
find on the clean set: facets on Perspectrum, the section asked for on jest, required passages elsewhere.

Conditions: ``clean`` (the nearest 100 by vectors), ``hybrid`` (the 100 best by vectors and words; the share
is of the best 5 and 10 in that order), ``text edits`` (five edited copies of every passage) and ``copies at
.97`` (five copies by noise on the vector).

Held-out sets are asked for by name and have a file of their own:

    python benchmarks/natural.py --sets flask_versions sqlalchemy_versions --conditions clean hybrid \\
        --out benchmarks/results/held_out.json

What is measured already is kept, one model, set and condition at a time, as long as Dartboard still picks
the same for its first queries; ``--fresh`` measures it again. ``benchmarks/tables.py`` makes the tables.
"""

import argparse
import hashlib
import json
import re
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))  # run as a script, this file finds its neighbours

from benchmarks.measuring import data_folder  # noqa: E402
from benchmarks.rivals import VRSD, AdaGReS  # noqa: E402
from dartboard.calibration import Evidence, fit_sigma  # noqa: E402
from dartboard.datasets import load_dataset, progress_bar, with_redundancy  # noqa: E402
from dartboard.datasets.near_copies import EDITS  # noqa: E402
from dartboard.embeddings import CachedModel, EmbeddingModel  # noqa: E402
from dartboard.embeddings.by_name import model_by_name  # noqa: E402
from dartboard.evaluation import Judgements, System, evaluate  # noqa: E402
from dartboard.evaluation.baselines import (  # noqa: E402
    Pyversity,
    RetrieverSystem,
    SelectionSystem,
)
from dartboard.evaluation.measures import Measure  # noqa: E402
from dartboard.evaluation.questions import Question, Triage  # noqa: E402
from dartboard.selection import MMR, Dartboard, Limits, NearDuplicateFilter, TopK, from_embeddings  # noqa: E402
from dartboard.selection.kernel import Auto  # noqa: E402
from dartboard.selection.pool import Pool, in_order_of  # noqa: E402
from dartboard.types import Dataset, FloatArray  # noqa: E402

FACETS = "subtopic_recall"
MEASURES = {
    "perspectrum_train": FACETS,
    "jest_versions": FACETS,
    "hotpotqa_dev200": "set_recall",
    "musique_train100": "set_recall",
    "rgb_int_neutronrag": "set_recall",
    "rgb_en_fact": "set_recall",
    "scifact": "set_recall",
}
"""The data sets and what is counted: facets, or passages that are required, else relevant."""

HELD_OUT = {"flask_versions": FACETS, "sqlalchemy_versions": FACETS}
"""Sets that were made after the rule was fixed (``benchmarks/held_out.py``); measured when asked for."""

CONDITIONS = ("clean", "hybrid", "text edits", "copies at .97")
EDITED = (
    "perspectrum_train",
    "jest_versions",
    "hotpotqa_dev200",
    "musique_train100",
    "rgb_int_neutronrag",
    "rgb_en_fact",
)
"""Sets whose edited copies are embedded unless others are asked for; that of SciFact takes an hour."""

NEAREST = "nearest neighbours"
DEFAULT = "dartboard"
DIVISORS = (3.5, 4.0, 4.5, 5.0, 6.0)
DEPTHS = (5, 10)
HALVES = {"choosing": slice(0, None, 2), "reporting": slice(1, None, 2), "all": slice(None)}
TRIAGE = 100
RESAMPLES = 2000
PROBED = 40


def by_divisor(divisor: float) -> str:
    """The name of the rule with another divisor, by vectors alone."""
    return f"median / {divisor:g}"


@dataclass(frozen=True)
class Divided:
    """Dartboard by vectors alone, with another divisor of the rule."""

    divisor: float
    seeds: Sequence[int] = (0,)

    @property
    def name(self) -> str:
        """As in the tables."""
        return by_divisor(self.divisor)

    def rank(self, question: Question, k: int, seed: int) -> Sequence[str]:
        """The picks."""
        pool = from_embeddings(
            question.vector, question.vectors, divisor=self.divisor, ranking=ranking_of(question)
        )
        return [question.candidates[pick].id for pick in Dartboard().select(pool, Limits(k=k)).indices]


SYSTEMS: tuple[System, ...] = (
    SelectionSystem(NEAREST, TopK()),
    *(SelectionSystem(f"MMR {weight:g}", MMR(relevance_weight=weight)) for weight in (0.3, 0.5, 0.7, 0.9)),
    *(
        SelectionSystem(f"filter {threshold:.2f}", NearDuplicateFilter(threshold=threshold))
        for threshold in (0.80, 0.85, 0.90, 0.95)
    ),
    Pyversity("dpp"),
    AdaGReS(),
    VRSD(),
    *(Divided(divisor) for divisor in DIVISORS),
    SelectionSystem(DEFAULT, Dartboard()),
)


@dataclass(frozen=True, eq=False, kw_only=True)
class RankedQuestion(Question):
    """Candidates in the order of a retriever, whose order counts instead of the distances to the query."""

    ranking: FloatArray

    def pool(self, sigma: float | Auto = "auto") -> Pool:
        """The candidates as selection sees them behind a retriever."""
        if sigma not in self._pools:
            self._pools[sigma] = from_embeddings(
                self.vector, self.vectors, sigma=sigma, groups=self._groups, ranking=self.ranking
            )
        return self._pools[sigma]


def ranking_of(question: Question) -> FloatArray | None:
    """The retriever's scores, where its order counts."""
    return question.ranking if isinstance(question, RankedQuestion) else None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--sets", nargs="+", choices=[*MEASURES, *HELD_OUT])
    parser.add_argument("--conditions", nargs="+", choices=CONDITIONS, default=CONDITIONS)
    parser.add_argument("--models", nargs="+", default=["default"], help="default, onnx:PATH …")
    parser.add_argument("--fresh", action="store_true", help="measure again what is there already")
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks" / "results" / "natural.json")
    options = parser.parse_args()
    bench = Bench(options.out, fresh=options.fresh)
    for name in options.models:
        model = CachedModel(model_by_name(name))
        for dataset in options.sets or MEASURES:
            for condition in options.conditions:
                if condition == "text edits" and not options.sets and dataset not in EDITED:
                    continue
                started = time.perf_counter()
                new = bench.measure(model, dataset, condition)
                took = f"{time.perf_counter() - started:.0f} s" if new else "kept"
                print(f"{model.name}, {dataset}, {condition}: {took}", flush=True)


class Bench:
    """The file of results, filled cell by cell: model, data set, condition."""

    def __init__(self, out: Path, *, fresh: bool) -> None:
        self._out, self._fresh = out, fresh
        self._found: dict[str, Any] = json.loads(out.read_text()) if out.exists() else {}
        self._clean: tuple[tuple[str, str], Dataset, Cell] | None = None

    def measure(self, model: EmbeddingModel, name: str, condition: str) -> bool:
        """Fill a cell; False where it was filled already, by a Dartboard that picks the same."""
        dataset, base = self._baseline(model, name)
        cell = base if condition == "clean" else Cell(under(dataset, condition, model), model, condition)
        cells = self._found.setdefault(model.name, {}).setdefault(name, {})
        made_with = {"systems": [one.name for one in SYSTEMS], "picks": cell.behaviour()}
        if not self._fresh and cells.get(condition, {}).get("made_with") == made_with:
            return False
        cells[condition] = cell.measured(cell if condition == "hybrid" else base)
        cells[condition]["made_with"] = made_with
        self._found[model.name][name] = {one: cells[one] for one in CONDITIONS if one in cells}
        self._write()
        return True

    def _baseline(self, model: EmbeddingModel, name: str) -> tuple[Dataset, "Cell"]:
        if self._clean is None or self._clean[0] != (model.name, name):
            with progress_bar() as listen:
                clean = load_dataset(name, data_folder(name), model, progress=listen, fetch=False)
            self._clean = (model.name, name), clean, Cell(clean, model, "clean")
        return self._clean[1:]

    def _write(self) -> None:
        for model, by_set in self._found.items():
            self._found[model] = {one: by_set[one] for one in MEASURES | HELD_OUT if one in by_set}
        text = json.dumps(self._found, indent=1)
        self._out.write_text(re.sub(r"\n {6,}", "", text) + "\n")  # one line a system


def under(clean: Dataset, condition: str, model: EmbeddingModel) -> Dataset:
    """The data set under a condition."""
    if condition == "text edits":
        return with_redundancy(clean, copies=5, edits=tuple(EDITS), model=model)
    return with_redundancy(clean, copies=5, cosine=0.97) if condition == "copies at .97" else clean


class Cell:
    """The questions of a data set under a condition, and what the systems find."""

    def __init__(self, dataset: Dataset, model: EmbeddingModel, condition: str) -> None:
        self._dataset, self._model, self._condition = dataset, model, condition
        self._judgements = Judgements.of(dataset)
        self._measure = (MEASURES | HELD_OUT)[dataset.name.partition("+")[0]]
        self._questions: list[Question] | None = None
        self._runs: dict[tuple[str, int], Mapping[str, Sequence[str]]] = {}

    def questions(self) -> list[Question]:
        """All of them, made once."""
        if self._questions is None:
            self._questions = list(self._asked(self._judgements.query_ids))
        return self._questions

    def _asked(self, query_ids: Sequence[str]) -> Iterator[Question]:
        triage = Triage(self._dataset, TRIAGE)
        retriever = RetrieverSystem("hybrid", self._dataset, self._model)
        chunks = {chunk.id: chunk for chunk in self._dataset.chunks}
        for query_id in query_ids:
            question = triage.question(query_id)
            if self._condition != "hybrid":
                yield question
                continue
            found = [chunks[one] for one in retriever.rank(question, TRIAGE, 0)]
            vectors = np.stack([chunk.embedding for chunk in found])
            ranking = -np.arange(len(found), dtype=np.float64)
            cosines = from_embeddings(question.vector, vectors).similarity
            yield RankedQuestion(
                query_id=query_id,
                text=question.text,
                vector=question.vector,
                candidates=found,
                vectors=vectors,
                similarity=in_order_of(ranking, cosines),
                worded=question.worded,
                ranking=ranking,
            )

    def behaviour(self) -> str:
        """What Dartboard picks for the first queries, as a hash: another rule changes it, speed does not."""
        asked = self._asked(self._judgements.query_ids[:PROBED])
        picks = [SYSTEMS[-1].rank(question, max(DEPTHS), 0) for question in asked]
        return hashlib.sha256(json.dumps([self._model.fingerprint, picks]).encode()).hexdigest()[:16]

    def measured(self, clean: "Cell") -> dict[str, Any]:
        """Shares of what nearest neighbours find on ``clean``, with intervals, by system and half."""
        base = clean.found(SYSTEMS[0], self._measure)
        found = {system.name: self.found(system, self._measure) for system in SYSTEMS}
        rows: dict[str, Any] = {}
        for system in SYSTEMS:
            name, values = system.name, found[system.name]
            rows[name] = {half: shares(values[part], base[part]) for half, part in HALVES.items()}
            if name != DEFAULT:
                rows[name]["minus default"] = difference(values, found[DEFAULT], base)
            if (sections := self._sections(system)) is not None:
                means = {half: float(sections[part].mean()) for half, part in HALVES.items()}
                rows[name]["sections@5"] = {half: round(mean, 4) for half, mean in means.items()}
            if self._measure != FACETS and self._shares_facets():
                rows[name]["facets"] = shares(self.found(system, FACETS), clean.found(SYSTEMS[0], FACETS))
        wide, narrow = (found[by_divisor(divisor)] for divisor in (4.0, 6.0))
        return {
            "queries": len(base),
            "chunks": len(self._dataset.chunks),
            "measure": self._measure,
            "systems": rows,
            "median / 4 minus median / 6": difference(wide, narrow, base),
            "numbers": self.numbers(),
        }

    def _shares_facets(self) -> bool:
        by_query = self._judgements.facets.values()
        bases = self._judgements.bases
        return any(len(set(bases(ids))) > 1 for facets in by_query for ids in facets.values())

    def found(self, system: System, name: str) -> FloatArray:
        """What a system finds by a measure, ``(queries, depths)``."""
        columns = []
        for depth in DEPTHS:
            measure = Measure(name, depth)
            scores = evaluate(self._run(system, depth), self._judgements, [measure])
            columns.append(scores.values[str(measure)])
        return np.stack(columns, axis=1)

    def _run(self, system: System, depth: int) -> Mapping[str, Sequence[str]]:
        """The picks for every query: as many as the largest depth, unless they depend on their number."""
        k = depth if isinstance(system, AdaGReS) else max(DEPTHS)
        if (system.name, k) not in self._runs:
            picked = {one.query_id: system.rank(one, k, 0) for one in self.questions()}
            self._runs[system.name, k] = picked
        return self._runs[system.name, k]

    def _sections(self, system: System) -> FloatArray | None:
        """How many different sections five picks are from, ``(queries,)``, where sections are known."""
        place = sections_of(self._dataset.name) if self._condition in ("clean", "hybrid") else {}
        if not place:
            return None
        picked = self._run(system, 5)
        found = [{place[one] for one in picked[query][:5]} for query in self._judgements.query_ids]
        return np.array([len(one) for one in found], dtype=np.float64)

    def numbers(self) -> dict[str, float]:
        """What users are shown: medians of coverage, first gain and σ; σ by likelihood of labelled pairs."""
        coverage, gains, sigmas, evidence = [], [], [], []
        for question in self.questions():
            pool = question.pool()
            picks = Dartboard().select(pool, Limits(k=5))
            coverage.append(float(picks.coverage[-1]))
            gains.append(float(picks.gains[0]))
            sigmas.append(pool.sigma.value)
            judged = self._judgements.qrels[question.query_id]
            targets = [i for i, one in enumerate(question.candidates) if judged.get(one.id, 0) > 0]
            squared = ((1.0 - pool.similarity) / 2.0) ** 2
            evidence.append(Evidence(-squared, np.array(targets, dtype=np.intp)))
        likely = fit_sigma(evidence, resamples=50).value
        return {
            "coverage of 5 picks": round(float(np.median(coverage)), 4),
            "first gain": round(float(np.median(gains)), 4),
            "sigma": round(float(np.median(sigmas)), 5),
            "sigma by likelihood": round(likely, 5),
        }


@cache
def sections_of(name: str) -> Mapping[str, tuple[str, str]]:
    """The page and section of each passage, where the set's own file tells them; empty where it does not."""
    found = {}
    with (data_folder(name) / name / "corpus.jsonl").open(encoding="utf-8") as lines:
        for row in map(json.loads, lines):
            if "section" in row.get("metadata", {}):
                found[row["_id"]] = row["metadata"]["page"], row["metadata"]["section"]
    return found


def shares(values: FloatArray, base: FloatArray) -> dict[str, Any]:
    """Means over the base at each depth and over both, with 95 % intervals by bootstrap over queries."""
    drawn = _drawn(len(values))
    ratios = (drawn @ values) / (drawn @ base)
    means = values.mean(axis=0) / base.mean(axis=0)
    found = {f"@{k}": _summary(means[i], ratios[:, i]) for i, k in enumerate(DEPTHS)}
    for i, k in enumerate(DEPTHS):
        found[f"@{k}"]["found"] = round(float(values[:, i].mean()), 5)
    both = ratios.mean(axis=1)
    return {**found, "both": _summary(means.mean(), both) | {"sd": round(float(both.std(ddof=1)), 6)}}


def difference(values: FloatArray, others: FloatArray, base: FloatArray) -> dict[str, Any]:
    """The difference of two shares at each depth and over both, bootstrapped over the same queries."""
    drawn = _drawn(len(values))
    ratios = (drawn @ (values - others)) / (drawn @ base)
    means = (values - others).mean(axis=0) / base.mean(axis=0)
    found = {f"@{k}": _summary(means[i], ratios[:, i]) for i, k in enumerate(DEPTHS)}
    both = ratios.mean(axis=1)
    return {**found, "both": _summary(means.mean(), both) | {"sd": round(float(both.std(ddof=1)), 6)}}


def _drawn(count: int) -> FloatArray:
    drawn = np.random.default_rng(0).multinomial(count, np.full(count, 1 / count), size=RESAMPLES)
    return drawn.astype(np.float64)


def _summary(mean: float, resampled: FloatArray) -> dict[str, float]:
    low, high = np.quantile(resampled, [0.025, 0.975])
    return {name: round(float(one), 5) for name, one in {"mean": mean, "low": low, "high": high}.items()}


if __name__ == "__main__":
    main()
