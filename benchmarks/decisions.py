"""Measure what the specification leaves open (section 14), and write benchmarks/results/decisions.json.

    python -m benchmarks.decisions [--parts criteria vocabulary scaling model]

The tables in docs/decisions.md are made from that file by ``benchmarks/tables.py``. The data sets lie in the
folder that DARTBOARD_DATA names, ../shared/data by default. A part that is there already is measured again
only where it is named. Sets and queries are few, so that the first run takes about ten minutes on two idle
cores; all vectors are cached.
"""

import argparse
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Any

import numpy as np

from benchmarks.encoders import compare_encoders
from benchmarks.measuring import ROOT, cpu_ms, load, measured, rounded, some_queries
from dartboard.calibration import Estimate, fit_temperature
from dartboard.core import DartboardConfig, DartboardRetriever
from dartboard.datasets import SyntheticDatasetConfig, make_clustered, with_redundancy
from dartboard.datasets.near_copies import EDITS
from dartboard.embeddings import CachedModel, LateInteraction, default_model
from dartboard.embeddings.base import PairScorer
from dartboard.evaluation import Judgements, System
from dartboard.evaluation.baselines import KnownVector, SelectionSystem
from dartboard.evaluation.questions import Question, Triage
from dartboard.selection import Dartboard, Limits, TopK, select
from dartboard.types import Dataset
from dartboard.vocab import TokenDistances, build_token_vocabulary

RESULTS = ROOT / "benchmarks" / "results" / "decisions.json"
VOCABULARY_SETS = ("hotpotqa_dev200", "rgb_en_int")
SCALING_QUERIES = {"rgb_en_fact": 50, "hotpotqa_dev200": 30}
"""Queries to measure on; as many others fit the temperature."""

SCALING_POOL = 50
TOKENS, SAMPLE = 5000, 20_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--parts", nargs="+", choices=list(PARTS), default=[])
    options = parser.parse_args()
    found = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    for name in options.parts or [part for part in PARTS if part not in found]:
        started = time.perf_counter()
        found[name] = PARTS[name]()
        ordered = {part: found[part] for part in PARTS if part in found}
        RESULTS.write_text(json.dumps(rounded(ordered), indent=1) + "\n")
        print(f"{name}: {time.perf_counter() - started:.0f} s", flush=True)


# Criteria: precision and diversity on clustered data, where a list fits the clusters and where it does not.


def criteria() -> list[dict[str, Any]]:
    """The clustered set at several sizes: nearest neighbours, Dartboard, Dartboard that may stop."""
    cases = [(5, 3, 3), (10, 5, 5), (20, 10, 10), (5, 3, 5)]
    rows = []
    for clusters, fewest, k in cases:
        row: dict[str, Any] = {"clusters": clusters, "fewest": fewest, "k": k}
        for name, options in (
            ("cosine", {"method": "top_k"}),
            ("dartboard", {}),
            ("stopping", {"min_gain_share": 0.05}),
        ):
            row[name] = _on_clusters(clusters, fewest, k, options)
        rows.append(row)
    return rows


def _on_clusters(clusters: int, fewest: int, k: int, options: dict[str, Any]) -> dict[str, float]:
    """Means over the 20 queries of five seeds: the right share of the picks, how diverse, how many."""
    right, spread, lengths = [], [], []
    for seed in range(5):
        config = SyntheticDatasetConfig(num_clusters=clusters, embed_dim=512, random_seed=seed)
        dataset = make_clustered(config, fewest_clusters=fewest)
        triage = Triage(dataset)
        for query_id in dataset.query_ids:
            question = triage.question(query_id)
            texts = [chunk.text for chunk in question.candidates]
            picks = select(question.vectors, question.vector, k, texts=texts, **options).indices
            relevant = set(dataset.ground_truth[query_id])
            right.append(fmean(question.candidates[i].id in relevant for i in picks))
            lengths.append(len(picks))
            if len(picks) > 1:
                cosines = question.vectors[picks] @ question.vectors[picks].T
                spread.append(1 - float(cosines[np.triu_indices(len(picks), 1)].mean()))
    return {"precision": fmean(right), "diversity": fmean(spread), "length": fmean(lengths)}


# Vocabulary: what the targets are.


@dataclass(frozen=True)
class OnTokens:
    """Dartboard with a vocabulary as targets."""

    name: str
    tokens: TokenDistances
    seeds: Sequence[int] = (0,)

    def rank(self, question: Question, k: int, seed: int) -> list[str]:
        pool = self.tokens.pool(question.vector, question.vectors, sigma="auto")
        return [question.candidates[i].id for i in Dartboard().select(pool, Limits(k=k)).indices]


def vocabulary() -> dict[str, Any]:
    """Candidates as targets against three vocabularies of 5,000 tokens."""
    model = CachedModel(default_model())
    systems: list[System] = [SelectionSystem("candidates (no vocabulary)", Dartboard())]
    for method in ("words", "subwords", "clusters"):
        tokens = build_token_vocabulary(model, TOKENS, method, sample_size=SAMPLE)
        systems.append(OnTokens(method, TokenDistances(tokens, "scaled_cosine")))
    systems.append(SelectionSystem("nearest neighbours", TopK()))
    sets = {}
    for name in VOCABULARY_SETS:
        clean = load(name, model)
        sets[name] = {
            "clean": measured(clean, systems),
            "copies at .97": measured(with_redundancy(clean, copies=5, cosine=0.97), systems),
        }
    return {"tokens": TOKENS, "sample": SAMPLE, "sets": sets}


# Scaling: how pair scores become distances.


class Remembering:
    """A pair scorer asked about one query by several systems: what was scored last is not scored again."""

    def __init__(self, scorer: PairScorer) -> None:
        self._scorer = scorer
        self._last: dict[str, tuple[Any, Any]] = {}
        self.bounds = scorer.bounds

    def score(self, query: str, passages: Sequence[str]) -> Any:
        return self._kept("query", (query, *passages), lambda: self._scorer.score(query, passages))

    def score_matrix(self, passages: Sequence[str]) -> Any:
        return self._kept("pairs", tuple(passages), lambda: self._scorer.score_matrix(passages))

    def _kept(self, kind: str, asked: Any, compute: Callable[[], Any]) -> Any:
        if kind not in self._last or self._last[kind][0] != asked:
            self._last[kind] = asked, compute()
        return self._last[kind][1].copy()


@dataclass(frozen=True)
class Paired:
    """A variant of Dartboard that reads texts, as a configuration says."""

    name: str
    config: DartboardConfig
    scorer: PairScorer
    seeds: Sequence[int] = (0,)

    def rank(self, question: Question, k: int, seed: int) -> list[str]:
        retriever = DartboardRetriever(
            replace(self.config, top_k=k), KnownVector(question.vector), cross_encoder=self.scorer
        )
        return [chunk.id for chunk in retriever.retrieve(question.text, list(question.candidates))]


def scaling() -> dict[str, Any]:
    """The crossencoder variant with three scalings, beside hybrid and the variant that reads nothing."""
    model, sets = CachedModel(default_model()), {}
    for name, count in SCALING_QUERIES.items():
        dataset = load(name, model)
        scorer = Remembering(LateInteraction(default_model(), cache_bytes=2 * 1024**3))
        temperature = _temperature(some_queries(dataset, slice(count, 2 * count)), scorer)
        systems = _variants(scorer, temperature.value)
        measured_on = some_queries(dataset, slice(count))
        edited = with_redundancy(measured_on, copies=5, edits=tuple(EDITS), model=model)
        sets[name] = {
            "queries": count,
            "pool": SCALING_POOL,
            "temperature": {"value": temperature.value, "low": temperature.low, "high": temperature.high},
            "conditions": {
                "clean": measured(measured_on, systems, triage_k=SCALING_POOL, timed=False),
                "text edits": measured(edited, systems, triage_k=SCALING_POOL, timed=False),
            },
            "ms": scoring_ms(some_queries(dataset, slice(5))),
        }
    return sets


def _variants(scorer: PairScorer, temperature: float) -> list[System]:
    both = DartboardConfig(reranker_type="crossencoder")
    hybrid = DartboardConfig(reranker_type="hybrid")
    return [
        *(
            Paired(f"crossencoder, {way}", replace(both, score_scaling=way), scorer)
            for way in ("bounds", "minmax", "sigmoid")
        ),
        Paired("hybrid, auto", hybrid, scorer),
        Paired("hybrid, fitted", replace(hybrid, sigma=temperature), scorer),
        SelectionSystem("cosine variant (reads nothing)", Dartboard()),
        SelectionSystem("nearest neighbours", TopK()),
    ]


def scoring_ms(dataset: Dataset) -> dict[str, float]:
    """Processor time of scoring one query's candidates, and all their pairs, their tokens being known."""
    scorer, triage = LateInteraction(default_model()), Triage(dataset, SCALING_POOL)
    questions = [triage.question(query_id) for query_id in dataset.query_ids]
    texts = {question.query_id: [chunk.text for chunk in question.candidates] for question in questions}
    for question in questions:
        scorer.score(question.text, texts[question.query_id])
    return {
        "query": cpu_ms(lambda one: scorer.score(one.text, texts[one.query_id]), questions),
        "pairs": cpu_ms(lambda one: scorer.score_matrix(texts[one.query_id]), questions),
    }


def _temperature(dataset: Dataset, scorer: PairScorer) -> Estimate:
    """τ of the hybrid variant, from queries that are not measured on."""
    judgements, triage = Judgements.of(dataset), Triage(dataset, SCALING_POOL)
    scores, targets = [], []
    for query_id, kernel in zip(judgements.query_ids, judgements.kernel_bases, strict=True):
        question = triage.question(query_id)
        scores.append(scorer.score(question.text, [chunk.text for chunk in question.candidates]))
        bases = judgements.bases(chunk.id for chunk in question.candidates)
        targets.append([place for place, base in enumerate(bases) if base in kernel])
    return fit_temperature(scores, targets)


PARTS: dict[str, Callable[[], Any]] = {
    "criteria": criteria,
    "vocabulary": vocabulary,
    "scaling": scaling,
    "model": compare_encoders,
}

if __name__ == "__main__":
    main()
