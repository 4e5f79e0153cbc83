"""Queries with relevant and irrelevant chunks, some of the relevant ones near-duplicates of each other.

For each query q, with directions f (a facet) and e (a chunk) at right angles to everything else,

    fact = r q + √(1-r²) f        relevant = a fact + √(1-a²) e        irrelevant = s q + √(1-s²) e

A relevant chunk has cosine ``a r`` with its query, near-duplicates have ``a a'``, an irrelevant chunk has
``s``, and the chunks of other queries 0: by construction, all relevance is on one side of a gap.
"""

import math
from dataclasses import dataclass

import numpy as np

from dartboard.datasets.synthetic import Directions, SyntheticDatasetConfig, Words, directions
from dartboard.errors import ConfigError
from dartboard.types import Chunk, Dataset

GAP = 0.1
"""How much the least relevant chunk is nearer to its query than the nearest irrelevant one, at least."""

_RELEVANCE_BAND = 0.15
_FEWEST = 4


def make_query_focused(config: SyntheticDatasetConfig | None = None) -> Dataset:
    """``num_clusters`` queries with ``docs_per_cluster`` chunks each, half of them relevant.

    The relevant chunks state facts, one of them once, the next twice, and so on: a fact is a facet, and
    the first chunk of each fact is the kernel and the ``base_id`` of its near-duplicates.
    """
    config = config or SyntheticDatasetConfig()
    sizes = _fact_sizes(config)
    _check_room(config, len(sizes))
    rng = np.random.default_rng(config.random_seed)
    plan = _Plan(config, sizes, rng)
    parts = [plan.query(number) for number in range(config.num_clusters)]
    query_ids = [f"q{number:02d}" for number in range(config.num_clusters)]
    return Dataset(
        name="synthetic_query_focused",
        chunks=[chunk for part in parts for chunk in part.chunks],
        queries=[part.question for part in parts],
        query_ids=query_ids,
        ground_truth={
            query_id: [one for ids in part.facets.values() for one in ids]
            for query_id, part in zip(query_ids, parts, strict=True)
        },
        metadata={
            "type": "synthetic",
            "config": config,
            "query_embeddings": plan.queries.astype(np.float32),
            "facets": {query_id: part.facets for query_id, part in zip(query_ids, parts, strict=True)},
            "kernels": {
                query_id: [ids[0] for ids in part.facets.values()]
                for query_id, part in zip(query_ids, parts, strict=True)
            },
            "qrels": {
                query_id: {chunk.id: int(chunk.metadata["relevant"]) for chunk in part.chunks}
                for query_id, part in zip(query_ids, parts, strict=True)
            },
        },
    )


@dataclass(frozen=True, slots=True)
class _Part:
    """What belongs to one query."""

    question: str
    chunks: list[Chunk]
    facets: dict[str, list[str]]


class _Plan:
    """Gives out directions and words, and builds one query after another from them."""

    def __init__(self, config: SyntheticDatasetConfig, sizes: list[int], rng: np.random.Generator) -> None:
        basis = directions(_directions_needed(config, len(sizes)), config.embed_dim, rng)
        self.queries = basis[: config.num_clusters]
        self._unused = iter(basis[config.num_clusters :])
        self._config = config
        self._sizes = sizes
        self._rng = rng
        self._words = Words(rng)

    def query(self, number: int) -> _Part:
        """The chunks of a query: its facts with their near-duplicates, then what is irrelevant."""
        topic = self._words.draw(4)
        chunks: list[Chunk] = []
        facets: dict[str, list[str]] = {}
        for facet, size in enumerate(self._sizes, start=1):
            ids = [f"q{number:02d}-{facet}-{copy}" for copy in range(size)]
            facets[str(facet)] = ids
            chunks += self._fact(self.queries[number], ids, topic, number)
        spare = self._config.docs_per_cluster - len(chunks)
        chunks += [
            self._irrelevant(self.queries[number], f"q{number:02d}-x-{i}", topic, number)
            for i in range(spare)
        ]
        return _Part(" ".join(topic).capitalize() + "?", chunks, facets)

    def _fact(self, query: Directions, ids: list[str], topic: list[str], number: int) -> list[Chunk]:
        low = _least_relevance(self._config)
        relevance = self._rng.uniform(low, low + _RELEVANCE_BAND)
        fact = relevance * query + np.sqrt(1 - relevance**2) * next(self._unused)
        vocabulary = [*topic, *self._words.draw(6)]
        text = self._words.sentence(vocabulary, 12)
        chunks = []
        for copy, id_ in enumerate(ids):
            likeness = self._config.intra_cluster_similarity
            square = self._rng.uniform(likeness, likeness + (1 - likeness) / 2)
            vector = np.sqrt(square) * fact + np.sqrt(1 - square) * next(self._unused)
            wording = text if copy == 0 else f"{text} {self._words.sentence(vocabulary, 2)}"
            chunks.append(_chunk(id_, wording, vector, base=ids[0], cluster=number, relevant=True))
        return chunks

    def _irrelevant(self, query: Directions, id_: str, topic: list[str], number: int) -> Chunk:
        likeness = self._rng.uniform(*self._config.between)
        vector = likeness * query + np.sqrt(1 - likeness**2) * next(self._unused)
        text = self._words.sentence([topic[0], *self._words.draw(8)], 12)
        return _chunk(id_, text, vector, base=id_, cluster=number, relevant=False)


def _chunk(id_: str, text: str, vector: Directions, *, base: str, cluster: int, relevant: bool) -> Chunk:
    known = {"base_id": base, "cluster": cluster, "relevant": relevant, "title": ""}
    return Chunk(id_, text, vector.astype(np.float32), known)


def _fact_sizes(config: SyntheticDatasetConfig) -> list[int]:
    """How often each fact is stated: 1, 2, 3 … until half the chunks are used."""
    if config.docs_per_cluster < _FEWEST:
        raise ConfigError(
            f"docs_per_cluster must be >= {_FEWEST} for a query-focused set, got {config.docs_per_cluster}: "
            "a query needs two facts or more, and something irrelevant"
        )
    left = max(3, config.docs_per_cluster // 2)
    sizes: list[int] = []
    while left > len(sizes):
        sizes.append(len(sizes) + 1)
        left -= sizes[-1]
    sizes[-1] += left
    return sizes


def _least_relevance(config: SyntheticDatasetConfig) -> float:
    """The lowest r: even the loosest near-duplicate of the least relevant fact is beyond the gap."""
    return max(0.6, (config.between[1] + GAP) / math.sqrt(config.intra_cluster_similarity))


def _directions_needed(config: SyntheticDatasetConfig, facts: int) -> int:
    return config.num_clusters * (1 + facts + config.docs_per_cluster)


def _check_room(config: SyntheticDatasetConfig, facts: int) -> None:
    if _least_relevance(config) + _RELEVANCE_BAND > 1:
        raise ConfigError(
            f"irrelevant chunks with cosines up to {config.between[1]:.2f} leave no room for relevant ones: "
            "raise cluster_separation"
        )
    if (needed := _directions_needed(config, facts)) > config.embed_dim:
        raise ConfigError(
            f"{config.num_clusters} queries with {config.docs_per_cluster} chunks each need embed_dim >= "
            f"{needed}, got {config.embed_dim}: raise it or take fewer chunks"
        )
