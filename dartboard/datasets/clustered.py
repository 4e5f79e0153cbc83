"""Chunks in clusters: the best answer takes one chunk from each cluster that a query is about.

With a shared direction g, a direction o_i a cluster and e_ij a chunk, all at right angles,

    centre_i = √b_i g + √(1-b_i) o_i          chunk_ij = a_ij centre_i + √(1-a_ij²) e_ij

so the cosine of two chunks is ``a a'`` within a cluster and ``a a' √(b b')`` between two, and drawing a
and b from intervals keeps every cosine in its band exactly. Where there are more chunks than dimensions,
the e_ij cannot all be at right angles; their largest cosine μ is measured and the intervals narrowed by
what it can add.
"""

import numpy as np

from dartboard.datasets.synthetic import Directions, SyntheticDatasetConfig, Words, directions
from dartboard.errors import ConfigError
from dartboard.types import Chunk, Dataset

DEFAULT_QUERIES = 20

FEWEST_CLUSTERS = 3
"""A query is about this many clusters or more: what precision means for a list of up to three chunks, one
from each cluster, is clear. A longer list has to repeat a cluster or to leave what the query is about."""

_VOCABULARY = 12
_SENTENCE = 14


def make_clustered(
    config: SyntheticDatasetConfig | None = None,
    *,
    num_queries: int = DEFAULT_QUERIES,
    fewest_clusters: int = FEWEST_CLUSTERS,
) -> Dataset:
    """Clusters whose cosines lie in the configured bands, and queries about several of them.

    A query lies between the clusters that it is about, nearest to the first: all their chunks are
    relevant, and each cluster is a facet. The first query is about all clusters, the others about
    ``fewest_clusters`` and more, in turn.
    """
    config = config or SyntheticDatasetConfig()
    for name, value in (("num_queries", num_queries), ("fewest_clusters", fewest_clusters)):
        if value < 1:
            raise ConfigError(f"{name} must be >= 1, got {value}")
    rng = np.random.default_rng(config.random_seed)
    centres, vectors = _vectors(config, rng)
    words = Words(rng)
    vocabularies = [words.draw(_VOCABULARY) for _ in range(config.num_clusters)]
    chunks = [
        Chunk(
            f"c{cluster:02d}-{number:03d}",
            words.sentence(vocabularies[cluster], _SENTENCE),
            vectors[cluster * config.docs_per_cluster + number].astype(np.float32),
            {"cluster": cluster, "base_id": f"c{cluster:02d}-{number:03d}", "title": ""},
        )
        for cluster in range(config.num_clusters)
        for number in range(config.docs_per_cluster)
    ]
    about = [_about(number, config.num_clusters, fewest_clusters, rng) for number in range(num_queries)]
    return _dataset(
        config, chunks, centres, about, [_question(which, vocabularies, words) for which in about]
    )


def _vectors(config: SyntheticDatasetConfig, rng: np.random.Generator) -> tuple[Directions, Directions]:
    """Centres ``(clusters, d)`` and chunks ``(clusters · docs, d)``, all of length 1."""
    clusters, count = config.num_clusters, config.num_clusters * config.docs_per_cluster
    if config.embed_dim < clusters + 2:
        raise ConfigError(f"{clusters} clusters need embed_dim >= {clusters + 2}, got {config.embed_dim}")
    basis = directions(1 + clusters + count, config.embed_dim, rng)
    if len(basis) > config.embed_dim:
        basis = _apart_from_centres(basis, 1 + clusters)
    shared, own, rest = basis[0], basis[1 : 1 + clusters], basis[1 + clusters :]
    within, between = _intervals(config, _coherence(rest))
    b = rng.uniform(*between, (clusters, 1))
    centres = np.sqrt(b) * shared + np.sqrt(1 - b) * own
    squares = rng.uniform(*within, (count, 1))
    return centres, np.sqrt(squares) * np.repeat(centres, config.docs_per_cluster, axis=0) + (
        np.sqrt(1 - squares) * rest
    )


def _apart_from_centres(basis: Directions, fixed: int) -> Directions:
    """The first ``fixed`` directions at right angles to each other and to all others, each of length 1."""
    frame = np.linalg.qr(basis[:fixed].T)[0].T
    rest = basis[fixed:] - basis[fixed:] @ frame.T @ frame
    return np.vstack([frame, rest / np.linalg.norm(rest, axis=1, keepdims=True)])


def _intervals(
    config: SyntheticDatasetConfig, coherence: float
) -> tuple[tuple[float, float], tuple[float, float]]:
    """Where a² and b may lie so that every cosine stays in its band whatever the e_ij add to it.

    They add at most m = (1 - a²) μ with a² at its lowest, which is ``low + m``.
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
    """The largest absolute cosine of two different rows, 0 but for rounding where all are at right angles."""
    largest = 0.0
    for start in range(0, len(rest), block):
        cosines = np.abs(rest[start : start + block] @ rest.T)
        cosines[np.arange(len(cosines)), np.arange(start, start + len(cosines))] = 0
        largest = max(largest, float(cosines.max()))
    return largest


def _about(number: int, clusters: int, fewest: int, rng: np.random.Generator) -> list[int]:
    """The clusters of a query: all of them for the first, then from the fewest upwards in turn."""
    size = clusters if number == 0 or clusters <= fewest else fewest + (number - 1) % (clusters - fewest + 1)
    return [int(cluster) for cluster in rng.permutation(clusters)[:size]]


def _question(about: list[int], vocabularies: list[list[str]], words: Words) -> str:
    return " ".join(words.sentence(vocabularies[cluster], 3).rstrip(".") for cluster in about) + "?"


def _dataset(
    config: SyntheticDatasetConfig,
    chunks: list[Chunk],
    centres: Directions,
    about: list[list[int]],
    questions: list[str],
) -> Dataset:
    query_ids = [f"q{number:02d}" for number in range(len(about))]
    members = {
        cluster: [chunk.id for chunk in chunks if chunk.metadata["cluster"] == cluster]
        for cluster in range(config.num_clusters)
    }
    facets = {
        query_id: {str(cluster): members[cluster] for cluster in which}
        for query_id, which in zip(query_ids, about, strict=True)
    }
    ground_truth = {
        query_id: [one for ids in by_facet.values() for one in ids] for query_id, by_facet in facets.items()
    }
    return Dataset(
        name="synthetic_clustered",
        chunks=chunks,
        queries=questions,
        ground_truth=ground_truth,
        query_ids=query_ids,
        metadata={
            "type": "synthetic",
            "config": config,
            "facets": facets,
            "qrels": {query_id: dict.fromkeys(ids, 1) for query_id, ids in ground_truth.items()},
            "query_embeddings": np.stack([_between(centres[which]) for which in about]).astype(np.float32),
        },
    )


def _between(centres: Directions) -> Directions:
    """A unit vector between centres, a little nearer to the first than to the others."""
    weights = np.linspace(1.2, 1.0, len(centres))
    mixed: Directions = weights @ centres
    return mixed / np.linalg.norm(mixed)
