"""The label-free σ: what it is on pools that repeat themselves and on pools that do not."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dartboard.datasets.redundancy import near_vectors
from dartboard.selection import bandwidth, from_distances, from_embeddings, neighbourhood, select, select_many
from dartboard.selection.kernels import distances, unit_rows
from dartboard.selection.neighbourhood import Crowd


def topics(count: int, dim: int = 48, seed: int = 0) -> np.ndarray:
    """Unit rows around a common direction, as the nearest to a query are."""
    rng = np.random.default_rng(seed)
    return unit_rows(rng.standard_normal(dim) + rng.standard_normal((count, dim)))


def with_copies(rows: np.ndarray, copies: int, cosine: float, seed: int = 1) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return unit_rows(np.concatenate([rows, *(near_vectors(rows, cosine, rng) for _ in range(copies))]))


def median(rows: np.ndarray) -> float:
    apart = distances(rows, rows, "scaled_cosine")[np.triu_indices(len(rows), 1)]
    return float(np.sort(apart)[len(apart) // 2])


def squeezed(rows: np.ndarray, more: float) -> np.ndarray:
    """The same geometry with all cosines pressed towards 1."""
    return unit_rows(np.hstack([rows, np.full((len(rows), 1), more)]))


def sigma(
    rows: np.ndarray,
    query: np.ndarray | None = None,
    *,
    distance: str = "scaled_cosine",
    sharpen: bool = True,
) -> float:
    """σ of a pool for a query, by default one in the middle of it."""
    asked = unit_rows((rows.mean(axis=0) if query is None else query)[None])
    to_query = distances(rows, asked, distance)[:, 0] if sharpen else None
    return bandwidth.from_candidates(rows, distance, to_query=to_query).sigma.value


def walk(count: int, dim: int = 48, step: float = 0.05, seed: int = 0) -> np.ndarray:
    """Unit rows each of which has neighbours near by, though no groups can be told apart."""
    rng = np.random.default_rng(seed)
    return unit_rows(rng.standard_normal(dim) + step * rng.standard_normal((count, dim)).cumsum(axis=0))


def test_a_pool_that_repeats_itself_has_the_median_over_four():
    rows = walk(100)
    assert sigma(rows) == pytest.approx(median(rows) / 4, rel=1e-6)


@pytest.mark.parametrize("cosine", [0.97, 0.90])
def test_a_pool_of_near_copies_has_the_sigma_of_one_of_each(cosine):
    rows, query = with_copies(topics(17, dim=200), 5, cosine), topics(1, dim=200, seed=5)
    to_query = distances(rows, query, "scaled_cosine")[:, 0]
    found = bandwidth.from_candidates(rows, "scaled_cosine", to_query=to_query)
    assert found.groups is not None
    assert (found.groups.reshape(6, 17) == found.groups[:17]).all() and len(set(found.groups)) == 17
    leaders = to_query.reshape(6, 17).argmin(axis=0) * 17 + np.arange(17)
    assert sorted(leaders) == neighbourhood.leading(found.groups, to_query).tolist()
    assert found.sigma.value == pytest.approx(
        median(rows[leaders]) / 4 / bandwidth.BESIDE_COPIES.sharper, rel=1e-6
    )


def test_a_pool_without_copies_has_less():
    rows = topics(100)
    assert sigma(rows) == pytest.approx(median(rows) / 4 / bandwidth.BY_DISTANCE.sharper, rel=1e-6)
    assert sigma(rows, sharpen=False) == pytest.approx(median(rows) / 4, rel=1e-6)


def test_a_small_pool_is_taken_to_repeat_itself():
    rows = topics(bandwidth.SMALLEST_CROWD - 1)
    assert sigma(rows) == pytest.approx(median(rows) / 4, rel=1e-6)


def test_the_way_between_is_continuous_and_falls():
    spreads = [bandwidth.spread(1.0, Crowd(alone, 0.0)) for alone in np.linspace(0.0, 0.5, 201)]
    assert spreads[0] == 0.25 and spreads[-1] == pytest.approx(0.25 / bandwidth.BY_DISTANCE.sharper)
    steps = np.diff(spreads)
    assert (steps <= 0).all() and steps.min() > -0.01
    back = [bandwidth.spread(1.0, Crowd(0.5, together)) for together in np.linspace(0.0, 0.5, 201)]
    assert back[0] == spreads[-1] and back[-1] == 0.25 and (np.diff(back) >= 0).all()


def test_copies_count_where_the_query_is():
    rows = topics(90)
    crowded = np.concatenate(
        [rows, near_vectors(np.repeat(rows[:1], 10, axis=0), 0.97, np.random.default_rng(2))]
    )
    wide = median(crowded) / 4
    assert sigma(crowded, rows[0]) == pytest.approx(wide, rel=1e-6)
    assert sigma(crowded, rows[1]) == pytest.approx(wide / bandwidth.BY_DISTANCE.sharper, rel=1e-6)


def test_a_few_copies_of_the_answer_are_enough_where_the_rest_stands_alone():
    """Half of the probability stands alone, and the other half says one thing five times over."""
    rows = topics(95, dim=200)
    some = np.concatenate(
        [rows, near_vectors(np.repeat(rows[:1], 5, axis=0), 0.97, np.random.default_rng(2))]
    )
    query = unit_rows((rows[0] + 0.9 * rows[1])[None])
    apart, to_query = distances(some, some, "scaled_cosine"), distances(some, query, "scaled_cosine")[:, 0]
    crowd = neighbourhood.crowd_among(apart, to_query, median(some), "scaled_cosine")
    assert crowd.alone > bandwidth.BY_DISTANCE.distinct and crowd.together > neighbourhood.TOGETHER
    assert sigma(some, query[0]) == pytest.approx(median(some) / 4, rel=1e-6)
    assert sigma(rows, query[0]) == pytest.approx(median(rows) / 4 / bandwidth.BY_DISTANCE.sharper, rel=1e-6)


@settings(max_examples=50, deadline=None)
@given(st.integers(2, 40), st.integers(0, 2**16), st.floats(0.2, 5.0))
def test_the_probability_of_neighbours_is_that_of_two_draws(n, seed, wide):
    rng = np.random.default_rng(seed)
    apart, to_query = rng.random((n, n)), rng.random(n)
    apart = np.minimum(apart, apart.T)
    crowd = neighbourhood.crowd_among(apart, to_query, wide, "scaled_cosine")
    weights = np.exp(-8.0 * (to_query**2 - to_query.min() ** 2) / wide**2)
    near = np.interp(apart / wide, (0.25, 0.35), (1.0, 0.0))
    np.fill_diagonal(near, 0.0)
    drawn = weights @ near @ weights / weights.sum() ** 2
    assert drawn <= 1.0 - crowd.alone + 1e-12  # which is why it may be passed over
    assert crowd.together == pytest.approx(drawn if crowd.alone < 1.0 - neighbourhood.SEPARATE else 0.0)


def test_the_share_that_stands_alone_is_one_of_probability():
    rng = np.random.default_rng(0)
    nearest, to_query = rng.random((3, 80)), rng.random((3, 80))
    medians = np.array([0.2, 1.0, 50.0])
    found = neighbourhood.standing_alone(nearest, to_query, medians, "scaled_cosine")
    for one, asked, wide, share in zip(nearest, to_query, medians, found, strict=True):
        weights = np.exp(-0.5 * (asked / (wide / 4)) ** 2)
        alone = np.interp(one / wide, (0.25, 0.35), (0.0, 1.0))
        assert share == pytest.approx(np.average(alone, weights=weights))
        assert neighbourhood.standing_alone(one, asked, wide, "scaled_cosine") == share


def test_far_queries_and_lone_targets_leave_a_share():
    near = np.where(np.arange(64) < 16, 0.9, 0.1)
    far = neighbourhood.standing_alone(near, np.full(64, 1e6), 1.0, "scaled_cosine")
    assert far == pytest.approx(0.25)
    lone = np.full(64, 0.9)
    lone[5] = 0.01
    assert neighbourhood.standing_alone(near, lone, 0.1, "scaled_cosine") == pytest.approx(1.0)


def test_the_euclidean_distance_tells_the_same_pools_apart():
    for rows in (topics(100), walk(100), with_copies(topics(17), 5, 0.9)):
        found, sharper = [], []
        for kind in ("scaled_cosine", "euclidean"):
            to_query = distances(rows, unit_rows(rows.mean(axis=0)[None]), kind)[:, 0]
            found.append(bandwidth.from_candidates(rows, kind, to_query=to_query))
            some = (
                slice(None) if found[-1].groups is None else neighbourhood.leading(found[-1].groups, to_query)
            )
            sharper.append(sigma(rows[some], distance=kind, sharpen=False) / found[-1].sigma.value)
        assert np.array_equal(found[0].groups, found[1].groups)
        assert sharper[0] == pytest.approx(sharper[1], rel=1e-4)


@settings(max_examples=25, deadline=None)
@given(st.floats(0.5, 4.0), st.sampled_from([0, 1, 5]), st.integers(0, 9))
def test_squeezed_cosines_change_the_scale_alone(more, copies, seed):
    rows = with_copies(topics(100 // (copies + 1), seed=seed), copies, 0.95)
    assert sigma(squeezed(rows, more)) == pytest.approx(sigma(rows) / (1 + more**2), rel=1e-4)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**16), st.sampled_from([0, 1, 5]))
def test_neither_order_nor_exact_duplicates_matter(seed, copies):
    rng = np.random.default_rng(seed)
    rows = with_copies(topics(120 // (copies + 1), seed=seed), copies, 0.95).astype(np.float32)
    shuffled = rng.permutation(np.concatenate([rows, rows[:50]]))
    query = rows.mean(axis=0)
    there, here = (from_embeddings(query, some).sigma for some in (shuffled, rows))
    assert there.value == pytest.approx(here.value, rel=1e-6) and there.source == here.source


def test_copies_are_found_in_pools_larger_than_the_sample():
    redundant, clean = with_copies(topics(200), 5, 0.95), topics(1200)
    order = np.random.default_rng(3).permutation(1200)
    sample = redundant[order]
    query = sample.mean(axis=0)
    found = bandwidth.from_candidates(
        sample, "scaled_cosine", to_query=distances(sample, unit_rows(query[None]), "scaled_cosine")[:, 0]
    )
    assert found.groups is not None
    for members in (np.flatnonzero(found.groups == group) for group in set(found.groups)):
        assert len(set(order[members] % 200)) == 1
    assert sigma(sample) < median(sample) / 7
    assert sigma(clean) < median(clean[: neighbourhood.SAMPLE]) / 7


def test_distances_alone_give_the_same():
    for rows in (topics(100), with_copies(topics(17), 5, 0.9), topics(20)):
        query = topics(1, seed=9)
        to_query, pairwise = (distances(rows, x, "scaled_cosine") for x in (query, rows))
        expected = pytest.approx(sigma(rows, query[0]), rel=1e-6)
        assert from_distances(to_query[:, 0], pairwise).sigma.value == expected


def test_what_stands_on_the_diagonal_or_across_it_does_not_matter():
    rows, query = topics(80), topics(1, seed=9)
    to_query, pairwise = (distances(rows, x, "scaled_cosine") for x in (query, rows))
    expected = from_distances(to_query[:, 0], pairwise).sigma.value
    assert from_distances(to_query[:, 0], pairwise + 1e-8 * np.eye(80)).sigma.value == expected
    skewed = pairwise * np.where(np.tri(80, dtype=bool), 1.02, 0.98)
    assert from_distances(to_query[:, 0], skewed).sigma.value == pytest.approx(
        from_distances(to_query[:, 0], skewed.T).sigma.value, rel=1e-12
    )


@pytest.mark.parametrize("count", [40, 100])
@pytest.mark.parametrize("copies", [0, 5])
def test_many_queries_at_once_have_the_same_sigma(count, copies):
    blocks = np.stack(
        [
            with_copies(topics(count // (copies + 1), seed=s), copies, 0.95, s).astype(np.float32)
            for s in range(4)
        ]
    )
    asked = blocks.mean(axis=1)
    for pool, query, found in zip(blocks, asked, select_many(blocks, asked, k=5), strict=True):
        alone = select(pool, query, k=5)
        assert found.sigma.value == pytest.approx(alone.sigma.value, rel=1e-4)
        assert found.indices.tolist() == alone.indices.tolist()


def test_too_few_to_tell():
    assert bandwidth.from_candidates(topics(7), "scaled_cosine", 0.07).sigma == (0.07, "model")
    assert bandwidth.from_candidates(topics(7), "euclidean").sigma == (
        bandwidth.FALLBACK["euclidean"],
        "fallback",
    )
    one = np.repeat(topics(1), 80, axis=0)
    assert (
        bandwidth.from_distances(distances(one, one, "scaled_cosine") * 0, "scaled_cosine").sigma.source
        == "fallback"
    )
