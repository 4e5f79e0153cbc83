"""Time the measures beside pytrec_eval, in one process, on one run; print ratios, write JSON.

    python benchmarks/metrics.py [--out FILE] [--rounds N] [--queries N] [--depth N]

Both sides compute the same measures for every query of MS MARCO's size: 6,980 queries, 100 results each.
Rounds take turns and each side's best counts. "lists" is what retrieval returns; "scores" makes us rank
the same dictionaries of scores that pytrec_eval takes. Numbers must agree to 1e-9 or nothing is printed.
"""

import argparse
import json
import platform
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytrec_eval

import dartboard
from dartboard.evaluation import Judgements, evaluate

PAIRS = {
    "P_10": "precision@10",
    "recall_100": "recall@100",
    "success_10": "hit_rate@10",
    "recip_rank": "mrr",
    "map": "map",
    "ndcg_cut_10": "ndcg@10",
}
ASKED = {"P.10", "recall.100", "success.10", "recip_rank", "map", "ndcg_cut.10"}


def make(
    queries: int, depth: int, seed: int = 0
) -> tuple[dict[str, dict[str, int]], dict[str, dict[str, float]]]:
    """Binary judgements, one to three a query, and scores without ties."""
    rng = np.random.default_rng(seed)
    qrels, run = {}, {}
    for q in range(queries):
        docs = [f"{d}" for d in rng.choice(8_800_000, depth, replace=False)]
        scores = rng.random(depth)
        run[f"{q}"] = dict(zip(docs, scores.tolist(), strict=True))
        relevant = rng.choice(depth * 2, rng.integers(1, 4), replace=False)
        qrels[f"{q}"] = {docs[r] if r < depth else f"missing{r}": 1 for r in relevant}
    return qrels, run


def best_times(runs: dict[str, Callable[[], Any]], rounds: int) -> dict[str, float]:
    best = dict.fromkeys(runs, float("inf"))
    for _ in range(rounds):
        for name, call in runs.items():
            started = time.perf_counter()
            call()
            best[name] = min(best[name], 1000 * (time.perf_counter() - started))
    return best


def check(ours: Any, theirs: dict[str, dict[str, float]]) -> None:
    for name, measure in PAIRS.items():
        expected = [theirs[q][name] for q in ours.query_ids]
        np.testing.assert_allclose(ours.values[measure], expected, atol=1e-9, rtol=0, err_msg=measure)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "metrics.json")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--queries", type=int, default=6980)
    parser.add_argument("--depth", type=int, default=100)
    given = parser.parse_args()
    qrels, scores = make(given.queries, given.depth)
    lists = {q: sorted(docs, key=docs.__getitem__, reverse=True) for q, docs in scores.items()}
    evaluator = pytrec_eval.RelevanceEvaluator(qrels, ASKED)
    check(evaluate(lists, Judgements(qrels=qrels), PAIRS.values()), evaluator.evaluate(scores))
    judged = Judgements(qrels=qrels)
    times = best_times(
        {
            "pytrec_eval": lambda: evaluator.evaluate(scores),
            "pytrec_eval, with its judgements": lambda: pytrec_eval.RelevanceEvaluator(qrels, ASKED).evaluate(
                scores
            ),
            "dartboard, lists": lambda: evaluate(lists, judged, PAIRS.values()),
            "dartboard, lists, with its judgements": lambda: evaluate(
                lists, Judgements(qrels=qrels), PAIRS.values()
            ),
            "dartboard, scores": lambda: evaluate(scores, judged, PAIRS.values()),
        },
        given.rounds,
    )
    print(f"{given.queries:,} queries x {given.depth} results, {len(PAIRS)} measures, best of {given.rounds}")
    for name, milliseconds in times.items():
        ratio = times["pytrec_eval"] / milliseconds
        print(f"{name:40} {milliseconds:9.1f} ms   {ratio:6.1f} x pytrec_eval's speed")
    given.out.parent.mkdir(parents=True, exist_ok=True)
    report = {
        "queries": given.queries,
        "depth": given.depth,
        "measures": list(PAIRS.values()),
        "milliseconds": {name: round(value, 2) for name, value in times.items()},
        "python": platform.python_version(),
        "numpy": np.__version__,
        "dartboard": dartboard.__version__,
    }
    given.out.write_text(json.dumps(report, indent=2) + "\n")


if __name__ == "__main__":
    main()
