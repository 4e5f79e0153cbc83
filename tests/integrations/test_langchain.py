"""LangChain: the retriever and the compressor in LangChain's own pipelines."""

import asyncio
import pickle
from copy import deepcopy

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_classic.retrievers import ContextualCompressionRetriever
from langchain_classic.retrievers.document_compressors import DocumentCompressorPipeline
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding, Embeddings
from langchain_core.runnables import ConfigurableField, RunnableLambda
from langchain_core.vectorstores import InMemoryVectorStore
from pydantic import ValidationError

from dartboard import select
from dartboard.embeddings import default_model
from dartboard.errors import ConfigError, InvalidInputError
from dartboard.integrations.langchain import DartboardCompressor, DartboardEmbeddings, DartboardRetriever
from dartboard.selection import MMR
from dartboard.stores import open_store
from tests.examples import examples
from tests.integrations.samples import UNUSABLE, Patient, check_notes, cloud, filled, while_free
from tests.models import SharedWords, WordBag
from tests.tea import QUERY, TEXTS

COFFEE = "how is coffee roasted"


class Fixed(Embeddings):
    """Any query is one vector; documents are never embedded."""

    def __init__(self, query):
        self.query = list(query)

    def embed_query(self, text):
        return self.query

    def embed_documents(self, texts):
        raise AssertionError("documents carry their vectors")


def documents(**changes):
    return [
        Document(page_content=text, id=id, metadata={"source": "x", "tags": [id]}, **changes)
        for id, text in TEXTS.items()
    ]


def carrying(vectors):
    return [
        Document(
            page_content=f"text {place}",
            id=f"d{place}",
            metadata={"embedding": vector.tolist(), "kept": place},
        )
        for place, vector in enumerate(vectors)
    ]


def notes(found):
    return [document.metadata["dartboard"] for document in found]


class Recorder(BaseCallbackHandler):
    def __init__(self):
        self.heard = []

    def on_retriever_start(self, serialized, query, **more):
        self.heard.append(("start", query))

    def on_retriever_end(self, documents, **more):
        self.heard.append(("end", len(documents)))

    def on_retriever_error(self, error, **more):
        self.heard.append(("error", type(error).__name__))


# --- the retriever


@pytest.mark.parametrize(
    "knobs",
    [
        {},
        {"k": 3},
        {"k": 50},
        {"token_budget": 12},
        {"k": 4, "method": "mmr"},
        {"k": 4, "method": MMR(relevance_weight=0.5)},
        {"k": 4, "where": "source = 'False.md'"},
        {"k": 4, "sigma": 0.05},
        {"k": 4, "triage_k": 4},
        {"k": 4, "must_include": ["j"], "exclude": ["a"]},
        {"k": 4, "max_per_source": 1},
        {"k": 9, "min_gain_share": 0.3},
        {"k": 9, "min_similarity": 0.3},
        {"k": 4, "reranker": "crossencoder"},
        {"k": 4, "also": [COFFEE]},
        {"k": 2, "also": [COFFEE], "weights": [1.0, 9.0]},
        {"k": 4, "max_per": {"source": 1}},
        {"token_budget": 12, "tokenizer": str.split},
        {"k": 4, "prefer": "number"},
    ],
)
def test_the_retriever_finds_what_the_engine_finds(knobs):
    engine = filled(pair_scorer=SharedWords())
    found = DartboardRetriever(engine=engine, **knobs).invoke(QUERY)
    result = engine.search(QUERY, **knobs)
    assert [document.id for document in found] == [chunk.id for chunk in result.chunks]
    assert [document.page_content for document in found] == [chunk.text for chunk in result.chunks]
    check_notes(notes(found))
    for place, note in enumerate(notes(found)):
        assert (
            note["gain"] == result.scores[place] and note["sigma_source"] == result.metadata["sigma_source"]
        )
        assert note["stands_for"] == result.metadata["stands_for"][place]
        assert (
            note["retriever"] == "dense"
            and note["retriever_score"] == result.metadata["retriever_score"][place]
        )
        assert note["vector_source"] == "index:default" and note["query_model"] == "WordBag"
        assert found[place].metadata["number"] == result.chunks[place].metadata["number"]


def test_what_is_done_to_a_found_document_does_not_reach_the_store():
    retriever = DartboardRetriever(engine=filled(), k=1, metadata_key="why")
    first = retriever.invoke(QUERY)[0]
    assert set(first.metadata) == {"source", "number", "tags", "why"}
    first.metadata["tags"].append("mine")
    assert "mine" not in retriever.invoke(QUERY)[0].metadata["tags"]


def test_a_question_without_a_match_finds_nothing():
    assert DartboardRetriever(engine=filled(), where="source = 'none'").invoke(QUERY) == []


def test_options_for_one_call_and_for_one_configuration():
    retriever = DartboardRetriever(engine=filled(), k=5)
    assert len(retriever.invoke(QUERY, k=2)) == 2
    assert len(asyncio.run(retriever.ainvoke(QUERY, k=3, where="number > 2"))) == 3
    with pytest.raises(ConfigError, match="unknown option 'kk'"):
        retriever.invoke(QUERY, kk=2)
    tunable = retriever.configurable_fields(k=ConfigurableField(id="how_many"))
    assert len(tunable.invoke(QUERY, config={"configurable": {"how_many": 4}})) == 4
    assert len(tunable.invoke(QUERY)) == 5
    many = retriever.batch([QUERY, "cups of clay"])
    assert many == [retriever.invoke(QUERY), retriever.invoke("cups of clay")]
    assert asyncio.run(retriever.abatch([QUERY, "cups of clay"])) == many


def test_parts_follow_ups_and_pages_for_one_call():
    retriever = DartboardRetriever(engine=filled(), k=3)
    both = retriever.bind(also=[COFFEE]).invoke(QUERY)
    assert {note["serves"] for note in notes(both)} == {0, 1}
    assert [one["text"] for one in notes(both)[0]["questions"]] == [QUERY, COFFEE]
    first = retriever.invoke(QUERY)
    assert "serves" not in notes(first)[0] and "covered_before" not in notes(first)[0]
    more = retriever.invoke(QUERY, seen=[document.id for document in first])
    assert not {one.id for one in first} & {one.id for one in more} and notes(more)[0]["covered_before"] > 0
    pages = first + asyncio.run(retriever.ainvoke(QUERY, offset=3))
    assert [one.id for one in pages] == [one.id for one in retriever.invoke(QUERY, k=6)]
    with pytest.raises(InvalidInputError, match="check seen"):
        retriever.invoke(QUERY, seen=["nobody"])


def test_the_retriever_in_a_chain_with_callbacks():
    recorder = Recorder()
    retriever = DartboardRetriever(engine=filled(), k=2)
    chain = retriever | RunnableLambda(lambda found: [document.id for document in found])
    expected = [document.id for document in retriever.invoke(QUERY)]
    assert chain.invoke(QUERY, config={"callbacks": [recorder]}) == expected
    assert asyncio.run(chain.ainvoke(QUERY, config={"callbacks": [recorder]})) == expected
    assert recorder.heard == [("start", QUERY), ("end", 2)] * 2
    with pytest.raises(InvalidInputError, match="empty"):
        retriever.invoke("  ", config={"callbacks": [recorder]})
    assert recorder.heard[-1] == ("error", "InvalidInputError")


def test_the_loop_stays_free_while_the_engine_works():
    model = Patient()
    model.free.set()
    retriever = DartboardRetriever(engine=filled(model=model), k=2)
    expected = retriever.invoke(QUERY)
    model.free.clear()
    assert asyncio.run(while_free(model, retriever.ainvoke(QUERY))) == expected


def test_an_index_opens_by_its_path(tmp_path):
    path = str(tmp_path / "tea.dartboard")
    with filled(store=open_store(path), model=default_model()):
        pass
    retriever = DartboardRetriever.open(path, k=2, engine_options={"retriever": "hybrid"})
    found = retriever.invoke("Where does tea grow?")
    assert len(found) == 2 and notes(found)[0]["retriever"] == "hybrid"
    at_once = asyncio.run(retriever.abatch(["Where does tea grow?"] * 8))
    assert at_once == [found] * 8
    with pytest.raises(TypeError, match=r"open index.*call DartboardRetriever\.open there"):
        pickle.dumps(retriever)
    assert retriever.model_copy(update={"k": 1}).invoke("Where does tea grow?") != found
    retriever.engine.close()


@pytest.mark.parametrize(
    "wrong", [{"k": 0}, {"k": "many"}, {"method": "best"}, {"where": "number >"}, {"sigma": -1}, {"kk": 3}]
)
def test_wrong_settings_are_refused_at_once(wrong):
    with pytest.raises(ValidationError):
        DartboardRetriever(engine=filled(), **wrong)
    with pytest.raises(ValidationError):
        DartboardRetriever(engine="index.dartboard")


# --- the compressor


@examples(40)
@given(
    seed=st.integers(0, 10**6),
    count=st.integers(1, 90),
    k=st.integers(1, 12),
    sigma=st.sampled_from(["auto", 0.05, 0.3]),
    method=st.sampled_from(["dartboard", "mmr", "top_k", "near_duplicate_filter"]),
)
def test_the_compressor_picks_exactly_what_select_picks(seed, count, k, sigma, method):
    vectors, query = cloud(seed, count)
    expected = select(vectors, query.astype(np.float32), k=k, sigma=sigma, method=method)
    compressor = DartboardCompressor(
        vector_field="embedding", embeddings=Fixed(query), k=k, sigma=sigma, method=method
    )
    given_documents = carrying(vectors)
    found = compressor.compress_documents(given_documents, QUERY)
    assert [document.metadata["kept"] for document in found] == expected.indices.tolist()
    check_notes(notes(found))
    for place, note in enumerate(notes(found)):
        assert note["gain"] == expected.gains[place] and note["coverage"] == expected.coverage[place]
        assert note["similarity"] == expected.similarity[place]
        assert note["sigma"] == expected.sigma.value and note["sigma_source"] == expected.sigma.source
        assert note["stands_for"] == [f"d{at}" for at in expected.stands_for[place]]
        assert note["bound"] == expected.bound and note["candidates"] == count


@pytest.mark.parametrize(
    ("source", "label"),
    [
        ({"embeddings": WordBag()}, "model:WordBag"),
        ({"embeddings": DeterministicFakeEmbedding(size=16)}, "model:DeterministicFakeEmbedding"),
        ({"embeddings": "default"}, "model:all-MiniLM-L6-v2"),
        ({}, "model:all-MiniLM-L6-v2"),
        ({"embeddings": DartboardEmbeddings()}, "model:all-MiniLM-L6-v2"),
    ],
)
def test_documents_are_embedded_again(source, label):
    found = DartboardCompressor(k=3, **source).compress_documents(documents(), QUERY)
    assert len(found) == 3 and {note["vector_source"] for note in notes(found)} == {label}
    assert {note["query_model"] for note in notes(found)} == {label.removeprefix("model:")}
    check_notes(notes(found))


def test_embedding_again_is_selecting_from_the_models_vectors():
    model = WordBag()
    expected = select(model.encode(list(TEXTS.values())), model.encode([QUERY])[0], k=4)
    found = DartboardCompressor(k=4, embeddings=model).compress_documents(documents(), QUERY)
    assert [document.id for document in found] == [list(TEXTS)[at] for at in expected.indices]


def bag_of(given_documents):
    return WordBag().encode([document.page_content for document in given_documents])


def test_a_function_makes_the_vectors():
    compressor = DartboardCompressor(k=4, vectors=bag_of, embeddings=WordBag())
    found = compressor.compress_documents(documents(), QUERY)
    again = DartboardCompressor(k=4, embeddings=WordBag()).compress_documents(documents(), QUERY)
    assert [document.id for document in found] == [document.id for document in again]
    assert notes(found)[0]["vector_source"] == "function:bag_of"
    rows = DartboardCompressor(k=4, vectors=lambda d: iter(bag_of(d)), embeddings=WordBag())
    assert len(rows.compress_documents(documents(), QUERY)) == 4


@pytest.mark.parametrize(
    ("vector", "message"),
    [
        (None, "document 'd2' has no vector: all are to come from metadata field 'embedding'"),
        *UNUSABLE,
        ("[1, 2]", "'d2'.* numbers"),
        ([[1.0] * 6], "'d2'.* shape"),
        (3.0, "'d2'.* vector"),
    ],
)
def test_a_field_without_a_usable_vector_is_an_error_that_names_the_document(vector, message):
    vectors, query = cloud(1, 5)
    given_documents = carrying(vectors)
    given_documents[2].metadata["embedding"] = vector
    compressor = DartboardCompressor(vector_field="embedding", embeddings=Fixed(query))
    with pytest.raises(InvalidInputError, match=message):
        compressor.compress_documents(given_documents, QUERY)
    with pytest.raises(InvalidInputError, match=message):
        asyncio.run(compressor.acompress_documents(given_documents, QUERY))


def test_a_document_without_an_id_is_named_by_its_place_and_text():
    unnamed = [Document(page_content=f"tea number {at} " + "grows " * 20) for at in range(2)]
    compressor = DartboardCompressor(vector_field="embedding", embeddings=WordBag())
    with pytest.raises(
        InvalidInputError, match=r"document 0 \('tea number 0 grows grows .*…'\) has no vector"
    ):
        compressor.compress_documents(unnamed, QUERY)
    found = DartboardCompressor(embeddings=WordBag()).compress_documents(unnamed, QUERY)
    assert sorted(place for note in notes(found) for place in note["stands_for"]) == [0, 1]


def test_the_querys_model_must_fit():
    vectors, _ = cloud(1, 5)
    compressor = DartboardCompressor(vector_field="embedding", embeddings=WordBag())
    with pytest.raises(InvalidInputError, match=r"by WordBag\) has 32 dimensions .*field:embedding\) have 6"):
        compressor.compress_documents(carrying(vectors), QUERY)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda given: [[1.0]], "gave 1 vectors for 10 documents"),
        (lambda given: 3, "gave int: it must give one vector a document"),
        (lambda given: [None] * 10, "document 'a' has no vector"),
    ],
)
def test_a_function_that_does_not_do_its_work_is_refused(function, message):
    compressor = DartboardCompressor(vectors=function, embeddings=WordBag())
    with pytest.raises(InvalidInputError, match=message):
        compressor.compress_documents(documents(), QUERY)


async def slow(given_documents):
    return []


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"vector_field": "embedding"}, "say which model made them, with embeddings"),
        ({"vectors": bag_of}, "come from the function bag_of: say which model"),
        ({"vectors": bag_of, "vector_field": "v", "embeddings": WordBag()}, "choose one"),
        ({"vectors": slow, "embeddings": WordBag()}, "plain function"),
        ({"vectors": "embedding"}, "callable"),
        ({"embeddings": 3}, "embeddings must be a dartboard EmbeddingModel"),
        ({"k": 0}, "k must be"),
        ({"top_n": 3}, r"top_n is called k here: DartboardCompressor\(k=3\)"),
        ({"top_k": 3}, r"top_k is called k here: DartboardCompressor\(k=3\)"),
        ({"kk": 3}, "kk"),
    ],
)
def test_settings_that_contradict_each_other_are_refused_at_once(wrong, message):
    with pytest.raises(ValidationError, match=message):
        DartboardCompressor(**wrong)


def test_given_documents_stay_as_they_are():
    given_documents = documents()
    given_documents[0].metadata["dartboard"] = {"mine": 1}
    before = deepcopy(given_documents)
    found = DartboardCompressor(embeddings=WordBag(), k=10).compress_documents(given_documents, QUERY)
    assert given_documents == before
    first = next(document for document in found if document.id == "a")
    assert first.metadata["dartboard"]["before"] == {"mine": 1} and first.metadata["tags"] == ["a"]
    found[0].metadata["source"] = "changed"
    assert given_documents == before


def test_few_none_blank_and_equal_documents():
    compressor = DartboardCompressor(embeddings=WordBag(), k=3)
    assert compressor.compress_documents([], QUERY) == []
    assert compressor.compress_documents([], "") == []
    assert compressor.compress_documents([Document(page_content=" \n")], QUERY) == []
    one = [Document(page_content="tea"), Document(page_content="")]
    assert [document.page_content for document in compressor.compress_documents(one, QUERY)] == ["tea"]
    copies = documents() + documents()
    found = compressor.compress_documents(copies, QUERY)
    assert len({document.id for document in found}) == 3
    everything = DartboardCompressor(embeddings=WordBag(), k=99).compress_documents(copies, QUERY)
    assert len(everything) == 20 and [note["gain"] for note in notes(everything)[10:]] == [0.0] * 10
    bare = Document.model_construct(page_content="tea", metadata=None, id=None)
    assert set(compressor.compress_documents([bare], QUERY)[0].metadata) == {"dartboard"}
    words = [
        Document(page_content=text) for text in ("茶は丘で育つ", "чай растёт", "🍵 thé à la menthe", "شاي")
    ]
    assert len(compressor.compress_documents(words, "茶はどこで？")) == 3
    with pytest.raises(InvalidInputError, match=r"document 0 .* surrogate"):
        compressor.compress_documents([Document(page_content="tea \ud800")], QUERY)
    with pytest.raises(InvalidInputError, match="query is empty"):
        compressor.compress_documents(documents(), " ")


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (["a"], r"document 0 must be a Document, got str: make one with Document\(page_content=…\)"),
        ([Document(page_content="a"), None], "document 1 must be a Document, got NoneType"),
        ("a", r"must be a list such as \[Document\(page_content=…\)\], got str"),
        (Document(page_content="a"), "must be a list .* got Document"),
        (None, "must be a list .* got NoneType"),
    ],
)
def test_what_is_no_document_is_named(wrong, message):
    with pytest.raises(InvalidInputError, match=message):
        DartboardCompressor(embeddings=WordBag()).compress_documents(wrong, QUERY)


def test_a_cut_off_by_score_keeps_what_is_relevant():
    found = DartboardCompressor(embeddings=WordBag(), k=10).compress_documents(documents(), QUERY)
    model = WordBag()
    for document in found:
        left, right = model.encode([QUERY, document.page_content]).astype(float)
        cosine = left @ right / np.linalg.norm(left) / np.linalg.norm(right)
        assert document.metadata["dartboard"]["score"] == pytest.approx(cosine, abs=1e-5)
    assert sum(note["score"] > 0.3 for note in notes(found)) > 1


def test_limits():
    def picked(**knobs):
        return DartboardCompressor(embeddings=WordBag(), **knobs).compress_documents(documents(), QUERY)

    assert picked(min_similarity=0.999) == []
    close = picked(k=10, min_similarity=0.3)
    assert close and all(note["similarity"] >= 0.3 for note in notes(close))
    assert len(picked(k=5, max_per_source=1)) == 1
    with pytest.raises(InvalidInputError, match="document 'a' has no 'author' in its metadata"):
        picked(max_per_source=1, source_field="author")
    short = picked(token_budget=9)
    assert sum(len(document.page_content.split()) for document in short) <= 9
    assert picked(token_budget=1) == []
    assert len(picked(k=10, min_gain_share=0.5)) < 10


def test_a_question_with_parts_is_embedded_by_the_querys_model():
    compressor = DartboardCompressor(embeddings=WordBag(), k=3, also=[COFFEE])
    found = compressor.compress_documents(documents(), QUERY)
    vectors = WordBag().encode_documents(list(TEXTS.values()))
    expected = select(vectors, WordBag().encode_queries([QUERY, COFFEE]), k=3)
    assert [one.id for one in found] == [list(TEXTS)[at] for at in expected.indices]
    check_notes(notes(found))
    assert [note["serves"] for note in notes(found)] == expected.question_of.tolist()
    coverage = [one["coverage"] for one in notes(found)[0]["questions"]]
    assert coverage == pytest.approx(expected.question_coverage.tolist())
    pages = [
        DartboardCompressor(embeddings=WordBag(), k=3, offset=at).compress_documents(documents(), QUERY)
        for at in (0, 3)
    ]
    assert len({one.id for page in pages for one in page}) == 6
    with pytest.raises(InvalidInputError, match="offset 10 is beyond the 10 candidates"):
        compressor.model_copy(update={"offset": 10}).compress_documents(documents(), QUERY)
    with pytest.raises(ConfigError, match="scores are those of one question"):
        DartboardCompressor(embeddings=WordBag(), also=[COFFEE], score_field="score").compress_documents(
            documents(), QUERY
        )
    with pytest.raises(ValidationError, match="seen"):
        DartboardCompressor(seen=["a"])


def test_which_copy_and_caps_of_any_field():
    years = {"a": 2024, "b": 2025, "c": 2023}
    text = (
        "The monthly fee of the basic plan is {} euros for every user, and it is billed at the end of the "
        "month to the card that is on file, without any further notice to the owner of the account."
    )
    given_documents = [
        Document(page_content=text.format(6 if id == "c" else 5), id=id, metadata={"year": year, "by": "x"})
        for id, year in years.items()
    ]
    question = "What is the monthly fee?"
    found = DartboardCompressor(prefer="year", k=2).compress_documents(given_documents, question)
    copies = {one.id: one.metadata["dartboard"]["copies"] for one in found}
    assert copies["b"] == [{"id": "a", "year": 2024}, {"id": "c", "year": 2023, "differs": [["5", "6"]]}]
    one = DartboardCompressor(max_per={"by": 1}, k=3).compress_documents(given_documents, question)
    assert len(one) == 1
    for wrong, message in (({"prefer": "edition"}, "check prefer"), ({"max_per": {"z": 1}}, "check max_per")):
        with pytest.raises(InvalidInputError, match=message):
            DartboardCompressor(**wrong).compress_documents(given_documents, question)


def test_another_rankers_scores_lead():
    given_documents = documents()
    for place, document in enumerate(given_documents):
        document.metadata["rating"] = float(place)
    compressor = DartboardCompressor(embeddings=WordBag(), k=10, score_field="rating", method="top_k")
    found = compressor.compress_documents(given_documents, QUERY)
    assert [document.id for document in found] == list(TEXTS)[::-1]
    assert notes(found)[0]["score_before"] == 9.0
    assert (
        DartboardCompressor(embeddings=WordBag(), k=1, score_field="rating")
        .compress_documents(given_documents, QUERY)[0]
        .id
        == "j"
    )
    given_documents[3].metadata["rating"] = float("nan")
    with pytest.raises(InvalidInputError, match="document 'd' has the score nan"):
        compressor.compress_documents(given_documents, QUERY)
    with pytest.raises(ConfigError, match="takes no scores"):
        DartboardCompressor(embeddings=WordBag(), score_field="rating", method="mmr").compress_documents(
            documents(), QUERY
        )


# --- in LangChain's own pipelines


@pytest.fixture
def vector_store():
    store = InMemoryVectorStore(DartboardEmbeddings())
    store.add_documents(documents())
    return store


def test_contextual_compression(vector_store):
    base = vector_store.as_retriever(search_kwargs={"k": 10})
    retriever = ContextualCompressionRetriever(base_compressor=DartboardCompressor(k=3), base_retriever=base)
    recorder = Recorder()
    found = retriever.invoke("Where does tea grow?", config={"callbacks": [recorder]})
    assert len(found) == 3 and recorder.heard[-1] == ("end", 3)
    check_notes(notes(found))
    assert asyncio.run(retriever.ainvoke("Where does tea grow?")) == found
    model = default_model()
    ranked = base.invoke("Where does tea grow?")
    expected = select(
        model.encode_documents([document.page_content for document in ranked]),
        model.encode_query("Where does tea grow?"),
        k=3,
    )
    assert [document.id for document in found] == [ranked[at].id for at in expected.indices]
    assert len({"a", "b", "c"} & {document.id for document in found}) < 3


def test_compressors_in_a_row_keep_both_notes(vector_store):
    pipeline = DocumentCompressorPipeline(
        transformers=[DartboardCompressor(k=5), DartboardCompressor(k=2, embeddings=WordBag())]
    )
    retriever = ContextualCompressionRetriever(
        base_compressor=pipeline, base_retriever=vector_store.as_retriever(search_kwargs={"k": 10})
    )
    found = retriever.invoke("tea")
    assert [note["before"]["vector_source"] for note in notes(found)] == ["model:all-MiniLM-L6-v2"] * 2


def test_compressing_what_our_retriever_found():
    retriever = ContextualCompressionRetriever(
        base_compressor=DartboardCompressor(k=2, embeddings=WordBag()),
        base_retriever=DartboardRetriever(engine=filled(), k=8),
    )
    found = retriever.invoke(QUERY)
    assert [note["before"]["vector_source"] for note in notes(found)] == ["index:default"] * 2


def test_the_loop_stays_free_while_documents_are_compressed():
    model = Patient()
    compressor = DartboardCompressor(embeddings=model, k=2)
    found = asyncio.run(while_free(model, compressor.acompress_documents(documents(), QUERY)))
    assert [document.id for document in found] == [
        document.id for document in compressor.compress_documents(documents(), QUERY)
    ]


def test_the_default_model_as_embeddings():
    ours = DartboardEmbeddings()
    assert np.allclose(ours.embed_query("tea"), default_model().encode_query("tea"))
    assert np.allclose(ours.embed_documents(["tea"])[0], default_model().encode_documents(["tea"])[0])
    assert asyncio.run(ours.aembed_query("tea")) == ours.embed_query("tea")
