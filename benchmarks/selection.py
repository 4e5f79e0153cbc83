"""Time Dartboard's selection beside its rivals, in one process, on one pool; print ratios, write JSON.

    python benchmarks/selection.py [--out FILE] [--rounds N] [--blas-threads N] [--clock wall|cpu]
        [--parts single many]

Rounds take turns between the systems, and each system's best round counts, so that a busy machine slows
all of them alike. "published" is the algorithm of arXiv 2407.12101 as its authors run it: at every step
the log-sum-exp of totals over a full matrix of maxima, with scikit-learn's cosines and SciPy's sum. It
is exact where σ is not small, and there its picks must be ours. "floor" is one sgemm and one
exp in NumPy. Every time of ours includes the explanation: gains, coverage, owners and the bound. On a machine
that others use, ``--clock cpu`` counts the processor time of this process: for one query the same as time on
a quiet machine, for many queries in threads more, as threads add up.
"""

import argparse
import json
import os
import platform
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from langchain_core.vectorstores.utils import maximal_marginal_relevance
from llama_index.core.indices.query.embedding_utils import get_top_k_mmr_embeddings
from pyversity import Strategy, diversify
from scipy.special import logsumexp
from sklearn.metrics.pairwise import cosine_similarity
from tables import selection_table
from threadpoolctl import threadpool_limits

import dartboard
from dartboard.selection import compiled, select, select_many

SIGMA = 0.09
SIZES = ((100, 10), (1000, 10), (1000, 50), (5000, 10))


def make_pool(n: int, seed: int = 0, dim: int = 384) -> tuple[np.ndarray, np.ndarray]:
    """A query and candidates with topics, as triage returns them: cosines with the query from .2 to .65."""
    rng = np.random.default_rng(seed)

    def unit(vectors: np.ndarray) -> np.ndarray:
        return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)

    common, topics = unit(rng.standard_normal(dim)), unit(rng.standard_normal((max(3, n // 12), dim)))
    own = unit(rng.standard_normal((n, dim)))
    candidates = unit(0.55 * common + 0.6 * topics[rng.integers(0, len(topics), n)] + 0.5 * own)
    query = unit(
        0.6 * common
        + 0.35 * topics[0]
        + 0.3 * topics[1]
        + 0.2 * topics[2]
        + 0.5 * unit(rng.standard_normal(dim))
    )
    return query.astype(np.float32), candidates.astype(np.float32)


def published(query: np.ndarray, candidates: np.ndarray, sigma: float, k: int) -> list[int]:
    """The published greedy: totals in log space, all candidates at every step."""

    def log_normal(distance: np.ndarray) -> np.ndarray:
        return -np.log(sigma) - 0.5 * np.log(2 * np.pi) - distance**2 / (2 * sigma**2)

    def scaled_cosine(left: np.ndarray, right: np.ndarray) -> np.ndarray:
        return np.clip(1 - (cosine_similarity(left, right) + 1) / 2, 0, 1)

    query_probs = log_normal(scaled_cosine(query[None], candidates)[0])
    pair_probs = log_normal(scaled_cosine(candidates, candidates))
    first = int(np.argmax(query_probs))
    picks, maxima = [first], pair_probs[first]
    while len(picks) < k:
        totals = logsumexp(np.maximum(maxima, pair_probs) + query_probs, axis=1)
        totals[picks] = -np.inf
        best = int(np.argmax(totals))
        picks.append(best)
        maxima = np.maximum(maxima, pair_probs[best])
    return picks


def with_numpy(run: Callable[..., Any], *pool: Any, **options: Any) -> Any:
    """As without a C compiler, for this call only."""
    machine, compiled._machine = compiled.compiled(), None
    try:
        return run(*pool, **options)
    finally:
        compiled._machine = machine


def systems(query: np.ndarray, candidates: np.ndarray, k: int) -> dict[str, Callable[[], Any]]:
    """What is timed; every rival gets its data in the form it asks for, made beforehand."""
    n = len(candidates)
    exact, exact_query = candidates.astype(np.float64), query.astype(np.float64)
    scores = candidates @ query
    lists, query_list = candidates.tolist(), query.tolist()
    arrays = list(candidates)
    return {
        "dartboard": lambda: select(candidates, query, k, sigma=SIGMA),
        "dartboard, sigma auto": lambda: select(candidates, query, k),
        "dartboard, NumPy alone": lambda: with_numpy(select, candidates, query, k, sigma=SIGMA),
        "floor: sgemm + exp": lambda: np.exp(candidates @ candidates.T),
        "published Dartboard": lambda: published(exact_query, exact, SIGMA, k),
        "pyversity MMR": lambda: diversify(candidates, scores, k, strategy=Strategy.MMR),
        "pyversity DPP": lambda: diversify(candidates, scores, k, strategy=Strategy.DPP),
        "pyversity COVER": lambda: diversify(candidates, scores, k, strategy=Strategy.COVER),
        "LangChain MMR, arrays": lambda: maximal_marginal_relevance(query, candidates, k=k),
        "LangChain MMR, lists": lambda: maximal_marginal_relevance(query, lists, k=k),
        "LlamaIndex MMR, arrays": lambda: get_top_k_mmr_embeddings(
            query, arrays, similarity_top_k=k, embedding_ids=list(range(n)), mmr_threshold=0.5
        ),
        "LlamaIndex MMR, lists": lambda: get_top_k_mmr_embeddings(
            query_list, lists, similarity_top_k=k, embedding_ids=list(range(n)), mmr_threshold=0.5
        ),
    }


def best_times(
    runs: dict[str, Callable[[], Any]], rounds: int, clock: Callable[[], float]
) -> dict[str, float]:
    """Milliseconds of each system's best run; a turn is a burst of runs, so that no cache is cold."""
    best = dict.fromkeys(runs, float("inf"))
    for turn in range(rounds):
        for name, run in runs.items():
            if turn >= 3 and turn * best[name] > 2.0:
                continue
            ends = clock() + 0.01
            while True:
                started = clock()
                run()
                now = clock()
                best[name] = min(best[name], now - started)
                if now > ends:
                    break
    return {name: seconds * 1e3 for name, seconds in best.items()}


def single_queries(rounds: int, clock: Callable[[], float]) -> list[dict[str, Any]]:
    rows = []
    for n, k in SIZES:
        query, candidates = make_pool(n)
        ours = select(candidates, query, k, sigma=SIGMA).indices.tolist()
        theirs = published(query.astype(np.float64), candidates.astype(np.float64), SIGMA, k)
        times = best_times(systems(query, candidates, k), rounds, clock)
        ratio = {name: took / times["dartboard"] for name, took in times.items()}
        rows.append(
            {"n": n, "k": k, "same_picks_as_published": ours == theirs, "ms": times, "times_dartboard": ratio}
        )
    return rows


def many_queries(
    rounds: int, clock: Callable[[], float], queries: int = 1000, n: int = 100, k: int = 10
) -> dict[str, Any]:
    pools = [make_pool(n, seed) for seed in range(queries)]
    asked = np.stack([query for query, _ in pools])
    candidates = np.stack([vectors for _, vectors in pools])

    def products() -> None:
        for block in candidates:
            block @ block.T

    together = select_many(candidates, asked, k, sigma=SIGMA)
    alone = [select(c, q, k, sigma=SIGMA) for c, q in zip(candidates, asked, strict=True)]
    times = best_times(
        {
            "select_many": lambda: select_many(candidates, asked, k, sigma=SIGMA),
            "select_many, sigma auto": lambda: select_many(candidates, asked, k),
            "select_many, NumPy alone": lambda: with_numpy(select_many, candidates, asked, k, sigma=SIGMA),
            "select, one by one": lambda: [
                select(c, q, k, sigma=SIGMA) for c, q in zip(candidates, asked, strict=True)
            ],
            "their sgemm": products,
        },
        max(3, rounds // 4),
        clock,
    )
    same = all(a.indices.tolist() == b.indices.tolist() for a, b in zip(together, alone, strict=True))
    return {"queries": queries, "n": n, "k": k, "same_picks_as_select": same, "ms": times}


def say(report: dict[str, Any]) -> None:
    """The table, and how far each row is from the published algorithm and from the floor."""
    print(selection_table(report))
    print()
    for row in report["single"]:
        print(f"n={row['n']}, k={row['k']}: same picks as published: {row['same_picks_as_published']}")
        for ours in ("dartboard", "dartboard, NumPy alone"):
            faster = row["ms"]["published Dartboard"] / row["ms"][ours]
            floor = row["ms"][ours] / row["ms"]["floor: sgemm + exp"]
            print(f"  {ours}: {faster:.1f}× faster than published, {floor:.2f}× the floor")
    batch = report["many"]
    shares = ", ".join(
        f"{name} {took:.0f} ms ({took / batch['ms']['their sgemm']:.2f}×)"
        for name, took in batch["ms"].items()
    )
    print(
        f"{batch['queries']} queries × {batch['n']} candidates, k={batch['k']} (times their sgemm): {shares}"
    )
    print(f"same picks: {batch['same_picks_as_select']}")
    print("machine: " + ", ".join(f"{name} {value}" for name, value in report["machine"].items()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "selection.json")
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument(
        "--blas-threads",
        type=int,
        default=os.cpu_count() or 1,
        help="threads of each matrix product (default: one for each processor, as BLAS itself has it)",
    )
    parser.add_argument("--clock", choices=CLOCKS, default="wall", help="cpu: for a machine that is busy")
    parser.add_argument(
        "--parts", nargs="+", choices=PARTS, default=list(PARTS), help="the rest stays as it is"
    )
    options = parser.parse_args()
    if compiled.compiled() is None:
        raise SystemExit("selection is not compiled here: install a C compiler, then dartboard again")
    partly = set(options.parts) < set(PARTS) and options.out.exists()
    report = json.loads(options.out.read_text()) if partly else {}
    report |= {"dartboard": dartboard.__version__, "sigma": SIGMA}
    report["machine"] = {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "blas_threads": options.blas_threads,
    }
    with threadpool_limits(options.blas_threads):
        for part in options.parts:
            report[part] = PARTS[part](options.rounds, CLOCKS[options.clock])
            report[f"clock of {part}"] = options.clock
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(report, indent=2) + "\n")
    if set(PARTS) <= set(report):
        say(report)
    else:
        print(json.dumps({part: report[part] for part in options.parts}, indent=2))


def _processor() -> str:
    """What the processor calls itself, as far as the system says."""
    told = Path("/proc/cpuinfo")
    lines = told.read_text().splitlines() if told.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


CLOCKS = {"wall": time.perf_counter, "cpu": time.process_time}
PARTS = {"single": single_queries, "many": many_queries}

if __name__ == "__main__":
    main()
