"""Learned sparse retrieval over a collection, by an encoder of words and by a tiny masked language model."""

import numpy as np
import pytest

from dartboard.embeddings.torch_models import TermWeights
from dartboard.errors import StoreFormatError
from dartboard.retrievers import DenseRetriever, HybridRetriever, SpladeRetriever
from dartboard.stores import parse_filter
from tests.embeddings.tiny_models import save_tiny
from tests.models import WordBag

from .corpus import TEXTS, collection_for

QUERY = "how are JWT tokens validated"


class Words:
    """A sparse encoder: each word a term, as heavy as it is long; what it does not know weighs nothing."""

    name, fingerprint = "words", "words:1"

    def __init__(self):
        self.known = sorted({word for text in TEXTS.values() for word in text.lower().split()})

    def _of(self, text):
        found = sorted({self.known.index(word) for word in text.lower().split() if word in self.known})
        weights = [len(self.known[term]) for term in found]
        return TermWeights(np.array(found, np.int32), np.array(weights, np.float32))

    def encode_query(self, text):
        return self._of(text)

    def encode_documents(self, texts, *, batch_size=16):
        return [self._of(text) for text in texts]

    def term(self, term):
        return self.known[term]


@pytest.fixture
def retriever():
    return SpladeRetriever(Words(), model=WordBag())


def test_dot_products_of_terms(retriever):
    collection = collection_for(retriever)
    found = retriever.retrieve(collection, QUERY, 12).found
    for candidate in found:
        shared = set(QUERY.lower().split()) & set(candidate.chunk.text.lower().split())
        assert candidate.score == pytest.approx(sum(len(word) ** 2 for word in shared))
    assert found[0].chunk.id == "jwt" and "deploy" not in {c.chunk.id for c in found}
    odd = retriever.retrieve(collection, QUERY, 12, where=parse_filter('kind = "odd"')).found
    assert {c.chunk.metadata["kind"] for c in odd} == {"odd"}


def test_explains_by_term(retriever):
    collection = collection_for(retriever)
    told = retriever.explain(collection, QUERY, "jwt")
    assert [term["term"] for term in told["terms"]] == ["validated", "tokens", "are", "jwt"]
    assert told["terms"][0] == {"term": "validated", "query": 9.0, "passage": 9.0, "score": 81.0}
    assert told["score"] == retriever.retrieve(collection, QUERY, 1).found[0].score


def test_a_query_without_terms_finds_nothing(retriever):
    collection = collection_for(retriever)
    assert retriever.retrieve(collection, "nonsense", 3).found == []
    hybrid = HybridRetriever([DenseRetriever(WordBag()), retriever])
    assert len(hybrid.retrieve(collection, "nonsense", 3)) == 3


def test_needs_and_settings(retriever):
    assert retriever.fields().sparse == ("splade",)
    assert retriever.index_settings() == {"splade": {"encoder": "words:1"}}
    with pytest.raises(StoreFormatError, match="no field 'splade'"):
        retriever.retrieve(collection_for(), QUERY, 3)
    other = collection_for(retriever, settings={"retrievers": {"splade": {"encoder": "other"}}})
    with pytest.raises(StoreFormatError, match="encoder differ"):
        retriever.retrieve(other, QUERY, 3)


def test_a_real_encoder(tmp_path):
    pytest.importorskip("torch")
    pytest.importorskip("transformers")
    from dartboard.embeddings.torch_models import SpladeModel

    encoder = SpladeModel(save_tiny(tmp_path, "BertForMaskedLM"), max_terms=64)
    retriever = SpladeRetriever(encoder)
    collection = collection_for(retriever)
    asked = encoder.encode_query(QUERY)
    dense = np.zeros(30522)
    dense[asked.terms] = asked.weights
    for candidate in retriever.retrieve(collection, QUERY, 12).found:
        (own,) = encoder.encode_documents([candidate.chunk.text])
        assert candidate.score == pytest.approx(float(dense[own.terms] @ own.weights), rel=1e-4)
        told = retriever.explain(collection, QUERY, candidate.chunk.id)
        assert told["score"] == pytest.approx(candidate.score, rel=1e-4)
