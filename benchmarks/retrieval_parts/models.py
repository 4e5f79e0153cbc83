"""BM25, dense, ColBERT and hybrid on the same passages: bytes, speed, exact identifiers, paraphrases.

The passages are SciFact's abstracts. Paraphrases are its claims, written by people, each with the abstract
that supports or refutes it. Exact identifiers are words with a digit or inner capitals that stand in one
passage alone (genes, compounds, trial names), each asked on its own.
"""

import os
import re
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from retrieval_parts.common import say, timed

from dartboard.datasets import load_dataset
from dartboard.embeddings import CachedModel, default_model
from dartboard.retrievers.registry import retriever_by_name
from dartboard.stores import Manifest, Record, open_store

DATA = Path(os.environ.get("DARTBOARD_DATA", Path(__file__).parents[2].parent / "shared" / "data"))
RETRIEVERS = ("bm25", "dense", "colbert", "hybrid")
IDENTIFIER = re.compile(r"\b(?=\w*[A-Za-z])(?=\w*(?:\d|[a-z][A-Z]|[A-Z]{2}))\w{4,}\b")
DEPTH = 10


def measure(*, quick: bool) -> dict[str, Any]:
    if not DATA.is_dir():
        sys.exit(f"no data in {DATA}: set DARTBOARD_DATA to a folder that holds scifact")
    model = default_model()
    dataset = load_dataset("scifact", DATA, CachedModel(model), fetch=False)
    passages = _subset(dataset, 200 if quick else 1500)
    identifiers = _identifiers(passages, 100)
    kept = {chunk.id for chunk in passages}
    claims = [
        (query, set(dataset.ground_truth[query_id]))
        for query, query_id in zip(dataset.queries, dataset.query_ids, strict=True)
        if dataset.ground_truth.get(query_id) and set(dataset.ground_truth[query_id]) <= kept
    ]
    found: dict[str, Any] = {
        "passages": len(passages),
        "identifiers": len(identifiers),
        "paraphrases": len(claims),
        "retrievers": {},
    }
    for name in RETRIEVERS:
        say(name)
        found["retrievers"][name] = _one(name, model, passages, identifiers, claims)
    return found


def _one(name: str, model: Any, passages: Any, identifiers: Any, claims: Any) -> dict[str, Any]:
    retriever = retriever_by_name(name, model=model)
    fields = retriever.fields()
    with tempfile.TemporaryDirectory() as folder, open_store(str(Path(folder) / "m.dartboard")) as store:
        collection = store.create(
            "default",
            Manifest(
                model=model.fingerprint,
                dimension=model.embedding_dim,
                vectors=dict(fields.vectors),
                sparse=fields.sparse,
            ),
        )
        records = [Record(chunk.id, chunk.text, chunk.embedding) for chunk in passages]
        for start in range(0, len(records), 256):
            collection.upsert(retriever.index(records[start : start + 256]))
            say(f"{name}: {start} of {len(records)}")

        def ask(query: str) -> list[str]:
            return [each.chunk.id for each in retriever.retrieve(collection, query, DEPTH).found]

        exact = timed(ask, [query for query, _ in identifiers], rounds=1)
        meaning = timed(ask, [query for query, _ in claims], rounds=1)
        text = sum(len(record.text.encode()) for record in records) / len(records)
        bytes_per_document = _bytes(name, collection, retriever, len(records))
    return {
        "bytes_per_document": round(bytes_per_document),
        "text_bytes_per_document": round(text),
        "queries_per_second": meaning["queries_per_second"],
        "median_ms": meaning["median_ms"],
        f"identifiers_recall@{DEPTH}": _recall(exact["found"], identifiers),
        f"paraphrases_recall@{DEPTH}": _recall(meaning["found"], claims),
    }


def _bytes(name: str, collection: Any, retriever: Any, count: int) -> float:
    """What a retriever keeps beside the text: vectors, token codes, posting lists."""
    vectors = 4.0 * collection.manifest.dimension if name in ("dense", "hybrid") else 0.0
    further = sum(4 * field.dimension for field in retriever.fields().vectors.values())
    blobs = 0
    for batch in collection.iterate():
        blobs += sum(len(data) for record in batch for data in record.blobs.values())
    postings = _postings(collection) / count if name in ("bm25", "hybrid") else 0.0
    return vectors + further + blobs / count + postings


def _postings(collection: Any) -> int:
    from dartboard.lexical import BM25Index

    texts = [record.text for batch in collection.iterate() for record in batch]
    (table,) = BM25Index.build(texts).tables
    return sum(array.nbytes for array in vars(table).values() if isinstance(array, np.ndarray))


def _recall(found: list[list[str]], asked: list[tuple[str, set[str]]]) -> float:
    shares = [len(set(got) & wanted) / len(wanted) for got, (_, wanted) in zip(found, asked, strict=True)]
    return round(float(np.mean(shares)), 4)


def _subset(dataset: Any, size: int) -> list[Any]:
    """Passages that answer a claim first, then others, as they stand."""
    required = {id for ids in dataset.ground_truth.values() for id in ids}
    ordered = sorted(dataset.chunks, key=lambda chunk: chunk.id not in required)
    return ordered[:size]


def _identifiers(passages: list[Any], count: int) -> list[tuple[str, set[str]]]:
    holders = Counter(word for chunk in passages for word in set(re.findall(r"\w+", chunk.text.lower())))
    found = []
    for chunk in passages:
        alone = [word for word in IDENTIFIER.findall(chunk.text) if holders[word.lower()] == 1]
        if alone:
            found.append((alone[0], {chunk.id}))
    step = max(1, len(found) // count)
    return found[::step][:count]
