"""What users ask for beside k."""

import numpy as np
import pytest

from dartboard.errors import ConfigError, InvalidInputError
from dartboard.selection import METHODS, MMR, Dartboard, Limits, NearDuplicateFilter, from_embeddings, select
from tests.selection.pools import topical

QUERY, CANDIDATES = topical(60, seed=4)
BIG_QUERY, BIG = topical(200, seed=4, copies=1)


def test_k_defaults_to_five():
    assert len(select(CANDIDATES, QUERY)) == 5


def test_a_budget_is_kept_and_used():
    costs = np.random.default_rng(0).integers(20, 200, 60)
    result = select(CANDIDATES, QUERY, token_budget=500, costs=costs)
    spent = costs[result.indices].sum()
    assert spent <= 500
    assert spent + np.delete(costs, result.indices).min() > 500, (
        "something that gains would still have fitted"
    )


def test_gain_per_token_beats_gain_where_long_passages_waste():
    """Three short passages cover a little more than one long passage does for the same money."""
    embeddings = np.array([[1.0, 1.0, 1.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    query = [1.0, 1.0, 1.0]
    costs = [90, 30, 30, 30]
    cheap = select(
        embeddings,
        query,
        token_budget=90,
        costs=costs,
        sigma=0.05,
        scores=[1.0, 1.1, 1.1, 1.1],
        temperature=1.0,
    )
    assert sorted(cheap.indices) == [1, 2, 3]
    dear = select(embeddings, query, token_budget=90, costs=costs, sigma=0.05)
    assert dear.indices.tolist() == [0]


def test_savings_make_a_pair_affordable():
    vectors, query = np.eye(3), np.ones(3)
    limits = {"token_budget": 100, "costs": [60, 60, 45], "sigma": 0.2, "scores": [3.0, 2.9, 1.0]}
    assert select(vectors, query, **limits).indices.tolist() in ([0], [2, 0], [1])
    together = select(vectors, query, **limits, savings=[(0, 1, 30)])
    assert sorted(together.indices) == [0, 1]
    assert sorted(select(vectors, query, **limits, savings=[(0, 1, 30)], must_include=[0, 1]).indices) == [
        0,
        1,
    ]
    with pytest.raises(ConfigError, match="must_include alone"):
        select(vectors, query, **limits, must_include=[0, 1])


@pytest.mark.parametrize(
    "method", ["dartboard", "mmr", "top_k", "near_duplicate_filter", "random", "exhaustive"]
)
def test_savings_count_for_every_method(method):
    """A chain of chunks, each of which overlaps the next: no set exceeds the budget, and the bound holds."""
    rng = np.random.default_rng(1)
    for _ in range(5):
        vectors, query = rng.standard_normal((9, 4)), rng.standard_normal(4)
        costs = rng.integers(20, 60, 9)
        savings = [(i, i + 1, int(rng.integers(5, 19))) for i in range(8)]
        found = select(vectors, query, method=method, token_budget=110, costs=costs, savings=savings)
        there = set(found.indices.tolist())
        saved = sum(tokens for i, j, tokens in savings if i in there and j in there)
        assert costs[found.indices].sum() - saved <= 110
        best = select(vectors, query, method="exhaustive", token_budget=110, costs=costs, savings=savings)
        assert found.coverage[-1] >= found.bound * best.coverage[-1] - 1e-6


@pytest.mark.parametrize("wrong", [(0, 0, 5), (0, 99, 5), (0, 1, -5), (0, 1, float("nan")), (0, 1, None)])
def test_savings_that_make_no_sense(wrong):
    with pytest.raises(InvalidInputError, match="savings are two candidates"):
        select(CANDIDATES, QUERY, token_budget=100, costs=[1] * 60, savings=[wrong])
    with pytest.raises(ConfigError, match="savings lower costs"):
        select(CANDIDATES, QUERY, k=3, savings=[(0, 1, 5)])


def test_budget_and_k_together():
    assert len(select(CANDIDATES, QUERY, 3, token_budget=1000, costs=[1] * 60)) == 3


def test_nothing_fits():
    result = select(CANDIDATES, QUERY, token_budget=5, costs=[10] * 60)
    assert len(result) == 0 and result.bound == 0.0 and result.stands_for == ()


def test_stops_when_a_gain_is_too_small():
    everything = select(CANDIDATES, QUERY, 20)
    stopped = select(CANDIDATES, QUERY, 20, min_gain_share=0.3)
    count = len(stopped)
    assert 1 < count < 20
    assert stopped.indices.tolist() == everything.indices[:count].tolist()
    assert everything.gains[count] < 0.3 * everything.gains[0] <= stopped.gains[-1]


def test_a_stop_share_never_fills_up_with_copies():
    assert len(select(np.ones((5, 3)), np.ones(3), 4, min_gain_share=1e-9)) == 1


@pytest.mark.parametrize("method", METHODS)
def test_a_cap_per_source(method):
    sources = [i % 4 for i in range(12)]
    result = select(CANDIDATES[:12], QUERY, 5, method=method, max_per_source=2, sources=sources)
    assert len(result) == 5
    assert np.bincount([sources[i] for i in result.indices]).max() <= 2


def test_a_cap_may_leave_fewer_than_k():
    assert len(select(CANDIDATES, QUERY, 10, max_per_source=1, sources=["a", "b"] * 30)) == 2


def test_a_capped_source_lets_its_copy_elsewhere_through():
    embeddings = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
    result = select(embeddings, [1.0, 0.9], 2, sigma=0.1, max_per_source=1, sources=["a", "a", "b"])
    assert result.indices.tolist() == [0, 2]


@pytest.mark.parametrize("method", METHODS)
def test_must_include_and_exclude(method):
    result = select(CANDIDATES[:12], QUERY, 4, method=method, must_include=[7, 3], exclude=[0, 1, 2])
    assert {7, 3} <= set(result.indices.tolist()) and not {0, 1, 2} & set(result.indices.tolist())
    if method != "exhaustive":
        assert result.indices[:2].tolist() == [7, 3]


def test_positions_may_be_arrays():
    costs = [5] * 60
    result = select(
        CANDIDATES, QUERY, must_include=np.array([7, 3]), exclude=np.array([0]), token_budget=30, costs=costs
    )
    assert result.indices[:2].tolist() == [7, 3] and 0 not in result.indices


@pytest.mark.parametrize("method", ["mmr", "top_k", "near_duplicate_filter", "dartboard"])
def test_every_method_stops_at_a_small_gain(method):
    everything = select(CANDIDATES, QUERY, 20, method=method, sigma=0.1)
    stopped = select(CANDIDATES, QUERY, 20, method=method, sigma=0.1, min_gain_share=0.2)
    count = len(stopped)
    assert count < 20 and stopped.indices.tolist() == everything.indices[:count].tolist()
    assert everything.gains[count] < 0.2 * everything.gains[0]
    assert (stopped.gains >= 0.2 * stopped.gains[0]).all()


def test_what_is_forced_is_not_repeated_by_the_near_duplicate_filter():
    embeddings = np.array([[1.0, 0.0], [1.0, 0.01], [0.0, 1.0]])
    result = select(embeddings, [1.0, 0.2], 2, method="near_duplicate_filter", must_include=[1])
    assert result.indices.tolist() == [1, 2]


def test_what_is_excluded_is_no_target_either():
    result = select(CANDIDATES, QUERY, 60, exclude=range(30))
    assert len(result) == 30 and result.coverage[-1] == pytest.approx(1.0)
    assert set(np.concatenate(result.stands_for).tolist()) <= set(range(30, 60))


def test_relevance_floor():
    floor = 0.3
    result = select(CANDIDATES, QUERY, 60, min_similarity=floor)
    cosine = CANDIDATES @ QUERY
    assert set(result.indices) == set(np.flatnonzero(cosine >= floor))
    assert (
        select(CANDIDATES, QUERY, 3, min_similarity=floor, must_include=[int(cosine.argmin())]).indices[0]
        == cosine.argmin()
    )


def test_limits_on_a_large_pool_that_needs_double_precision():
    costs, sources = np.full(400, 10.0), [i // 4 for i in range(400)]
    limits = {
        "token_budget": 100,
        "costs": costs,
        "max_per_source": 1,
        "sources": sources,
        "exclude": [0],
        "min_similarity": 0.1,
    }
    fast = select(BIG, BIG_QUERY, sigma=2.0, **limits)
    slow = select(BIG.astype(np.float64), BIG_QUERY, sigma=2.0, **limits)
    assert fast.indices.tolist() == slow.indices.tolist() and len(fast) == 10


def test_weights_from_scores():
    scores = np.zeros(60)
    scores[17] = 50.0
    result = select(CANDIDATES, QUERY, 3, scores=scores, temperature=1.0)
    assert result.indices[0] == 17 and result.coverage[0] > 0.9
    assert (
        select(CANDIDATES, QUERY, 3, scores=-CANDIDATES @ QUERY).indices[0] == (CANDIDATES @ QUERY).argmin()
    )
    assert select(BIG, BIG_QUERY, 3, scores=np.arange(400.0)).indices[0] == 399
    assert len(select(CANDIDATES, QUERY, 3, scores=np.ones(60))) == 3


def test_a_vocabulary_as_targets():
    vocabulary = np.eye(8, 16)
    embeddings = np.eye(8, 16) + 0.05
    query = np.r_[1.0, 1.0, 1.0, np.zeros(13)]
    result = select(embeddings, query, 3, sigma=0.1, targets=vocabulary)
    assert sorted(result.indices) == [0, 1, 2]
    assert sorted(int(t) for s in result.stands_for for t in s) == [0, 1, 2]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"k": 0}, "k must be a whole number >= 1"),
        ({"k": 2.5}, "k must be a whole number"),
        ({"k": True}, "k must be a whole number"),
        ({"token_budget": 10}, "token_budget and costs go together"),
        ({"token_budget": 0, "costs": [1] * 60}, "token_budget must be a finite number > 0"),
        ({"token_budget": 9, "costs": [1] * 3}, "costs has 3 entries for 60 candidates"),
        ({"token_budget": 9, "costs": [0] * 60}, "costs must be a vector of finite numbers > 0"),
        ({"token_budget": 9, "costs": [10] * 60, "must_include": [1]}, "more than token_budget"),
        ({"min_gain_share": 2}, "min_gain_share must be in"),
        ({"max_per_source": 0, "sources": [1] * 60}, "max_per_source must be a whole number >= 1"),
        ({"max_per_source": 1}, "max_per_source and sources go together"),
        ({"max_per_source": 1, "sources": [1] * 60, "must_include": [1, 2]}, "breaks max_per_source"),
        ({"must_include": [1], "exclude": [1]}, "both in must_include and in exclude"),
        ({"must_include": [1, 1]}, "names a candidate twice"),
        ({"k": 1, "must_include": [1, 2]}, "more than k = 1"),
        ({"must_include": [60]}, "no candidate 60"),
        ({"exclude": [-1]}, "no candidate -1"),
        ({"exclude": range(60)}, "no candidate is left"),
        ({"min_similarity": 2.0}, "no candidate is left"),
        ({"sigma": 0}, "sigma must be in"),
        ({"sigma": "wide"}, "sigma must be a finite number > 0 or 'auto'"),
        ({"sigma": float("nan")}, "sigma must be a finite number"),
        ({"distance": "manhattan"}, "choose one of scaled_cosine, euclidean"),
        ({"method": "best"}, "choose one of dartboard, mmr"),
        ({"scores": [1.0]}, "relevance has shape"),
        ({"scores": [np.nan] * 60}, "finite numbers"),
        ({"scores": [1.0] * 60, "temperature": 0}, "temperature must be a finite number > 0"),
        ({"k": 3.0}, "k must be a whole number"),
        ({"k": float("nan")}, "k must be a whole number"),
        ({"k": "3"}, "k must be a whole number"),
        ({"token_budget": "9", "costs": [1] * 60}, "token_budget must be a finite number"),
        ({"token_budget": 9, "costs": np.ones((60, 1))}, "costs must be a vector"),
        ({"token_budget": 9, "costs": ["a"] * 60}, "costs must be a vector"),
        ({"max_per_source": "2", "sources": [1] * 60}, "max_per_source must be a whole number"),
        ({"max_per_source": 2, "sources": [[1]] * 60}, "sources must be names"),
        ({"must_include": [1.5]}, "must_include holds positions"),
        ({"min_similarity": "x"}, "min_similarity must be a number"),
        ({"min_gain_share": None}, "min_gain_share must be in"),
        ({"scores": ["a"] * 60}, "scores must be a vector"),
        ({"scores": np.linspace(-1e300, 1e300, 60)}, "scores must be a vector of finite numbers below"),
        ({"scores": [1.0] * 60, "temperature": "hot"}, "temperature must be a finite number > 0"),
        ({"scores": np.arange(60.0), "method": "mmr"}, "mmr weighs similarities"),
        ({"sigma": 1e-300}, "sigma must be in"),
        ({"targets": np.ones((3, 2))}, "targets have 2 dimensions where 384"),
    ],
)
def test_contradictions_are_refused(options, says):
    with pytest.raises(ValueError, match=says):
        select(CANDIDATES, QUERY, **{"k": 5} | options)


@pytest.mark.parametrize("bad", [np.nan, np.inf, 0.0])
@pytest.mark.parametrize("n", [10, 200])
def test_unusable_vectors_are_named(bad, n):
    embeddings = BIG[:n].copy()
    embeddings[6] = bad
    with pytest.raises(InvalidInputError, match="embeddings row 6"):
        select(embeddings, BIG_QUERY)
    with pytest.raises(InvalidInputError, match="query"):
        select(BIG, np.full(384, bad))
    with pytest.raises(InvalidInputError, match="query has 3 dimensions where 384"):
        select(BIG, np.ones(3))


def test_limits_need_an_amount():
    with pytest.raises(ConfigError, match="k, token_budget, or both"):
        Limits()


@pytest.mark.parametrize("scale", [1e-30, 1e30])
def test_any_magnitude_of_vectors(scale):
    here, there = select(CANDIDATES, QUERY, 6), select(CANDIDATES.astype(np.float64) * scale, QUERY, 6)
    assert here.indices.tolist() == there.indices.tolist()


def test_methods_say_their_parameters():
    with pytest.raises(ConfigError, match="relevance_weight must be in"):
        MMR(relevance_weight=1.5)
    with pytest.raises(ConfigError, match="threshold is a similarity"):
        NearDuplicateFilter(threshold=2)
    assert select(CANDIDATES, QUERY, method=MMR(relevance_weight=0.3)).parameters == {"relevance_weight": 0.3}
    assert Dartboard().select(from_embeddings(QUERY, CANDIDATES), Limits(k=2)).method == "dartboard"


@pytest.mark.parametrize("n", [20, 100, 150, 300])
def test_an_early_stop_is_a_prefix_of_the_whole(n):
    """Whichever way a pool of this size is walked, and however few rows it looks at first."""
    for seed in range(40):
        rng = np.random.default_rng(seed)
        centres = rng.standard_normal((12, 32))
        vectors = (centres[rng.integers(0, 12, n)] + 0.3 * rng.standard_normal((n, 32))).astype(np.float32)
        query = centres[:4].mean(axis=0).astype(np.float32)
        whole = select(vectors, query, 12, sigma=0.1)
        for share in (0.05, 0.3, 0.7):
            stopped = select(vectors, query, 12, sigma=0.1, min_gain_share=share)
            small = np.flatnonzero(whole.gains < share * whole.gains[0])
            wanted = small[0] if len(small) else 12
            assert stopped.indices.tolist() == whole.indices[:wanted].tolist()


def test_an_unknown_option_is_named_with_those_there_are():
    with pytest.raises(TypeError, match=r"takes no 'lam'; its limits are costs, exclude, .*relevance_weight"):
        select(np.eye(3), [1.0, 0.0, 0.0], k=2, lam=0.5)
