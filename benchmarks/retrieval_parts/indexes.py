"""Which index when: build time, recall@100, queries a second and bytes, by the number of vectors."""

import time
from typing import Any

import faiss
import numpy as np
from retrieval_parts.common import DIM, passages, questions, recall, say, timed, truth

from dartboard.stores import arrays
from dartboard.stores.arrays import VectorArray

K = 100
KINDS = {
    "FAISS flat": ("Flat", {}),
    "IVF": ("IVF{lists},Flat", {"nprobe": 48}),
    "IVF, 8 bits": ("IVF{lists},SQ8", {"nprobe": 48}),
    "HNSW": ("HNSW32", {"efSearch": 400}),
    "HNSW, 8 bits": ("HNSW32_SQ8", {"efSearch": 400}),
}


def measure(*, quick: bool) -> list[dict[str, Any]]:
    faiss.omp_set_num_threads(1)
    sizes = (1000, 2000) if quick else (5_000, 20_000, 50_000, 100_000)
    rows = []
    everything = np.concatenate(list(passages(max(sizes))))
    queries = questions(50 if quick else 200)
    for size in sizes:
        vectors = everything[:size]
        nearest = truth(vectors, queries, K)
        for name, (factory, options) in KINDS.items():
            say(f"{size} {name}")
            rows.append({"vectors": size, "index": name} | _one(vectors, queries, nearest, factory, options))
        rows.append({"vectors": size, "index": "NumPy, all compared"} | _numpy(vectors, queries))
        rows.append(
            {"vectors": size, "index": "4-bit codes, rescored (ours)"} | _ours(vectors, queries, nearest)
        )
    return rows


def _one(
    vectors: np.ndarray, queries: np.ndarray, nearest: np.ndarray, factory: str, options: dict[str, int]
) -> dict[str, Any]:
    started = time.perf_counter()
    lists = int(4 * len(vectors) ** 0.5)
    index = faiss.index_factory(DIM, factory.format(lists=lists), faiss.METRIC_INNER_PRODUCT)
    index.train(vectors)
    index.add(vectors)
    built = time.perf_counter() - started
    for name, value in options.items():
        faiss.ParameterSpace().set_index_parameter(index, name, value)
    result = timed(lambda query: index.search(query[None], K)[1][0].tolist(), list(queries), rounds=2)
    return {
        "build_seconds": round(built, 2),
        "recall@100": round(recall(result["found"], nearest), 4),
        "queries_per_second": result["queries_per_second"],
        "bytes_per_vector": round(len(faiss.serialize_index(index)) / len(vectors)),
    }


def _ours(vectors: np.ndarray, queries: np.ndarray, nearest: np.ndarray) -> dict[str, Any]:
    """The index of the store in a file: scan all codes, score the best few again from the vectors."""
    started = time.perf_counter()
    array = VectorArray.of(np.arange(len(vectors)), vectors, 1.0)
    arrays.EXACT_UP_TO = 0
    array.prepare()
    built = time.perf_counter() - started

    def ask(query: np.ndarray) -> list[int]:
        rows, scores = array.best(query, K)
        return rows[np.argsort(-scores)[:K]].tolist()

    result = timed(ask, list(queries), rounds=2)
    return {
        "build_seconds": round(built, 2),
        "recall@100": round(recall(result["found"], nearest), 4),
        "queries_per_second": result["queries_per_second"],
        "bytes_per_vector": round(len(faiss.serialize_index(array.codes.index)) / len(vectors)),
    }


def _numpy(vectors: np.ndarray, queries: np.ndarray) -> dict[str, Any]:
    def ask(query: np.ndarray) -> list[int]:
        scores = vectors @ query
        top = np.argpartition(scores, -K)[-K:]
        return top[np.argsort(-scores[top])].tolist()

    result = timed(ask, list(queries), rounds=2)
    return {
        "build_seconds": 0.0,
        "recall@100": 1.0,
        "queries_per_second": result["queries_per_second"],
        "bytes_per_vector": 4 * DIM,
    }
