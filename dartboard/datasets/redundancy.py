"""Put near-copies of every passage into a data set: what real corpora are full of, and clean ones lack.

A copy is made either by noise on the vector, which puts it at a chosen cosine from its original, or by an
edit of the text, which a model then embeds. Copies carry the ``base_id`` of their original. They are as
relevant as it is and cover the same facets; kernels still name originals, and a copy counts for one
through its ``base_id``.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dartboard.datasets.edits import EDITS
from dartboard.datasets.pieces import embedded_text
from dartboard.datasets.text import Facets, Groups, Qrels
from dartboard.embeddings import EmbeddingModel
from dartboard.embeddings.vectors import Vectors
from dartboard.errors import ConfigError
from dartboard.types import Chunk, Dataset

NEAR = 0.97
"""The cosine of a copy with its original unless another one is asked for."""


def with_redundancy(
    dataset: Dataset,
    *,
    copies: int = 5,
    cosine: float | None = None,
    edits: Sequence[str] | None = None,
    seed: int = 0,
    model: EmbeddingModel | None = None,
) -> Dataset:
    """The data set with ``copies`` near-copies beside each passage.

    Give ``cosine`` (by default .97) for noise on the vectors, or ``edits`` (any of ``truncate``,
    ``shuffle``, ``boilerplate``, ``revise``, used in turn) with the ``model`` that embedded the data set.
    """
    if copies < 1:
        raise ConfigError(f"copies must be >= 1, got {copies}")
    if edits is not None:
        if cosine is not None:
            raise ConfigError("cosine and edits exclude each other: give one of them")
        made, how = _by_edits(dataset, copies, edits, seed, model)
        name = f"{dataset.name}+{copies}edits"
    else:
        near = NEAR if cosine is None else cosine
        made, how = _by_noise(dataset, copies, near, seed), {"cosine": near}
        name = f"{dataset.name}+{copies}@{near:g}"
    copies_of = {
        chunk.id: [chunk.id, *(copy.id for copy in row)]
        for chunk, row in zip(dataset.chunks, made, strict=True)
    }
    return Dataset(
        name=name,
        chunks=[
            one for chunk, row in zip(dataset.chunks, made, strict=True) for one in (_marked(chunk), *row)
        ],
        queries=list(dataset.queries),
        query_ids=list(dataset.query_ids),
        ground_truth=_expand_groups(dataset.ground_truth, copies_of),
        metadata=_expand_metadata(dataset.metadata, copies_of)
        | {"redundancy": {"copies": copies, "seed": seed, **how}},
    )


def near_vectors(vectors: Vectors, cosine: float, rng: np.random.Generator) -> Vectors:
    """Vectors of the same lengths at exactly this cosine from the given ``(n, d)``, in random directions."""
    rows = vectors.astype(np.float64)
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    unit = rows / lengths
    aside = rng.standard_normal(rows.shape)
    aside -= np.sum(aside * unit, axis=1, keepdims=True) * unit
    aside /= np.linalg.norm(aside, axis=1, keepdims=True)
    near: Vectors = (lengths * (cosine * unit + np.sqrt(1 - cosine**2) * aside)).astype(np.float32)
    return near


def _by_noise(dataset: Dataset, copies: int, cosine: float, seed: int) -> list[list[Chunk]]:
    if not 0 < cosine < 1:
        raise ConfigError(f"cosine must be between 0 and 1, got {cosine}")
    if dataset.chunks and dataset.chunks[0].embedding.size < 2:
        raise ConfigError("vectors of one number have no neighbours: noise needs two dimensions or more")
    rng = np.random.default_rng(seed)
    mark = _mark(dataset, copies)
    vectors = np.stack([chunk.embedding for chunk in dataset.chunks]).astype(np.float32)
    layers = [near_vectors(vectors, cosine, rng) for _ in range(copies)]
    return [
        [
            _copy(chunk, number, chunk.text, layer[row], "noise", mark)
            for number, layer in enumerate(layers, start=1)
        ]
        for row, chunk in enumerate(dataset.chunks)
    ]


def _by_edits(
    dataset: Dataset, copies: int, edits: Sequence[str], seed: int, model: EmbeddingModel | None
) -> tuple[list[list[Chunk]], dict[str, Any]]:
    if not edits or (unknown := [name for name in edits if name not in EDITS]):
        raise ConfigError(f"edits must be some of {', '.join(EDITS)}, got {unknown if edits else 'none'}")
    if model is None:
        raise ConfigError("edited texts have to be embedded: give the model that embedded the data set")
    rng = np.random.default_rng(seed)
    mark, kinds = _mark(dataset, copies), [edits[number % len(edits)] for number in range(copies)]
    texts = [[EDITS[kind](chunk.text, rng) for kind in kinds] for chunk in dataset.chunks]
    vectors = model.encode_documents(
        [
            embedded_text(text, chunk.metadata.get("title", ""))
            for chunk, row in zip(dataset.chunks, texts, strict=True)
            for text in row
        ]
    )
    made = [
        [
            _copy(chunk, number + 1, text, vectors[place * copies + number], kinds[number], mark)
            for number, text in enumerate(row)
        ]
        for place, (chunk, row) in enumerate(zip(dataset.chunks, texts, strict=True))
    ]
    return made, {"edits": list(edits), "model": model.name}


def _mark(dataset: Dataset, copies: int) -> str:
    """What stands between an id and the number of a copy: ``~``, more of them where copies are there."""
    known, mark = {chunk.id for chunk in dataset.chunks}, "~"
    while any(f"{one}{mark}{number}" in known for one in known for number in range(1, copies + 1)):
        mark += "~"
    return mark


def _copy(chunk: Chunk, number: int, text: str, vector: Vectors, how: str, mark: str) -> Chunk:
    base = chunk.metadata.get("base_id", chunk.id)
    return Chunk(
        f"{chunk.id}{mark}{number}",
        text,
        vector,
        {**chunk.metadata, "base_id": base, "copy": number, "edit": how},
    )


def _marked(chunk: Chunk) -> Chunk:
    """The original, with a ``base_id`` even where the data set gave none."""
    return Chunk(chunk.id, chunk.text, chunk.embedding, {"base_id": chunk.id, **chunk.metadata})


def _expand_metadata(metadata: Mapping[str, Any], copies_of: Groups) -> dict[str, Any]:
    expanded = dict(metadata)
    if "qrels" in metadata:
        qrels: Qrels = metadata["qrels"]
        expanded["qrels"] = {
            query_id: {
                copy: grade for chunk_id, grade in judged.items() for copy in copies_of.get(chunk_id, [])
            }
            for query_id, judged in qrels.items()
        }
    if "facets" in metadata:
        facets: Facets = metadata["facets"]
        expanded["facets"] = {
            query_id: _expand_groups(by_facet, copies_of) for query_id, by_facet in facets.items()
        }
    if "pools" in metadata:
        expanded["pools"] = _expand_groups(metadata["pools"], copies_of)
    return expanded


def _expand_groups(groups: Groups, copies_of: Groups) -> Groups:
    return {
        key: [copy for chunk_id in ids for copy in copies_of.get(chunk_id, [])] for key, ids in groups.items()
    }
