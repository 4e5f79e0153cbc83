"""Vectors that a store has are used; what has to be embedded is embedded once."""

import asyncio
import pickle
import warnings

import faiss
import numpy as np
import pytest
from haystack import Document as HaystackDocument
from langchain_classic.retrievers import ContextualCompressionRetriever
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import InMemoryVectorStore, VectorStore
from llama_index.core import SummaryIndex, VectorStoreIndex
from llama_index.core.embeddings import BaseEmbedding
from llama_index.core.llms import MockLLM
from llama_index.core.schema import MetadataMode, NodeWithScore, QueryBundle, TextNode
from llama_index.core.vector_stores import SimpleVectorStore
from pydantic import PrivateAttr, ValidationError

from dartboard import select
from dartboard.embeddings.cache import ArrayCache
from dartboard.errors import ConfigError
from dartboard.integrations import document_vectors, vector_source
from dartboard.integrations.haystack import DartboardRanker
from dartboard.integrations.langchain import DartboardCompressor
from dartboard.integrations.llama_index import DartboardPostprocessor
from tests.models import WordBag
from tests.tea import QUERY, TEXTS


class CountingBag(WordBag):
    """Counts the texts that it is given."""

    def __init__(self):
        super().__init__()
        self.encoded = []

    def encode(self, texts, batch_size=32):
        self.encoded += list(texts)
        return super().encode(texts, batch_size)


class LangChainBag(Embeddings):
    """Counts the documents that it is given; not hashable, as pydantic's models are not."""

    __hash__ = None

    def __init__(self, model="bag"):
        self.model = model
        self.documents = []

    def __eq__(self, other):
        return True

    def embed_query(self, text):
        return WordBag().encode([text])[0].tolist()

    def embed_documents(self, texts):
        self.documents += texts
        return WordBag().encode(texts).tolist()


class LlamaIndexBag(BaseEmbedding):
    """Counts the texts and the queries that it is given."""

    _texts: list = PrivateAttr(default_factory=list)
    _queries: list = PrivateAttr(default_factory=list)

    def _get_query_embedding(self, query):
        self._queries.append(query)
        return WordBag().encode([query])[0].tolist()

    def _get_text_embedding(self, text):
        self._texts.append(text)
        return WordBag().encode([text])[0].tolist()

    async def _aget_query_embedding(self, query):
        return self._get_query_embedding(query)


def documents():
    return [Document(page_content=text, id=id) for id, text in TEXTS.items()]


def nodes():
    return [TextNode(id_=id, text=text, metadata={"title": id}) for id, text in TEXTS.items()]


def scored(some):
    return [NodeWithScore(node=node, score=0.5) for node in some]


def sources(found):
    return [one.metadata["dartboard"]["vector_source"] for one in found]


def expected_ids(k=3):
    model = WordBag()
    found = select(model.encode(list(TEXTS.values())), model.encode([QUERY])[0], k=k)
    return [list(TEXTS)[at] for at in found.indices]


# --- LangChain


class OtherStore(VectorStore):
    """A store whose kind is not known; it says which model it uses."""

    def __init__(self, embedding=None):
        self.embedding = embedding

    @property
    def embeddings(self):
        return self.embedding

    def similarity_search(self, query, k=4, **more):
        return documents()[:k]

    @classmethod
    def from_texts(cls, texts, embedding, metadatas=None, **more):
        raise NotImplementedError


class FaissShaped(OtherStore):
    """What LangChain's FAISS store is made of: a real index, and the ids of its rows."""

    def __init__(self, embedding, index):
        super().__init__(embedding)
        self.index = index
        if not index.is_trained:
            index.train(np.array(WordBag().encode(list(TEXTS.values()))))
        self.index.add(np.array(WordBag().encode(list(TEXTS.values()))))
        self.index_to_docstore_id = dict(enumerate(TEXTS))


class Chroma(OtherStore):
    """What LangChain's Chroma store answers, in an order of its own."""

    def get(self, ids, include):
        assert include == ["embeddings"]
        found = sorted((id for id in ids if id in TEXTS), reverse=True)
        return {"ids": found, "embeddings": WordBag().encode([TEXTS[id] for id in found]), "documents": None}


def in_memory(embedding):
    store = InMemoryVectorStore(embedding)
    store.add_documents(documents())
    embedding.documents.clear()
    return store


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (in_memory, "InMemoryVectorStore"),
        (lambda embedding: FaissShaped(embedding, faiss.IndexFlatL2(32)), "FaissShaped"),
        (Chroma, "Chroma"),
    ],
)
def test_langchain_uses_the_vectors_of_the_store(make, name):
    embedding = LangChainBag()
    store = make(embedding)
    for given in (store, store.as_retriever(search_kwargs={"k": 10})):
        retriever = ContextualCompressionRetriever(
            base_compressor=DartboardCompressor(k=3, vectorstore=given),
            base_retriever=store.as_retriever(search_kwargs={"k": 10}),
        )
        found = retriever.invoke(QUERY)
        assert {document.id for document in found} == set(expected_ids())
        assert sources(found) == [f"store:{name}"] * 3
        assert {document.metadata["dartboard"]["query_model"] for document in found} == {"bag"}
        assert asyncio.run(retriever.ainvoke(QUERY)) == found
    assert embedding.documents == []


def test_what_the_langchain_store_does_not_have_its_own_model_embeds_once():
    embedding = LangChainBag()
    compressor = DartboardCompressor(k=12, vectorstore=in_memory(embedding))
    more = [
        Document(page_content="tea is grown here"),
        Document(page_content=" "),
        Document(page_content="cup", id="z"),
    ]
    for _ in range(2):
        found = compressor.compress_documents(documents() + more, QUERY)
        by_text = {
            document.page_content: source for document, source in zip(found, sources(found), strict=True)
        }
        assert len(found) == 12 and by_text["tea is grown here"] == by_text["cup"] == "model:bag"
        assert by_text[TEXTS["a"]] == "store:InMemoryVectorStore"
    assert sorted(embedding.documents) == ["cup", "tea is grown here"]


@pytest.mark.parametrize(
    "make",
    [OtherStore, lambda embedding: FaissShaped(embedding, faiss.IndexIVFFlat(faiss.IndexFlatL2(32), 32, 1))],
    ids=["unknown", "faiss-without-vectors"],
)
def test_a_langchain_store_that_returns_no_vectors_has_its_documents_embedded_once(make, monkeypatch):
    monkeypatch.setattr(vector_source, "_warned", False)
    embedding = LangChainBag()
    compressor = DartboardCompressor(k=3, vectorstore=make(embedding))
    with pytest.warns(UserWarning, match=r"returned no vectors for their ids: .* vectors=FUNCTION"):
        found = compressor.compress_documents(documents(), QUERY)
    assert sources(found) == ["model:bag"] * 3
    compressor.compress_documents(documents(), "cups of clay")
    assert sorted(embedding.documents) == sorted(TEXTS.values())


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"vectorstore": "store"}, "must be a LangChain VectorStore or the retriever of one, got str"),
        ({"vectorstore": OtherStore()}, "does not say which model made its vectors: say it with embeddings"),
        (
            {"vectorstore": OtherStore(), "vector_field": "v", "embeddings": WordBag()},
            "from metadata field 'v' or from OtherStore: choose one",
        ),
    ],
)
def test_a_langchain_store_that_cannot_be_used_is_refused_at_once(wrong, message):
    with pytest.raises(ValidationError, match=message):
        DartboardCompressor(**wrong)


def test_a_langchain_store_without_a_model_takes_the_one_that_is_said():
    compressor = DartboardCompressor(k=3, vectorstore=Chroma(), embeddings=WordBag())
    found = compressor.compress_documents(documents(), QUERY)
    assert [document.id for document in found] == expected_ids()


# --- LlamaIndex


def index_of(embedding, store=None):
    index = VectorStoreIndex(nodes(), embed_model=embedding)
    if store is not None:
        index._vector_store = store
    embedding._texts.clear()
    return index


def test_llama_index_uses_the_vectors_of_its_own_default_store():
    embedding = LlamaIndexBag()
    index = index_of(embedding)
    assert type(index.vector_store) is SimpleVectorStore
    query_engine = index.as_query_engine(
        llm=MockLLM(), similarity_top_k=10, node_postprocessors=[DartboardPostprocessor(k=3, index=index)]
    )
    found = query_engine.query(QUERY).source_nodes
    texts = [node.get_content(metadata_mode=MetadataMode.EMBED) for node in nodes()]
    model = WordBag()
    wanted = select(model.encode(texts), model.encode([QUERY])[0], k=3, texts=texts)
    assert {one.node.node_id for one in found} == {list(TEXTS)[at] for at in wanted.indices}
    assert sources(found) == ["store:SimpleVectorStore"] * 3 and embedding._texts == []
    assert embedding._queries == [QUERY], "the retriever's embedding of the query is used"
    again = asyncio.run(query_engine.aquery(QUERY)).source_nodes
    assert [one.node.node_id for one in again] == [one.node.node_id for one in found]
    assert embedding._texts == []


def test_llama_index_takes_nodes_embeddings_and_asks_the_store_for_the_others():
    embedding = LlamaIndexBag()
    index = index_of(embedding)
    picker = DartboardPostprocessor(k=12, index=index)
    given = nodes()
    given[0].embedding = WordBag().encode(["something else"])[0].tolist()
    given.append(TextNode(id_="new", text="tea is grown here"))
    for bundle in (QueryBundle(QUERY), QueryBundle(QUERY, embedding=[1.0, 2.0])):
        found = picker.postprocess_nodes(scored(given), query_bundle=bundle)
        by_id = {one.node.node_id: source for one, source in zip(found, sources(found), strict=True)}
        assert len(by_id) == 11 and by_id["new"] == "model:LlamaIndexBag"
        assert by_id["a"] == by_id["b"] == "store:SimpleVectorStore"
    assert embedding._texts == ["tea is grown here"] and embedding._queries == [QUERY] * 2


def test_llama_index_asks_other_stores_for_nodes(monkeypatch):
    embedding = LlamaIndexBag()
    plain = index_of(embedding)

    class Asked:
        """Not LlamaIndex's own store, but one with its nodes."""

        def get_nodes(self, node_ids):
            return [TextNode(id_=id, embedding=plain.vector_store.get(id)) for id in node_ids]

    class Silent:
        def get_nodes(self, node_ids):
            raise NotImplementedError

    found = DartboardPostprocessor(k=3, index=index_of(embedding, Asked())).postprocess_nodes(
        scored(nodes()), query_str=QUERY
    )
    assert sources(found) == ["store:Asked"] * 3 and embedding._texts == []
    monkeypatch.setattr(vector_source, "_warned", False)
    picker = DartboardPostprocessor(k=3, index=index_of(embedding, Silent()))
    with pytest.warns(UserWarning, match="The Silent returned no vectors"):
        silent = picker.postprocess_nodes(scored(nodes()), query_str=QUERY)
    assert [one.node.node_id for one in silent] == [one.node.node_id for one in found]
    assert sources(silent) == ["model:LlamaIndexBag"] * 3


def test_llama_index_nodes_that_carry_embeddings_are_taken_at_their_word():
    given, model = nodes(), WordBag()
    for node in given:
        node.embedding = model.encode([node.text])[0].tolist()
    bundle = QueryBundle(QUERY, embedding=model.encode([QUERY])[0].tolist())

    def picked(**knobs):
        return DartboardPostprocessor(k=3, **knobs).postprocess_nodes(scored(given), query_bundle=bundle)

    found = picked()
    assert [one.node.node_id for one in found] == expected_ids()
    assert sources(found) == ["field:embedding"] * 3
    assert sources(picked(use_node_embeddings=False)) == ["model:all-MiniLM-L6-v2"] * 3
    assert sources(picked(embed_model=model)) == ["model:WordBag"] * 3
    given[4].embedding = None
    assert sources(picked()) == ["model:all-MiniLM-L6-v2"] * 3
    bundle.embedding = None
    assert sources(picked()) == ["model:all-MiniLM-L6-v2"] * 3


def test_an_index_that_cannot_be_used_or_written_down_is_refused():
    with pytest.raises(ValidationError, match=r"must be a LlamaIndex VectorStoreIndex.*got SummaryIndex"):
        DartboardPostprocessor(index=SummaryIndex(nodes()))
    index = index_of(LlamaIndexBag())
    with pytest.raises(ValidationError, match="choose one"):
        DartboardPostprocessor(index=index, use_node_embeddings=True)
    with pytest.raises(ConfigError, match=r"index is a VectorStoreIndex.*embed_model"):
        DartboardPostprocessor(index=index).to_dict()
    assert DartboardPostprocessor.from_dict(DartboardPostprocessor(k=2).to_dict(), index=index).index is index
    index._embed_model = None
    with pytest.raises(ValidationError, match="say it with embed_model"):
        DartboardPostprocessor(index=index)
    assert pickle.loads(pickle.dumps(DartboardPostprocessor(k=2))).index is None


# --- what has to be embedded


def by_langchain(model, texts, query):
    given = [Document(page_content=text) for text in texts]
    return DartboardCompressor(embeddings=model).compress_documents(given, query)


def by_llama_index(model, texts, query):
    given = scored([TextNode(text=text) for text in texts])
    return DartboardPostprocessor(embed_model=model).postprocess_nodes(given, query_str=query)


def by_haystack(model, texts, query):
    return DartboardRanker(model=model).run(query, [HaystackDocument(content=text) for text in texts])[
        "documents"
    ]


DOORS = pytest.mark.parametrize("door", [by_langchain, by_llama_index, by_haystack])


@DOORS
def test_each_document_is_embedded_once(door):
    model, texts = CountingBag(), list(TEXTS.values())
    first = door(model, texts, QUERY)
    assert sorted(model.encoded) == sorted([*texts, QUERY])
    door(model, [*texts[2:], "a new one"], "cups of clay")
    assert model.encoded[len(texts) + 1 :] == ["a new one", "cups of clay"]
    again = door(model, texts, QUERY)
    assert len(again) == len(first)
    assert model.encoded[len(texts) + 3 :] == [QUERY]


def test_models_of_other_libraries_embed_each_document_once_too():
    for change in (lambda model: None, lambda model: setattr(model, "model", "another")):
        document_vectors.clear()
        model = LangChainBag()
        by_langchain(model, list(TEXTS.values()), QUERY)
        by_langchain(model, list(TEXTS.values()), QUERY)
        assert len(model.documents) == 10
        change(model)
        by_langchain(model, list(TEXTS.values()), QUERY)
        assert len(model.documents) == (10 if model.model == "bag" else 20)
    other = LangChainBag()  # equal to the first, and yet another model
    by_langchain(other, list(TEXTS.values()), QUERY)
    assert len(other.documents) == 10


def test_the_cache_is_bounded_and_forgets_models_that_are_gone(monkeypatch):
    kept = ArrayCache(4 * 32 * 4)
    monkeypatch.setattr(document_vectors, "_kept", kept)
    model = CountingBag()
    found = document_vectors.encode_documents(model, list(TEXTS.values()))
    assert np.array_equal(found, WordBag().encode(list(TEXTS.values())))
    assert len(kept) == 4 and kept.bytes <= kept.max_bytes
    assert not document_vectors.knows_any(model, list(TEXTS.values())[:6])
    assert document_vectors.knows_any(model, list(TEXTS.values())[6:])
    assert not document_vectors.knows_any(CountingBag(), list(TEXTS.values()))
    number = id(model)
    assert number in document_vectors._numbers
    del model
    assert number not in document_vectors._numbers


def test_what_is_done_to_vectors_does_not_reach_the_cache():
    model = WordBag()
    document_vectors.encode_documents(model, ["tea"])[:] = 0
    assert np.array_equal(document_vectors.encode_documents(model, ["tea"]), model.encode(["tea"]))


@pytest.mark.parametrize(
    ("door", "advice"),
    [
        (by_langchain, r"DartboardCompressor\(vectorstore=store"),
        (by_llama_index, r"DartboardPostprocessor\(index=index"),
        (by_haystack, r"return_embedding=True .*use_document_embeddings=True"),
    ],
)
def test_a_warning_says_once_that_a_whole_pool_was_embedded(door, advice, monkeypatch):
    monkeypatch.setattr(vector_source, "_warned", False)
    with pytest.warns(UserWarning, match=rf"10 documents were embedded with WordBag .*{advice}") as heard:
        door(WordBag(), list(TEXTS.values()), QUERY)
    assert len(heard) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        door(WordBag(), list(TEXTS.values()), QUERY)


def test_no_warning_where_vectors_are_there(monkeypatch):
    model = WordBag()
    by_langchain(model, ["tea"], QUERY)
    monkeypatch.setattr(vector_source, "_warned", False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        by_langchain(model, ["tea", "cups"], QUERY)
        DartboardCompressor(vectorstore=in_memory(LangChainBag())).compress_documents(documents(), QUERY)
