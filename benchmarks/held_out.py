"""The rule for σ on a set that chose nothing: TREC DL 2019 on a sample of MS MARCO; prints a table.

    python benchmarks/held_out.py

In the folder that DARTBOARD_DATA names, ``msmarco/`` holds ``collection.sample.tsv``,
``topics.dl19-passage.txt`` and ``qrels.dl19-passage.txt``. Relevant are grades of 2 and more whose passages
are in the sample. A figure is the number of hits among 5 and 10 picks from the nearest 100, as a share of
those of nearest neighbours.
"""

import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent))  # run as a script, this file finds its neighbours

from benchmarks import sigma
from dartboard.datasets import progress_bar, read_qrels, with_redundancy
from dartboard.embeddings import CachedModel, default_model
from dartboard.selection.kernels import unit_rows
from dartboard.types import Chunk, Dataset, FloatArray

RELEVANT = 2
METHODS: dict[str, sigma.Rule] = {
    "nearest neighbours": lambda pool: list(range(sigma.K)),
    "median / 4": sigma.fixed(4),
    **{f"near-duplicate filter {cosine:.2f}": sigma.filtered(cosine) for cosine in (0.8, 0.85, 0.9, 0.95)},
    "the rule, copies known by vectors alone": sigma.ruled(worded=False),
    "the rule": sigma.ruled(),
}


def loaded(folder: Path, model: CachedModel) -> tuple[Dataset, FloatArray]:
    """The judged part of the sample, and the questions' vectors."""
    texts = dict(_rows(folder / "collection.sample.tsv"))
    qrels = read_qrels(folder / "qrels.dl19-passage.txt")
    asked = [(topic, text) for topic, text in _rows(folder / "topics.dl19-passage.txt") if topic in qrels]
    relevant = {
        topic: [one for one, grade in qrels[topic].items() if grade >= RELEVANT and one in texts]
        for topic, _ in asked
    }
    asked = [(topic, text) for topic, text in asked if relevant[topic]]
    with progress_bar() as listen:
        listen("embed", 0, len(texts))
        vectors = model.encode_documents(list(texts.values()))
        listen("embed", len(texts), len(texts))
    chunks = [Chunk(id, text, vector, {}) for (id, text), vector in zip(texts.items(), vectors, strict=True)]
    queries = [text for _, text in asked]
    vectors = model.encode_queries(queries)
    found = {topic: relevant[topic] for topic, _ in asked}
    return Dataset("dl19", chunks, queries, found, {}, [topic for topic, _ in asked]), vectors


def _rows(path: Path) -> list[tuple[str, str]]:
    with path.open(encoding="utf-8") as lines:
        return [(one, text) for one, text in (line.rstrip("\n").split("\t", 1) for line in lines)]


def near_edited(dataset: Dataset, asked: FloatArray, model: CachedModel) -> Dataset:
    """With five edited texts of each question's nearest three."""
    corpus = unit_rows(np.stack([chunk.embedding for chunk in dataset.chunks]).astype(np.float64))
    near = {int(row) for one in unit_rows(asked) for row in np.argsort(-(corpus @ one), kind="stable")[:3]}
    some = replace(dataset, chunks=[dataset.chunks[row] for row in sorted(near)], ground_truth={})
    edited = with_redundancy(some, copies=5, edits=sigma.EDITS, model=model)
    copies = [chunk for chunk in edited.chunks if chunk.metadata.get("copy", 0)]
    return replace(dataset, chunks=[*dataset.chunks, *copies])


def hits(found: list[sigma.Candidates], method: sigma.Rule) -> FloatArray:
    """Mean share of the places among 5 and 10 picks that could hold a hit and do."""
    total = np.zeros(2)
    for pool in found:
        bases = [pool.base[row] for row in method(pool)]
        for place, k in enumerate((5, 10)):
            total[place] += len(pool.required.intersection(bases[:k])) / min(k, len(pool.required))
    return total / len(found)


def main() -> None:
    data = Path(os.environ.get("DARTBOARD_DATA", sigma.ROOT.parent / "shared" / "data")) / "msmarco"
    if not data.is_dir():
        sys.exit(f"no {data}: set DARTBOARD_DATA to the folder that holds msmarco/")
    model = CachedModel(default_model())
    dataset, asked = loaded(data, model)
    edited = near_edited(dataset, asked, model)
    cases: dict[str, tuple[Dataset, dict[str, Any]]] = {
        "clean": (dataset, {"worded": True}),
        "copies at .97": (with_redundancy(dataset, copies=5, cosine=0.97), {"worded": False}),
        "copies at .90": (with_redundancy(dataset, copies=5, cosine=0.90), {"worded": False}),
        "edits of the nearest": (edited, {"worded": True, "copied": 1}),
        "edits of the nearest three": (edited, {"worded": True, "copied": 3}),
    }
    found = {name: list(sigma.pools(corpus, asked, **how)) for name, (corpus, how) in cases.items()}
    best = hits(found["clean"], METHODS["nearest neighbours"])
    print("| | " + " | ".join(cases) + " |\n|---|" + "---|" * len(cases))
    for name, method in METHODS.items():
        shares = [hits(pools, method) / best for pools in found.values()]
        print(f"| {name} | " + " | ".join("{:.3f} / {:.3f}".format(*share) for share in shares) + " |")


if __name__ == "__main__":
    main()
