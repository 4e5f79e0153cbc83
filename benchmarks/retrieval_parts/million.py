"""A million vectors in one file: how long it takes, how much memory at most, how quick a search is."""

import os
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from retrieval_parts.common import DIM, passages, peak_megabytes, questions, recall, say, timed, unlike

from dartboard.stores import Manifest, Record, open_store

K = 100


class _Best:
    """The K nearest of each query among the blocks seen so far: the truth, in little memory."""

    def __init__(self, queries: int) -> None:
        self.scores = np.full((queries, K), -2.0, dtype=np.float32)
        self.rows = np.zeros((queries, K), dtype=np.int64)

    def see(self, scores: np.ndarray, base: int) -> None:
        merged = np.concatenate([self.scores, scores], axis=1)
        rows = np.concatenate(
            [self.rows, np.broadcast_to(base + np.arange(scores.shape[1]), scores.shape)], axis=1
        )
        keep = np.argpartition(-merged, K, axis=1)[:, :K]
        self.scores = np.take_along_axis(merged, keep, axis=1)
        self.rows = np.take_along_axis(rows, keep, axis=1)


def measure(*, quick: bool) -> dict[str, Any]:
    count = 100_000 if quick else 1_000_000
    queries, strange = questions(100), unlike(50)
    with tempfile.TemporaryDirectory(dir=os.environ.get("DARTBOARD_BENCH_FOLDER")) as folder:
        path = Path(folder) / "million.dartboard"
        started = time.perf_counter()
        best, farther = _Best(len(queries)), _Best(len(strange))
        with open_store(str(path)) as store:
            collection = store.create("default", Manifest(model="none", dimension=DIM))
            for number, block in enumerate(passages(count)):
                base = number * 20_000
                collection.upsert(
                    [
                        Record(f"{base + row:07d}", f"passage {base + row}", vector)
                        for row, vector in enumerate(block)
                    ]
                )
                best.see(queries @ block.T, base)
                farther.see(strange @ block.T, base)
                say(f"{base + len(block)} loaded")
        loaded = time.perf_counter()  # closing the store has built its index
        nearest = best.rows
        opened = time.perf_counter()
        with open_store(str(path)) as store:
            collection = store.open("default")
            collection.search_vector(queries[0], K)
            built = time.perf_counter()
            result = timed(
                lambda query: [int(hit.id) for hit in collection.search_vector(query, K)],
                list(queries),
                rounds=3,
            )
            found = [[int(hit.id) for hit in collection.search_vector(query, K)] for query in strange]
            details = dict(collection.stats().details)
        with open_store(str(path)) as store:
            again = time.perf_counter()
            store.open("default").search_vector(queries[1], K)
            cold = time.perf_counter() - again
        size = sum(file.stat().st_size for file in Path(folder).rglob("*") if file.is_file())
    return {
        "vectors": count,
        "load_seconds": round(loaded - started, 1),
        "first_search_seconds": round(built - opened, 2),
        "peak_megabytes": peak_megabytes(),
        "median_ms": result["median_ms"],
        "p95_ms": result["p95_ms"],
        "cpu_median_ms": result["cpu_median_ms"],
        "recall@100": round(recall(result["found"], nearest), 4),
        "recall@100_of_queries_unlike_all": round(recall(found, farther.rows), 4),
        "first_search_after_reopening_seconds": round(cold, 2),
        "megabytes_on_disk": round(size / 1e6),
        "details": details,
    }
