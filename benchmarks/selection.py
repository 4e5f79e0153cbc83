"""Time Dartboard's selection beside its rivals, in one process, on one pool; print ratios, write JSON.

    python benchmarks/selection.py [--out FILE] [--rounds N] [--blas-threads N] [--clock wall|cpu]
        [--parts single many search]

Rounds take turns between the systems, and each system's best round counts, so that a busy machine slows
all of them alike. "published" is the algorithm of arXiv 2407.12101 (``benchmarks/published.py``): where it is
exact, its picks must be ours. "floor" is one sgemm and one exp in NumPy. Every time of ours includes the
explanation: gains, coverage, owners and the bound.

"choose" is ``DartboardRetriever.choose``, which the engine, the service and the integrations call, on chunks
with texts of 40 words; it also looks for near-duplicates among the texts. "the specification's methods" are
``_compute_distances``, the log kernel and ``_greedy_selection``. The part ``search`` reports the select
stage of ``Engine.search`` over the sections of ``jest_versions`` in the folder DARTBOARD_DATA, as a median of
queries; it is left out where that is missing.

On a machine that others use, ``--clock cpu`` counts the processor time of this process: for one query the
same as time on a quiet machine, for many queries in threads more, as threads add up.
"""

import argparse
import json
import os
import platform
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median, quantiles
from typing import Any

import numpy as np
from langchain_core.vectorstores.utils import maximal_marginal_relevance
from llama_index.core.indices.query.embedding_utils import get_top_k_mmr_embeddings
from pyversity import Strategy, diversify
from threadpoolctl import threadpool_limits

sys.path.insert(0, str(Path(__file__).parent.parent))

import dartboard
from benchmarks.measuring import ROOT, load
from benchmarks.published import make_pool, published
from benchmarks.speed_tables import selection as selection_table
from dartboard import Chunk, DartboardConfig, DartboardRetriever, default_model
from dartboard.engine import Engine
from dartboard.selection import select, select_many
from dartboard.selection.kernel import log_kernel
from dartboard.stores import Record
from dartboard.stores.records import with_fingerprints

SIGMA = 0.09
SIZES = ((100, 10), (1000, 10), (1000, 50), (5000, 10))
LARGEST_MATRIX = 1000
"""The specification's methods keep whole matrices in float64: they are timed up to so many candidates."""

DOCUMENTS = "jest_versions"
QUERIES = 200


def chunks_of(candidates: np.ndarray, words: int = 40) -> list[Chunk]:
    """Candidates with texts of random words."""
    rng = np.random.default_rng(0)
    drawn = rng.integers(5000, size=(len(candidates), words))
    return [
        Chunk(f"{i:05d}", " ".join(f"word{number}" for number in row), vector)
        for i, (row, vector) in enumerate(zip(drawn.tolist(), candidates, strict=True))
    ]


def ours(query: np.ndarray, candidates: np.ndarray, k: int) -> dict[str, Callable[[], Any]]:
    """The ways to Dartboard's selection; chunks are made beforehand."""
    chunks, model = chunks_of(candidates), default_model()
    fixed = DartboardRetriever(DartboardConfig(sigma=SIGMA), model)
    auto = DartboardRetriever(DartboardConfig(), model)

    def by_methods() -> list[int]:
        to_query, between = fixed._compute_distances(query, chunks)
        return fixed._greedy_selection(log_kernel(to_query, SIGMA), log_kernel(between, SIGMA), k)

    return {
        "dartboard": lambda: select(candidates, query, k, sigma=SIGMA),
        "dartboard, sigma auto": lambda: select(candidates, query, k),
        "near-duplicate filter": lambda: select(candidates, query, k, method="near_duplicate_filter"),
        "choose": lambda: fixed.choose("?", query, chunks, k=k),
        "choose, sigma auto": lambda: auto.choose("?", query, chunks, k=k),
        **({"the specification's methods": by_methods} if len(chunks) <= LARGEST_MATRIX else {}),
    }


def rivals(query: np.ndarray, candidates: np.ndarray, k: int) -> dict[str, Callable[[], Any]]:
    """What is timed beside; every rival gets its data in the form it asks for, made beforehand."""
    n = len(candidates)
    exact, exact_query = candidates.astype(np.float64), query.astype(np.float64)
    scores = candidates @ query
    lists, query_list = candidates.tolist(), query.tolist()
    arrays = list(candidates)
    return {
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


def picks_of(found: Any) -> list[int]:
    """Positions, from whatever form a result has."""
    return [int(chunk.id) for chunk in found.chunks] if hasattr(found, "chunks") else list(found)


def single_queries(rounds: int, clock: Callable[[], float]) -> list[dict[str, Any]]:
    rows = []
    for n, k in SIZES:
        query, candidates = make_pool(n)
        picks = published(query.astype(np.float64), candidates.astype(np.float64), SIGMA, k)
        mine = ours(query, candidates, k)
        times = best_times(mine | rivals(query, candidates, k), rounds, clock)
        rows.append(
            {
                "n": n,
                "k": k,
                "same_picks_as_published": all(
                    picks_of(run()) == picks
                    for name, run in mine.items()
                    if "auto" not in name and "filter" not in name
                ),
                "ms": times,
                "times_dartboard": {name: took / times["dartboard"] for name, took in times.items()},
            }
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


def whole_searches(rounds: int, clock: Callable[[], float]) -> dict[str, Any]:
    """Milliseconds of the select stage of ``Engine.search``, k = 10 of 100 candidates; by the wall clock."""
    data = Path(os.environ.get("DARTBOARD_DATA", ROOT.parent / "shared" / "data"))
    if not (data / DOCUMENTS).is_dir():
        return {"skipped": f"no {DOCUMENTS} in the folder DARTBOARD_DATA"}
    model = default_model()
    documents = load(DOCUMENTS, model)
    queries = documents.queries[:QUERIES]
    found: dict[str, Any] = {"documents": DOCUMENTS, "chunks": len(documents.chunks), "queries": len(queries)}
    for retriever in ("dense", "hybrid"):
        with (
            tempfile.TemporaryDirectory() as folder,
            Engine.open(str(Path(folder) / "i.dartboard"), model=model, retriever=retriever) as engine,
        ):
            records = [Record(chunk.id, chunk.text, chunk.embedding) for chunk in documents.chunks]
            engine.create().upsert(with_fingerprints(engine.retriever.index(records)))
            best = [float("inf")] * len(queries)
            for _ in range(max(2, min(rounds, 5))):
                for i, query in enumerate(queries):
                    took = engine.search(query, k=10).metadata["seconds"]["select"]
                    best[i] = min(best[i], took)
        ms = [1e3 * seconds for seconds in best]
        found[retriever] = {"median_ms": median(ms), "p90_ms": quantiles(ms, n=10)[-1], "most_ms": max(ms)}
    return found


def say(report: dict[str, Any]) -> None:
    """The table, and how far each row is from the published algorithm and from the floor."""
    print(selection_table(report))
    print()
    for row in report["single"]:
        print(f"n={row['n']}, k={row['k']}: same picks as published: {row['same_picks_as_published']}")
        for name, took in row["ms"].items():
            if name.startswith(OURS):
                faster = row["ms"]["published Dartboard"] / took
                floor = took / row["ms"]["floor: sgemm + exp"]
                print(f"  {name}: {faster:.1f}× faster than published, {floor:.2f}× the floor")
    batch = report["many"]
    shares = ", ".join(
        f"{name} {took:.0f} ms ({took / batch['ms']['their sgemm']:.2f}×)"
        for name, took in batch["ms"].items()
    )
    print(
        f"{batch['queries']} queries × {batch['n']} candidates, k={batch['k']} (times their sgemm): {shares}"
    )
    print(f"same picks: {batch['same_picks_as_select']}")
    print(f"select stage of Engine.search: {json.dumps(report['search'])}")
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
PARTS = {"single": single_queries, "many": many_queries, "search": whole_searches}
OURS = ("dartboard", "choose", "the specification")

if __name__ == "__main__":
    main()
