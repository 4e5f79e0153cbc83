"""Does reordering the dense top 100 by late interaction help? BEIR SciFact, the default model for both.

    python benchmarks/late_interaction.py

Reads ``$DARTBOARD_DATA/scifact`` (default ``../shared/data``), prints a table and writes
``benchmarks/results/late_interaction.json``. Dense vectors are cached, so a second run is quicker.
"""

import csv
import json
import math
import os
import sys
import time
from pathlib import Path

import numpy as np

from dartboard.embeddings import CachedModel, LateInteraction, default_model

POOL = 100
CUT = 10
PUBLISHED_DENSE_NDCG = 0.645
RESULTS = Path(__file__).parent / "results" / "late_interaction.json"

Qrels = dict[str, dict[str, int]]
Run = dict[str, list[str]]


def main() -> None:
    folder = Path(os.environ.get("DARTBOARD_DATA", "../shared/data")) / "scifact"
    if not folder.is_dir():
        sys.exit(f"{folder} is missing: set DARTBOARD_DATA to a folder that holds BEIR's scifact")
    corpus = {
        row["_id"]: f"{row['title']} {row['text']}".strip() for row in read_lines(folder / "corpus.jsonl")
    }
    qrels = read_qrels(folder / "qrels" / "test.tsv")
    queries = {row["_id"]: row["text"] for row in read_lines(folder / "queries.jsonl") if row["_id"] in qrels}

    started = time.perf_counter()
    dense = dense_run(corpus, queries)
    dense_seconds = time.perf_counter() - started
    reordered = late_run(corpus, queries, dense)
    late_seconds = time.perf_counter() - started - dense_seconds

    rows = {
        "dense": measure(dense, qrels) | {"seconds": round(dense_seconds, 1)},
        "late interaction": measure(reordered, qrels) | {"seconds": round(late_seconds, 1)},
    }
    gains = {
        name: interval(per_query(reordered, qrels, name) - per_query(dense, qrels, name)) for name in MEASURES
    }
    report(rows, gains, len(queries))


def dense_run(corpus: dict[str, str], queries: dict[str, str]) -> Run:
    model = CachedModel(default_model())
    documents = model.encode_documents(list(corpus.values()), progress=lambda done: show("encode", done))
    similarities = model.encode_queries(list(queries.values())) @ documents.T
    ids = np.array(list(corpus))
    best = np.argsort(-similarities, axis=1, kind="stable")[:, :POOL]
    return {query: ids[row].tolist() for query, row in zip(queries, best, strict=True)}


def late_run(corpus: dict[str, str], queries: dict[str, str], pools: Run) -> Run:
    """Passages recur in many pools: room for all their token vectors saves encoding them again."""
    scorer = LateInteraction(default_model(), cache_bytes=3 * 1024**3)
    run: Run = {}
    for done, (query, text) in enumerate(queries.items(), start=1):
        pool = pools[query]
        scores = scorer.score(text, [corpus[chunk_id] for chunk_id in pool])
        run[query] = [pool[index] for index in np.argsort(-scores, kind="stable")]
        show("late interaction", done)
    return run


def measure(run: Run, qrels: Qrels) -> dict[str, float]:
    """Means over all judged queries."""
    return {name: round(float(per_query(run, qrels, name).mean()), 4) for name in MEASURES}


def per_query(run: Run, qrels: Qrels, name: str) -> np.ndarray:
    return np.array([MEASURES[name](run[query], qrels[query]) for query in qrels])


def interval(differences: np.ndarray, draws: int = 10_000, seed: int = 0) -> list[float]:
    """The 95 % bootstrap interval of the mean difference over queries."""
    picks = np.random.default_rng(seed).integers(len(differences), size=(draws, len(differences)))
    low, high = np.quantile(differences[picks].mean(axis=1), [0.025, 0.975])
    return [round(float(low), 4), round(float(high), 4)]


def ndcg(ranked: list[str], relevant: dict[str, int]) -> float:
    gained = discounted([relevant.get(chunk_id, 0) for chunk_id in ranked[:CUT]])
    return gained / discounted(sorted(relevant.values(), reverse=True)[:CUT])


def discounted(gains: list[int]) -> float:
    return sum(gain / math.log2(rank + 1) for rank, gain in enumerate(gains, start=1))


def recall(ranked: list[str], relevant: dict[str, int]) -> float:
    return len(relevant.keys() & set(ranked[:CUT])) / len(relevant)


MEASURES = {f"ndcg@{CUT}": ndcg, f"recall@{CUT}": recall}


def read_lines(path: Path) -> list[dict[str, str]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def read_qrels(path: Path) -> Qrels:
    qrels: Qrels = {}
    with path.open(newline="") as stream:
        for row in csv.DictReader(stream, delimiter="\t"):
            if int(row["score"]) > 0:
                qrels.setdefault(row["query-id"], {})[row["corpus-id"]] = int(row["score"])
    return qrels


def show(what: str, done: int) -> None:
    if sys.stderr.isatty() or done % 50 == 0:
        print(f"{what}: {done}", file=sys.stderr)


def report(rows: dict[str, dict[str, float]], gains: dict[str, list[float]], queries: int) -> None:
    print(f"SciFact, {queries} queries, pool {POOL}; published dense nDCG@10 {PUBLISHED_DENSE_NDCG}")
    print(f"{'':18}" + "".join(f"{column:>12}" for column in rows["dense"]))
    for name, row in rows.items():
        print(f"{name:18}" + "".join(f"{value:>12}" for value in row.values()))
    print(
        "95 % interval of the gain: "
        + ", ".join(f"{name} {low} to {high}" for name, (low, high) in gains.items())
    )
    content = {
        "settings": {
            "data": "BEIR scifact test",
            "queries": queries,
            "pool": POOL,
            "model": default_model().fingerprint,
        },
        "published_dense_ndcg@10": PUBLISHED_DENSE_NDCG,
        "rows": rows,
        "gain_interval_95": gains,
    }
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(content, indent=2) + "\n")


if __name__ == "__main__":
    main()
