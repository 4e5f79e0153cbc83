"""How well does each retriever find what is relevant, alone and with Dartboard on top? BEIR SciFact.

    python benchmarks/retrieval_quality.py [--parts retrievers copies rules codes triage]

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
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from dartboard.datasets.redundancy import near_vectors
from dartboard.embeddings import CachedModel, TaskType, default_model
from dartboard.embeddings.cache import default_cache_path
from dartboard.retrievers import (
    AlphaFit,
    BM25Retriever,
    Candidates,
    ColbertRetriever,
    DenseRetriever,
    FixedDimensional,
    HybridRetriever,
    fit_alpha,
    select_from,
)
from dartboard.retrievers.alpha_fit import measure_of
from dartboard.retrievers.asking import Question
from dartboard.retrievers.hybrid import ALPHA, Table
from dartboard.retrievers.ranking import Ranking, RankingRetriever
from dartboard.retrievers.token_codes import TokenCodec
from dartboard.selection import Limits
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
    parts = {"retrievers": retrievers, "copies": copies, "rules": rules, "codes": codes, "triage": triage}
    parser.add_argument("--parts", nargs="+", default=list(parts), choices=list(parts))
    options = parser.parse_args()
    folder = Path(os.environ.get("DARTBOARD_DATA", "../shared/data")) / "scifact"
    if not folder.is_dir():
        sys.exit(f"{folder} is missing: set DARTBOARD_DATA to a folder that holds BEIR's scifact")
    data = Data(folder)
    for part in options.parts:
        made = parts[part](data)
        found = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
        found[part] = made
        RESULTS.write_text(json.dumps(found, indent=1) + "\n")


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

    def collection(self, retriever: RankingRetriever) -> MemoryCollection:
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
        self._ranked: dict[str, Ranking] = {}

    def rank(
        self, collection: Collection, question: Question, k: int, *, where: Filter | None = None
    ) -> Ranking:
        if question.text not in self._ranked:
            self._ranked[question.text] = super().rank(collection, question, POOL, where=where)
            show("colbert", len(self._ranked))
        return self._ranked[question.text]


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


def copies(data: Data, count: int = 5, cosine: float = 0.97) -> dict[str, Any]:
    """The same with near-copies of every passage: its text, and vectors at this cosine; any copy counts."""
    own = np.stack([record.embedding for record in data.records])
    records = list(data.records)
    for number in range(count):
        noisy = near_vectors(own, cosine, np.random.default_rng(number))
        records += [
            Record(f"{record.id}#{number}", record.text, vector)
            for record, vector in zip(data.records, noisy, strict=True)
        ]
    dense, words = DenseRetriever(data.model), BM25Retriever(data.model)
    collection = MemoryStore().create("copies", data_collection(data).manifest)
    collection.upsert(records)
    rows = {}
    for system in (dense, words, HybridRetriever([dense, words])):
        found = {name: system.retrieve(collection, text, POOL) for name, text in data.queries.items()}
        plain = {name: [one.chunk.id for one in candidates.found[:CUT]] for name, candidates in found.items()}
        runs = {"alone": plain} | {how: dartboard(found, how) for how in RELEVANCES}
        rows[system.name] = {
            how: round(float(np.mean([distinct_recall(run[name], data.qrels[name]) for name in run])), 4)
            for how, run in runs.items()
        }
        print(system.name, json.dumps(rows[system.name]), flush=True)
    return {"copies": count, "cosine": cosine, "measure": "recall@10, any copy", "rows": rows}


def distinct_recall(ranked: list[str], grades: dict[str, float]) -> float:
    return len({id.partition("#")[0] for id in ranked} & set(grades)) / len(grades)


def rules(data: Data) -> dict[str, Any]:
    """Hybrid by other rules: what a missing BM25 score is, what scores are normalised over; at several α."""
    hybrid = HybridRetriever([DenseRetriever(data.model), BM25Retriever()])
    collection = data_collection(data)
    tables = {name: hybrid.table(collection, Question(text), POOL) for name, text in data.queries.items()}
    everything = {
        name: {hit.id: hit.score for hit in collection.search_text(text, len(data.corpus))}
        for name, text in data.queries.items()
    }
    rows = {}
    for how in ("minmax", "zscore"):
        for missing in ("the last hit's", "0", "worked out"):
            for over in ("all candidates", "the member's own"):
                by_alpha = {}
                for alpha in (0.3, 0.4, 0.5, 0.6, ALPHA, 0.8):
                    run = {
                        name: by_rule(table, everything[name], how, missing, over, alpha)
                        for name, table in tables.items()
                    }
                    by_alpha[str(alpha)] = means(judged(run, data.qrels))
                rows[f"{how}, missing score {missing}, over {over}"] = by_alpha
    return {"rows": rows}


def by_rule(
    table: Table, known: dict[str, float], how: str, missing: str, over: str, alpha: float
) -> list[str]:
    ids = table.passages.ids
    found = [{hit.id for hit in ranking.hits} for ranking in table.rankings]
    stand_in = {
        "the last hit's": lambda at, id: table.scores[1][at],
        "0": lambda at, id: 0.0,
        "worked out": lambda at, id: known.get(id, 0.0),
    }[missing]
    words = [table.scores[1][at] if id in found[1] else stand_in(at, id) for at, id in enumerate(ids)]
    total = np.zeros(len(ids))
    for scores, own, weight in ((table.scores[0], found[0], alpha), (np.array(words), found[1], 1 - alpha)):
        base = scores if over == "all candidates" else scores[[id in own for id in ids]]
        if not base.size:
            continue
        centre, spread = (base.min(), np.ptp(base)) if how == "minmax" else (base.mean(), base.std())
        total += weight * (scores - centre) / (spread or 1.0)
    return [ids[at] for at in np.argsort(-total, kind="stable")]


def codes(data: Data) -> dict[str, Any]:
    """Bytes a token, and what fewer bits cost: in the scores, and in the ranking of the dense top 200."""
    model = data.tokens
    tokens = {id: model.token_vectors([text])[0] for id, text in data.corpus.items()}
    count = sum(map(len, tokens.values()))
    queries = data.queries
    near = {
        id: [hit.id for hit in data_collection(data).search_vector(data.model.encode_query(text), 200)]
        for id, text in queries.items()
    }
    asked = {id: model.token_vectors(text, task=TaskType.RETRIEVAL_QUERY)[0] for id, text in queries.items()}
    wanted = sorted({id for ids in near.values() for id in ids})
    exact = {id: sims(asked[id], [tokens[one] for one in near[id]]) for id in queries}
    rows = {"float32": {"bytes_per_token": 4 * model.embedding_dim, **ranked(exact, near, data)}}
    for bits in (8, 4, 2):
        codec = TokenCodec(bits=bits)
        back = {id: codec.vectors(codec.encode(tokens[id])) for id in wanted}
        scores = {id: sims(asked[id], [back[one] for one in near[id]]) for id in queries}
        errors = np.concatenate([(scores[id] - exact[id]) / len(asked[id]) for id in queries])
        rows[f"{bits} bits"] = {
            "bytes_per_token": codec.bytes_per_token(model.embedding_dim),
            "error_per_query_token": {"mean": float(errors.mean()), "deviation": float(errors.std())},
            **ranked(scores, near, data),
        }
        print(bits, json.dumps(rows[f"{bits} bits"]), flush=True)
    mean = count / len(tokens)
    for row in rows.values():
        row["bytes_per_passage"] = round(row["bytes_per_token"] * mean)
    return {"tokens_per_passage": round(mean, 1), "dimension": model.embedding_dim, "rows": rows}


def triage(data: Data) -> dict[str, Any]:
    """The share of the best 10 and 100 by MaxSim over everything that a triage passes on."""
    queries = list(data.queries.values())[:100]
    asked = [data.tokens.token_vectors(text, task=TaskType.RETRIEVAL_QUERY)[0] for text in queries]
    everything = full_max_sim(asked, data)
    order = np.argsort(-everything, axis=1, kind="stable")
    rows = {}
    ways = {
        "embedding": ColbertRetriever(data.tokens, model=data.model, triage="embedding"),
        "pooled": ColbertRetriever(data.tokens, model=data.model, triage="pooled"),
        "fde 1024": ColbertRetriever(
            data.tokens, model=data.model, triage="fde", encoding=FixedDimensional(dimension=1024)
        ),
        "fde 2048": ColbertRetriever(data.tokens, model=data.model, triage="fde"),
        "fde 8192": ColbertRetriever(
            data.tokens, model=data.model, triage="fde", encoding=FixedDimensional(dimension=8192)
        ),
    }
    ids = np.array(list(data.corpus))
    for name, retriever in ways.items():
        collection = data.collection(retriever)
        near = [[hit.id for hit in retriever.near(collection, Question(text), 400)] for text in queries]
        row = {}
        for depth in (100, 200, 400):
            for top in (10, 100):
                shares = [
                    len(set(ids[best[:top]]) & set(one[:depth])) / top
                    for best, one in zip(order, near, strict=True)
                ]
                row[f"of the best {top} in {depth}"] = round(float(np.mean(shares)), 4)
        dimension = {"embedding": 0, "pooled": data.tokens.embedding_dim}.get(name) or int(
            name.split()[-1] if name.startswith("fde") else 0
        )
        rows[name] = {"bytes_per_passage": 4 * dimension, **row}
        print(name, json.dumps(rows[name]), flush=True)
    return {"queries": len(queries), "rows": rows}


def full_max_sim(asked: list[Any], data: Data) -> Any:
    """``(queries, passages)``: MaxSim of every query with every passage."""
    stacked = np.concatenate(asked)
    starts = np.cumsum([len(one) for one in asked]) - np.array([len(one) for one in asked])
    made = np.empty((len(asked), len(data.corpus)), dtype=np.float32)
    for at, text in enumerate(data.corpus.values()):
        nearest = (stacked @ data.tokens.token_vectors([text])[0].T).max(axis=1)
        made[:, at] = np.add.reduceat(nearest, starts)
        show("full MaxSim", at)
    return made


def data_collection(data: Data, kept: dict[int, MemoryCollection] = {}) -> MemoryCollection:  # noqa: B006
    if id(data) not in kept:
        kept[id(data)] = data.collection(DenseRetriever(data.model))
    return kept[id(data)]


def sims(query: Any, passages: list[Any]) -> Any:
    return np.array([(query @ passage.T).max(axis=1).sum() for passage in passages])


def ranked(scores: dict[str, Any], near: dict[str, list[str]], data: Data) -> dict[str, float]:
    run = {id: [near[id][at] for at in np.argsort(-scores[id], kind="stable")[:POOL]] for id in scores}
    return means(judged(run, data.qrels))


def dartboard(found: dict[str, Candidates], relevance: str) -> dict[str, list[str]]:
    run = {}
    for id, candidates in found.items():
        picked = select_from(candidates, Limits(k=CUT), relevance=relevance).indices
        run[id] = [candidates.found[at].chunk.id for at in picked]
    return run


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


if __name__ == "__main__":
    main()
