"""Haystack: its pipelines, what is saved and loaded, and its filters."""

import asyncio
import os
from dataclasses import replace

# Before Haystack is imported: tests report nothing to anybody.
os.environ["HAYSTACK_TELEMETRY_ENABLED"] = "False"

import pytest
from haystack import Document, Pipeline
from haystack.components.retrievers import InMemoryBM25Retriever, InMemoryEmbeddingRetriever
from haystack.core.errors import SerializationError
from haystack.document_stores.in_memory import InMemoryDocumentStore
from haystack.utils import Secret

from dartboard import select
from dartboard.errors import ConfigError, InvalidInputError
from dartboard.integrations.haystack import DartboardRanker, DartboardRetriever, from_haystack
from dartboard.selection import MMR
from dartboard.stores import open_store, parse_filter
from tests import tea
from tests.models import WordBag
from tests.tea import QUERY, TEXTS


def bag_of(documents):
    return WordBag().encode([document.content for document in documents])


def documents():
    vectors = WordBag().encode(list(TEXTS.values())).tolist()
    return [
        Document(id=id, content=text, embedding=v)
        for (id, text), v in zip(TEXTS.items(), vectors, strict=True)
    ]


def asked():
    return WordBag().encode([QUERY])[0].tolist()


def ids(found):
    return [one.id for one in found["documents"]]


def expected(k=3):
    return [list(TEXTS)[at] for at in select(bag_of(documents()), asked(), k=k).indices]


def reloaded(pipeline):
    return Pipeline.loads(pipeline.dumps(), allowed_modules=["dartboard", "tests"])


def test_a_ranker_behind_a_retriever_that_returns_vectors():
    store = InMemoryDocumentStore(embedding_similarity_function="cosine")
    store.write_documents(documents())
    pipeline = Pipeline()
    pipeline.add_component("retriever", InMemoryEmbeddingRetriever(store, top_k=10, return_embedding=True))
    pipeline.add_component("ranker", DartboardRanker(top_k=3, use_document_embeddings=True))
    pipeline.connect("retriever.documents", "ranker.documents")
    vector = asked()
    data = {"retriever": {"query_embedding": vector}, "ranker": {"query": QUERY, "query_embedding": vector}}
    assert ids(pipeline.run(data)["ranker"]) == expected()


def test_a_ranker_is_saved_and_loaded():
    store = InMemoryDocumentStore()
    store.write_documents([replace(one, embedding=None) for one in documents()])
    pipeline = Pipeline()
    pipeline.add_component("retriever", InMemoryBM25Retriever(store, top_k=10))
    ranker = DartboardRanker(
        top_k=2, vectors=bag_of, model="default", also=["how is tea dried"], meta_key="why"
    )
    pipeline.add_component("ranker", ranker)
    pipeline.connect("retriever.documents", "ranker.documents")
    again = reloaded(pipeline).get_component("ranker")
    assert again.to_dict() == ranker.to_dict() and again.vectors is bag_of and again.options == ranker.options
    saved = DartboardRanker(method="mmr", sigma=0.2, max_per={"source": 2}, seen=["a"]).to_dict()
    assert saved["init_parameters"]["options"] == {
        "k": 5, "method": "mmr", "sigma": 0.2, "max_per": {"source": 2}, "seen": ["a"],
    }  # fmt: skip
    for wrong in ({"model": WordBag()}, {"method": MMR(0.1)}, {"tokenizer": len}):
        with pytest.raises(SerializationError, match=next(iter(wrong))):
            DartboardRanker(**wrong).to_dict()
    with pytest.raises(ConfigError):
        DartboardRanker(vectors=bag_of, use_document_embeddings=True)


def test_what_a_run_asks_takes_the_place_of_what_was_set():
    ranker = DartboardRanker(top_k=3, model=WordBag(), seen=["e"])
    assert len(ranker.run(QUERY, documents(), top_k=2)["documents"]) == 2
    assert "a" not in ids(ranker.run(QUERY, documents(), seen=["a"]))
    assert ids(ranker.run(QUERY, documents(), seen=[], offset=1)) == expected(4)[1:]
    first = ranker.run(QUERY, documents(), also=["how is coffee roasted"])["documents"][0]
    assert len(first.meta["dartboard"]["questions"]) == 2
    nothing = [Document(content=None), *documents()]
    assert len(ranker.run(QUERY, nothing, top_k=20)["documents"]) == 10  # one was seen


def test_a_retriever_opens_its_index_and_is_saved(tmp_path, monkeypatch):
    url = str(tmp_path / "tea.dartboard")
    tea.filled(open_store(url), model="default").close()
    retriever = DartboardRetriever(
        url, top_k=3, filters={"field": "meta.number", "operator": ">=", "value": 3}
    )
    pipeline = Pipeline()
    pipeline.add_component("retriever", retriever)
    found = ids(pipeline.run({"retriever": {"query": QUERY}})["retriever"])
    again = reloaded(pipeline)
    assert ids(again.run({"retriever": {"query": QUERY}})["retriever"]) == found and "a" not in found
    filters = {"field": "id", "operator": "in", "value": ["a", "j"]}
    assert set(ids(asyncio.run(retriever.run_async(QUERY, filters=filters)))) == {"a", "j"}
    with_vectors = DartboardRetriever(url, top_k=1, return_embedding=True, merge=False)
    asyncio.run(with_vectors.warm_up_async())
    assert len(with_vectors.run(QUERY)["documents"][0].embedding) == 384
    for one in (pipeline, again):
        one.close()
    with_vectors.close()
    assert ids(retriever.run(QUERY)) == found  # it opens again
    retriever.close()

    monkeypatch.setenv("INDEX_URL", url)
    secret = DartboardRetriever(Secret.from_env_var("INDEX_URL"), top_k=1)
    assert "INDEX_URL" in str(secret.to_dict()) and url not in str(secret.to_dict())
    assert len(secret.run(QUERY)["documents"]) == 1
    secret.close()
    for wrong in ({"engine": tea.filled()}, {"store": "postgresql://me:secret@host/db"}):
        with pytest.raises(SerializationError):
            DartboardRetriever(**wrong).to_dict()
    with pytest.raises(ConfigError):
        DartboardRetriever()


@pytest.mark.parametrize(
    ("text", "given"),
    [
        ("number >= 3", {"field": "meta.number", "operator": ">=", "value": 3}),
        ('source != "True.md"', {"field": "source", "operator": "!=", "value": "True.md"}),
        ("not number in [1, 2]", {"field": "meta.number", "operator": "not in", "value": [1, 2]}),
        ("number exists", {"field": "meta.number", "operator": "!=", "value": None}),
        ("not lost exists", {"field": "meta.lost", "operator": "==", "value": None}),
        (
            "not (number > 3 and number < 5)",
            {
                "operator": "NOT",
                "conditions": [
                    {"field": "meta.number", "operator": ">", "value": 3},
                    {"field": "meta.number", "operator": "<", "value": 5},
                ],
            },
        ),
        ("number < 5", {"operator": "OR", "conditions": [{"field": "number", "operator": "<", "value": 5}]}),
    ],
)
def test_filters(text, given):
    made, same = from_haystack(given), parse_filter(text)
    for record in tea.filled().collection.get(list(TEXTS)):
        assert made.matches(record.metadata, record.id) is same.matches(record.metadata, record.id)


def test_filters_that_say_what_an_index_cannot_are_errors():
    for wrong in (
        {"field": "a"},
        {"field": "a", "operator": "=="},
        {"field": "a", "operator": "like", "value": "x"},
        {"field": "content", "operator": "==", "value": "x"},
        {"field": 3, "operator": "==", "value": "x"},
        {"operator": "XOR", "conditions": []},
    ):
        with pytest.raises(InvalidInputError):
            DartboardRetriever("tea.dartboard", filters=wrong)
