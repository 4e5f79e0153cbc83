"""Fusion of members: weights, normalisation, ranks, and what happens to a candidate that a member missed."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dartboard.errors import ConfigError
from dartboard.retrievers import (
    BM25Retriever,
    Candidates,
    DenseRetriever,
    Fields,
    HybridRetriever,
    Ranked,
    Retriever,
)
from dartboard.retrievers.hybrid import normalised
from dartboard.retrievers.query import Query
from dartboard.stores import parse_filter
from dartboard.types import Chunk
from tests.models import WordBag

from .corpus import CountedBag, collection_for

QUERY = "how are JWT tokens validated"


@pytest.fixture(scope="module")
def collection():
    return collection_for()


def members():
    return [DenseRetriever(WordBag()), BM25Retriever()]


def by_hand(collection, alpha, scale):
    """α · dense + (1 - α) · BM25 over all that either finds, from complete lists."""
    dense = {c.chunk.id: c.score for c in DenseRetriever(WordBag()).retrieve(collection, QUERY, 50).found}
    words = {c.chunk.id: c.score for c in BM25Retriever().retrieve(collection, QUERY, 50).found}
    ids = sorted(dense)
    first, second = scale([dense[id] for id in ids]), scale([words.get(id, 0.0) for id in ids])
    return dict(zip(ids, alpha * first + (1 - alpha) * second, strict=True))


def minmax(values):
    values = np.array(values)
    return (values - values.min()) / (values.max() - values.min())


def zscore(values):
    return (np.array(values) - np.mean(values)) / np.std(values)


@pytest.mark.parametrize("alpha", [0.0, 0.3, 0.7, 1.0])
@pytest.mark.parametrize("normalise, scale", [("minmax", minmax), ("zscore", zscore)])
def test_weighted_sum_of_normalised_scores(collection, alpha, normalise, scale):
    found = HybridRetriever(members(), alpha=alpha, normalise=normalise).retrieve(collection, QUERY, 12).found
    expected = by_hand(collection, alpha, scale)
    order = sorted(expected, key=lambda id: (-round(expected[id], 6), id))
    assert [candidate.chunk.id for candidate in found] == order
    np.testing.assert_allclose([c.score for c in found], [expected[id] for id in order], atol=1e-6)


def test_default_is_seven_tenths_dense():
    assert HybridRetriever(members()).weights == pytest.approx((0.7, 0.3))
    assert HybridRetriever(members(), weights=[3, 1]).weights == (0.75, 0.25)
    assert HybridRetriever(members(), weights={"bm25": 1, "dense": 4}).weights == (0.8, 0.2)
    assert HybridRetriever(members(), method="rrf").weights == (1.0, 1.0)
    three = [*members(), BM25Retriever(name="again")]
    assert HybridRetriever(three).weights == pytest.approx((1 / 3,) * 3)


def test_what_a_member_missed(collection):
    """Dense works its cosine out; BM25 counts it as its last, or 0 where nothing more shares a word."""
    hybrid = HybridRetriever(members(), depth=3)
    candidates, scores = hybrid.member_scores(collection, Query(QUERY), 1)
    words = candidates.members["bm25"]
    ids = candidates.ids
    assert ids == sorted(ids) and len(ids) > 3
    cosines = {c.chunk.id: c.score for c in DenseRetriever(WordBag()).retrieve(collection, QUERY, 50).found}
    np.testing.assert_allclose(scores[0], [cosines[id] for id in ids], atol=1e-6)
    only_dense = [at for at, id in enumerate(ids) if id not in words.ids]
    assert only_dense and len(words.ids) == 3
    assert set(scores[1][only_dense]) == {words.scores[-1]}
    short, scores = hybrid.member_scores(collection, Query("jwt nonsense"), 1)
    assert short.members["bm25"].ids == ["jwt"]
    missed = [at for at, id in enumerate(short.ids) if id != "jwt"]
    assert set(scores[1][missed]) == {0.0}


def test_a_member_that_finds_nothing_is_silent(collection):
    found = HybridRetriever(members()).retrieve(collection, "nonsense words only", 5).found
    dense = DenseRetriever(WordBag()).retrieve(collection, "nonsense words only", 5).found
    assert [c.chunk.id for c in found] == [c.chunk.id for c in dense]
    assert all(set(c.shares) == {"hybrid", "dense"} for c in found)


def test_fusion_by_rank(collection):
    hybrid = HybridRetriever(members(), method="rrf", damping=10, weights=[2, 1])
    found = hybrid.retrieve(collection, QUERY, 12).found
    for candidate in found:
        shares = candidate.shares
        expected = sum(
            weight / (10 + shares[name].rank)
            for name, weight in (("dense", 2), ("bm25", 1))
            if name in shares
        )
        assert candidate.score == pytest.approx(expected)
    assert [c.score for c in found] == sorted((c.score for c in found), reverse=True)
    assert found[0].chunk.id == "jwt"


def test_shares_and_nesting(collection):
    inner = HybridRetriever(members(), name="inner")
    outer = HybridRetriever([inner, DenseRetriever(WordBag(), name="plain")], alpha=0.5)
    best = outer.retrieve(collection, QUERY, 3).found[0]
    assert set(best.shares) == {"hybrid", "inner", "inner/dense", "inner/bm25", "plain"}
    assert best.shares["inner/bm25"].rank == 1 and best.shares["hybrid"].score == best.score


def test_the_query_is_encoded_once_and_passages_are_fetched_once(collection, monkeypatch):
    model = CountedBag()
    fetched = []
    get = collection.get
    monkeypatch.setattr(collection, "get", lambda ids, **rest: fetched.extend(ids) or get(ids, **rest))
    hybrid = HybridRetriever([DenseRetriever(model), BM25Retriever(model)])
    found = hybrid.retrieve(collection, QUERY, 4)
    assert model.queries == 1 and len(fetched) == len(set(fetched))
    np.testing.assert_array_equal(found.query_vector, model.encode(QUERY)[0])
    assert found.seconds["encode"] > 0


def test_filters_and_depth(collection):
    found = HybridRetriever(members(), depth=1).retrieve(
        collection, QUERY, 3, where=parse_filter("length > 45")
    )
    assert 0 < len(found) <= 3
    assert all(candidate.chunk.metadata["length"] > 45 for candidate in found.found)


class Foreign(Retriever):
    """A retriever with ``retrieve`` alone: it knows one chunk."""

    name = "foreign"

    def __init__(self):
        pass

    def retrieve(self, collection, query, k, *, where=None):
        chunk = Chunk("deploy", "elsewhere", np.ones(32))
        return Candidates.from_chunks([chunk], [5.0])

    def explain(self, collection, query, chunk_id):
        return {"because": "it is the only one"}


def test_members_from_elsewhere(collection):
    hybrid = HybridRetriever([DenseRetriever(WordBag()), Foreign()], method="rrf", weights=[0.1, 1])
    best = hybrid.retrieve(collection, QUERY, 2).found[0]
    assert best.chunk.id == "deploy" and best.shares["foreign"].score == 5.0
    assert hybrid.index([]) == [] and hybrid.fields() == Fields()
    told = hybrid.explain(collection, QUERY, "deploy")
    assert told["members"]["foreign"] == {"because": "it is the only one", "weight": 1.0, "rank": 1}


@pytest.mark.parametrize("method", ["scores", "rrf"])
def test_explanation_adds_up(collection, method):
    hybrid = HybridRetriever(members(), method=method)
    best = hybrid.retrieve(collection, QUERY, 5).found[0]
    told = hybrid.explain(collection, QUERY, best.chunk.id)
    assert told["score"] == pytest.approx(best.score)
    dense = told["members"]["dense"]
    assert dense["rank"] == best.shares["dense"].rank
    assert dense["score"] == pytest.approx(best.shares["dense"].score, abs=1e-6)
    assert told["members"]["bm25"]["terms"]
    if method == "scores":
        total = sum(member["weight"] * member["normalised"] for member in told["members"].values())
        assert total == pytest.approx(best.score)


def test_explaining_what_nobody_found(collection):
    hybrid = HybridRetriever(members(), depth=1)
    told = hybrid.explain(collection, QUERY, "deploy")
    assert told["score"] is None and told["members"]["dense"]["rank"] is None
    assert (
        HybridRetriever(members(), depth=1, method="rrf").explain(collection, QUERY, "deploy")["score"] == 0
    )


@pytest.mark.parametrize(
    "options, message",
    [
        ({"alpha": 1.1}, "alpha must be in"),
        ({"alpha": 0.5, "weights": [1, 1]}, "give one of the two"),
        ({"weights": [1]}, "1 weights for 2 members"),
        ({"weights": [0, 0]}, "not all 0"),
        ({"weights": [1, float("nan")]}, "finite numbers"),
        ({"weights": {"dense": 1}}, "the members are dense, bm25"),
        ({"normalise": "softmax"}, "minmax, zscore, none"),
        ({"method": "sum"}, "scores, rrf"),
        ({"damping": -1}, "damping must be"),
        ({"depth": 0}, "depth must be"),
    ],
)
def test_settings_that_cannot_be(options, message):
    with pytest.raises(ConfigError, match=message):
        HybridRetriever(members(), **options)


def test_members_that_cannot_be():
    with pytest.raises(ConfigError, match="at least two members, got 1"):
        HybridRetriever(members()[:1])
    with pytest.raises(ConfigError, match="different names"):
        HybridRetriever([BM25Retriever(), BM25Retriever()])
    with pytest.raises(ConfigError, match="here are 3"):
        HybridRetriever([*members(), BM25Retriever(name="third")], alpha=0.5)


values = st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=30)


@given(values, st.floats(0.1, 100), st.floats(-100, 100))
def test_normalised_scores_know_no_scale(scores, factor, shift):
    given_scores = np.array(scores)
    if 0 < np.ptp(given_scores) < 1e-3 * max(1.0, np.abs(given_scores).max()):
        return
    for how in ("minmax", "zscore"):
        once = normalised(given_scores, how)
        again = normalised(given_scores * factor + shift, how)
        np.testing.assert_allclose(once, again, atol=1e-5)
    first = normalised(given_scores, "minmax")
    assert first.min() == 0.0 and (first.max() == 1.0 or np.ptp(given_scores) == 0)
    np.testing.assert_array_equal(normalised(given_scores, "none"), given_scores)


class OnlyIds(Retriever):
    """A retriever that gives ids and keeps settings."""

    name = "foreign"

    def __init__(self):
        pass

    def index_settings(self):
        return {"foreign": {"version": 2}}

    def rank(self, view, query, k, *, where=None):
        return Ranked.of(view.search_text(query.text, k, where=where))


def test_a_retriever_of_ones_own_keeps_its_settings_and_gets_vectors(collection):
    hybrid = HybridRetriever([DenseRetriever(WordBag()), OnlyIds()])
    assert hybrid.index_settings() == {"foreign": {"version": 2}}
    words = BM25Retriever().retrieve(collection, QUERY, 5)
    found = OnlyIds().find(collection, Query(QUERY), 5)
    assert found.ids == words.ids and found.vectors.shape == words.vectors.shape
