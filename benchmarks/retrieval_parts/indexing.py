"""Indexing against the model's own limit, and the specification's table of latencies and memory."""

import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from retrieval_parts.common import DIM, passages, peak_megabytes, questions, say, timed

from dartboard.embeddings import CachedModel, default_model
from dartboard.engine import Engine, index_paths
from dartboard.selection import select, select_many
from dartboard.stores import Manifest, Record, open_store
from dartboard.vocab import build_token_vocabulary

SUBJECTS = (
    "The broker",
    "A consumer",
    "The leader",
    "Every replica",
    "The scheduler",
    "A client",
    "The cache",
)
VERBS = ("keeps", "drops", "reads", "commits", "moves", "checks", "signs", "compresses")
OBJECTS = ("its offset", "the segment", "each message", "a lease", "the snapshot", "old entries", "the token")
CLAUSES = (
    "before it answers",
    "when the disk is full",
    "after a restart",
    "unless told otherwise",
    "at night",
)


def measure(*, quick: bool) -> dict[str, Any]:
    say("indexing")
    found = {"throughput": _throughput(40 if quick else 250)}
    say("table")
    return found | {"specification": _table(quick)}


def _throughput(files: int) -> dict[str, Any]:
    """Documents of some two hundred words each, read, split, encoded, kept; against encoding alone."""
    model = default_model()
    with tempfile.TemporaryDirectory() as folder:
        docs = Path(folder) / "docs"
        docs.mkdir()
        rng = np.random.default_rng(0)
        for number in range(files):
            (docs / f"{number:04d}.md").write_text(_document(number, rng))
        whole = [file.read_text() for file in sorted(docs.iterdir())]
        before = _alone(model, whole)
        with Engine.open(str(Path(folder) / "i.dartboard"), model=model) as engine:
            report = index_paths(engine, [docs])
            texts = [record.text for batch in engine.collection.iterate() for record in batch]
            started = time.perf_counter()
            again = index_paths(engine, [docs])
            unchanged = time.perf_counter() - started
        alone = (before + _alone(model, texts)) / 2
    assert again.unchanged == files
    return {
        "files": files,
        "chunks": len(texts),
        "indexing_chunks_per_second": round(len(texts) / report.seconds, 1),
        "encoding_alone_chunks_per_second": round(len(texts) / alone, 1),
        "share_of_the_limit": round(alone / report.seconds, 3),
        "seconds_when_nothing_changed": round(unchanged, 2),
    }


def _alone(model: Any, texts: list[str]) -> float:
    """Seconds to encode the texts and nothing else; taken before and after, as machines change their mind."""
    started = time.perf_counter()
    for start in range(0, len(texts), 64):
        model.encode_documents(texts[start : start + 64])
    return time.perf_counter() - started


def _document(number: int, rng: np.random.Generator) -> str:
    sentences = [
        f"{rng.choice(SUBJECTS)} {rng.choice(VERBS)} {rng.choice(OBJECTS)} {rng.choice(CLAUSES)}, "
        f"as rule {number}.{line} says."
        for line in range(14)
    ]
    return f"# Rule {number}\n\n" + " ".join(sentences) + "\n"


def _table(quick: bool) -> dict[str, Any]:
    count = 1000 if quick else 10_000
    vectors, queries = np.concatenate(list(passages(count))), questions(100)
    model = default_model()
    rows: dict[str, Any] = {}
    rows["query processing, 1,000 candidates, k = 5"] = _ms(lambda q: select(vectors[:1000], q, k=5), queries)
    rows["reranking, 100 candidates, k = 5"] = _ms(lambda q: select(vectors[:100], q, k=5), queries)
    with tempfile.TemporaryDirectory() as folder:
        cached = CachedModel(model, Path(folder) / "cache.sqlite")
        texts = [f"What does rule {number} say?" for number in range(50)]
        cached.encode_queries(texts)
        rows["embedding lookup, cached"] = _ms(cached.encode_query, texts)
        path = str(Path(folder) / "t.dartboard")
        with open_store(path) as store:
            collection = store.create(
                "default", Manifest(model=model.fingerprint, model_name=model.name, dimension=DIM)
            )
            collection.upsert(
                [
                    Record(str(row), f"passage {row} of rule {row % 97}", vector)
                    for row, vector in enumerate(vectors)
                ]
            )
            rows[f"triage, {count:,} chunks, 100 nearest"] = _ms(
                lambda q: collection.search_vector(q, 100), queries
            )
        with Engine.open(path, model=model, retriever="dense") as engine:
            rows["end to end, model included"] = _ms(lambda text: engine.search(text, k=5), texts)
    pools = [vectors[rng_rows] for rng_rows in np.random.default_rng(0).integers(0, count, (1000, 100))]
    started = time.perf_counter()
    select_many(pools, list(questions(1000)), k=10)
    batch = time.perf_counter() - started
    tokens = build_token_vocabulary(model, 1000 if quick else 5000, "words")
    return {
        "milliseconds": rows,
        "megabytes": {
            "embeddings, 100,000 × 384": round(100_000 * DIM * 4 / 1e6, 1),
            "token vocabulary": round(tokens.nbytes / 1e6, 2),
            "distance matrix, 100 × 100": round(100 * 100 * 4 / 1e6, 3),
            "this process, at most": peak_megabytes(),
        },
        "1,000 queries × 100 candidates, seconds": round(batch, 2),
    }


def _ms(ask: Any, queries: Any) -> dict[str, float]:
    result = timed(ask, list(queries), rounds=2)
    return {"median": result["median_ms"], "p95": result["p95_ms"]}
