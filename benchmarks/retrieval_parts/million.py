"""A million vectors in one file: how long it takes, how much memory at most, how quick a search is."""

import os
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from retrieval_parts.common import DIM, passages, peak_megabytes, questions, recall, say, timed

from dartboard.stores import Manifest, Record, open_store

K = 100


def measure(*, quick: bool) -> dict[str, Any]:
    count = 100_000 if quick else 1_000_000
    queries = questions(100)
    with tempfile.TemporaryDirectory(dir=os.environ.get("DARTBOARD_BENCH_FOLDER")) as folder:
        path = Path(folder) / "million.dartboard"
        started = time.perf_counter()
        scores: list[np.ndarray] = []
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
                scores.append(queries @ block.T)
                say(f"{base + len(block)} loaded")
            loaded = time.perf_counter()
        exact = np.concatenate(scores, axis=1)
        nearest = np.argpartition(-exact, K, axis=1)[:, :K]
        del exact, scores
        opened = time.perf_counter()
        with open_store(str(path)) as store:
            collection = store.open("default")
            collection.search_vector(queries[0], K)
            built = time.perf_counter()
            result = timed(
                lambda query: [int(hit.id) for hit in collection.search_vector(query, K)],
                list(queries),
                rounds=2,
            )
            details = dict(collection.stats().details)
        with open_store(str(path)) as store:
            again = time.perf_counter()
            store.open("default").search_vector(queries[1], K)
            cold = time.perf_counter() - again
        size = sum(file.stat().st_size for file in Path(folder).rglob("*") if file.is_file())
    return {
        "vectors": count,
        "load_seconds": round(loaded - started, 1),
        "build_seconds": round(built - opened, 1),
        "peak_megabytes": peak_megabytes(),
        "median_ms": result["median_ms"],
        "p95_ms": result["p95_ms"],
        "recall@100": round(recall(result["found"], nearest), 4),
        "first_search_after_reopening_seconds": round(cold, 2),
        "megabytes_on_disk": round(size / 1e6),
        "details": details,
    }
