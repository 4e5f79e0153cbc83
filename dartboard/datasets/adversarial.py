"""Texts that lead retrieval astray: copies with another word, the same said otherwise, the opposite.

Each question asks for two facts. Each fact stands four times in the corpus:

==================  =================================================================  =========
``original``        the fact                                                           relevant
``near_duplicate``  one or two words differ, the meaning does not                      relevant
``paraphrase``      the same meaning in other words                                    relevant
``contradiction``   the opposite, often in almost the same words                       grade 0
==================  =================================================================  =========

and ``other`` passages share the topic but not the facts. The texts are real sentences, so the vectors come
from a model: how near a contradiction lies to the truth is the model's doing, not ours.
"""

import json
from importlib.resources import files
from typing import Any

import numpy as np

from dartboard.embeddings import EmbeddingModel
from dartboard.types import Chunk, Dataset

KINDS = ("original", "near_duplicate", "paraphrase", "contradiction")


def make_adversarial(model: EmbeddingModel | None = None, *, seed: int = 42) -> Dataset:
    """The adversarial set, embedded by a model (the default one unless given).

    ``chunk.metadata["kind"]`` says which kind a chunk is, and ``base_id`` names the original of those that
    say the same. A fact is a facet; the originals of both facts are the kernel. ``seed`` shuffles the
    corpus, so that nothing can be won by its order.
    """
    if model is None:
        from dartboard.embeddings import default_model

        model = default_model()
    cases = read_cases()
    rows = [row for number, case in enumerate(cases) for row in _rows(number, case)]
    order = np.random.default_rng(seed).permutation(len(rows))
    vectors = model.encode_documents([rows[place]["text"] for place in order])
    chunks = [
        Chunk(rows[place]["id"], rows[place]["text"], vector, rows[place]["metadata"])
        for place, vector in zip(order, vectors, strict=True)
    ]
    questions = [str(case["question"]) for case in cases]
    return _dataset(chunks, questions, model, seed)


def read_cases() -> list[dict[str, Any]]:
    """The questions with their facts, as they are stored."""
    cases: list[dict[str, Any]] = json.loads(
        (files("dartboard.datasets") / "adversarial.json").read_text("utf-8")
    )
    return cases


def _rows(number: int, case: dict[str, Any]) -> list[dict[str, Any]]:
    """The passages of a question with their ids and what is known of them."""
    query_id = _query_id(number)
    rows = []
    for facet, fact in enumerate(case["facts"], start=1):
        original = f"{query_id}-{facet}-original"
        for kind in KINDS:
            own = f"{query_id}-{facet}-{kind}"
            base = own if kind == "contradiction" else original
            rows.append(_row(own, fact[kind], query_id, kind=kind, facet=str(facet), base_id=base))
    for place, text in enumerate(case["other"], start=1):
        own = f"{query_id}-other-{place}"
        rows.append(_row(own, text, query_id, kind="other", facet="", base_id=own))
    return rows


def _row(own: str, text: str, query_id: str, **known: str) -> dict[str, Any]:
    return {"id": own, "text": text, "metadata": {"query_id": query_id, "title": "", **known}}


def _dataset(chunks: list[Chunk], questions: list[str], model: EmbeddingModel, seed: int) -> Dataset:
    query_ids = [_query_id(number) for number in range(len(questions))]
    qrels: dict[str, dict[str, int]] = {query_id: {} for query_id in query_ids}
    facets: dict[str, dict[str, list[str]]] = {query_id: {} for query_id in query_ids}
    for chunk in sorted(chunks, key=lambda chunk: chunk.id):
        query_id, facet = chunk.metadata["query_id"], chunk.metadata["facet"]
        relevant = chunk.metadata["kind"] in ("original", "near_duplicate", "paraphrase")
        qrels[query_id][chunk.id] = int(relevant)
        if relevant:
            facets[query_id].setdefault(facet, []).append(chunk.id)
    return Dataset(
        name="synthetic_adversarial",
        chunks=chunks,
        queries=questions,
        query_ids=query_ids,
        ground_truth={
            query_id: [one for one, grade in judged.items() if grade] for query_id, judged in qrels.items()
        },
        metadata={
            "type": "synthetic",
            "seed": seed,
            "qrels": qrels,
            "facets": facets,
            "kernels": {
                query_id: [f"{query_id}-{facet}-original" for facet in by_facet]
                for query_id, by_facet in facets.items()
            },
            "query_embeddings": model.encode_queries(questions),
            "model": {"name": model.name, "fingerprint": model.fingerprint},
        },
    )


def _query_id(number: int) -> str:
    return f"a{number:02d}"
