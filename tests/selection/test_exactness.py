"""Dartboard's picks and gains against 60-digit arithmetic, at every σ, with copies, in any order."""

import mpmath
import numpy as np
import pytest

from dartboard.errors import InvalidInputError
from dartboard.selection import (
    METHODS,
    Dartboard,
    Limits,
    from_distances,
    from_embeddings,
    from_log_probs,
    select,
    select_many,
)
from tests.selection import oracle
from tests.selection.pools import topical

pytestmark = pytest.mark.no_cover  # the same selection, at every σ

SIGMAS = [1e-5, 1e-4, 1e-3, 0.003, 0.005, 0.01, 0.03, 0.09, 0.3, 1.0, 10.0]


def same_vectors(embeddings, ours, theirs):
    """Equal picks, where exact copies of a vector are the same pick."""
    return np.array_equal(embeddings[ours], embeddings[theirs])


@pytest.mark.parametrize("sigma", SIGMAS)
@pytest.mark.parametrize(
    ("copies", "noise", "dtype"),
    [(0, 0.0, np.float32), (2, 0.0, np.float64), (2, 1e-4, np.float32), (2, 0.05, np.float64)],
)
def test_embeddings_equal_the_oracle(sigma, copies, noise, dtype):
    query, embeddings = topical(
        9, seed=int(1e6 * sigma) % 97, dim=12, copies=copies, noise=noise, dtype=dtype
    )
    distances = oracle.scaled_cosine(query, embeddings)
    for share in (0.0, 0.01, 0.2):
        picks, gains, total = oracle.greedy(*distances, sigma, 8, relevance_below=share)
        ours = select(embeddings, query, 8, sigma=sigma, relevance_below=share)
        assert same_vectors(embeddings, ours.indices, picks)
        for got, want in zip(ours.log_gains, gains, strict=True):
            assert got == pytest.approx(float(mpmath.log(want / total)), rel=1e-9, abs=1e-6)


@pytest.mark.parametrize("sigma", SIGMAS)
def test_distances_and_log_probs_equal_the_oracle(sigma):
    rng = np.random.default_rng(3)
    points = rng.random((14, 3))
    points[5] = points[2]
    to_query = np.linalg.norm(points - rng.random(3), axis=1)
    pairwise = np.linalg.norm(points[:, None] - points[None], axis=2)
    picks, _, _ = oracle.greedy(to_query, pairwise, sigma, 14)
    by_distance = Dartboard().select(
        from_distances(to_query, pairwise, sigma=sigma, distance="euclidean"), Limits(k=14, relevance_below=0)
    )
    by_log_prob = Dartboard().select(
        from_log_probs(-((to_query / sigma) ** 2) / 2, -((pairwise / sigma) ** 2) / 2),
        Limits(k=14, relevance_below=0),
    )
    distinct = 13
    assert by_distance.indices[:distinct].tolist() == picks[:distinct]
    assert by_log_prob.indices[:distinct].tolist() == picks[:distinct]
    assert sorted(by_distance.indices) == list(range(14))


def test_euclidean_embeddings_equal_their_distances():
    query, embeddings = topical(40, dim=16, dtype=np.float64)
    by_vector = select(embeddings * 3, query * 2, 10, sigma=0.7, distance="euclidean")
    to_query = np.linalg.norm(embeddings * 3 - query * 2, axis=1)
    pairwise = np.linalg.norm(embeddings[:, None] * 3 - embeddings[None] * 3, axis=2)
    by_distance = Dartboard().select(
        from_distances(to_query, pairwise, sigma=0.7, distance="euclidean"), Limits(k=10)
    )
    assert by_vector.indices.tolist() == by_distance.indices.tolist()
    np.testing.assert_allclose(by_vector.gains, by_distance.gains, rtol=1e-9)


@pytest.mark.parametrize("sigma", [0.03, 0.05, 0.09, 0.2, 1.0, 10.0])
@pytest.mark.parametrize("seed", range(4))
def test_float32_pools_give_the_picks_of_float64(sigma, seed):
    """Above the size where float32 is used at all, its picks are proved or made again."""
    query, embeddings = topical(400, seed=seed, copies=1, noise=0.02)
    fast = select(embeddings, query, 30, sigma=sigma)
    slow = select(embeddings.astype(np.float64), query, 30, sigma=sigma)
    assert fast.indices.tolist() == slow.indices.tolist()
    np.testing.assert_allclose(fast.gains, slow.gains, rtol=1e-2, atol=1e-6)


@pytest.mark.parametrize("sigma", SIGMAS)
@pytest.mark.parametrize("n", [40, 300])
def test_order_of_candidates_changes_nothing(sigma, n):
    query, embeddings = topical(n, seed=5, copies=1, dim=24)
    order = np.random.default_rng(1).permutation(len(embeddings))
    here, there = (select(e, query, 12, sigma=sigma) for e in (embeddings, embeddings[order]))
    assert same_vectors(embeddings, here.indices, order[there.indices])
    assert here.log_gains.tolist() == there.log_gains.tolist()
    assert here.bound == there.bound


def test_tiny_sigma_is_nearest_neighbours_without_copies():
    query, embeddings = topical(30, seed=2, copies=2)
    nearest = np.argsort(-(embeddings[:30] @ query))
    assert np.array_equal(embeddings[select(embeddings, query, 30, sigma=1e-5).indices], embeddings[nearest])


def test_a_copy_waits_until_nothing_else_gains():
    query, embeddings = topical(6, seed=8, copies=3)
    result = select(embeddings, query, 24, sigma=0.05)
    assert sorted(result.indices % 6)[:6] == [0, 0, 0, 0, 1, 1]
    assert sorted(result.indices[:6] % 6) == list(range(6))
    assert (result.gains[6:] == 0).all() and (result.log_gains[6:] == -np.inf).all()


def test_all_identical_candidates():
    result = select(np.ones((7, 4)), np.ones(4), 5)
    assert result.indices.tolist() == [0, 1, 2, 3, 4]
    assert result.coverage.tolist() == [1.0] * 5
    assert result.sigma.source == "fallback"


def near_ties(seed, sigma=0.05, n=100, dim=64):
    """Pools in which a lone candidate and one of a heavy, covered cluster gain the same but for rounding.

    The lone candidate moves along an arc away from the query; the angle at which the two gains cross is
    found by bisection, and pools are made around it.
    """
    rng = np.random.default_rng(seed)

    def unit(vectors):
        return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)

    query = unit(rng.standard_normal(dim))
    heart = unit(query + 0.5 * unit(rng.standard_normal(dim)))
    cluster = unit(heart + 0.05 * unit(rng.standard_normal((n - 1, dim))))
    aside = rng.standard_normal(dim)
    aside = unit(aside - (aside @ query) * query)

    def pool(angle):
        return np.vstack([cluster, np.cos(angle) * query + np.sin(angle) * aside]).astype(np.float32)

    def lead(angle):
        vectors, asked = (
            unit(pool(angle).astype(np.float64)),
            unit(query.astype(np.float32).astype(np.float64)),
        )
        weights, kernel = (
            np.exp(-(((1 - cosine) / 2) ** 2) / (2 * sigma**2))
            for cosine in (vectors @ asked, vectors @ vectors.T)
        )
        gains = np.maximum(kernel - kernel[weights.argmax()], 0) @ weights
        return gains[-1] - gains[:-1].max()

    low, high = 0.52, 2.2
    if not lead(low) > 0 > lead(high):
        return
    for _ in range(30):
        middle = (low + high) / 2
        low, high = (middle, high) if lead(middle) > 0 else (low, middle)
    for offset in np.linspace(-2e-6, 2e-6, 11):
        if abs(lead(low + offset)) > 1e-13:
            yield query.astype(np.float32), pool(low + offset)


def test_a_lead_within_rounding_is_not_believed():
    """The rival covers far more alone than the leader does, and its rounding counts as well."""
    pools = [pool for seed in range(12) for pool in near_ties(seed)]
    assert len(pools) > 40

    def picks(vectors, query):
        return select(vectors, query, 2, sigma=0.05).indices.tolist()

    wanted = [picks(vectors.astype(np.float64), query) for query, vectors in pools]
    assert [picks(vectors, query) for query, vectors in pools] == wanted
    together = select_many(np.stack([p[1] for p in pools]), np.stack([p[0] for p in pools]), 2, sigma=0.05)
    assert [result.indices.tolist() for result in together] == wanted


@pytest.mark.parametrize("sigma", [1e-5, 1e-3, 0.005])
@pytest.mark.parametrize("method", ["dartboard", "mmr", "top_k"])
def test_a_vocabulary_far_from_everything(sigma, method):
    """Where plain numbers underflow at the very first pick, logarithms still tell gains apart."""
    rng = np.random.default_rng(0)
    embeddings, targets, query = (rng.standard_normal(shape) for shape in ((30, 8), (50, 8), 8))
    result = select(embeddings, query, 4, targets=targets, sigma=sigma, method=method)
    assert len(result) == 4 and np.isfinite(result.log_gains[0])
    assert np.isfinite(result.coverage).all() and 0 <= result.bound <= 1


def test_log_probabilities_that_leave_the_range():
    pairwise = [[-1e4, 0, 0], [-2e4, -1e5, 0], [-1e4, -3e3, -8e4]]
    result = Dartboard().select(from_log_probs([0, -1e4, -1e4], pairwise), Limits(k=2))
    assert len(result) == 2 and np.isfinite(result.gains).all()


@pytest.mark.parametrize("offset", [0.0, 100.0, 1e4])
@pytest.mark.parametrize("sigma", [1e-3, 0.1])
def test_euclidean_distances_far_from_the_origin(offset, sigma):
    rng = np.random.default_rng(1)
    embeddings = offset + 2 * sigma * rng.standard_normal((14, 5))
    query = offset + 2 * sigma * rng.standard_normal(5)
    to_query = np.linalg.norm(embeddings - query, axis=1)
    pairwise = np.linalg.norm(embeddings[:, None] - embeddings[None], axis=2)
    picks, _, _ = oracle.greedy(to_query, pairwise, sigma, 6)
    assert select(embeddings, query, 6, sigma=sigma, distance="euclidean").indices.tolist() == picks


def test_euclidean_vectors_beyond_squaring_are_refused():
    with pytest.raises(ValueError, match="Euclidean distances need components"):
        select(np.eye(3) * 1e160, np.ones(3), distance="euclidean")


def test_rows_that_differ_only_at_the_end_are_not_copies():
    """A fingerprint reads the beginning of a row; what agrees there is compared in full."""
    query, vectors = topical(80, seed=6)
    twins = np.repeat(vectors[:40], 2, axis=0)
    twins[1::2, -1] += 0.5
    fast, slow = (select(v, query, 20, sigma=0.05) for v in (twins, twins.astype(np.float64)))
    assert fast.indices.tolist() == slow.indices.tolist()
    assert (fast.gains > 0).all()
    order = np.random.default_rng(0).permutation(80)
    assert order[select(twins[order], query, 20, sigma=0.05).indices].tolist() == fast.indices.tolist()
    together = select_many(twins[None], query[None], 20, sigma=0.05)[0]
    assert together.indices.tolist() == fast.indices.tolist()


@pytest.mark.parametrize("sigma", ["auto", 1e-4, 0.003, 0.09])
@pytest.mark.parametrize("method", ["dartboard", "mmr", "near_duplicate_filter"])
def test_nothing_is_raised_where_numpy_raises_whatever_it_can(sigma, method):
    """Some set ``np.seterr(all="raise")`` for a whole process."""
    for n, dtype in ((20, np.float64), (100, np.float32), (400, np.float32)):
        query, vectors = topical(n, seed=n, dim=24, dtype=dtype)
        want = select(vectors, query, 5, sigma=sigma, method=method)
        pool = from_embeddings(query, vectors, sigma=sigma)
        with np.errstate(all="raise"):
            got = select(vectors, query, 5, sigma=sigma, method=method)
            select(vectors, query, sigma=sigma, method=method, token_budget=9, costs=[2] * n)
            assert METHODS[method]().select(pool, Limits(k=5)).indices.tolist() == want.indices.tolist()
        assert got.indices.tolist() == want.indices.tolist()


def test_what_nobody_covers_gains_nothing():
    """The query means one target, which no candidate stands in for, not even itself."""
    never = -np.inf
    log_probs = [[never, 0, 0], [never, 0, never], [never, never, 0]]
    found = Dartboard().select(from_log_probs([0, never, never], log_probs), Limits(k=3))
    assert found.indices.tolist() == [0, 1, 2]
    assert found.gains.tolist() == found.coverage.tolist() == [0.0, 0.0, 0.0]
    assert (found.log_gains == never).all() and found.bound == 0.0


@pytest.mark.parametrize("far", [1e141, 1e300])
def test_distances_too_large_to_square_are_refused(far):
    with pytest.raises(InvalidInputError, match=r"pairwise_distances must be at most 1e\+140: scale them"):
        from_distances([0.1, 0.2], [[0.0, far], [far, 0.0]], sigma=0.1)
    with pytest.raises(InvalidInputError, match="query_distances must be at most"):
        from_distances([0.1, far], [[0.0, 1.0], [1.0, 0.0]], sigma=0.1)
    with pytest.raises(InvalidInputError, match=r"must lie between -1e\+300"):
        from_log_probs([0.0, -1.5e308], [[0.0, -1.0], [-1.0, 0.0]])


def test_a_temperature_next_to_nothing_is_the_best_score():
    query, vectors = topical(10, dim=8)
    scores = np.arange(10.0)
    assert select(vectors, query, 1, scores=scores, temperature=1e-300).indices.tolist() == [9]


@pytest.mark.parametrize("n", [5, 64, 100, 200])
def test_vectors_of_no_dimension_are_refused(n):
    with pytest.raises(InvalidInputError, match="embeddings must be a matrix of at least one row"):
        select(np.empty((n, 0), np.float32), np.empty(0, np.float32), 3)
    with pytest.raises(InvalidInputError, match="embeddings must be a matrix of at least one row"):
        select_many(np.empty((2, n, 0), np.float32), np.empty((2, 0), np.float32), 3)


def test_every_pick_that_gains_represents_itself_beside_multiples_of_its_vector():
    query, embeddings = topical(8, seed=1, dim=5, dtype=np.float64)
    both = np.concatenate([embeddings, 3.0 * embeddings, 0.1 * embeddings])
    for sigma in (1e-5, 1e-3, 0.05, 1.0):
        found = select(both, query, len(both), sigma=sigma)
        for pick, stands_for, gain in zip(found.indices, found.stands_for, found.log_gains, strict=True):
            assert gain == -np.inf or pick in stands_for


def test_euclidean_picks_are_exact_beside_an_outlier():
    point = np.array([0.63, 0.58, 1.29])
    embeddings = np.array(
        [[1e-9, 0, 0], point, -point * (1 + 1e-6), [-0.75, 1.69, -0.29], [1e6, 0, 0]], dtype=np.float64
    )
    found = select(embeddings, [1e-9, 0, 0], 4, sigma=1.0, distance="euclidean")
    assert found.indices.tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_vectors_that_differ_by_less_than_their_cosine_tells(dtype):
    embeddings = np.array([[1.0, 0.0], [1.0, 1e-8], [0.0, 1.0]], dtype=dtype)
    assert select(embeddings, [1.0, 0.0], 2, sigma=0.03, relevance_below=0).indices.tolist() == [0, 1]


def test_multiples_of_a_pick_gain_nothing():
    rng = np.random.default_rng(0)
    for _ in range(20):
        one, other = rng.standard_normal((2, 3))
        embeddings = np.array([one, 3 * one, 7 * one, other])
        found = select(embeddings, one, 2, sigma=0.02)
        assert found.indices[0] < 3 and found.indices[1] == 3


def test_the_screen_decides_no_tie():
    for tilt in (3e-12, 1e-11, 1e-10, 3e-10):
        embeddings = np.array([[1, 0, 0], [1, 0.5, tilt], [1, -0.5, 0]], dtype=np.float32)
        query = np.array([1, -1e-12, 0])
        single = select(embeddings, query, 2, sigma=0.1)
        assert (
            single.indices.tolist()
            == select(embeddings.astype(np.float64), query, 2, sigma=0.1).indices.tolist()
        )


def test_the_bound_holds_where_the_stop_rule_ends_picks():
    query = [1, 0.95, 0.94, 0.93, 0.92, 0.91]
    whole = select(np.eye(6), query, 5, sigma=0.05, relevance_below=0)
    ended = select(np.eye(6), query, 5, sigma=0.05, min_gain_share=0.7, relevance_below=0)
    assert len(ended) < 5 and ended.coverage[-1] / ended.bound >= whole.coverage[-1]


def test_the_bound_holds_where_a_cap_lets_everything_in():
    for seed in range(20):
        query, embeddings = topical(12, seed=seed)
        found = select(embeddings, query, 12, sigma=0.09, sources=range(12), max_per_source=1)
        assert found.coverage[-1] / found.bound >= 1.0 - 1e-12
