"""Every retriever over the embedded file gives what it gives over memory, also after reopening."""

import pytest

from dartboard.retrievers import (
    BM25Retriever,
    ColbertRetriever,
    DenseRetriever,
    HybridRetriever,
    MultiVectorRetriever,
    SpladeRetriever,
)
from dartboard.retrievers.multi_vector import whole_text
from dartboard.stores import Manifest, open_store
from tests.models import WordBag

from .corpus import WordTokens, records_of
from .test_splade import Words

QUERIES = ("how are JWT tokens validated", "a database connection", "the cache is full")


@pytest.fixture(scope="module")
def everything():
    model = WordBag()
    return HybridRetriever(
        [
            DenseRetriever(model),
            BM25Retriever(model),
            ColbertRetriever(WordTokens(), model=model, triage="fde", bits=4),
            ColbertRetriever(WordTokens(), model=model, triage="pooled", name="pooled"),
            SpladeRetriever(Words(), model=model),
            MultiVectorRetriever(model, {"whole": (whole_text, 1.0)}),
        ]
    )


def filled(url, retriever):
    fields, model = retriever.fields(), WordBag()
    manifest = Manifest(
        model=model.fingerprint,
        dimension=model.embedding_dim,
        vectors=fields.vectors,
        sparse=fields.sparse,
        settings={"retrievers": retriever.index_settings()},
    )
    store = open_store(url)
    store.create("docs", manifest).upsert(retriever.index(records_of()))
    return store


def test_the_same_answers(tmp_path, everything):
    path = str(tmp_path / "docs.dartboard")
    filled(path, everything).close()
    memory = filled("memory://", everything).open("docs")
    with open_store(path) as store:
        file = store.open("docs")
        for retriever in (everything, *everything.members):
            for query in QUERIES:
                there = retriever.retrieve(memory, query, 5).found
                here = retriever.retrieve(file, query, 5).found
                assert [c.chunk.id for c in here] == [c.chunk.id for c in there]
                assert [c.score for c in here] == pytest.approx([c.score for c in there], abs=1e-5)
                assert here[0].shares.keys() == there[0].shares.keys()
                told = retriever.explain(file, query, here[0].chunk.id)
                assert told["score"] == pytest.approx(here[0].score, abs=1e-4)
