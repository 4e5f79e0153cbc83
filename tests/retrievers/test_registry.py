"""Retrievers by name."""

import pytest

from dartboard.errors import ConfigError, ModelError
from dartboard.retrievers import (
    BM25Retriever,
    ColbertRetriever,
    DenseRetriever,
    HybridRetriever,
    retriever_by_name,
)
from tests.models import WordBag

from .corpus import CountedBag, WordTokens, collection_for


class TokenBag(WordBag):
    """A word bag that also gives token vectors."""

    token_vectors = WordTokens.token_vectors

    def __init__(self):
        super().__init__()
        self._bag, self.calls = WordBag(), 0


def test_simple_names():
    model = TokenBag()
    assert isinstance(retriever_by_name("dense", model=model), DenseRetriever)
    assert isinstance(retriever_by_name(" bm25 ", model=model), BM25Retriever)
    colbert = retriever_by_name("colbert", model=model)
    assert isinstance(colbert, ColbertRetriever) and colbert.triage == "embedding"


@pytest.mark.parametrize(
    "name, weights, method, normalise",
    [
        ("hybrid", {"dense": 0.7, "bm25": 0.3}, "scores", "minmax"),
        ("hybrid:0.6", {"dense": 0.6, "bm25": 0.4}, "scores", "minmax"),
        ("hybrid-zscore", {"dense": 0.7, "bm25": 0.3}, "scores", "zscore"),
        ("hybrid:dense=3, bm25=1", {"dense": 0.75, "bm25": 0.25}, "scores", "minmax"),
        (
            "hybrid:dense=2,bm25=1,colbert=1",
            {"dense": 0.5, "bm25": 0.25, "colbert": 0.25},
            "scores",
            "minmax",
        ),
        ("rrf", {"dense": 1, "bm25": 1}, "rrf", "minmax"),
        ("rrf:dense,colbert", {"dense": 1, "colbert": 1}, "rrf", "minmax"),
        ("rrf:dense=2,bm25", {"dense": 2, "bm25": 1}, "rrf", "minmax"),
    ],
)
def test_mixtures(name, weights, method, normalise):
    made = retriever_by_name(name, model=TokenBag())
    assert isinstance(made, HybridRetriever) and made.name == name.partition(":")[0]
    assert [member.name for member in made.members] == list(weights)
    assert made.weights == pytest.approx(tuple(weights.values()))
    assert (made.method, made.normalise) == (method, normalise)


def test_a_fitted_alpha_where_the_name_says_none():
    assert retriever_by_name("hybrid", model=WordBag(), alpha=0.4).weights == pytest.approx((0.4, 0.6))
    assert retriever_by_name("hybrid:0.9", model=WordBag(), alpha=0.4).weights[0] == 0.9
    assert retriever_by_name("rrf", model=WordBag(), alpha=0.4).weights == (1.0, 1.0)


def test_the_query_is_encoded_once():
    model = CountedBag()
    made = retriever_by_name("hybrid", model=model)
    assert len(made.retrieve(collection_for(), "validated tokens", 3)) == 3
    assert model.queries == 1


@pytest.mark.parametrize(
    "name, message",
    [
        ("", "unknown retriever"),
        (None, "unknown retriever None"),
        ("sparse", "use one of dense, bm25, colbert, colbert:PATH, splade:PATH, hybrid"),
        ("splade", "unknown retriever 'splade'"),
        ("dense:x", "unknown retriever 'dense:x'"),
        ("hybrid:dense,bm25", "NAME=WEIGHT"),
        ("hybrid:dense=much", "NAME=WEIGHT"),
        ("hybrid:1.5", "alpha must be in"),
        ("hybrid:dense=1", "at least two members"),
        ("rrf:dense,rrf", "members are dense"),
        ("rrf:hybrid:0.7=1,dense", "members are dense"),
        ("rrf:dense,,bm25", "unknown retriever ''"),
        ("colbert", "has no token vectors"),
    ],
)
def test_names_that_are_none(name, message):
    with pytest.raises(ConfigError, match=message):
        retriever_by_name(name, model=WordBag())


def test_folders(tmp_path):
    pytest.importorskip("transformers")
    with pytest.raises(ModelError, match="is not a folder"):
        retriever_by_name(f"colbert:{tmp_path / 'nowhere'}", model=WordBag())
    with pytest.raises(ModelError, match="holds no model"):
        retriever_by_name(f"hybrid:dense=1,splade:{tmp_path}=1", model=WordBag())
    for name in ("colbert:x", "splade:x", "rrf:dense,splade:x"):
        with pytest.raises(ConfigError, match="not allowed here"):
            retriever_by_name(name, model=WordBag(), paths=False)
    with pytest.raises(ConfigError) as refused:
        retriever_by_name("nothing", model=WordBag(), paths=False)
    assert "PATH" not in str(refused.value)
