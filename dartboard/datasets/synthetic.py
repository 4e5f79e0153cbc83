"""Synthetic data sets with constructed vectors, so that every cosine is known.

**Clustered**: the best result has one chunk from each cluster that a query is about. With a shared direction
g, a direction o_i per cluster and e_ij per chunk, all orthogonal,

    centre_i = √b_i g + √(1-b_i) o_i          chunk_ij = a_ij centre_i + √(1-a_ij²) e_ij

so the cosine of two chunks is ``a a'`` within a cluster and ``a a' √(b b')`` between two. Drawing a and b
from intervals keeps every cosine exactly in its range. With more chunks than dimensions, the e_ij cannot all
be orthogonal; their largest cosine μ is measured, and the intervals are narrowed accordingly.

**Query-focused**: queries with relevant and irrelevant chunks; some relevant ones are near-duplicates of each
other. For each query q, with directions f (a facet) and e (a chunk) orthogonal to everything else,

    fact = r q + √(1-r²) f        relevant = a fact + √(1-a²) e        irrelevant = s q + √(1-s²) e

A relevant chunk has cosine ``a r`` with its query, near-duplicates have ``a a'``, an irrelevant chunk has
``s``, and the chunks of other queries have 0. So a gap separates relevant from irrelevant chunks.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dartboard.datasets.text_dataset import Facets, Qrels, relevant_ids
from dartboard.errors import ConfigError
from dartboard.types import Chunk, Dataset, FloatArray

Directions = npt.NDArray[np.float64]

WITHIN_BAND = 0.1
BETWEEN_BAND = 0.2
"""Width of the cosine ranges: by default .8 to .9 within a cluster and .2 to .4 between clusters."""

DEFAULT_QUERIES = 20

FEWEST_CLUSTERS = 3
"""A query is about at least this many clusters, so that precision is well defined for a list of up to three
chunks, one per cluster. A longer list must repeat a cluster or include other clusters."""

GAP = 0.1
"""Minimum difference between the cosines of the least relevant and the nearest irrelevant chunk."""

_RELEVANCE_BAND = 0.15
_FEWEST = 4
_SYLLABLES = [consonant + vowel for consonant in "bdfgklmnprstvz" for vowel in "aeiou"]


@dataclass(frozen=True, slots=True)
class SyntheticDatasetConfig:
    """Size and geometry of a synthetic data set.

    ============================  ====================================================================
    ``num_clusters``              clusters; in the query-focused set, queries
    ``docs_per_cluster``          chunks per cluster
    ``intra_cluster_similarity``  clustered: the highest cosine of two chunks in a cluster; the lowest
                                  is .1 less. Query-focused: the lowest cosine of two near-duplicates
    ``cluster_separation``        clustered: ``1 - cluster_separation`` is the lowest cosine of chunks
                                  in different clusters; the highest is .2 more. Query-focused: the
                                  highest cosine of a query with an irrelevant chunk is .2 more than
                                  ``1 - cluster_separation``
    ``embed_dim``                 dimensions of a vector
    ``random_seed``               the same seed gives the same data set
    ============================  ====================================================================

    The defaults give the ranges of the specification: .8 to .9 within, .2 to .4 between.
    """

    num_clusters: int = 5
    docs_per_cluster: int = 20
    cluster_separation: float = 0.8
    intra_cluster_similarity: float = 0.9
    embed_dim: int = 384
    random_seed: int = 42

    def __post_init__(self) -> None:
        for name in ("num_clusters", "docs_per_cluster", "embed_dim"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name} must be >= 1, got {getattr(self, name)}")
        if not BETWEEN_BAND <= self.cluster_separation <= 1:
            raise ConfigError(
                f"cluster_separation must be in [{BETWEEN_BAND}, 1], got {self.cluster_separation}"
            )
        if not WITHIN_BAND < self.intra_cluster_similarity < 1:
            raise ConfigError(
                f"intra_cluster_similarity must be between {WITHIN_BAND} and 1, "
                f"got {self.intra_cluster_similarity}"
            )
        if self.between[1] >= self.within[0]:
            raise ConfigError(
                f"chunks of different clusters would be as alike as those of one (cosines up to "
                f"{self.between[1]:.2f} between, from {self.within[0]:.2f} within): raise "
                "cluster_separation or intra_cluster_similarity"
            )

    @property
    def within(self) -> tuple[float, float]:
        """Lowest and highest cosine of two chunks in a cluster."""
        return self.intra_cluster_similarity - WITHIN_BAND, self.intra_cluster_similarity

    @property
    def between(self) -> tuple[float, float]:
        """Lowest and highest cosine of two chunks in different clusters."""
        return 1 - self.cluster_separation, 1 - self.cluster_separation + BETWEEN_BAND


def make_clustered(
    config: SyntheticDatasetConfig | None = None,
    *,
    num_queries: int = DEFAULT_QUERIES,
    fewest_clusters: int = FEWEST_CLUSTERS,
) -> Dataset:
    """Clusters with cosines in the configured ranges, and queries about several of them.

    A query lies between its clusters, nearest to the first. All their chunks are relevant, and each cluster
    is a facet. The first query is about all clusters; the others are about ``fewest_clusters`` or more, in
    rotation.

    Args:
        config: Sizes and cosines.
        num_queries: How many queries.
        fewest_clusters: The smallest number of clusters of a query.

    Raises:
        ConfigError: ``embed_dim`` is too small for the number of chunks.
    """
    config = config or SyntheticDatasetConfig()
    for name, value in (("num_queries", num_queries), ("fewest_clusters", fewest_clusters)):
        if value < 1:
            raise ConfigError(f"{name} must be >= 1, got {value}")
    rng = np.random.default_rng(config.random_seed)
    centres, vectors = _cluster(config, rng)
    words = _Words(rng)
    vocabularies = [words.draw(12) for _ in range(config.num_clusters)]
    chunks: list[Chunk] = []
    members: list[list[str]] = []
    for cluster, vocabulary in enumerate(vocabularies):
        ids = [f"c{cluster:02d}-{number:03d}" for number in range(config.docs_per_cluster)]
        members.append(ids)
        for id_ in ids:
            metadata = {"cluster": cluster, "base_id": id_, "title": ""}
            vector = vectors[len(chunks)].astype(np.float32)
            chunks.append(Chunk(id_, words.sentence(vocabulary, 14), vector, metadata))
    sizes = range(min(fewest_clusters, config.num_clusters), config.num_clusters + 1)
    # Query 0 gets the last size: it is about all clusters.
    about = [
        rng.permutation(config.num_clusters)[: sizes[(number - 1) % len(sizes)]]
        for number in range(num_queries)
    ]
    queries = {
        f"q{number:02d}": " ".join(words.sentence(vocabularies[one], 3).rstrip(".") for one in which) + "?"
        for number, which in enumerate(about)
    }
    facets = {
        query_id: {str(cluster): members[cluster] for cluster in which}
        for query_id, which in zip(queries, about, strict=True)
    }
    return synthetic_dataset(
        "synthetic_clustered",
        chunks,
        queries,
        np.stack([_between(centres[which]) for which in about]),
        {query_id: {one: 1 for ids in found.values() for one in ids} for query_id, found in facets.items()},
        facets,
        config=config,
    )


def make_query_focused(config: SyntheticDatasetConfig | None = None) -> Dataset:
    """``num_clusters`` queries with ``docs_per_cluster`` chunks each, half of them relevant.

    The relevant chunks state facts: the first fact once, the next twice, and so on. A fact is a facet; its
    first chunk belongs to the kernel and is the ``base_id`` of its near-duplicates.

    Raises:
        ConfigError: ``embed_dim`` is too small, or the cosines leave no room for relevance.
    """
    config = config or SyntheticDatasetConfig()
    sizes = _fact_sizes(config)
    # Holds even for the loosest near-duplicate of the least relevant fact.
    lowest = max(0.6, (config.between[1] + GAP) / math.sqrt(config.intra_cluster_similarity))
    if lowest + _RELEVANCE_BAND > 1:
        raise ConfigError(
            f"irrelevant chunks with cosines up to {config.between[1]:.2f} leave no room for relevant ones: "
            "raise cluster_separation"
        )
    needed = config.num_clusters * (1 + len(sizes) + config.docs_per_cluster)
    if needed > config.embed_dim:
        raise ConfigError(
            f"{config.num_clusters} queries with {config.docs_per_cluster} chunks each need embed_dim >= "
            f"{needed}, got {config.embed_dim}: raise it or take fewer chunks"
        )
    rng = np.random.default_rng(config.random_seed)
    basis = directions(needed, config.embed_dim, rng)
    query_vectors, unused = basis[: config.num_clusters], iter(basis[config.num_clusters :])
    words = _Words(rng)
    chunks: list[Chunk] = []
    queries: dict[str, str] = {}
    facets: Facets = {}
    qrels: Qrels = {}

    def add(id_: str, text: str, vector: Directions, base: str, relevant: bool) -> None:
        """Add a chunk to the current query of the loop below."""
        metadata = {"base_id": base, "cluster": number, "relevant": relevant, "title": ""}
        chunks.append(Chunk(id_, text, vector.astype(np.float32), metadata))
        qrels[query_id][id_] = int(relevant)

    for number, query in enumerate(query_vectors):
        query_id, topic = f"q{number:02d}", words.draw(4)
        queries[query_id] = " ".join(topic).capitalize() + "?"
        facets[query_id], qrels[query_id] = {}, {}
        for facet, size in enumerate(sizes, start=1):
            ids = facets[query_id][str(facet)] = [f"{query_id}-{facet}-{copy}" for copy in range(size)]
            fact = _tilted(query, rng.uniform(lowest, lowest + _RELEVANCE_BAND), next(unused))
            vocabulary = [*topic, *words.draw(6)]
            text = words.sentence(vocabulary, 12)
            for copy, id_ in enumerate(ids):
                low = config.intra_cluster_similarity
                vector = _tilted(fact, math.sqrt(rng.uniform(low, low + (1 - low) / 2)), next(unused))
                wording = text if copy == 0 else f"{text} {words.sentence(vocabulary, 2)}"
                add(id_, wording, vector, base=ids[0], relevant=True)
        for place in range(config.docs_per_cluster - len(qrels[query_id])):
            vector = _tilted(query, rng.uniform(*config.between), next(unused))
            id_, text = f"{query_id}-x-{place}", words.sentence([topic[0], *words.draw(8)], 12)
            add(id_, text, vector, base=id_, relevant=False)
    kernels = {query_id: [ids[0] for ids in found.values()] for query_id, found in facets.items()}
    return synthetic_dataset(
        "synthetic_query_focused",
        chunks,
        queries,
        query_vectors,
        qrels,
        facets,
        kernels=kernels,
        config=config,
    )


def has_made_up_texts(dataset: Dataset) -> bool:
    """Whether the texts have no meaning, because the vectors were constructed instead of embedded."""
    return dataset.metadata.get("type") == "synthetic" and "model" not in dataset.metadata


def synthetic_dataset(
    name: str,
    chunks: list[Chunk],
    queries: dict[str, str],
    query_vectors: FloatArray,
    qrels: Qrels,
    facets: Facets,
    **metadata: Any,
) -> Dataset:
    """A data set with ground truth by construction; ``metadata`` is stored with it."""
    return Dataset(
        name=name,
        chunks=chunks,
        queries=list(queries.values()),
        query_ids=list(queries),
        ground_truth=relevant_ids(qrels),
        metadata={
            "type": "synthetic",
            "query_embeddings": query_vectors.astype(np.float32),
            "facets": facets,
            "qrels": qrels,
            **metadata,
        },
    )


def _cluster(config: SyntheticDatasetConfig, rng: np.random.Generator) -> tuple[Directions, Directions]:
    """Centres ``(clusters, d)`` and chunks ``(clusters · docs, d)``, all of length 1."""
    clusters, count = config.num_clusters, config.num_clusters * config.docs_per_cluster
    if config.embed_dim < clusters + 2:
        raise ConfigError(f"{clusters} clusters need embed_dim >= {clusters + 2}, got {config.embed_dim}")
    basis = directions(1 + clusters + count, config.embed_dim, rng)
    frame, rest = basis[: 1 + clusters], basis[1 + clusters :]
    if len(basis) > config.embed_dim:  # not orthogonal yet; the centres' directions must be
        frame = np.linalg.qr(frame.T)[0].T
        rest = rest - rest @ frame.T @ frame
        rest /= np.linalg.norm(rest, axis=1, keepdims=True)
    within, between = _intervals(config, _coherence(rest))
    b = rng.uniform(*between, (clusters, 1))
    centres = np.sqrt(b) * frame[0] + np.sqrt(1 - b) * frame[1:]
    squares = rng.uniform(*within, (count, 1))
    repeated = np.repeat(centres, config.docs_per_cluster, axis=0)
    return centres, np.sqrt(squares) * repeated + np.sqrt(1 - squares) * rest


def _intervals(
    config: SyntheticDatasetConfig, coherence: float
) -> tuple[tuple[float, float], tuple[float, float]]:
    """The intervals of a² and b for which every cosine stays in its range for any e_ij.

    The e_ij add at most m = (1 - a²) μ, with a² at its minimum ``low + m``.
    """
    low, high = config.within
    margin = (1 - low) * coherence / (1 + coherence)
    within = (low + margin, high - margin)
    between = (
        (config.between[0] + margin) / within[0],
        (config.between[1] - margin) / within[1],
    )
    if within[0] > within[1] or between[0] > between[1]:
        raise ConfigError(
            f"{config.num_clusters * config.docs_per_cluster} chunks do not fit these cosines in embed_dim="
            f"{config.embed_dim}: raise embed_dim or take fewer chunks"
        )
    return within, between


def _coherence(rest: Directions, block: int = 1024) -> float:
    """The largest absolute cosine of two different rows; 0 up to rounding if all are orthogonal."""
    largest = 0.0
    for start in range(0, len(rest), block):
        cosines = np.abs(rest[start : start + block] @ rest.T)
        cosines[np.arange(len(cosines)), np.arange(start, start + len(cosines))] = 0
        largest = max(largest, float(cosines.max()))
    return largest


def _between(centres: Directions) -> Directions:
    """A unit vector between centres, slightly nearer to the first."""
    weights = np.linspace(1.2, 1.0, len(centres))
    mixed: Directions = weights @ centres
    return mixed / np.linalg.norm(mixed)


def _tilted(vector: Directions, cosine: float, aside: Directions) -> Directions:
    """A unit vector at this cosine from ``vector``, tilted towards an orthogonal direction."""
    return cosine * vector + math.sqrt(1 - cosine**2) * aside


def _fact_sizes(config: SyntheticDatasetConfig) -> list[int]:
    """How often each fact is stated: 1, 2, 3 … until half of the chunks are used."""
    if config.docs_per_cluster < _FEWEST:
        raise ConfigError(
            f"docs_per_cluster must be >= {_FEWEST} for a query-focused set, got {config.docs_per_cluster}: "
            "a query needs at least two facts and an irrelevant chunk"
        )
    left = max(3, config.docs_per_cluster // 2)
    sizes: list[int] = []
    while left > len(sizes):
        sizes.append(len(sizes) + 1)
        left -= sizes[-1]
    sizes[-1] += left
    return sizes


def directions(count: int, dim: int, rng: np.random.Generator) -> Directions:
    """Unit vectors ``(count, dim)``: orthogonal if the dimension allows it, otherwise random."""
    drawn = rng.standard_normal((count, dim))
    if count <= dim:
        orthogonal: Directions = np.linalg.qr(drawn.T)[0].T
        return orthogonal
    unit: Directions = drawn / np.linalg.norm(drawn, axis=1, keepdims=True)
    return unit


class _Words:
    """Invented words, each used once: texts that share words share a topic."""

    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng
        self._used: set[str] = set()

    def draw(self, count: int) -> list[str]:
        """New words."""
        drawn: list[str] = []
        while len(drawn) < count:
            places = self._rng.integers(len(_SYLLABLES), size=3)
            word = "".join(_SYLLABLES[place] for place in places)
            if word not in self._used:
                self._used.add(word)
                drawn.append(word)
        return drawn

    def sentence(self, vocabulary: list[str], length: int) -> str:
        """A sentence of ``length`` words from a vocabulary, with repetition."""
        chosen = self._rng.choice(vocabulary, length)
        return " ".join(chosen).capitalize() + "."
