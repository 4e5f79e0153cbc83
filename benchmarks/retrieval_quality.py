"""How well does each retriever find what is relevant, alone and with Dartboard on top? BEIR SciFact.

    python benchmarks/retrieval_quality.py

Reads ``$DARTBOARD_DATA/scifact`` (default ``../shared/data``) and writes
``benchmarks/results/retrieval_quality.json``. A fitted α is judged on queries that did not help to fit it:
five folds, fitted on four, judged on the fifth. Vectors and token vectors are cached: the first run encodes
5,183 abstracts token by token (about a gigabyte, half an hour on two cores), later ones take minutes.
"""

import argparse
import csv
import json
import os
import sys
from collections.abc import Iterator
from dataclasses import asdict
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np

from dartboard.embeddings import CachedModel, TaskType, default_model
from dartboard.embeddings.cache import default_cache_path
from dartboard.evaluation.alpha_fit import AlphaFit, fit_alpha, measure_of
from dartboard.evaluation.tables import markdown
from dartboard.near_duplicates import groups_of_close
from dartboard.retrievers import (
    BM25Retriever,
    Candidates,
    ColbertRetriever,
    DenseRetriever,
    HybridRetriever,
    Ranked,
    Retriever,
)
from dartboard.retrievers.query import Query
from dartboard.selection import Dartboard, Limits, Pool, from_embeddings, log_softmax
from dartboard.stores import Collection, Filter, Manifest, Record
from dartboard.stores.memory import MemoryCollection, MemoryStore

POOL, CUT = 100, 10
SHARD = 256
RESULTS = Path(__file__).parent / "results" / "retrieval_quality.json"
MEASURES = {name: measure_of(name) for name in ("ndcg@10", "recall@10")}
RELEVANCES = ("rank", "distance", "score")

Qrels = dict[str, dict[str, float]]


class KeptTokens:
    """The default model's token vectors, those of the corpus kept on disk as float16."""

    def __init__(self, texts: list[str]) -> None:
        self._model = default_model()
        self.fingerprint, self.embedding_dim = self._model.fingerprint, self._model.embedding_dim
        self._known = dict(zip(texts, self._load(texts), strict=True))

    def token_vectors(
        self, texts: Any, *, task: TaskType = TaskType.RETRIEVAL_DOCUMENT, batch_size: int = 32
    ) -> list[Any]:
        if task is not TaskType.RETRIEVAL_DOCUMENT:
            return self._model.token_vectors(texts, task=task)
        return [self._known[text].astype(np.float32) for text in texts]

    def _load(self, texts: list[str]) -> Iterator[Any]:
        folder = default_cache_path().parent / "scifact_tokens" / self.fingerprint.replace(":", "-")
        folder.mkdir(parents=True, exist_ok=True)
        for start in range(0, len(texts), SHARD):
            path = folder / f"{start:05d}.npz"
            if not path.exists():
                rows = self._model.token_vectors(texts[start : start + SHARD], batch_size=8)
                np.savez(
                    path, tok=np.concatenate(rows).astype(np.float16), n=np.array([len(row) for row in rows])
                )
                show("token vectors", start + SHARD)
            kept = np.load(path)
            yield from np.split(kept["tok"], np.cumsum(kept["n"])[:-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.parse_args()
    folder = Path(os.environ.get("DARTBOARD_DATA", "../shared/data")) / "scifact"
    if not folder.is_dir():
        sys.exit(f"{folder} is missing: set DARTBOARD_DATA to a folder that holds BEIR's scifact")
    RESULTS.write_text(json.dumps({"retrievers": retrievers(Data(folder))}, indent=1) + "\n")


class Data:
    """The corpus with its vectors, the queries and judgements of both splits."""

    def __init__(self, folder: Path) -> None:
        self.corpus = {
            row["_id"]: f"{row['title']} {row['text']}".strip() for row in lines(folder / "corpus.jsonl")
        }
        texts = {row["_id"]: row["text"] for row in lines(folder / "queries.jsonl")}
        self.qrels = read_qrels(folder / "qrels" / "test.tsv")
        self.queries = {id: texts[id] for id in self.qrels}
        self.model = CachedModel(default_model())
        vectors = self.model.encode_documents(list(self.corpus.values()))
        self.model.encode_queries(list(self.queries.values()))  # into the cache, in batches
        self.records = [
            Record(id, text, vector) for (id, text), vector in zip(self.corpus.items(), vectors, strict=True)
        ]

    @cached_property
    def tokens(self) -> KeptTokens:
        return KeptTokens(list(self.corpus.values()))

    def collection(self, retriever: Retriever) -> MemoryCollection:
        need = retriever.fields()
        manifest = Manifest(
            model=self.model.fingerprint,
            dimension=self.model.embedding_dim,
            vectors=need.vectors,
            sparse=need.sparse,
        )
        collection = MemoryStore().create("scifact", manifest)
        collection.upsert(retriever.index(self.records))
        return collection


class RememberedColbert(ColbertRetriever):
    """Late interaction that ranks each query once, however many systems it is a member of."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._ranked: dict[str, Ranked] = {}

    def rank(self, view: Collection, query: Query, k: int, *, where: Filter | None = None) -> Ranked:
        if query.text not in self._ranked:
            self._ranked[query.text] = super().rank(view, query, POOL, where=where)
            show("colbert", len(self._ranked))
        return self._ranked[query.text]


class Fitted:
    """A hybrid of two whose α, for each query, was fitted on the four folds that it is not in."""

    def __init__(self, members: list[Any], fit: AlphaFit, data: Data) -> None:
        self._of = {
            data.queries[id]: HybridRetriever(members, alpha=alpha) for id, alpha in fit.alpha_without.items()
        }

    def retrieve(self, collection: MemoryCollection, query: str, k: int) -> Candidates:
        return self._of[query].retrieve(collection, query, k)


def retrievers(data: Data) -> dict[str, Any]:
    dense, words = DenseRetriever(data.model), BM25Retriever(data.model)
    colbert = RememberedColbert(data.tokens, model=data.model)
    collection = data.collection(colbert)
    fits = {
        label: fit_alpha(members, collection, data.queries, data.qrels)
        for label, members in (("dense + bm25", [dense, words]), ("colbert + bm25", [colbert, words]))
    }
    systems: dict[str, Any] = {
        "bm25": words,
        "dense": dense,
        "colbert": colbert,
        "hybrid .7": HybridRetriever([dense, words]),
        "hybrid .7 zscore": HybridRetriever([dense, words], normalise="zscore"),
        "hybrid fitted": Fitted([dense, words], fits["dense + bm25"], data),
        "rrf": HybridRetriever([dense, words], method="rrf"),
        "colbert + bm25 .7": HybridRetriever([colbert, words]),
        "colbert + bm25 fitted": Fitted([colbert, words], fits["colbert + bm25"], data),
        "dense + bm25 + colbert": HybridRetriever([dense, words, colbert]),
    }
    per_query: dict[str, dict[str, list[float]]] = {}
    rows = {}
    for name, system in systems.items():
        found = {id: system.retrieve(collection, text, POOL) for id, text in data.queries.items()}
        plain = {id: [one.chunk.id for one in candidates.found] for id, candidates in found.items()}
        runs = {"": plain} | {f" + dartboard ({how})": dartboard(found, how) for how in RELEVANCES}
        for suffix, run in runs.items():
            per_query[name + suffix] = judged(run, data.qrels)
        rows[name] = {
            "alone": means(per_query[name]),
            "dartboard": {how: means(per_query[f"{name} + dartboard ({how})"]) for how in RELEVANCES},
        }
        print(name, json.dumps(rows[name]), flush=True)
    compared = [
        ("hybrid .7", "dense"),
        ("hybrid .7", "bm25"),
        ("hybrid fitted", "dense"),
        ("hybrid fitted", "bm25"),
        ("hybrid fitted", "hybrid .7"),
        ("colbert + bm25 fitted", "colbert"),
        *((f"{name} + dartboard (rank)", name) for name in systems),
        *((f"{name} + dartboard (rank)", f"{name} + dartboard (distance)") for name in systems),
    ]
    return {
        "settings": {"data": "BEIR scifact test", "queries": len(data.queries), "pool": POOL},
        "rows": rows,
        "alpha": {
            label: {name: value for name, value in asdict(fit).items() if name != "alpha_without"}
            for label, fit in fits.items()
        },
        "differences_95": {
            f"{left} - {right}": {
                name: interval(per_query[left][name], per_query[right][name]) for name in MEASURES
            }
            for left, right in compared
        },
    }


def dartboard(found: dict[str, Candidates], relevance: str) -> dict[str, list[str]]:
    run = {}
    for id, candidates in found.items():
        picked = Dartboard().select(pool_of(candidates, relevance), Limits(k=CUT)).indices
        run[id] = [candidates.found[at].chunk.id for at in picked]
    return run


def pool_of(candidates: Candidates, relevance: str) -> Pool:
    """The candidates with probabilities by the retriever's order, by distance alone, or by its scores."""
    pool = from_embeddings(
        candidates.query_vector,
        candidates.vectors,
        groups=partial(groups_of_close, read=candidates.fingerprints),
        ranking=candidates.scores if relevance == "rank" else None,
    )
    return pool.reweighted(log_softmax(np.array(candidates.scores))) if relevance == "score" else pool


def judged(run: dict[str, list[str]], qrels: Qrels) -> dict[str, list[float]]:
    return {name: [measure(run[id], qrels[id]) for id in qrels] for name, measure in MEASURES.items()}


def means(scores: dict[str, list[float]]) -> dict[str, float]:
    return {name: round(float(np.mean(values)), 4) for name, values in scores.items()}


def interval(left: list[float], right: list[float]) -> list[float]:
    """A 95 % bootstrap interval of the mean difference over queries."""
    apart = np.array(left) - np.array(right)
    drawn = np.random.default_rng(0).integers(0, len(apart), (10_000, len(apart)))
    return [round(float(edge), 4) for edge in np.quantile(apart[drawn].mean(axis=1), [0.025, 0.975])]


def lines(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8") as file:
        yield from map(json.loads, file)


def read_qrels(path: Path) -> Qrels:
    found: Qrels = {}
    with path.open(encoding="utf-8") as file:
        for row in csv.DictReader(file, delimiter="\t"):
            if float(row["score"]) > 0:
                found.setdefault(row["query-id"], {})[row["corpus-id"]] = float(row["score"])
    return found


def show(what: str, done: int) -> None:
    if sys.stderr.isatty():
        print(f"\r{what}: {done}  ", end="", file=sys.stderr, flush=True)


def quality_table(found: dict[str, Any]) -> str:
    """nDCG@10 / recall@10 of each retriever, alone and with Dartboard."""
    rows = [
        [name, _pair(row["alone"]), *(_pair(row["dartboard"][how]) for how in RELEVANCES)]
        for name, row in found["retrievers"]["rows"].items()
    ]
    heads = ["nDCG@10 / recall@10", "alone", "+ Dartboard, by rank", "by distance", "by score"]
    return markdown(heads, rows)


def alpha_table(found: dict[str, Any]) -> str:
    """α of two hybrids, fitted, and what it gives on held-out queries."""
    rows = []
    for name, fit in found["retrievers"]["alpha"].items():
        low, high = fit["interval"]
        shown = (fit["by_alpha"]["1.0"], fit["by_alpha"]["0.0"], fit["default"], fit["held_out"])
        fitted = f"{fit['alpha']:.2f} ({low:.2f} to {high:.2f})"
        rows.append([name, fitted, *(f"{value:.3f}" for value in shown)])
    heads = ["nDCG@10", "α fitted (95 %)", "first alone", "second alone", "α = .7", "fitted, held out"]
    return markdown(heads, rows)


def _pair(row: dict[str, float]) -> str:
    return f"{row['ndcg@10']:.3f} / {row['recall@10']:.3f}"


if __name__ == "__main__":
    main()
