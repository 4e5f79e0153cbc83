"""Near-copies: groups as SciPy's average linkage makes them, and what selection does with them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import squareform

from dartboard.datasets.redundancy import near_vectors
from dartboard.selection import MMR, Dartboard, Limits, TopK, copies, from_distances, from_embeddings, select
from dartboard.selection.kernels import distances, unit_vector
from tests.selection.test_bandwidth import median, topics, with_copies


def groups_of(rows: np.ndarray) -> np.ndarray | None:
    return copies.near_copies(distances(rows, rows, "scaled_cosine"), median(rows))


def same_partition(one: np.ndarray, other: np.ndarray) -> bool:
    pairs = set(zip(one.tolist(), other.tolist(), strict=True))
    return len(pairs) == len(set(one.tolist())) == len(set(other.tolist()))


REDUNDANT = (st.integers(0, 2**16), st.integers(1, 6), st.floats(0.85, 0.99), st.integers(12, 20))


def tree_of(apart: np.ndarray, ward: bool) -> np.ndarray:
    """SciPy's joins; it takes the roots of what Ward's criterion is about, and gives roots of heights."""
    condensed = squareform(apart, checks=False)
    tree = linkage(np.sqrt(condensed) if ward else condensed, "ward" if ward else "average")
    return np.column_stack([tree[:, :2], tree[:, 2] ** 2 if ward else tree[:, 2], tree[:, 3]])


@pytest.mark.parametrize("ward", [False, True])
@settings(max_examples=40, deadline=None)
@given(*REDUNDANT)
def test_joins_are_those_of_scipy(ward, seed, more, cosine, count):
    rows = with_copies(topics(count, seed=seed), more, cosine, seed)
    apart = distances(rows, rows, "scaled_cosine")
    limit = copies.WITHIN * median(rows)
    joins = copies._joins(apart, limit, ward=ward)
    heights = tree_of(apart, ward)[:, 2]
    expected = heights[heights <= limit]
    assert np.sort(joins.heights) == pytest.approx(expected)
    if len(expected) < len(heights):
        assert joins.next == pytest.approx(heights[len(expected)])


@settings(max_examples=40, deadline=None)
@given(*REDUNDANT)
def test_groups_are_those_of_a_cut(seed, more, cosine, count):
    rows = with_copies(topics(count, seed=seed), more, cosine, seed)
    apart = distances(rows, rows, "scaled_cosine")
    found = groups_of(rows)
    if found is not None:
        longer = copies._equal_leaves(apart)
        np.fill_diagonal(longer, 0.0)
        trees = tree_of(apart, False), tree_of(longer, True)
        assert any(same_partition(found, fcluster(t, len(set(found.tolist())), "maxclust")) for t in trees)


def test_alike_originals_do_not_bring_their_copies_together():
    rows = topics(20, dim=384)
    rows[:4] = with_copies(rows[:1], 3, 0.95, seed=7)
    crowd = with_copies(rows, 5, 0.9)
    apart = distances(crowd, crowd, "scaled_cosine")
    assert apart[0, 1] < apart[0, 20]  # nearer to each other than to their copies
    found = copies.near_copies(apart, median(crowd))
    assert found is not None and same_partition(found, np.tile(np.arange(20), 6))


def test_an_original_without_copies_does_not_go_with_its_twin():
    rows = topics(16, dim=384)
    twins = near_vectors(rows[:6], 0.985, np.random.default_rng(5))
    found = groups_of(np.concatenate([with_copies(rows, 5, 0.9), twins]))
    assert found is not None and len(set(found.tolist())) == 22
    assert (found[:6] != found[-6:]).all()


def test_level_heights_need_no_bend_and_others_do():
    rng = np.random.default_rng(0)
    climbing = np.linspace(0.2, 1.0, 35)
    level = np.concatenate([rng.normal(0.0, 0.03, 64), climbing])
    cut = copies._bend(np.exp(np.sort(level)))
    assert cut is not None and 60 <= cut <= 70
    uneven = np.concatenate([rng.uniform(-0.3, 0.1, 64), climbing])
    assert copies._bend(np.exp(np.sort(uneven))) is None


@pytest.mark.parametrize("cosine", [0.99, 0.97, 0.9])
def test_copies_are_grouped_with_what_they_are_copies_of(cosine):
    found = groups_of(with_copies(topics(20, dim=200), 4, cosine))
    assert found is not None and same_partition(found, np.tile(np.arange(20), 5))


def test_copies_of_some_are_found_and_the_others_stay_alone():
    rows = topics(60, dim=200)
    few = np.concatenate([rows, with_copies(rows[:5], 12, 0.95)[5:]])
    found = groups_of(few)
    assert found is not None and same_partition(found, np.r_[np.arange(60), np.tile(np.arange(5), 12)])


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**16))
def test_pools_without_copies_have_no_groups(seed):
    assert groups_of(topics(100, seed=seed)) is None


def test_alike_passages_stay_apart():
    rows = topics(20, dim=384)
    rows[1] = with_copies(rows[:1], 1, 0.85, seed=7)[1]
    found = groups_of(with_copies(rows, 5, 0.97))
    assert found is not None and same_partition(found, np.tile(np.arange(20), 6))


def test_a_handful_tells_nothing():
    assert groups_of(with_copies(topics(3, dim=200), 5, 0.97)) is None


ROWS = with_copies(topics(20, dim=200, seed=3), 4, 0.95).astype(np.float32)
QUERY = unit_vector(ROWS[:4].sum(axis=0) + topics(1, dim=200, seed=8)[0], np.float32)
PASSAGE = np.tile(np.arange(20), 5)
"""100 candidates, which are 20 passages five times."""


def test_one_of_each_is_picked_the_most_relevant_and_stands_for_its_copies():
    found = select(ROWS, QUERY, 10)
    assert len(set(PASSAGE[found.indices])) == 10 and found.near_copies == 80
    for pick, covered in zip(found.indices, found.stands_for, strict=True):
        group = np.flatnonzero(PASSAGE[pick] == PASSAGE)
        assert pick == group[(ROWS[group] @ QUERY).argmax()]
        assert set(group) <= set(covered)
    assert found.coverage[-1] <= 1.0 and (found.gains > 0).all()


def test_copies_come_when_nothing_else_is_left():
    found = select(ROWS, QUERY, 30)
    assert len(set(PASSAGE[found.indices[:20]])) == 20 and len(set(found.indices.tolist())) == 30
    assert (found.gains[20:] == 0).all() and found.coverage[-1] == pytest.approx(1.0)
    late = found.similarity[20:]
    assert (np.diff(late) <= 1e-6).all()


@pytest.mark.parametrize("seed", range(3))
def test_order_and_precision_change_nothing(seed):
    order = np.random.default_rng(seed).permutation(100)
    first = select(ROWS, QUERY, 12).indices
    assert order[select(ROWS[order], QUERY, 12).indices].tolist() == first.tolist()
    double = select(ROWS.astype(np.float64), QUERY.astype(np.float64), 12)
    assert double.indices.tolist() == first.tolist() and double.near_copies == 80


def test_a_given_sigma_leaves_the_pool_as_it_is():
    assert select(ROWS, QUERY, 5, sigma=0.05).near_copies == 0
    assert from_embeddings(QUERY, ROWS, sigma=0.05).groups is None


def test_distances_alone_tell_the_same_copies():
    to_query, apart = (distances(ROWS.astype(float), x, "scaled_cosine") for x in (QUERY[None], ROWS))
    pool = from_distances(to_query[:, 0], apart)
    found = Dartboard().select(pool, Limits(k=10))
    assert found.indices.tolist() == select(ROWS, QUERY, 10).indices.tolist() and found.near_copies == 80
    assert len(found.owners) == 100


def test_other_methods_see_every_candidate():
    pool = from_embeddings(QUERY, ROWS)
    assert pool.groups is not None
    bare = from_embeddings(QUERY, ROWS, sigma=pool.sigma.value)
    for method in (TopK(), MMR(0.7)):
        one, other = (method.select(each, Limits(k=10)) for each in (pool, bare))
        assert one.indices.tolist() == other.indices.tolist()
    assert (
        TopK().select(pool, Limits(k=10)).coverage[-1] < Dartboard().select(pool, Limits(k=10)).coverage[-1]
    )


def test_limits_hold_and_a_copy_steps_in_for_what_they_shut_out():
    best = select(ROWS, QUERY, 3).indices.tolist()
    without = select(ROWS, QUERY, 3, exclude=[best[0]])
    assert PASSAGE[best[0]] in PASSAGE[without.indices] and best[0] not in without.indices
    copy = int(np.flatnonzero(PASSAGE[best[1]] == PASSAGE)[-1])
    forced = select(ROWS, QUERY, 3, must_include=[copy])
    assert forced.indices[0] == copy and len(set(PASSAGE[forced.indices])) == 3
    sources = ["full" if i in best else f"other {i}" for i in range(100)]
    capped = select(ROWS, QUERY, 3, sources=sources, max_per_source=1)
    assert sum(i in best for i in capped.indices) == 1 and len(set(PASSAGE[capped.indices])) == 3
    costs = np.where(np.isin(np.arange(100), best), 50.0, 5.0)
    cheap = select(ROWS, QUERY, None, token_budget=30, costs=costs)
    assert costs[cheap.indices].sum() <= 30 and len(set(PASSAGE[cheap.indices])) == len(cheap) == 6


def test_what_a_budget_leaves_is_filled_with_copies():
    found = select(ROWS, QUERY, None, token_budget=35, costs=np.ones(100))
    assert len(found) == 35 and len(set(PASSAGE[found.indices[:20]])) == 20
    assert len(select(ROWS, QUERY, None, token_budget=35, costs=np.ones(100), min_gain_share=1e-9)) <= 20


@pytest.mark.parametrize("most", [1, 2, 3])
def test_copies_that_fill_up_count_once_against_their_source(most):
    found = select(ROWS, QUERY, 100, sources=PASSAGE.tolist(), max_per_source=most)
    assert np.bincount(PASSAGE[found.indices], minlength=20).tolist() == [most] * 20


def test_one_group_that_the_query_is_about_is_a_topic():
    rows = with_copies(topics(12, dim=200, seed=3), 7, 0.9).astype(np.float32)
    query = rows[::12].mean(axis=0)
    found = select(rows, query, 8)
    assert found.near_copies == 0
    assert (found.indices % 12 == 0).sum() >= 6
    assert select(rows, rows[:12].mean(axis=0), 8).near_copies == 84


def test_scores_choose_who_stands_for_a_group():
    scores = -np.arange(100.0)[::-1]
    found = select(ROWS, QUERY, 5, scores=scores)
    assert (found.indices >= 80).all()  # the last copy of each has the highest score
