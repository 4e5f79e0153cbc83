"""The two plain retrievers, and what every retriever promises."""

from contextlib import nullcontext

import numpy as np
import pytest

from dartboard.errors import ConfigError, InvalidInputError
from dartboard.retrievers import BM25Retriever, DenseRetriever, HybridRetriever, Retriever
from dartboard.stores import parse_filter
from tests.models import WordBag

from .corpus import TEXTS, CountedBag, collection_for, records_of

QUERY = "how are JWT tokens validated"


@pytest.fixture
def collection():
    return collection_for()


def test_dense_is_cosine_order(collection):
    found = DenseRetriever(WordBag()).retrieve(collection, QUERY, 5)
    vectors = np.stack([record.embedding for record in records_of()]).astype(float)
    query = WordBag().encode_query(QUERY).astype(float)
    cosines = vectors @ query / np.linalg.norm(vectors, axis=1) / np.linalg.norm(query)
    expected = sorted(zip(TEXTS, cosines, strict=True), key=lambda pair: (-pair[1].round(6), pair[0]))[:5]
    assert [candidate.chunk.id for candidate in found.found] == [id for id, _ in expected]
    np.testing.assert_allclose([c.score for c in found.found], [score for _, score in expected], atol=1e-6)
    assert found.found[0].chunk.id == "jwt" and found.found[0].chunk.text == TEXTS["jwt"]
    np.testing.assert_allclose(found.query_vector, query, rtol=1e-6)
    shares = [candidate.shares["dense"] for candidate in found.found]
    assert [share.rank for share in shares] == [1, 2, 3, 4, 5]
    assert [share.score for share in shares] == [candidate.score for candidate in found.found]
    assert set(found.seconds) == {"encode", "search", "fetch"} and len(found) == 5


def test_equal_passages_come_by_id(collection):
    found = DenseRetriever(WordBag()).retrieve(collection, "the cache keeps recent answers in memory", 2)
    assert [candidate.chunk.id for candidate in found.found] == ["cache", "copy"]


def test_filters_reach_the_store(collection):
    where = parse_filter('kind = "odd"')
    for retriever in (DenseRetriever(WordBag()), BM25Retriever()):
        found = retriever.retrieve(collection, QUERY, 5, where=where).found
        assert found and all(candidate.chunk.metadata["kind"] == "odd" for candidate in found)


def test_two_encoders(collection):
    class Turned(WordBag):
        def encode(self, texts, batch_size=32):
            return -super().encode(texts, batch_size)

    plain = DenseRetriever(WordBag()).retrieve(collection, QUERY, 12)
    turned = DenseRetriever(WordBag(), query_model=Turned()).retrieve(collection, QUERY, 12)
    assert turned.found[-1].chunk.id == plain.found[0].chunk.id == "jwt"
    np.testing.assert_array_equal(turned.query_vector, -plain.query_vector)
    with pytest.raises(ConfigError, match="16 dimensions, the passage encoder 'WordBag' 32"):
        DenseRetriever(WordBag(), query_model=WordBag(16))


def test_dense_explains_and_indexes_nothing(collection):
    retriever = DenseRetriever(WordBag())
    found = retriever.retrieve(collection, QUERY, 1).found[0]
    told = retriever.explain(collection, QUERY, found.chunk.id)
    assert told["score"] == pytest.approx(found.score, abs=1e-6) and told["query_model"] == "WordBag"
    records = records_of()
    assert retriever.index(records) == records and retriever.index_settings() == {}
    with pytest.raises(InvalidInputError, match="no chunk 'nothing' in collection 'docs'"):
        retriever.explain(collection, QUERY, "nothing")


def test_bm25_finds_words_and_tells_terms(collection):
    retriever = BM25Retriever()
    found = retriever.retrieve(collection, QUERY, 12)
    ids = [candidate.chunk.id for candidate in found.found]
    assert ids[0] == "jwt" and "deploy" not in ids and found.query_vector is None
    assert all(candidate.chunk.embedding.size == 32 for candidate in found.found)
    told = retriever.explain(collection, QUERY, "jwt")
    assert told["score"] == pytest.approx(found.found[0].score, rel=1e-6)
    assert {term["term"]: term["score"] > 0 for term in told["terms"]}["jwt"]
    with_model = BM25Retriever(WordBag()).retrieve(collection, QUERY, 3)
    np.testing.assert_array_equal(with_model.query_vector, WordBag().encode_query(QUERY))


def test_bm25_on_a_store_that_cannot_explain(collection):
    collection.explain_text = lambda *_: []  # as on Milvus
    retriever = BM25Retriever()
    score = retriever.retrieve(collection, QUERY, 1).found[0].score
    assert retriever.explain(collection, QUERY, "jwt") == {"score": pytest.approx(score)}
    assert retriever.explain(collection, QUERY, "deploy") == {"score": None, "beyond_rank": 1000}


def test_k1_and_b_are_the_collections(collection):
    flat = collection_for(settings={"lexical": {"k1": 0.0}})
    query = "database database connection"
    scores = {
        one: [hit.score for hit in BM25Retriever().retrieve(where, query, 3).found]
        for one, where in (("usual", collection), ("flat", flat))
    }
    assert scores["usual"] != scores["flat"]


def test_empty_query_and_empty_collection(collection):
    for retriever in (DenseRetriever(WordBag()), BM25Retriever()):
        with pytest.raises(InvalidInputError, match="query is empty"):
            retriever.retrieve(collection, "  ", 3)
    empty = collection_for(texts={"one": "alone"})
    empty.delete(["one"])
    for retriever in (DenseRetriever(WordBag()), BM25Retriever(WordBag())):
        assert retriever.retrieve(empty, QUERY, 3).found == []
    both = HybridRetriever([DenseRetriever(WordBag()), BM25Retriever()])
    assert both.retrieve(empty, QUERY, 3).found == []


def test_passages_deleted_meanwhile_are_left_out(collection):
    search = collection.search_vector

    def racing(*args, **options):
        hits = search(*args, **options)
        collection.delete([hits[0].id])
        return hits

    collection.search_vector = racing
    collection.read_snapshot = lambda: nullcontext(collection)  # as a store without snapshots
    found = DenseRetriever(WordBag()).retrieve(collection, QUERY, 3).found
    assert [candidate.shares["dense"].rank for candidate in found] == [2, 3]


def test_all_are_retrievers():
    model = CountedBag()
    assert isinstance(DenseRetriever(model), Retriever) and isinstance(BM25Retriever(), Retriever)
    with pytest.raises(InvalidInputError, match="needs a name"):
        DenseRetriever(model, name="")
