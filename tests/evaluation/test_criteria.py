"""The specification's success criteria (1, 11.3, 11.4), on its synthetic sets, with its own measures.

Once no candidate gains anything worth mentioning, Dartboard goes on by relevance (``relevance_below``), which
keeps to the topic. ``min_gain_share`` makes it stop instead.
"""

import re
import time
from pathlib import Path
from statistics import fmean

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.published import make_pool, published
from dartboard.core import DartboardConfig, DartboardRetriever
from dartboard.datasets import SyntheticDatasetConfig, make_adversarial, make_clustered, make_query_focused
from dartboard.embeddings import EmbeddingModel
from dartboard.evaluation import pairwise_diversity, precision_at_k, set_recall
from dartboard.selection import MMR, TopK, select
from dartboard.types import Chunk
from tests.evaluation.data import unit
from tests.examples import examples


class Asked(EmbeddingModel):
    """Knows the vectors of the questions and nothing else."""

    def __init__(self, questions, vectors):
        self._known = dict(zip(questions, vectors, strict=True))

    def encode(self, texts, batch_size=32):
        return np.stack([self._known[text] for text in ([texts] if isinstance(texts, str) else texts)])

    @property
    def embedding_dim(self):
        return len(next(iter(self._known.values())))


def lists(dataset, k, **limits):
    """For each query the picks of Dartboard as it comes, and of nearest neighbours."""
    model = Asked(dataset.queries, dataset.metadata["query_embeddings"])
    retriever = DartboardRetriever(DartboardConfig(top_k=k), model)
    ours = [retriever.search(query, dataset.chunks, **limits).chunks for query in dataset.queries]
    theirs = [retriever.search(query, dataset.chunks, method=TopK()).chunks for query in dataset.queries]
    return ours, theirs


def precision(dataset, found, k):
    pairs = zip(found, dataset.query_ids, strict=True)
    return fmean(
        precision_at_k([chunk.id for chunk in picks], dataset.ground_truth[query_id], k)
        for picks, query_id in pairs
    )


def diversity(found):
    return fmean(pairwise_diversity(picks) for picks in found)


SETS = {
    "3 of 5 clusters and more": lambda seed: (make_clustered(SyntheticDatasetConfig(random_seed=seed)), 3),
    "5 of 10 clusters and more": lambda seed: (
        make_clustered(SyntheticDatasetConfig(num_clusters=10, random_seed=seed), fewest_clusters=5),
        5,
    ),
    "4 facts": lambda seed: (make_query_focused(SyntheticDatasetConfig(random_seed=seed)), 4),
}


@pytest.mark.parametrize("seed", [42, 7])
@pytest.mark.parametrize("name", SETS)
def test_beats_cosine_on_diversity_and_keeps_precision(name, seed):
    dataset, k = SETS[name](seed)
    assert any(len(ids) < len(dataset.chunks) for ids in dataset.ground_truth.values())
    assert all(len(facets) >= k for facets in dataset.metadata["facets"].values())
    ours, theirs = lists(dataset, k)
    assert diversity(ours) >= 1.1 * diversity(theirs)
    assert precision(dataset, ours, k) >= 0.95 * precision(dataset, theirs, k) > 0.9


SYNTHETIC = {
    "clustered": make_clustered,
    "query_focused": make_query_focused,
    "adversarial": make_adversarial,
}
NOT_PRECISE = {
    ("query_focused", 10): "four facts, told ten times: only repeats would keep the precision",
    ("adversarial", 10): "two facts, told six times: the same",
}
"""Where precision cannot stay within 5 % of cosine's by design: near-copies of a pick come last."""


@pytest.mark.parametrize("k", [5, 10])
@pytest.mark.parametrize("name", SYNTHETIC)
def test_relevance_on_every_synthetic_set(name, k):
    """The specification's criterion, or with a reason what holds instead: early stop keeps to the topic."""
    dataset = SYNTHETIC[name]()
    full, theirs = lists(dataset, k)
    kept = precision(dataset, full, k) / precision(dataset, theirs, k)
    assert diversity(full) >= 1.1 * diversity(theirs)
    assert (kept >= 0.95) == ((name, k) not in NOT_PRECISE)
    if (name, k) not in NOT_PRECISE:
        return
    assert all(len(facets) < k for facets in dataset.metadata["facets"].values())
    short, _ = lists(dataset, k, min_gain_share=0.05)
    right = fmean(
        precision_at_k([chunk.id for chunk in picks], dataset.ground_truth[query_id], len(picks))
        for picks, query_id in zip(short, dataset.query_ids, strict=True)
    )
    assert right >= 0.95 * precision(dataset, theirs, k)
    covered = fmean(
        fmean(any(chunk.id in carriers for chunk in picks) for carriers in facets.values())
        for picks, facets in zip(short, map(dataset.metadata["facets"].get, dataset.query_ids), strict=True)
    )
    assert covered >= 0.9


def test_a_list_longer_than_the_clusters_may_stop_early():
    dataset = make_clustered()
    short, _ = lists(dataset, 5, min_gain_share=0.05)
    judged = zip(short, dataset.query_ids, strict=True)
    right = fmean(
        precision_at_k([chunk.id for chunk in picks], dataset.ground_truth[query_id], len(picks))
        for picks, query_id in judged
    )
    assert right >= 0.95 and 3 <= fmean(map(len, short)) < 5


def test_the_adversarial_set_asks_for_two_facts():
    """Near-duplicates and contradictions of one fact crowd out the other for nearest neighbours."""
    dataset = make_adversarial()
    ours, theirs = lists(dataset, 3)
    kernels = [dataset.metadata["kernels"][query_id] for query_id in dataset.query_ids]
    recalls = [
        fmean(
            set_recall([chunk.metadata["base_id"] for chunk in picks], kernel, 3)
            for picks, kernel in zip(found, kernels, strict=True)
        )
        for found in (ours, theirs)
    ]
    assert diversity(ours) >= 1.1 * diversity(theirs)
    assert recalls[0] > recalls[1]


def test_a_wider_sigma_is_more_diverse_from_end_to_end():
    """As a trend, and not from each value to the next: Euclid .1 against 1, over many pools."""
    rng = np.random.default_rng(0)
    spread = {0.1: [], 1.0: []}
    for _ in range(60):
        topics = rng.standard_normal((8, 48))
        vectors = unit(topics[rng.integers(8, size=80)] + 0.7 * rng.standard_normal((80, 48)))
        chunks = [Chunk(f"{i:02d}", f"chunk {i}", vector) for i, vector in enumerate(vectors)]
        asked = unit(topics[0] + 0.7 * topics[1] + 0.5 * rng.standard_normal(48))
        for sigma, found in spread.items():
            config = DartboardConfig(sigma=sigma, distance="euclidean", top_k=5)
            retriever = DartboardRetriever(config, Asked(["?"], [asked]))
            found.append(pairwise_diversity(retriever.retrieve("?", chunks)))
    narrow, wide = (np.array(found) for found in spread.values())
    gain = wide - narrow
    assert gain.mean() > 3 * gain.std(ddof=1) / np.sqrt(len(gain)), "more than three standard errors"


@pytest.mark.parametrize("name", SYNTHETIC)
def test_the_specifications_own_default_breaks_its_criterion(name):
    dataset = SYNTHETIC[name]()
    model = Asked(dataset.queries, dataset.metadata["query_embeddings"])
    retriever = DartboardRetriever(DartboardConfig(top_k=5, sigma=1.0, distance="euclidean"), model)
    wide = [retriever.search(query, dataset.chunks).chunks for query in dataset.queries]
    ours, theirs = lists(dataset, 5)
    cosine = precision(dataset, theirs, 5)
    changes = [precision(dataset, found, 5) / cosine - 1 for found in (wide, ours)]
    assert changes[0] <= -0.19 and changes[1] >= -0.05
    page = (Path(__file__).parents[2] / "docs" / "explanation" / "specification.md").read_text()
    row = next(line for line in page.splitlines() if line.startswith(f"| {name.replace('_', '-')} |"))
    assert re.findall(r"(−?\d+)%", row) == [f"{change * 100:.0f}".replace("-", "−") for change in changes]


@pytest.mark.parametrize("weight", [0.0, 0.3, 0.5, 0.7, 1.0])
def test_mmr_is_the_gain_of_a_candidates_own_target(weight):
    """The derivation in docs/explanation/mathematics.md: other weights and kernel, one term of the sum."""
    rng = np.random.default_rng(3)
    for _ in range(20):
        vectors, asked = unit(rng.standard_normal((40, 12))), unit(rng.standard_normal(12))
        target = np.exp(weight * (vectors @ asked))
        covered = 1 - np.exp(-(1 - weight) * (vectors @ vectors.T))
        picks = [int(np.argmax(vectors @ asked))]
        while len(picks) < 8:
            gains = target * (1 - covered[:, picks].max(axis=1))
            gains[picks] = -np.inf
            picks.append(int(np.argmax(gains)))
        found = select(vectors, asked, k=8, method=MMR(relevance_weight=weight))
        assert found.indices.tolist() == picks


@examples(60)
@given(
    num_chunks=st.integers(5, 100),
    k=st.integers(1, 10),
    sigma=st.floats(0.1, 5.0),
    seed=st.integers(0, 2**16),
    distance=st.sampled_from(["scaled_cosine", "euclidean"]),
)
def test_retrieval_invariants(num_chunks, k, sigma, seed, distance):
    rng = np.random.default_rng(seed)
    vectors = rng.standard_normal((num_chunks, 16)).astype(np.float32)
    chunks = [Chunk(f"{i:03d}", f"chunk {i}", vector) for i, vector in enumerate(vectors)]
    config = DartboardConfig(sigma=sigma, top_k=k, distance=distance)
    retriever = DartboardRetriever(config, Asked(["?"], rng.standard_normal((1, 16)).astype(np.float32)))
    results, scores = retriever.retrieve("?", chunks, return_scores=True)
    assert len(results) == len(scores) == min(k, num_chunks)
    assert len({chunk.id for chunk in results}) == len(results)
    assert all(any(chunk is one for one in chunks) for chunk in results)
    assert np.isfinite(scores).all()
    assert [chunk.id for chunk in retriever.retrieve("?", chunks[::-1])] == [chunk.id for chunk in results]


def test_selection_is_faster_than_the_published_algorithm():
    """The best of several turns each, of 1,000 candidates: some 40 times on a quiet machine."""
    query, candidates = make_pool(1000)
    runs = {
        "ours": lambda: select(candidates, query, 10).indices.tolist(),
        "published": lambda: published(query.astype(np.float64), candidates.astype(np.float64), 0.09, 10),
    }
    best = dict.fromkeys(runs, float("inf"))
    for _ in range(5):
        for name, run in runs.items():
            started = time.process_time()
            run()
            best[name] = min(best[name], time.process_time() - started)
    assert best["ours"] < best["published"] / 2  # timing: processor time, 20 times what is asked for
