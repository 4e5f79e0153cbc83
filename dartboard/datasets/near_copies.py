"""Add near-duplicates of every passage to a data set: real corpora have many, clean ones have none.

A copy is made either by noise on the vector, at a chosen cosine from its original, or by an edit of the
text, which a model then embeds. Copies carry the ``base_id`` of their original, are as relevant as it, and
cover the same facets. Kernels still name originals; a copy counts for one through its ``base_id``.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from importlib.resources import files
from typing import Any

import numpy as np

from dartboard.datasets.text_dataset import Facets, Groups, Qrels, embedded_text
from dartboard.embeddings import EmbeddingModel
from dartboard.embeddings.vectors import Vectors
from dartboard.errors import ConfigError
from dartboard.types import Chunk, Dataset

NEAR = 0.97
"""Default cosine of a copy with its original."""

Edit = Callable[[str, np.random.Generator], str]
"""Changes a text without changing its meaning."""

Copies = list[list[tuple[str, Vectors]]]
"""The text and the vector of each copy, per chunk."""

# Split by punctuation, unlike the sentences of ingest: recorded benchmarks were made with these edits, and
# another number of sentences would produce other copies from the same seed.
_SENTENCE_END = re.compile(r"(?<=[.!?。！？])\s+|(?<=[.!?。！？][\"'”’)\]])\s+")
# Boilerplate of web pages, and words with synonyms.
_WORDING = json.loads((files("dartboard.datasets") / "edits.json").read_text("utf-8"))
_REVISED_SHARE = 0.7
_REVISABLE = re.compile(
    rf"\b({'|'.join(sorted(map(re.escape, _WORDING['revisions']), key=len, reverse=True))})\b", re.IGNORECASE
)


def with_redundancy(
    dataset: Dataset,
    *,
    copies: int = 5,
    cosine: float | None = None,
    edits: Sequence[str] | None = None,
    seed: int = 0,
    model: EmbeddingModel | None = None,
) -> Dataset:
    """Add ``copies`` near-duplicates of each passage.

    Args:
        dataset: A data set with vectors.
        copies: Copies of each passage.
        cosine: Make copies by noise on the vectors, at this cosine from their originals; by default .97.
        edits: Make copies by editing texts instead: any of ``truncate``, ``shuffle``, ``boilerplate``,
            ``revise``, in rotation.
        seed: Seed of noise and edits.
        model: The model that embedded the data set; required for edited texts.

    Example::

        harder = with_redundancy(load_dataset("scifact"), copies=3)
    """
    if copies < 1:
        raise ConfigError(f"copies must be >= 1, got {copies}")
    known: dict[str, Any] = {"copies": copies, "seed": seed}
    if edits is None:
        near = NEAR if cosine is None else cosine
        made, kinds = _by_noise(dataset, copies, near, seed), ["noise"] * copies
        name = f"{dataset.name}+{copies}@{near:g}"
        known["cosine"] = near
    else:
        if cosine is not None:
            raise ConfigError("cosine and edits are mutually exclusive: give one of them")
        if not edits or (unknown := [one for one in edits if one not in EDITS]):
            raise ConfigError(f"edits must be some of {', '.join(EDITS)}, got {unknown if edits else 'none'}")
        if model is None:
            raise ConfigError("edited texts must be embedded: give the model that embedded the data set")
        kinds = [edits[number % len(edits)] for number in range(copies)]
        made = _by_edits(dataset, kinds, seed, model)
        name = f"{dataset.name}+{copies}edits"
        known |= {"edits": list(edits), "model": model.name}
    mark = _id_mark(dataset, copies)
    chunks: list[Chunk] = []
    copies_of: Groups = {}
    for chunk, row in zip(dataset.chunks, made, strict=True):
        base = chunk.metadata.get("base_id", chunk.id)
        group = [Chunk(chunk.id, chunk.text, chunk.embedding, {"base_id": chunk.id, **chunk.metadata})]
        for number, (kind, (text, vector)) in enumerate(zip(kinds, row, strict=True), start=1):
            metadata = {**chunk.metadata, "base_id": base, "copy": number, "edit": kind}
            group.append(Chunk(f"{chunk.id}{mark}{number}", text, vector, metadata))
        chunks += group
        copies_of[chunk.id] = [one.id for one in group]
    return Dataset(
        name=name,
        chunks=chunks,
        queries=list(dataset.queries),
        query_ids=list(dataset.query_ids),
        ground_truth=_expand_groups(dataset.ground_truth, copies_of),
        metadata=_expand_metadata(dataset.metadata, copies_of) | {"redundancy": known},
    )


def near_vectors(vectors: Vectors, cosine: float, rng: np.random.Generator) -> Vectors:
    """Vectors of the same lengths at exactly this cosine from ``(n, d)`` vectors, in random directions."""
    rows = vectors.astype(np.float64)
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    unit = rows / lengths
    aside = rng.standard_normal(rows.shape)
    aside -= np.sum(aside * unit, axis=1, keepdims=True) * unit
    aside /= np.linalg.norm(aside, axis=1, keepdims=True)
    near: Vectors = (lengths * (cosine * unit + np.sqrt(1 - cosine**2) * aside)).astype(np.float32)
    return near


def _by_noise(dataset: Dataset, copies: int, cosine: float, seed: int) -> Copies:
    if not 0 < cosine < 1:
        raise ConfigError(f"cosine must be between 0 and 1, got {cosine}")
    if dataset.chunks and dataset.chunks[0].embedding.size < 2:
        raise ConfigError("noise needs vectors of at least two dimensions")
    rng = np.random.default_rng(seed)
    vectors = np.stack([chunk.embedding for chunk in dataset.chunks]).astype(np.float32)
    layers = [near_vectors(vectors, cosine, rng) for _ in range(copies)]
    return [[(chunk.text, layer[row]) for layer in layers] for row, chunk in enumerate(dataset.chunks)]


def _by_edits(dataset: Dataset, kinds: list[str], seed: int, model: EmbeddingModel) -> Copies:
    rng = np.random.default_rng(seed)
    texts = [[EDITS[kind](chunk.text, rng) for kind in kinds] for chunk in dataset.chunks]
    titles = [chunk.metadata.get("title", "") for chunk in dataset.chunks]
    vectors = iter(
        model.encode_documents(
            [embedded_text(text, title) for title, row in zip(titles, texts, strict=True) for text in row]
        )
    )
    return [[(text, next(vectors)) for text in row] for row in texts]


def _id_mark(dataset: Dataset, copies: int) -> str:
    """The separator between an id and a copy's number: ``~``, repeated if copies already exist."""
    known, mark = {chunk.id for chunk in dataset.chunks}, "~"
    while any(f"{one}{mark}{number}" in known for one in known for number in range(1, copies + 1)):
        mark += "~"
    return mark


def _expand_metadata(metadata: Mapping[str, Any], copies_of: Groups) -> dict[str, Any]:
    """Judgements, facets and pools, extended by the copies of their passages."""
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


def _truncate(text: str, rng: np.random.Generator) -> str:
    """The first 60 to 90 % of the words."""
    words = text.split()
    kept = int(len(words) * rng.uniform(0.6, 0.9))
    return " ".join(words[:kept]) if 0 < kept < len(words) else _surround(text, rng)


def _shuffle(text: str, rng: np.random.Generator) -> str:
    """Shuffle the sentences; a single sentence gets boilerplate instead."""
    sentences = [part for part in _SENTENCE_END.split(text) if part.strip()]
    if len(set(sentences)) < 2:
        return _surround(text, rng)
    order = rng.permutation(len(sentences))
    if [sentences[place] for place in order] == sentences:
        order = np.roll(order, 1)
    return " ".join(sentences[place] for place in order)


def _surround(text: str, rng: np.random.Generator) -> str:
    """Surround the text with boilerplate of web pages."""
    return f"{rng.choice(_WORDING['leads'])} {text} {rng.choice(_WORDING['tails'])}"


def _revise(text: str, rng: np.random.Generator) -> str:
    """Replace words by synonyms; if there are none, add an introduction."""

    def replacement(found: re.Match[str]) -> str:
        if rng.random() > _REVISED_SHARE:
            return found.group()
        new: str = _WORDING["revisions"][found.group().lower()]
        return new.capitalize() if found.group()[0].isupper() else new

    revised = _REVISABLE.sub(replacement, text)
    return revised if revised != text else f"As noted before: {text}"


EDITS: dict[str, Edit] = {
    "truncate": _truncate,
    "shuffle": _shuffle,
    "boilerplate": _surround,
    "revise": _revise,
}
"""The edits by name."""
