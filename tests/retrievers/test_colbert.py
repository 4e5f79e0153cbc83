"""Late interaction over a collection: exact MaxSim on triaged passages, and what matched what."""

from contextlib import nullcontext

import numpy as np
import pytest

from dartboard.embeddings import default_model
from dartboard.errors import ConfigError, StoreFormatError
from dartboard.retrievers import ColbertRetriever, DenseRetriever, FixedDimensional, HybridRetriever
from dartboard.retrievers.query import Query
from dartboard.stores import parse_filter
from tests.models import WordBag

from .corpus import TEXTS, WordTokens, collection_for, records_of

QUERY = "how are JWT tokens validated"


def naive(query, text, model):
    asked, there = model.token_vectors([query, text])
    return sum(max(float(a @ b) for b in there) for a in asked)


@pytest.mark.parametrize("triage", ["embedding", "pooled", "fde"])
@pytest.mark.parametrize("bits, close", [(8, 0.01), (4, 0.15), (2, 0.6)])
def test_max_sim_of_every_passage(triage, bits, close):
    tokens = WordTokens()
    retriever = ColbertRetriever(tokens, model=WordBag(), triage=triage, bits=bits)
    collection = collection_for(retriever)
    found = retriever.retrieve(collection, QUERY, len(TEXTS))
    assert len(found) == len(TEXTS)
    for candidate in found.found:
        assert candidate.score == pytest.approx(naive(QUERY, candidate.chunk.text, tokens), abs=close)
    assert found.found[0].chunk.id == "jwt" and found.found[0].shares["colbert"].rank == 1
    np.testing.assert_array_equal(found.query_vector, WordBag().encode_query(QUERY))


def test_triage_limits_what_is_compared():
    retriever = ColbertRetriever(WordTokens(), model=WordBag(), triage="pooled", triage_k=3)
    collection = collection_for(retriever)
    asked = []
    get = collection.get
    collection.get = lambda ids, **rest: asked.extend(ids) or get(ids, **rest)
    collection.read_snapshot = lambda: nullcontext(collection)
    assert len(retriever.retrieve(collection, QUERY, 2)) == 2
    assert len(set(asked)) == 3
    found = retriever.retrieve(collection, QUERY, 5, where=parse_filter('kind = "odd"'))
    assert {candidate.chunk.metadata["kind"] for candidate in found.found} == {"odd"}


def test_explains_token_by_token():
    tokens = WordTokens()
    retriever = ColbertRetriever(tokens, model=WordBag(), bits=8)
    collection = collection_for(retriever)
    told = retriever.explain(collection, QUERY, "jwt")
    matched = {match["query"]: match for match in told["matches"]}
    assert list(matched) == QUERY.lower().split()
    for word in ("are", "jwt", "tokens", "validated"):
        assert matched[word]["passage"] == word
        assert matched[word]["similarity"] == pytest.approx(1.0, abs=0.01)
        assert TEXTS["jwt"].lower().split()[matched[word]["position"]] == word
    assert matched["how"]["similarity"] < 0.9
    assert told["score"] == pytest.approx(naive(QUERY, TEXTS["jwt"], tokens), abs=0.01)


def test_explains_by_number_where_the_model_cannot_spell():
    class Mute(WordTokens):
        tokens = None

    retriever = ColbertRetriever(Mute(), model=WordBag(), triage="fde")
    told = retriever.explain(collection_for(retriever), "jwt", "jwt")
    assert told["matches"][0]["query"] == "#0" and told["matches"][0]["passage"] == "#0"


def test_scores_any_chunk_for_a_hybrid():
    tokens = WordTokens()
    colbert = ColbertRetriever(tokens, model=WordBag(), triage="pooled", bits=8)
    hybrid = HybridRetriever([DenseRetriever(WordBag()), colbert], depth=2)
    collection = collection_for(hybrid)
    union, scores = hybrid.member_scores(collection, Query(QUERY), 1)
    for record, score in zip(collection.get(union.ids), scores[1], strict=True):
        assert score == pytest.approx(naive(QUERY, record.text, tokens), abs=0.01)
    there = collection.get(["deploy", "cache"])
    scores = colbert.scores(collection, Query(QUERY), ["deploy", "cache", "gone"], np.ones((3, 32)))
    expected = [naive(QUERY, chunk.text, tokens) for chunk in there]
    np.testing.assert_allclose(scores, [*expected, 0.0], atol=0.01)
    assert hybrid.index_settings() == {"colbert": dict(colbert.settings)}


def test_the_default_models_own_tokens():
    model = default_model()
    texts = {id: TEXTS[id] for id in ("jwt", "session", "cache", "deploy")}
    retriever = ColbertRetriever(model, model=model, bits=8)
    assert retriever.triage == "embedding" and retriever.token_dim == 384
    collection = collection_for(retriever, texts=texts, model=model)
    found = retriever.retrieve(collection, QUERY, 4).found
    asked, there = model.token_vectors(QUERY)[0], model.token_vectors(TEXTS["jwt"])[0]
    assert found[0].chunk.id == "jwt"
    assert found[0].score == pytest.approx(float((asked @ there.T).max(axis=1).sum()), abs=0.01)
    told = retriever.explain(collection, QUERY, "jwt")
    assert ("valid", "valid") in {(m["query"], m["passage"]) for m in told["matches"]} or (
        "validated",
        "validated",
    ) in {(m["query"], m["passage"]) for m in told["matches"]}


def test_needs_and_settings():
    fde = ColbertRetriever(WordTokens(), encoding=FixedDimensional(dimension=64))
    assert fde.triage == "fde" and fde.fields().blobs == ("colbert",)
    assert fde.fields().vectors["colbert_fde"].metric == "dot"
    pooled = ColbertRetriever(WordTokens(), triage="pooled")
    assert pooled.fields().vectors["colbert_pooled"].dimension == 32
    assert fde.settings["encoding"]["dimension"] == 64 and "encoding" not in pooled.settings

    class Bare:
        def token_vectors(self, texts, *, task=None, batch_size=32):
            return [np.ones((2, 24), np.float32) for _ in texts]

    assert ColbertRetriever(Bare()).token_dim == 24
    for options, message in (
        ({"triage": "all"}, "embedding, pooled, fde"),
        ({"triage": "embedding"}, "needs model="),
        ({"triage_k": 0}, "triage_k must be"),
        ({"bits": 5}, "8, 4 or 2"),
    ):
        with pytest.raises(ConfigError, match=message):
            ColbertRetriever(WordTokens(), **options)


def test_a_collection_made_otherwise():
    retriever = ColbertRetriever(WordTokens(), model=WordBag(), triage="pooled")
    with pytest.raises(StoreFormatError, match="no field 'colbert_pooled', which 'colbert' needs"):
        retriever.retrieve(collection_for(), QUERY, 3)
    plain = collection_for(retriever, records=None)
    plain.upsert(records_of())
    with pytest.raises(StoreFormatError, match="has no token codes 'colbert'"):
        retriever.explain(plain, QUERY, "jwt")
    other = ColbertRetriever(WordTokens(), encoding=FixedDimensional(dimension=128))
    made = collection_for(ColbertRetriever(WordTokens(), encoding=FixedDimensional(dimension=64)))
    with pytest.raises(StoreFormatError, match="dimension=64"):
        other.retrieve(made, QUERY, 3)
    kept = collection_for(retriever, settings={"retrievers": retriever.index_settings()})
    assert len(retriever.retrieve(kept, QUERY, 3)) == 3
    four = ColbertRetriever(WordTokens(), model=WordBag(), triage="pooled", bits=8, seed=1)
    with pytest.raises(StoreFormatError, match=r"other settings \(bits, seed differ\)"):
        four.retrieve(kept, QUERY, 3)
