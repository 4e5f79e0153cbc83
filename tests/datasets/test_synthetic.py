"""Each synthetic set has the properties that it states, measured on what was made."""

import re
from difflib import SequenceMatcher

import numpy as np
import pytest

from dartboard.datasets import SyntheticDatasetConfig, make_adversarial, make_clustered, make_query_focused
from dartboard.datasets.adversarial import KINDS, read_cases
from dartboard.datasets.synthetic import GAP
from dartboard.embeddings import default_model
from dartboard.errors import ConfigError
from tests.models import WordBag

SIZES = [
    SyntheticDatasetConfig(),
    SyntheticDatasetConfig(num_clusters=8, docs_per_cluster=100, random_seed=1),
    SyntheticDatasetConfig(num_clusters=3, docs_per_cluster=5, embed_dim=24, random_seed=2),
    SyntheticDatasetConfig(cluster_separation=1.0, intra_cluster_similarity=0.7, random_seed=3),
]


def matrix(dataset):
    return np.stack([chunk.embedding for chunk in dataset.chunks]).astype(np.float64)


def assert_same(one, other):
    np.testing.assert_array_equal(matrix(one), matrix(other))
    np.testing.assert_array_equal(one.metadata["query_embeddings"], other.metadata["query_embeddings"])
    assert [chunk.text for chunk in one.chunks] == [chunk.text for chunk in other.chunks]
    assert one.queries == other.queries
    assert one.ground_truth == other.ground_truth


def assert_consistent(dataset):
    """Truth in its several forms says one thing, and every vector has length 1."""
    ids = {chunk.id for chunk in dataset.chunks}
    assert dataset.metadata["type"] == "synthetic"
    assert dataset.metadata["query_embeddings"].shape == (len(dataset), matrix(dataset).shape[1])
    assert dataset.metadata["query_embeddings"].dtype == np.float32
    for query_id in dataset.query_ids:
        judged = dataset.metadata["qrels"][query_id]
        relevant = {one for one, grade in judged.items() if grade > 0}
        covered = [one for facet in dataset.metadata["facets"][query_id].values() for one in facet]
        assert judged.keys() <= ids
        assert relevant == set(dataset.ground_truth[query_id]) == set(covered)
        assert len(covered) == len(relevant)
        assert set(dataset.metadata.get("kernels", {}).get(query_id, [])) <= relevant
    assert {chunk.metadata["base_id"] for chunk in dataset.chunks} <= ids


@pytest.mark.parametrize("config", SIZES)
def test_clustered_cosines_lie_in_their_bands(config):
    dataset = make_clustered(config)
    vectors = matrix(dataset)
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(1, abs=1e-6)
    assert vectors.shape == (config.num_clusters * config.docs_per_cluster, config.embed_dim)
    cluster = np.array([chunk.metadata["cluster"] for chunk in dataset.chunks])
    cosines = vectors @ vectors.T
    same = cluster[:, None] == cluster
    within = cosines[same & ~np.eye(len(vectors), dtype=bool)]
    between = cosines[~same]
    assert config.within[0] - 1e-6 <= within.min() <= within.max() <= config.within[1] + 1e-6
    assert config.between[0] - 1e-6 <= between.min() <= between.max() <= config.between[1] + 1e-6
    assert_consistent(dataset)


def test_the_default_bands_are_the_specified_ones():
    assert SyntheticDatasetConfig(5, 20, 0.8, 0.9, 384, 42) == SyntheticDatasetConfig()
    assert SyntheticDatasetConfig().within == pytest.approx((0.8, 0.9))
    assert SyntheticDatasetConfig().between == pytest.approx((0.2, 0.4))
    assert (len(make_clustered().chunks), len(make_clustered())) == (100, 20)


def test_a_clustered_query_is_nearest_to_what_it_is_about():
    dataset = make_clustered()
    similarities = dataset.metadata["query_embeddings"] @ matrix(dataset).T
    assert len(dataset.metadata["facets"][dataset.query_ids[0]]) == 5
    for query_id, row in zip(dataset.query_ids, similarities, strict=True):
        relevant = np.array([chunk.id in dataset.ground_truth[query_id] for chunk in dataset.chunks])
        assert len(dataset.metadata["facets"][query_id]) >= 3
        if not relevant.all():
            assert row[relevant].min() > row[~relevant].max()


@pytest.mark.parametrize("fewest", [1, 2, 4, 9])
def test_queries_are_about_so_many_clusters_and_more(fewest):
    dataset = make_clustered(num_queries=30, fewest_clusters=fewest)
    counts = {len(facets) for facets in dataset.metadata["facets"].values()}
    assert counts == set(range(min(fewest, 5), 6))


def test_nearest_neighbours_miss_clusters_that_one_each_would_cover():
    dataset = make_clustered()
    cluster = [chunk.metadata["cluster"] for chunk in dataset.chunks]
    similarities = dataset.metadata["query_embeddings"] @ matrix(dataset).T
    covered = [len({cluster[i] for i in row.argsort()[::-1][:5]}) for row in similarities]
    facets = [min(5, len(found)) for found in dataset.metadata["facets"].values()]
    assert np.mean(covered) < 0.8 * np.mean(facets)


@pytest.mark.parametrize("make", [make_clustered, make_query_focused])
def test_a_seed_gives_one_data_set(make):
    assert_same(make(), make(SyntheticDatasetConfig(random_seed=42)))
    other = make(SyntheticDatasetConfig(random_seed=43))
    assert not np.allclose(matrix(make()), matrix(other))


def test_one_cluster_is_enough():
    dataset = make_clustered(SyntheticDatasetConfig(num_clusters=1, docs_per_cluster=3), num_queries=2)
    assert_consistent(dataset)


@pytest.mark.parametrize(
    "config",
    [
        SyntheticDatasetConfig(),
        SyntheticDatasetConfig(num_clusters=3, docs_per_cluster=4, random_seed=1),
        SyntheticDatasetConfig(cluster_separation=0.65, intra_cluster_similarity=0.95, random_seed=2),
    ],
)
def test_query_focused_relevance_has_a_boundary_and_near_duplicates(config):
    dataset = make_query_focused(config)
    assert_consistent(dataset)
    vectors = matrix(dataset)
    similarities = dataset.metadata["query_embeddings"] @ vectors.T
    for query_id, row in zip(dataset.query_ids, similarities, strict=True):
        relevant = np.array([chunk.id in dataset.ground_truth[query_id] for chunk in dataset.chunks])
        assert row[relevant].min() >= row[~relevant].max() + GAP - 1e-6
        assert relevant.sum() >= 2
        judged = dataset.metadata["qrels"][query_id]
        assert 0 in judged.values()
        assert len(dataset.metadata["kernels"][query_id]) == len(dataset.metadata["facets"][query_id]) >= 2
    base = np.array([chunk.metadata["base_id"] for chunk in dataset.chunks])
    cosines = vectors @ vectors.T
    copies = (base[:, None] == base) & ~np.eye(len(base), dtype=bool)
    assert copies.any()
    assert cosines[copies].min() >= config.intra_cluster_similarity - 1e-6
    assert cosines[~copies & ~np.eye(len(base), dtype=bool)].max() < config.intra_cluster_similarity


@pytest.mark.parametrize(
    ("make", "complaint"),
    [
        (lambda: SyntheticDatasetConfig(num_clusters=0), "num_clusters must be >= 1"),
        (lambda: SyntheticDatasetConfig(cluster_separation=0.1), "cluster_separation must be in"),
        (lambda: SyntheticDatasetConfig(intra_cluster_similarity=1.0), "intra_cluster_similarity must be"),
        (lambda: SyntheticDatasetConfig(cluster_separation=0.3), "as alike as those of one"),
        (lambda: make_clustered(num_queries=0), "num_queries must be >= 1"),
        (lambda: make_clustered(fewest_clusters=0), "fewest_clusters must be >= 1"),
        (lambda: make_clustered(SyntheticDatasetConfig(embed_dim=5)), "5 clusters need embed_dim >= 7"),
        (lambda: make_clustered(SyntheticDatasetConfig(embed_dim=16)), "100 chunks do not fit"),
        (
            lambda: make_query_focused(SyntheticDatasetConfig(docs_per_cluster=3)),
            "docs_per_cluster must be >= 4",
        ),
        (lambda: make_query_focused(SyntheticDatasetConfig(embed_dim=64)), "need embed_dim >= 125, got 64"),
        (
            lambda: make_query_focused(SyntheticDatasetConfig(cluster_separation=0.42)),
            "leave no room for relevant ones",
        ),
    ],
)
def test_what_cannot_be_made_is_refused(make, complaint):
    with pytest.raises(ConfigError, match=complaint):
        make()


def words(text):
    return re.findall(r"\w+", text.lower())


def changed_words(one, other):
    matcher = SequenceMatcher(None, words(one), words(other), autojunk=False)
    return sum(max(b - a, d - c) for tag, a, b, c, d in matcher.get_opcodes() if tag != "equal")


def test_adversarial_texts_are_what_they_are_called():
    for case in read_cases():
        assert len(case["facts"]) == 2
        for fact in case["facts"]:
            original = fact["original"]
            assert 1 <= changed_words(original, fact["near_duplicate"]) <= 2
            shared = set(words(original)) & set(words(fact["paraphrase"]))
            assert len(shared) <= 0.25 * len(set(words(original)) | set(words(fact["paraphrase"])))
            assert len({fact[kind] for kind in KINDS}) == len(KINDS)


def test_the_adversarial_set_says_which_is_which():
    dataset = make_adversarial(WordBag())
    assert_consistent(dataset)
    by_kind = {kind: [c for c in dataset.chunks if c.metadata["kind"] == kind] for kind in (*KINDS, "other")}
    assert {kind: len(found) for kind, found in by_kind.items()} == dict.fromkeys(KINDS, 24) | {"other": 12}
    relevant = {one for ids in dataset.ground_truth.values() for one in ids}
    assert not relevant & {c.id for kind in ("contradiction", "other") for c in by_kind[kind]}
    assert relevant == {c.id for kind in KINDS[:3] for c in by_kind[kind]}
    assert all(len(kernel) == 2 for kernel in dataset.metadata["kernels"].values())
    assert_same(dataset, make_adversarial(WordBag()))
    assert [c.id for c in dataset.chunks] != [c.id for c in make_adversarial(WordBag(), seed=1).chunks]


def test_the_default_model_is_led_astray():
    """To it, contradictions are nearer to the truth than the same said otherwise."""
    dataset = make_adversarial()
    assert dataset.metadata["model"]["name"] == default_model().name
    by_id = {chunk.id: chunk for chunk in dataset.chunks}
    near = {
        kind: [
            float(chunk.embedding @ by_id[chunk.id.rsplit("-", 1)[0] + "-original"].embedding)
            for chunk in dataset.chunks
            if chunk.metadata["kind"] == kind
        ]
        for kind in KINDS
    }
    assert np.mean(near["near_duplicate"]) > 0.9
    assert np.mean(near["contradiction"]) > 0.8
    assert np.mean(near["paraphrase"]) < 0.6
