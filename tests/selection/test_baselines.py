"""The rivals against their own definitions and against other libraries."""

import numpy as np
import pytest
from langchain_core.vectorstores.utils import maximal_marginal_relevance

from dartboard.selection import (
    MMR,
    Exhaustive,
    Limits,
    NearDuplicateFilter,
    Random,
    TopK,
    from_distances,
    from_embeddings,
    from_log_probs,
    select,
)
from tests.selection import oracle
from tests.selection.pools import topical

QUERY, CANDIDATES = topical(50, seed=1, copies=1, noise=0.1)


@pytest.mark.parametrize("weight", [0.0, 0.3, 0.5, 0.7, 0.9, 1.0])
def test_mmr_equals_langchain(weight):
    ours = select(CANDIDATES, QUERY, 12, method=MMR(relevance_weight=weight))
    theirs = maximal_marginal_relevance(QUERY, CANDIDATES.tolist(), lambda_mult=weight, k=12)
    assert ours.indices.tolist() == theirs


def test_top_k_is_the_order_of_similarity():
    assert (
        select(CANDIDATES, QUERY, 9, method="top_k").indices.tolist()
        == np.argsort(-(CANDIDATES @ QUERY))[:9].tolist()
    )


def test_random_is_seeded():
    one, same, other = (
        select(CANDIDATES, QUERY, 9, method=Random(seed=s)).indices.tolist() for s in (1, 1, 2)
    )
    assert one == same != other


def test_near_duplicates_are_skipped_then_used():
    result = select(CANDIDATES, QUERY, 100, method=NearDuplicateFilter(threshold=0.95))
    cosine = CANDIDATES @ CANDIDATES.T
    kept = []
    for i in np.argsort(-(CANDIDATES @ QUERY)):
        if all(cosine[i, j] < 0.95 for j in kept):
            kept.append(int(i))
    assert result.indices[: len(kept)].tolist() == kept
    assert sorted(result.indices) == list(range(100))
    assert (
        select(CANDIDATES, QUERY, 5, method=NearDuplicateFilter(threshold=0.95)).indices.tolist() == kept[:5]
    )


def test_exhaustive_finds_the_best_set():
    query, embeddings = topical(10, seed=3, dim=8)
    pool = from_embeddings(query, embeddings, sigma=0.2)
    best = Exhaustive().select(pool, Limits(k=3))
    distance = (1 - embeddings.astype(float) @ embeddings.T) / 2
    kernel = np.exp(-(np.maximum(distance, 0) ** 2) / (2 * 0.2**2))
    weights = np.exp(pool.relevance)
    for other in (TopK(), MMR(), Random()):
        chosen = other.select(pool, Limits(k=3))
        assert (
            oracle.objective(weights, kernel, best.indices)
            >= oracle.objective(weights, kernel, chosen.indices) - 1e-9
        )


def test_exhaustive_refuses_what_would_never_end():
    with pytest.raises(ValueError, match="are too many to try"):
        select(CANDIDATES, QUERY, 10, method="exhaustive")


@pytest.mark.parametrize("method", [TopK(), MMR(), Random(), NearDuplicateFilter(), Exhaustive()])
def test_every_method_explains_itself(method):
    result = select(CANDIDATES[:14], QUERY, 4, method=method, sigma=0.1)
    rows = from_embeddings(QUERY, CANDIDATES[:14], sigma=0.1)
    distance = (1 - CANDIDATES[:14].astype(float) @ CANDIDATES[:14].T) / 2
    kernel = np.exp(-(np.maximum(distance, 0) ** 2) / (2 * 0.1**2))
    weights = np.exp(rows.relevance)
    whole = oracle.objective(weights, kernel, range(14))
    for count in range(1, 5):
        want = oracle.objective(weights, kernel, result.indices[:count]) / whole
        assert result.coverage[count - 1] == pytest.approx(want, rel=1e-5)
    np.testing.assert_allclose(np.cumsum(result.gains), result.coverage)


def test_methods_work_on_distances_and_log_probs():
    distance = np.maximum((1 - CANDIDATES.astype(float) @ CANDIDATES.T) / 2, 0)
    to_query = (1 - CANDIDATES.astype(float) @ QUERY) / 2
    by_distance = from_distances(to_query, distance)
    by_vector = from_embeddings(QUERY, CANDIDATES)
    assert by_distance.sigma.value == pytest.approx(by_vector.sigma.value, rel=0.02)
    for method in (TopK(), MMR(), NearDuplicateFilter(threshold=0.9)):
        here, there = method.select(by_distance, Limits(k=8)), method.select(by_vector, Limits(k=8))
        assert here.indices.tolist() == there.indices.tolist()
        np.testing.assert_allclose(here.similarity, there.similarity, atol=1e-5)
    sigma = by_distance.sigma.value
    by_log = from_log_probs(-(to_query**2) / 2 / sigma**2, -(distance**2) / 2 / sigma**2)
    assert (
        TopK().select(by_log, Limits(k=8)).indices.tolist()
        == TopK().select(by_vector, Limits(k=8)).indices.tolist()
    )
    few = TopK().select(by_log, Limits(k=3, exclude=[0, 1]))
    assert not {0, 1} & set(few.indices.tolist())


@pytest.mark.parametrize(
    ("build", "says"),
    [
        (lambda: from_distances([1.0], [[0.0, 1.0], [1.0, 0.0]]), "query_distances has shape"),
        (lambda: from_distances([1.0, 1.0], [0.0, 1.0]), "square matrix"),
        (lambda: from_distances([1.0, -1.0], [[0.0, 1.0], [1.0, 0.0]]), "finite numbers >= 0"),
        (lambda: from_distances([], []), "finite numbers >= 0"),
        (lambda: from_log_probs([0.0, 0.0], [[0.0]]), "pairwise_log_probs has shape"),
        (lambda: from_log_probs([np.nan], [[0.0]]), "NaN"),
        (lambda: from_log_probs([-np.inf], [[0.0]]), "every entry a probability of 0"),
        (lambda: from_log_probs([], np.empty((0, 0))), "at least one candidate"),
    ],
)
def test_unusable_matrices_are_refused(build, says):
    with pytest.raises(ValueError, match=says):
        build()


def test_given_arrays_are_left_alone():
    log_probs = np.array([[-0.0, -1.0], [-1.0, -0.0]])
    before = log_probs.copy()
    TopK().select(from_log_probs(np.zeros(2), log_probs), Limits(k=1))
    assert np.array_equal(np.signbit(log_probs), np.signbit(before))
    vectors = CANDIDATES.copy()
    vectors.flags.writeable = False
    select(vectors, QUERY)


def test_mmr_compares_euclidean_candidates_around_their_mean():
    found = select(np.array([[1.0, 0], [2.0, 0], [3.0, 1]]), [2.0, 0], 3, method="mmr", distance="euclidean")
    assert sorted(found) == [0, 1, 2] and np.isfinite(found.similarity).all()


def test_mmr_takes_candidates_of_probability_zero():
    pool = from_log_probs([0.0, -np.inf, -1.0], np.log(np.eye(3) * 0.9 + 0.1))
    assert len(MMR().select(pool, Limits(k=2))) == 2


def test_the_oracle_takes_fewer_than_k_where_a_cap_allows_no_more():
    found = select(CANDIDATES[:6], QUERY, 3, method="exhaustive", sources=["one"] * 6, max_per_source=1)
    assert len(found) == 1
