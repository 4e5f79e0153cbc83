"""Vectors like those of passages, and how things are timed."""

import resource
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any

import numpy as np

DIM = 384


def passages(count: int, *, seed: int = 0, block: int = 20_000) -> Iterator[np.ndarray]:
    """Unit vectors, float32, in blocks: topics of unequal size, and within all of them the same directions.

    Passages and questions of one encoder fill some dozens of directions around many topics; uniform noise
    has no neighbours worth finding.
    """
    rng = np.random.default_rng([seed, 0])
    for start in range(0, count, block):
        yield _drawn(rng, min(block, count - start))


def questions(count: int, *, seed: int = 1) -> np.ndarray:
    """Queries of the same kind as the passages, none of them a passage."""
    return _drawn(np.random.default_rng([seed, 1]), count)


def unlike(count: int, *, seed: int = 2) -> np.ndarray:
    """Queries that resemble no passage: random mixtures of two hundred questions."""
    mixture = np.random.default_rng([seed, 2]).standard_normal((count, 200), dtype=np.float32)
    return unit(mixture @ questions(200, seed=seed))


def _drawn(rng: np.random.Generator, size: int) -> np.ndarray:
    topics, directions = _world()
    shares = 1 / np.arange(1, len(topics) + 1) ** 0.7
    topic = topics[rng.choice(len(topics), size, p=shares / shares.sum())]
    inner = rng.standard_normal((size, len(directions)), dtype=np.float32) @ directions
    noise = rng.standard_normal((size, DIM), dtype=np.float32)
    return unit(topic + 0.9 * inner / len(directions) ** 0.5 + 0.2 * noise / DIM**0.5)


@cache
def _world() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(7)
    topics = unit(rng.standard_normal((2000, DIM), dtype=np.float32))
    return topics, unit(rng.standard_normal((64, DIM), dtype=np.float32))


def unit(vectors: np.ndarray) -> np.ndarray:
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)


def truth(vectors: np.ndarray, queries: np.ndarray, k: int) -> np.ndarray:
    """The rows of the k nearest, ``(queries, k)``, by comparing all."""
    nearest = []
    for query in queries:
        scores = vectors @ query
        top = np.argpartition(-scores, k)[:k]
        nearest.append(top[np.argsort(-scores[top], kind="stable")])
    return np.array(nearest)


def recall(found: Sequence[Sequence[int]], nearest: np.ndarray) -> float:
    pairs = zip(found, nearest, strict=True)
    return float(np.mean([len(set(map(int, got)) & set(row.tolist())) / len(row) for got, row in pairs]))


def timed(ask: Callable[[Any], Any], queries: Sequence[Any], *, rounds: int = 3) -> dict[str, Any]:
    """Queries a second (best of the rounds), milliseconds at the median, and what the last round found.

    ``cpu_median_ms`` is the time that this process computed: what the median would be if nobody else did.
    """
    best, latencies, computing, found = 0.0, [], [], []
    for query in queries[: min(20, len(queries))]:
        ask(query)
    for _ in range(rounds):
        found, began = [], time.perf_counter()
        for query in queries:
            started, computed = time.perf_counter(), time.process_time()
            found.append(ask(query))
            latencies.append(time.perf_counter() - started)
            computing.append(time.process_time() - computed)
        best = max(best, len(queries) / (time.perf_counter() - began))
    latencies.sort()
    return {
        "queries_per_second": round(best, 1),
        "median_ms": round(1000 * statistics.median(latencies), 3),
        "p95_ms": round(1000 * latencies[int(0.95 * len(latencies))], 3),
        "cpu_median_ms": round(1000 * statistics.median(computing), 3),
        "found": found,
    }


def peak_megabytes() -> float:
    """The most memory that this process ever held."""
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1)


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
