"""Near-duplicate groups: one representative each, the most relevant; the others only when nothing gains."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dartboard.errors import ConfigError, InvalidInputError
from dartboard.selection import METHODS, Dartboard, Limits, from_embeddings, select, select_many
from dartboard.utils import unit_rows
from tests.examples import examples
from tests.selection.pools import topical
from tests.selection.test_properties import SIGMA, pools


@st.composite
def grouped(draw):
    """A query, candidates, their groups, and scores of another retriever or None."""
    query, embeddings = draw(pools())
    n = len(embeddings)
    groups = draw(st.lists(st.integers(-3, 6), min_size=n, max_size=n))
    scores = draw(st.none() | st.lists(st.integers(-5, 5).map(float), min_size=n, max_size=n))
    return query, embeddings, np.array(groups), scores


@examples(150)
@given(grouped(), SIGMA)
def test_one_representative_a_group_the_most_relevant(given, sigma):
    query, embeddings, groups, scores = given
    pool = from_embeddings(query, embeddings, sigma=sigma, groups=groups, ranking=scores)
    found = Dartboard().select(pool, Limits(k=len(embeddings)))
    assert sorted(found.indices.tolist()) == list(range(len(embeddings))), "the others fill up in the end"
    assert found.near_copies == len(embeddings) - len(set(groups.tolist()))
    gaining = found.indices[found.log_gains > -np.inf]
    assert len(set(groups[gaining].tolist())) == len(gaining)
    for pick in gaining:
        assert pool.relevance[pick] == pool.relevance[groups == groups[pick]].max()
    rest = found.indices[len(gaining) :]
    assert (np.diff(pool.relevance[rest]) <= 0).all(), "those that gain nothing follow by relevance"


@examples(100)
@given(grouped(), SIGMA)
def test_members_are_represented_where_their_representative_is(given, sigma):
    query, embeddings, groups, scores = given
    pool = from_embeddings(query, embeddings, sigma=sigma, groups=groups, ranking=scores)
    found = Dartboard().select(pool, Limits(k=min(3, len(embeddings))))
    gaining = found.log_gains > -np.inf
    for pick, stands, gains in zip(found.indices, found.stands_for, gaining, strict=True):
        if gains:
            assert set(np.flatnonzero(groups == groups[pick]).tolist()) <= set(stands.tolist())


@examples(100)
@given(grouped(), SIGMA)
def test_removed_near_duplicates_change_nothing_else(given, sigma):
    """The picks and gains are those of the representatives alone."""
    query, embeddings, groups, _ = given
    pool = from_embeddings(query, embeddings, sigma=sigma, groups=groups)
    order = pool.by_relevance()
    kept = np.sort(order[np.unique(groups[order], return_index=True)[1]])
    here = Dartboard().select(pool, Limits(k=len(kept)))
    there = select(embeddings[kept], query, len(kept), sigma=sigma)
    count = int((there.log_gains > -np.inf).sum())
    unit = unit_rows(embeddings)  # of one direction, either may be picked
    np.testing.assert_allclose(unit[here.indices[:count]], unit[kept][there.indices[:count]], rtol=1e-12)
    np.testing.assert_allclose(here.log_gains[:count], there.log_gains[:count], rtol=1e-9, atol=1e-9)


def test_equally_relevant_members_are_represented_alike_in_any_order():
    query, members = np.ones(4), np.array([[0.0, 0.0, 1.0, 0.0], [0.0, 0.0, 0.0, 1.0], [1.0, 1.0, 1.0, 1.0]])
    for order in ([0, 1, 2], [1, 0, 2], [2, 1, 0]):
        found = select(members[order], query, 2, sigma=0.1, groups=np.array([0, 0, 1])[order])
        assert members[order][found.indices].tolist() == [[1.0, 1.0, 1.0, 1.0], [0.0, 0.0, 0.0, 1.0]]


@pytest.mark.parametrize("method", sorted(set(METHODS) - {"exhaustive"}))
def test_every_method_counts_removed_near_duplicates_alike(method):
    query, embeddings = topical(30, dim=32, copies=1, noise=0.05)
    groups = np.tile(np.arange(30), 2)
    found = select(embeddings, query, 10, method=method, groups=groups)
    assert found.near_copies == 30


def test_limits_hold_among_members():
    """Where a representative may not be picked, the next of its group may."""
    query, embeddings = topical(12, dim=16, copies=1, noise=0.01, dtype=np.float64)
    groups = np.tile(np.arange(12), 2)
    best = int(select(embeddings, query, 1, groups=groups).indices[0])
    other = (best + 12) % 24
    found = select(embeddings, query, 12, groups=groups, exclude=[best])
    assert best not in found.indices and other in found.indices
    forced = select(embeddings, query, 12, groups=groups, must_include=[other])
    assert forced.indices[0] == other
    gaining = forced.indices[forced.log_gains > -np.inf]
    assert len(set(groups[gaining].tolist())) == len(gaining) and best not in gaining


def test_no_fill_under_an_early_stop():
    query, embeddings = topical(10, dim=16, copies=1, noise=0.01)
    groups = np.tile(np.arange(10), 2)
    found = select(embeddings, query, 20, groups=groups, min_gain_share=1e-12)
    assert len(set(groups[found.indices].tolist())) == len(found) <= 10


@pytest.mark.parametrize("groups", [[0, 1], [0.5, 1.0, 2.0], [[0], [1], [2]], ["a", "b", "c"]])
def test_unusable_groups_are_refused(groups):
    with pytest.raises(InvalidInputError, match="groups must be 3 whole numbers"):
        select(np.eye(3), [1.0, 0.5, 0.2], 2, groups=groups)


def test_texts_and_groups_exclude_each_other():
    with pytest.raises(ConfigError, match="exclude each other"):
        select(np.eye(2), [1.0, 0.5], 1, groups=[0, 1], texts=["a", "b"])


# The order of another retriever


@examples(100)
@given(pools(), SIGMA, st.data())
def test_a_ranking_deals_the_same_weights_out_in_its_order(pool, sigma, data):
    query, embeddings = pool
    n = len(embeddings)
    scores = np.array(data.draw(st.lists(st.integers(-9, 9).map(float), min_size=n, max_size=n)))
    plain = from_embeddings(query, embeddings, sigma=sigma).relevance
    ranked = from_embeddings(query, embeddings, sigma=sigma, ranking=scores)
    again = from_embeddings(query, embeddings, sigma=sigma, ranking=np.exp(scores / 9) - 50)
    assert ranked.relevance.tolist() == again.relevance.tolist(), "the scale does not count"
    order = np.argsort(-scores, kind="stable")
    falling = ranked.relevance[order]
    assert (np.diff(falling) <= 1e-9 * np.abs(falling[1:])).all()
    for score in set(scores.tolist()):
        same = ranked.relevance[scores == score]
        assert (same == same[0]).all(), "equal scores share a weight"
    np.testing.assert_allclose(ranked.relevance.sum(), plain.sum(), rtol=1e-9)
    first = Dartboard().select(ranked, Limits(k=1)).indices[0]
    assert ranked.relevance[first] == ranked.relevance.max()


@pytest.mark.parametrize("ranking", [[1.0], [1.0, np.nan, 0.0], [1.0, np.inf, 0.0]])
def test_unusable_rankings_are_refused(ranking):
    with pytest.raises(InvalidInputError, match="scores must be 3 finite numbers"):
        from_embeddings([1.0, 0.5, 0.2], np.eye(3), ranking=ranking)


def test_many_queries_have_groups_of_their_own():
    pools = [topical(20, seed=seed, dim=32, copies=1, noise=0.05) for seed in range(3)]
    queries, embeddings = (np.stack(part) for part in zip(*pools, strict=True))
    groups = [np.tile(np.arange(20), 2), np.arange(40), np.repeat(np.arange(20), 2)]
    found = select_many(embeddings, queries, 5, groups=groups)
    for one, query, vectors, own in zip(found, queries, embeddings, groups, strict=True):
        assert one.indices.tolist() == select(vectors, query, 5, groups=own).indices.tolist()
    with pytest.raises(InvalidInputError, match="2 lists of groups for 3 queries"):
        select_many(embeddings, queries, 5, groups=groups[:2])


def test_sigma_is_that_of_the_representatives_by_the_scores_in_use():
    query, embeddings = topical(30, dim=32, copies=2, noise=0.2)
    groups = np.tile(np.arange(30), 3)
    scores = np.random.default_rng(0).random(90)
    kept = [max(np.flatnonzero(groups == group), key=lambda at: scores[at]) for group in range(30)]
    found = select(embeddings, query, 5, scores=scores, groups=groups)
    alone = select(embeddings[kept], query, 5, scores=scores[kept])
    assert found.sigma.value == pytest.approx(alone.sigma.value, rel=1e-5)


def test_near_duplicates_that_fill_up_do_not_depend_on_the_order_of_candidates():
    query, embeddings = topical(4, seed=5)
    groups = np.array([0, 0, 0, 3])
    pool = from_embeddings(query, embeddings, groups=groups, ranking=[1.0, 1.0, 1.0, 0.5])
    picked = Dartboard().select(pool, Limits(k=3)).indices
    for order in ([2, 1, 0, 3], [3, 1, 2, 0], [1, 0, 3, 2]):
        again = from_embeddings(
            query, embeddings[order], groups=groups[order], ranking=np.array([1.0, 1.0, 1.0, 0.5])[order]
        )
        assert np.array(order)[Dartboard().select(again, Limits(k=3)).indices].tolist() == picked.tolist()
