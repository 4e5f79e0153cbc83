"""Texts that mislead retrieval: near-duplicates, paraphrases and contradictions of a fact.

Each question asks for two facts. Each fact occurs four times in the corpus:

==================  =================================================================  =========
``original``        the fact                                                           relevant
``near_duplicate``  one or two words differ, the meaning does not                      relevant
``paraphrase``      the same meaning in other words                                    relevant
``contradiction``   the opposite, often in almost the same words                       grade 0
==================  =================================================================  =========

and ``other`` passages share the topic but not the facts. The texts are real sentences and a model makes the
vectors, so the similarity of a contradiction to the truth is a property of the model.
"""

import json
from importlib.resources import files
from typing import Any

import numpy as np

from dartboard.datasets.synthetic import synthetic_dataset
from dartboard.datasets.text_dataset import Facets, Qrels
from dartboard.embeddings import EmbeddingModel
from dartboard.types import Chunk, Dataset

KINDS = ("original", "near_duplicate", "paraphrase", "contradiction")


def make_adversarial(model: EmbeddingModel | None = None, *, seed: int = 42) -> Dataset:
    """The adversarial set, embedded by a model (the default one unless given).

    ``chunk.metadata["kind"]`` is a chunk's kind, and ``base_id`` names the original of near-duplicates and
    paraphrases. A fact is a facet; the originals of both facts are the kernel.

    Args:
        model: Makes the vectors; None is the default model.
        seed: Shuffles the corpus, so that its order carries no information.
    """
    if model is None:
        from dartboard.embeddings import default_model

        model = default_model()
    queries: dict[str, str] = {}
    qrels: Qrels = {}
    facets: Facets = {}
    rows: list[tuple[str, str, dict[str, str]]] = []
    for number, case in enumerate(read_cases()):
        query_id = f"a{number:02d}"
        queries[query_id], qrels[query_id], facets[query_id] = case["question"], {}, {}
        for facet, fact in enumerate(case["facts"], start=1):
            same = [f"{query_id}-{facet}-{kind}" for kind in KINDS if kind != "contradiction"]
            facets[query_id][str(facet)] = same
            for kind in KINDS:
                id_ = f"{query_id}-{facet}-{kind}"
                base = same[0] if id_ in same else id_
                known = {"query_id": query_id, "kind": kind, "facet": str(facet), "base_id": base}
                rows.append((id_, fact[kind], known))
                qrels[query_id][id_] = int(id_ in same)
        for place, text in enumerate(case["other"], start=1):
            id_ = f"{query_id}-other-{place}"
            rows.append((id_, text, {"query_id": query_id, "kind": "other", "facet": "", "base_id": id_}))
            qrels[query_id][id_] = 0
    rows = [rows[place] for place in np.random.default_rng(seed).permutation(len(rows))]
    vectors = model.encode_documents([text for _, text, _ in rows])
    return synthetic_dataset(
        "synthetic_adversarial",
        [
            Chunk(id_, text, vector, {**known, "title": ""})
            for (id_, text, known), vector in zip(rows, vectors, strict=True)
        ],
        queries,
        model.encode_queries(list(queries.values())),
        qrels,
        facets,
        kernels={
            query_id: [f"{query_id}-{facet}-original" for facet in by_facet]
            for query_id, by_facet in facets.items()
        },
        seed=seed,
        model={"name": model.name, "fingerprint": model.fingerprint},
    )


def read_cases() -> list[dict[str, Any]]:
    """The questions with their facts, as they are stored."""
    cases: list[dict[str, Any]] = json.loads(
        (files("dartboard.datasets") / "adversarial.json").read_text("utf-8")
    )
    return cases
