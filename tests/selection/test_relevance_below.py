"""Once nothing new is left, relevance decides; and what is no repeat under a token budget."""

import numpy as np
import pytest

from dartboard.errors import ConfigError, InvalidInputError
from dartboard.selection import METHODS, MMR, select
from dartboard.selection.pool import MOST_CANDIDATES
from tests.selection.pools import topical


def one_topic(strangers=8):
    """A dozen passages about what is asked, each a little different, and some about anything else."""
    rng = np.random.default_rng(4)
    near = np.eye(40)[0] + 0.35 * np.eye(40)[rng.permutation(np.arange(1, 13))]
    far = 0.25 * np.eye(40)[0] + np.eye(40)[np.arange(20, 20 + strangers)]
    return np.eye(40)[0] + 0.01 * np.eye(40)[1], np.concatenate([near, far])


def test_the_most_relevant_follow_where_no_gain_is_left():
    query, vectors = one_topic()
    by_gain = select(vectors, query, 12, sigma=0.2, relevance_below=0)
    found = select(vectors, query, 12, sigma=0.2, relevance_below=0.02)
    assert sum(pick >= 12 for pick in by_gain) > 2 and all(pick < 12 for pick in found)
    turn = int(found.by_relevance.argmax())
    assert found.by_relevance[turn:].all() and not by_gain.by_relevance.any()
    assert found.indices[:turn].tolist() == by_gain.indices[:turn].tolist()
    assert (np.diff(found.similarity[turn:]) <= 1e-12).all(), "from there on by relevance"
    assert by_gain.gains[turn] < 0.02 <= by_gain.gains[turn - 1]
    assert found.coverage[-1] == pytest.approx(found.gains.sum()), "gains stay what they are"
    assert by_gain.coverage[-1] <= found.coverage[-1] / found.bound


def test_pages_go_on_in_the_same_order_and_end_with_an_empty_one():
    query, vectors = one_topic()
    whole = select(vectors, query, 20, sigma=0.2)
    pages = [select(vectors, query, 4, offset=at, sigma=0.2) for at in range(0, 28, 4)]
    assert [pick for page in pages for pick in page] == list(whole)
    assert [len(page) for page in pages] == [4] * 5 + [0, 0]
    assert [flag for page in pages for flag in page.by_relevance] == whole.by_relevance.tolist()


def test_caps_and_what_was_seen_hold_after_the_turn():
    query, vectors = one_topic()
    author = [i % 3 for i in range(20)]
    found = select(
        vectors, query, 9, sigma=0.2, max_per={"author": 2}, fields={"author": author}, relevance_below=0.1
    )
    assert found.by_relevance.any() and max(np.bincount([author[i] for i in found])) == 2
    seen = select(vectors, query, 6, sigma=0.2, seen=[0, 1, 2], relevance_below=0.1)
    assert seen.by_relevance.any() and not {0, 1, 2} & set(seen)


def test_several_questions_share_it():
    query, vectors = one_topic()
    one = select(vectors, query, 8, sigma=0.2, relevance_below=0.02)
    two = select(vectors, [query, query], 8, sigma=0.2, relevance_below=0.04)
    assert one.indices.tolist() == two.indices.tolist()
    assert one.by_relevance.tolist() == two.by_relevance.tolist()


@pytest.mark.parametrize("share", [-0.1, 1.5, "much", None])
def test_a_share_outside_its_range(share):
    with pytest.raises(ConfigError) as caught:
        select(np.eye(3), np.ones(3), relevance_below=share)
    assert caught.value.field == "relevance_below"


@pytest.mark.parametrize("groups", [None, [0, 1, 2, 0, 0, 0]])
def test_a_token_budget_buys_no_copies(groups):
    query, vectors = np.array([1.0, 0.5, 0.2, 0.0]), np.eye(4)[[0, 1, 2, 0, 0, 0]]
    if groups:
        vectors = vectors + 0.05 * np.random.default_rng(0).standard_normal(vectors.shape)
    found = select(vectors, query, token_budget=400, costs=[50] * 6, groups=groups)
    assert sorted(i if i in (1, 2) else 0 for i in found) == [0, 1, 2]
    assert (found.gains > 0).all()
    assert len(select(vectors, query, 6, groups=groups)) == 6, "up to k copies fill up"


def test_a_token_budget_buys_what_is_relevant_and_nothing_below_the_floor():
    query, vectors = one_topic()
    limits = {"token_budget": 1000, "costs": [10] * 20, "sigma": 0.2, "relevance_below": 0.02}
    everything = select(vectors, query, **limits)
    above = select(vectors, query, **limits, relevance_floor=0.5)
    assert len(everything) == 20 and set(range(12)) <= set(above)
    assert (above.similarity[above.by_relevance] >= 0.5).all() and len(above) < 20


def test_mmr_begins_with_the_most_similar_at_any_weight():
    query, vectors = topical(30, seed=2)
    best = int((vectors @ query).argmax())
    assert best != 0
    for weight in (0.0, 0.3, 1.0):
        assert select(vectors, query, 3, method=MMR(relevance_weight=weight)).indices[0] == best


def test_a_sigma_that_tells_nothing_apart_is_named():
    query, vectors = topical(40, dtype=np.float64)
    automatic = select(vectors, query).sigma
    assert automatic.warning is None and select(vectors, query, sigma=automatic.value).sigma.warning is None
    wide = select(vectors, query, sigma=1.0).sigma
    assert wide.automatic == pytest.approx(automatic.value) and f"{automatic.value:.3g}" in wide.warning


def test_more_candidates_than_pairs_can_be_compared():
    with pytest.raises(InvalidInputError, match="nearest"):
        select(np.ones((MOST_CANDIDATES + 1, 2)), np.ones(2))


@pytest.mark.parametrize("method", sorted(set(METHODS) - {"exhaustive"}))
def test_a_page_behind_the_last_candidate_is_empty(method):
    query, vectors = topical(30)
    assert len(select(vectors, query, 5, offset=30, method=method)) == 0
    assert len(select(vectors, query, 5, offset=28, method=method)) == 2
