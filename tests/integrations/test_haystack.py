"""Haystack: the ranker and the retriever in Haystack's own pipelines."""

import asyncio
import os
from copy import deepcopy

# Before Haystack is imported: tests report nothing to anybody.
os.environ["HAYSTACK_TELEMETRY_ENABLED"] = "False"

import numpy as np
import pytest
from haystack import Document, Pipeline, component
from haystack.components.embedders import MockDocumentEmbedder, MockTextEmbedder
from haystack.components.retrievers import InMemoryBM25Retriever, InMemoryEmbeddingRetriever
from haystack.components.retrievers.multi_retriever import MultiRetriever
from haystack.core.errors import DeserializationError, PipelineRuntimeError, SerializationError
from haystack.document_stores.in_memory import InMemoryDocumentStore
from haystack.utils import Secret
from hypothesis import given
from hypothesis import strategies as st

from dartboard import select
from dartboard.embeddings import default_model
from dartboard.errors import ConfigError, InvalidInputError
from dartboard.integrations.haystack import DartboardRanker, DartboardRetriever
from dartboard.selection import MMR
from dartboard.stores import open_store
from tests.examples import examples
from tests.integrations.samples import UNUSABLE, Patient, check_notes, cloud, filled, while_free
from tests.models import WordBag
from tests.tea import QUERY, TEXTS

COFFEE = "how is coffee roasted"


def words(text):
    return WordBag().encode([text])[0].tolist()


def bag_of(documents):
    return WordBag().encode([document.content for document in documents])


def documents(**changes):
    return [
        Document(id=id, content=text, meta={"source": "x", "tags": [id]}, **changes)
        for id, text in TEXTS.items()
    ]


def carrying(vectors):
    return [
        Document(id=f"d{place}", content=f"text {place}", embedding=vector.tolist())
        for place, vector in enumerate(vectors)
    ]


def ids(found):
    return [document.id for document in found["documents"]]


def notes(found):
    return [document.meta["dartboard"] for document in found["documents"]]


def loaded(pipeline):
    return Pipeline.loads(pipeline.dumps(), allowed_modules=["dartboard", "tests"])


# --- the ranker


@examples(40)
@given(
    seed=st.integers(0, 10**6),
    count=st.integers(1, 90),
    k=st.integers(1, 12),
    method=st.sampled_from(["dartboard", "mmr", "top_k"]),
)
def test_the_ranker_picks_exactly_what_select_picks(seed, count, k, method):
    vectors, query = cloud(seed, count)
    expected = select(vectors, query, k=k, method=method)
    ranker = DartboardRanker(use_document_embeddings=True, method=method)
    found = ranker.run(QUERY, carrying(vectors), top_k=k, query_embedding=query.tolist())
    assert ids(found) == [f"d{at}" for at in expected.indices]
    assert [document.score for document in found["documents"]] == expected.similarity.tolist()
    assert [note["gain"] for note in notes(found)] == expected.gains.tolist()
    check_notes(notes(found))
    assert notes(found)[0]["vector_source"] == "field:embedding"


@pytest.mark.parametrize(
    ("source", "label"),
    [
        ({}, "model:all-MiniLM-L6-v2"),
        ({"model": "default"}, "model:all-MiniLM-L6-v2"),
        ({"model": WordBag()}, "model:WordBag"),
        ({"vectors": bag_of, "model": WordBag()}, "function:bag_of"),
        (
            {
                "document_embedder": MockDocumentEmbedder(embedding_fn=words),
                "text_embedder": MockTextEmbedder(embedding_fn=words, model="bag"),
            },
            "function:MockDocumentEmbedder",
        ),
    ],
)
def test_where_vectors_come_from(source, label):
    ranker = DartboardRanker(top_k=3, **source)
    ranker.warm_up()
    found = ranker.run(QUERY, documents(score=0.25))
    assert len(ids(found)) == 3 and {note["vector_source"] for note in notes(found)} == {label}
    assert {note["score_before"] for note in notes(found)} == {0.25}
    check_notes(notes(found))
    assert asyncio.run(ranker.run_async(QUERY, documents(score=0.25))) == found
    if "MiniLM" not in label:
        expected = select(WordBag().encode(list(TEXTS.values())), WordBag().encode([QUERY])[0], k=3)
        assert ids(found) == [list(TEXTS)[at] for at in expected.indices]


@pytest.mark.parametrize(
    ("vector", "message"),
    [
        (None, "document 'd2' has no vector: all are to come from Document.embedding"),
        *UNUSABLE,
    ],
)
def test_documents_without_usable_embeddings_are_an_error_that_names_the_document(vector, message):
    vectors, query = cloud(1, 5)
    given_documents = carrying(vectors)
    given_documents[2] = Document(id="d2", content="text 2", embedding=vector)
    ranker = DartboardRanker(use_document_embeddings=True)
    with pytest.raises(InvalidInputError, match=message):
        ranker.run(QUERY, given_documents, query_embedding=query.tolist())
    with pytest.raises(InvalidInputError, match=message):
        asyncio.run(ranker.run_async(QUERY, given_documents, query_embedding=query.tolist()))


def test_the_query_must_be_embedded_like_the_documents():
    vectors, query = cloud(1, 5)
    with pytest.raises(
        ConfigError, match="say which model made them, with model, text_embedder or query_emb"
    ):
        DartboardRanker(use_document_embeddings=True).run(QUERY, carrying(vectors))
    with pytest.raises(InvalidInputError, match=r"by WordBag\) has 32 dimensions"):
        DartboardRanker(use_document_embeddings=True, model=WordBag()).run(QUERY, carrying(vectors))
    with pytest.raises(ConfigError, match="query_embedding goes with vectors that are there already"):
        DartboardRanker(model=WordBag()).run(QUERY, documents(), query_embedding=query.tolist())
    with pytest.raises(ConfigError, match="a text embedder embeds queries"):
        embedder = MockTextEmbedder(embedding_fn=words)
        DartboardRanker(use_document_embeddings=True, text_embedder=embedder)._source().model.encode(["x"])


def test_given_documents_stay_as_they_are():
    given_documents = documents()
    given_documents[0].meta["dartboard"] = {"mine": 1}
    before = deepcopy(given_documents)
    found = DartboardRanker(model=WordBag(), top_k=10).run(QUERY, given_documents)
    assert given_documents == before
    first = next(document for document in found["documents"] if document.id == "a")
    assert first.meta["dartboard"]["before"] == {"mine": 1} and first.meta["tags"] == ["a"]


def test_few_none_blank_and_equal_documents():
    ranker = DartboardRanker(model=WordBag(), top_k=3)
    assert ranker.run(QUERY, []) == {"documents": []}
    assert ranker.run(QUERY, [Document(content=" ")]) == {"documents": []}
    with pytest.raises(InvalidInputError, match="document 'pic' has no text to embed"):
        ranker.run(QUERY, [Document(id="pic", content=None)])
    with pytest.raises(InvalidInputError, match="query is empty"):
        ranker.run(" ", documents())
    everything = ranker.run(QUERY, documents() + documents(), top_k=99)
    assert len(ids(everything)) == 20
    assert [note["gain"] for note in notes(everything)[10:]] == [0.0] * 10
    scores = [document.score for document in everything["documents"]]
    assert scores[10:] == sorted(scores[:10], reverse=True)
    bare = ranker.run(QUERY, [Document(content="tea", meta=None)])
    assert set(bare["documents"][0].meta) == {"dartboard"}
    unicode = [Document(content=text) for text in ("茶は丘で育つ", "чай растёт", "🍵 thé", "شاي")]
    assert len(ids(ranker.run("茶はどこで？", unicode))) == 3


def test_what_is_no_document_is_named():
    with pytest.raises(InvalidInputError, match="document 0 must be a Document, got str"):
        DartboardRanker(model=WordBag()).run(QUERY, ["a"])


def test_scores_and_limits():
    given_documents = [
        Document(id=id, content=text, score=np.float32(place), meta={"source": "x"})
        for place, (id, text) in enumerate(TEXTS.items())
    ]

    def picked(**knobs):
        return ids(DartboardRanker(model=WordBag(), **knobs).run(QUERY, given_documents))

    assert picked(top_k=10, use_scores=True, method="top_k") == list(TEXTS)[::-1]
    check_notes(notes(DartboardRanker(model=WordBag()).run(QUERY, given_documents)))
    assert len(picked(max_per_source=1)) == 1 and picked(min_similarity=0.999) == []
    assert sum(len(TEXTS[id].split()) for id in picked(token_budget=9)) <= 9
    with pytest.raises(InvalidInputError, match="document 'a' has no 'author'"):
        picked(max_per_source=1, source_field="author")


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"top_k": 0}, "k must be"),
        ({"method": "best"}, "unknown method"),
        ({"model": 3}, "must be a dartboard EmbeddingModel"),
        ({"vectors": bag_of, "use_document_embeddings": True}, "choose one"),
        ({"vectors": bag_of, "document_embedder": MockDocumentEmbedder()}, "give one of them"),
        ({"model": "default", "text_embedder": MockTextEmbedder()}, "give one of them"),
        ({"text_embedder": MockTextEmbedder()}, "text_embedder embeds the query alone"),
        ({"text_embedder": 3, "use_document_embeddings": True}, "must be a component that embeds a text"),
        ({"document_embedder": 3}, "must be a component that embeds documents"),
        ({"vectors": "embedding"}, "vectors must be a function of documents, got str"),
    ],
)
def test_wrong_settings_are_refused_at_once(wrong, message):
    with pytest.raises(ConfigError, match=message):
        DartboardRanker(**wrong)


def test_a_question_with_parts_and_pages():
    ranker = DartboardRanker(
        text_embedder=MockTextEmbedder(embedding_fn=words, model="bag"),
        document_embedder=MockDocumentEmbedder(embedding_fn=words),
        also=[COFFEE],
        top_k=3,
    )
    found = ranker.run(QUERY, documents())
    assert "f" in ids(found) and {note["serves"] for note in notes(found)} == {0, 1}
    plain = ranker.run(QUERY, documents(), also=[])
    assert "serves" not in notes(plain)[0]
    rest = asyncio.run(ranker.run_async(QUERY, documents(), also=[], offset=3))
    assert ids(plain) + ids(rest) == ids(ranker.run(QUERY, documents(), also=[], top_k=6))
    with pytest.raises(ConfigError, match="say which model made them"):
        DartboardRanker(use_document_embeddings=True, also=[COFFEE]).run(
            QUERY, documents(embedding=words("tea")), query_embedding=words(QUERY)
        )


def test_new_options_survive_being_written_down(path):
    given = {"also": [COFFEE], "weights": [1.0, 2.0], "offset": 2, "max_per": {"source": 2}}
    given |= {"prefer": "number", "tokenizer": "gpt-4o"}
    for made in (
        DartboardRanker(**given),
        DartboardRetriever(path, seen=["a", "b"], **given),
        DartboardRetriever(path, seen=np.eye(2, 4), **given),
    ):
        saved = made.to_dict()
        assert saved["init_parameters"].items() >= given.items()
        again = type(made).from_dict(saved)
        assert again.to_dict() == saved
        with pytest.raises(SerializationError, match=r"tokenizer is a .* and cannot be saved"):
            type(made)(**{**saved["init_parameters"], "tokenizer": str.split}).to_dict()


def test_a_conversation_with_the_retriever():
    retriever = DartboardRetriever(engine=filled(), top_k=3)
    pipeline = Pipeline()
    pipeline.add_component("find", retriever)

    def asked(**given):
        return pipeline.run({"find": {"query": QUERY, **given}})["find"]

    both = asked(also=[COFFEE])
    assert {note["serves"] for note in notes(both)} == {0, 1}
    follow = asyncio.run(retriever.run_async(QUERY, seen=ids(both)))
    assert not set(ids(both)) & set(ids(follow)) and notes(follow)[0]["covered_before"] > 0
    assert ids(asked()) + ids(asked(offset=3)) == ids(asked(top_k=6))


def test_a_ranker_survives_being_written_down():
    ranker = DartboardRanker(
        top_k=7, sigma=0.1, method="mmr", use_scores=False, meta_key="why", model="default"
    )
    data = ranker.to_dict()
    assert data["type"] == "dartboard.integrations.haystack.ranker.DartboardRanker"
    assert DartboardRanker.from_dict(data).to_dict() == data
    for given_settings in ({"model": WordBag()}, {"method": MMR()}):
        with pytest.raises(SerializationError, match="give it by name"):
            DartboardRanker(**given_settings).to_dict()


def test_the_loop_stays_free_while_documents_are_ranked():
    model = Patient()
    found = asyncio.run(
        while_free(model, DartboardRanker(model=model, top_k=2).run_async(QUERY, documents()))
    )
    assert len(ids(found)) == 2


# --- the ranker in a pipeline


@pytest.fixture
def document_store():
    """Under a name of its own: stores of one name share their documents, also with the loaded pipeline."""
    store = InMemoryDocumentStore(embedding_similarity_function="cosine")
    embedded = MockDocumentEmbedder(embedding_fn=words).run(documents())["documents"]
    store.write_documents(embedded)
    return store


def bm25_pipeline(store):
    pipeline = Pipeline()
    pipeline.add_component("retriever", InMemoryBM25Retriever(store, top_k=8))
    pipeline.add_component("ranker", DartboardRanker(top_k=3))
    pipeline.connect("retriever.documents", "ranker.documents")
    return pipeline


ASKED = {"retriever": {"query": QUERY}, "ranker": {"query": QUERY}}


def test_ranking_what_bm25_found(document_store):
    pipeline = bm25_pipeline(document_store)
    found = pipeline.run(deepcopy(ASKED))["ranker"]
    assert len(ids(found)) == 3
    check_notes(notes(found))
    retrieved = InMemoryBM25Retriever(document_store, top_k=8).run(QUERY)["documents"]
    model = default_model()
    vectors = model.encode_documents([document.content for document in retrieved])
    expected = select(vectors, model.encode_query(QUERY), k=3)
    assert ids(found) == [retrieved[at].id for at in expected.indices]
    again = loaded(pipeline)
    assert again.dumps() == pipeline.dumps()
    assert again.run(deepcopy(ASKED))["ranker"] == found
    assert asyncio.run(pipeline.run_async(deepcopy(ASKED)))["ranker"] == found
    assert ids(pipeline.run({**ASKED, "ranker": {"query": QUERY, "top_k": 1}})["ranker"]) == ids(found)[:1]


def test_a_module_that_was_not_allowed_is_not_loaded(document_store):
    with pytest.raises(DeserializationError, match="dartboard"):
        Pipeline.loads(bm25_pipeline(document_store).dumps())


def embedding_pipeline(store, return_embedding, **knobs):
    pipeline = Pipeline()
    pipeline.add_component("embedder", MockTextEmbedder(embedding_fn=words))
    retriever = InMemoryEmbeddingRetriever(store, top_k=8, return_embedding=return_embedding)
    pipeline.add_component("retriever", retriever)
    pipeline.add_component("ranker", DartboardRanker(top_k=3, use_document_embeddings=True, **knobs))
    pipeline.connect("embedder.embedding", "retriever.query_embedding")
    pipeline.connect("embedder.embedding", "ranker.query_embedding")
    pipeline.connect("retriever.documents", "ranker.documents")
    return pipeline


def test_ranking_by_the_embeddings_that_documents_have(document_store):
    asked = {"embedder": {"text": QUERY}, "ranker": {"query": QUERY}}
    pipeline = embedding_pipeline(document_store, True)
    found = pipeline.run(deepcopy(asked))["ranker"]
    assert len(ids(found)) == 3 and notes(found)[0]["vector_source"] == "field:embedding"
    assert loaded(pipeline).run(deepcopy(asked))["ranker"] == found
    assert asyncio.run(loaded(pipeline).run_async(deepcopy(asked)))["ranker"] == found
    with pytest.raises(PipelineRuntimeError, match="has no vector: all are to come from Doc"):
        embedding_pipeline(document_store, False).run(deepcopy(asked))


@component
class Closing(MockTextEmbedder):
    """One that holds something open."""

    closed = 0

    def close(self):
        self.closed += 1


def test_embedders_are_closed_with_the_pipeline():
    embedder = Closing(embedding_fn=words)
    pipeline = Pipeline()
    pipeline.add_component("ranker", DartboardRanker(vectors=bag_of, text_embedder=embedder))
    pipeline.close()
    assert embedder.closed == 1


def test_ranking_with_haystacks_embedders(document_store):
    pipeline = Pipeline()
    pipeline.add_component("retriever", InMemoryBM25Retriever(document_store, top_k=8))
    ranker = DartboardRanker(
        top_k=3,
        document_embedder=MockDocumentEmbedder(embedding_fn=words),
        text_embedder=MockTextEmbedder(embedding_fn=words),
    )
    pipeline.add_component("ranker", ranker)
    pipeline.connect("retriever.documents", "ranker.documents")
    found = pipeline.run(deepcopy(ASKED))["ranker"]
    assert loaded(pipeline).run(deepcopy(ASKED))["ranker"] == found
    pipeline.close()
    assert pipeline.run(deepcopy(ASKED))["ranker"] == found
    by_function = DartboardRanker(top_k=3, vectors=bag_of, text_embedder=MockTextEmbedder(embedding_fn=words))
    other = Pipeline()
    other.add_component("ranker", by_function)
    retrieved = InMemoryBM25Retriever(document_store, top_k=8).run(QUERY)["documents"]
    asked = {"ranker": {"query": QUERY, "documents": retrieved}}
    assert ids(loaded(other).run(asked)["ranker"]) == ids(found)


# --- the retriever


@pytest.fixture
def path(tmp_path):
    path = str(tmp_path / "tea.dartboard")
    with filled(store=open_store(path), model=default_model()):
        pass
    return path


def test_the_retriever_finds_what_the_engine_finds():
    engine = filled()
    for knobs, asked in (
        ({}, {}),
        ({"top_k": 3, "sigma": 0.05}, {"k": 3, "sigma": 0.05}),
        ({"token_budget": 12}, {"token_budget": 12}),
        ({"method": "mmr", "triage_k": 6}, {"method": "mmr", "triage_k": 6}),
        ({"max_per_source": 1, "min_gain_share": 0.01, "min_similarity": 0.1},) * 2,
    ):
        retriever = DartboardRetriever(engine=engine, **knobs)
        retriever.warm_up()
        found = retriever.run(QUERY)
        result = engine.search(QUERY, **asked)
        assert ids(found) == [chunk.id for chunk in result.chunks]
        assert [document.score for document in found["documents"]] == result.metadata["similarity"]
        assert [note["gain"] for note in notes(found)] == result.scores
        check_notes(notes(found))
        assert found["documents"][0].meta["number"] == result.chunks[0].metadata["number"]
        assert found["documents"][0].embedding is None
        retriever.close()
    assert engine.search(QUERY).chunks  # it was not theirs to close
    assert (
        len(DartboardRetriever(engine=engine, return_embedding=True).run(QUERY)["documents"][0].embedding)
        == 32
    )


def at_least(number):
    return {"field": "meta.number", "operator": ">=", "value": number}


def test_filters_and_their_policy():
    engine = filled()
    late = {"field": "meta.number", "operator": "<", "value": 7}
    replaced = DartboardRetriever(engine=engine, filters=at_least(5), top_k=9)
    merged = DartboardRetriever(engine=engine, filters=at_least(5), top_k=9, filter_policy="merge")
    numbers = lambda found: sorted(document.meta["number"] for document in found["documents"])  # noqa: E731
    assert numbers(replaced.run(QUERY)) == [5, 6, 7, 8, 9]
    assert numbers(replaced.run(QUERY, filters=late)) == [0, 1, 2, 3, 4, 5, 6]
    tagged = {"field": "meta.tags", "operator": "in", "value": ["a", "f", "g"]}
    assert numbers(merged.run(QUERY, filters=tagged)) == [5, 6]
    assert numbers(replaced.run(QUERY, filters=tagged)) == [0, 5, 6]
    assert replaced.run(QUERY, filters=at_least(99)) == {"documents": []}
    with pytest.raises(InvalidInputError):
        DartboardRetriever(engine=engine, filters={"number": 5})


def test_a_pipeline_over_an_index(path):
    pipeline = Pipeline()
    pipeline.add_component("search", DartboardRetriever(path, top_k=3, retriever="hybrid"))
    question = {"search": {"query": "Where does tea grow?"}}
    found = pipeline.run(deepcopy(question))["search"]
    assert len(ids(found)) == 3 and notes(found)[0]["retriever"] == "hybrid"
    again = loaded(pipeline)
    assert again.run(deepcopy(question))["search"] == found
    assert asyncio.run(again.run_async(deepcopy(question)))["search"] == found
    pipeline.close()
    again.close()
    assert pipeline.run(deepcopy(question))["search"] == found
    pipeline.close()


@pytest.mark.filterwarnings("ignore::haystack.utils.experimental.ExperimentalWarning")
def test_among_other_retrievers(path, document_store):
    ours = DartboardRetriever(path, top_k=3)
    both = MultiRetriever(retrievers={"index": ours, "bm25": InMemoryBM25Retriever(document_store, top_k=3)})
    assert len(ids(both.run(query=QUERY))) >= 3
    ours.close()


def test_a_retriever_survives_being_written_down(path, monkeypatch):
    data = DartboardRetriever(path, top_k=7, sigma=0.1, filters=at_least(1), filter_policy="merge").to_dict()
    assert data["init_parameters"]["store"] == path
    assert DartboardRetriever.from_dict(data).to_dict() == data
    secret = DartboardRetriever(Secret.from_env_var("TEA_INDEX"), top_k=2)
    monkeypatch.setenv("TEA_INDEX", path)
    again = DartboardRetriever.from_dict(secret.to_dict())
    assert path not in str(secret.to_dict()) and len(ids(again.run(QUERY))) == 2
    again.close()
    for retriever, message in (
        (DartboardRetriever("postgresql://me:secret@host/db"), "password"),
        (DartboardRetriever(engine=filled()), "open engine"),
        (DartboardRetriever(path, method=MMR()), "by name"),
    ):
        with pytest.raises(SerializationError, match=message):
            retriever.to_dict()


def test_wrong_retrievers_are_refused(path):
    for wrong in ({}, {"store": path, "engine": filled()}, {"store": path, "top_k": 0}):
        with pytest.raises(ConfigError):
            DartboardRetriever(**wrong)


def test_the_loop_stays_free_while_the_engine_works():
    model = Patient()
    model.free.set()
    retriever = DartboardRetriever(engine=filled(model=model), top_k=2)
    expected = retriever.run(QUERY)
    model.free.clear()
    assert asyncio.run(while_free(model, retriever.run_async(QUERY))) == expected
