"""LangChain: the vectors of its stores, its pipelines, embeddings, and the suites of langchain-tests."""

import copy
import pickle
import uuid
import warnings

import faiss
import pytest
from langchain_classic.retrievers import ContextualCompressionRetriever
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.indexing import InMemoryRecordManager, index
from langchain_core.runnables import RunnableLambda
from langchain_core.vectorstores import InMemoryVectorStore, VectorStore
from langchain_qdrant import QdrantVectorStore
from langchain_tests.integration_tests import RetrieversIntegrationTests, VectorStoreIntegrationTests
from langchain_tests.integration_tests.embeddings import EmbeddingsIntegrationTests
from qdrant_client import QdrantClient
from qdrant_client.models import Distance, VectorParams
from sqlalchemy import create_engine

from dartboard import default_model, select
from dartboard.engine import Engine
from dartboard.integrations.langchain import (
    DartboardCompressor,
    DartboardEmbeddings,
    DartboardRetriever,
    DartboardVectorStore,
)
from tests import tea
from tests.models import WordBag
from tests.stores import postgres_server
from tests.tea import QUERY, TEXTS

with warnings.catch_warnings(action="ignore"):  # the package is no longer maintained; its FAISS is in use
    from langchain_community.docstore.in_memory import InMemoryDocstore
    from langchain_community.vectorstores import FAISS

NAMES = {uuid.uuid5(uuid.NAMESPACE_DNS, id).hex: id for id in TEXTS}
"""Qdrant's ids are UUIDs."""


class Bag(Embeddings):
    """Counts the documents that it embeds."""

    def __init__(self):
        self.embedded = []

    def embed_query(self, text):
        return WordBag().encode([text])[0].tolist()

    def embed_documents(self, texts):
        self.embedded += texts
        return WordBag().encode(texts).tolist()


def in_memory(embedding):
    return InMemoryVectorStore(embedding)


def with_faiss(embedding):
    return FAISS(embedding, faiss.IndexFlatL2(32), InMemoryDocstore(), {})


def with_qdrant(embedding):
    client = QdrantClient(":memory:")
    client.create_collection("tea", vectors_config=VectorParams(size=32, distance=Distance.COSINE))
    return QdrantVectorStore(client, "tea", embedding)


def with_named_qdrant(embedding):
    client = QdrantClient(":memory:")
    named = {"words": VectorParams(size=32, distance=Distance.COSINE)}
    client.create_collection("tea", vectors_config=named)
    return QdrantVectorStore(client, "tea", embedding, vector_name="words")


def with_chroma(embedding):
    return pytest.importorskip("langchain_chroma").Chroma(uuid.uuid4().hex, embedding)


def expected(k=3):
    found = select(WordBag().encode(list(TEXTS.values())), WordBag().encode([QUERY])[0], k=k)
    return [list(TEXTS)[at] for at in found.indices]


def check_store(make):
    """The compressor picks what select picks, from the store's vectors; it embeds what the store lacks."""
    bag = Bag()
    store = make(bag)
    store.add_documents([Document(id=id, page_content=TEXTS[name]) for id, name in NAMES.items()])
    bag.embedded.clear()
    for given in (store, store.as_retriever()):
        retriever = ContextualCompressionRetriever(
            base_compressor=DartboardCompressor(k=3, vectorstore=given),
            base_retriever=store.as_retriever(search_kwargs={"k": 10}),
        )
        found = retriever.invoke(QUERY)
        assert sorted(NAMES[uuid.UUID(one.id or one.metadata["_id"]).hex] for one in found) == sorted(
            expected()
        )
        assert {one.metadata["dartboard"]["vector_source"] for one in found} == {"given"}
        assert "vector" not in found[0].metadata
    assert bag.embedded == []
    more = [Document(id=uuid.uuid4().hex, page_content="tea needs rain"), Document(page_content="tea is tea")]
    found = DartboardCompressor(k=12, vectorstore=store).compress_documents(more, QUERY)
    assert len(found) == 2 and sorted(bag.embedded) == ["tea is tea", "tea needs rain"]


@pytest.mark.parametrize("make", [in_memory, with_faiss, with_qdrant, with_named_qdrant, with_chroma])
def test_the_vectors_of_the_store_are_used(make):
    check_store(make)


def test_the_vectors_of_pgvector_are_used():
    kind = pytest.importorskip("langchain_postgres").PGVector
    engine = create_engine(postgres_server.address().replace("postgresql://", "postgresql+psycopg://"))
    check_store(lambda bag: kind(bag, connection=engine, collection_name=uuid.uuid4().hex))
    engine.dispose()


def test_faiss_indexes_that_keep_no_vectors_and_other_stores_have_their_documents_embedded():
    bag = Bag()
    trained = faiss.IndexIVFFlat(faiss.IndexFlatL2(32), 32, 1)
    trained.train(WordBag().encode(list(TEXTS.values())))
    store = FAISS(bag, trained, InMemoryDocstore(), {})
    store.add_documents([Document(id=id, page_content=text) for id, text in TEXTS.items()])
    found = DartboardCompressor(k=3, vectorstore=store).compress_documents(
        store.similarity_search(QUERY, 10), QUERY
    )
    assert {one.id for one in found} == set(expected())

    class Other(VectorStore):
        embeddings = bag
        similarity_search = from_texts = None

    with pytest.warns(UserWarning, match="Other"):
        again = DartboardCompressor(k=3, vectorstore=Other()).compress_documents(
            [Document(page_content=text) for text in TEXTS.values()], QUERY
        )
    assert {one.page_content for one in again} == {TEXTS[id] for id in expected()}


def test_wrong_sources_of_vectors_are_refused_when_they_are_set():
    class Nameless(InMemoryVectorStore):
        embeddings = None

    store = in_memory(Bag())
    for wrong in (
        {"vectorstore": 3},
        {"vectorstore": store, "vectors": len},
        {"vectorstore": Nameless(Bag())},
        {"embeddings": 3},
    ):
        with pytest.raises(ValueError):
            DartboardCompressor(**wrong)


def test_in_a_chain_and_with_options_for_one_call():
    engine = tea.filled()
    retriever = DartboardRetriever(engine=engine, k=3)
    chain = retriever | RunnableLambda(lambda found: " / ".join(one.page_content for one in found))
    assert chain.invoke(QUERY) == " / ".join(chunk.text for chunk in engine.search(QUERY, k=3).chunks)
    assert [one.id for one in retriever.invoke(QUERY, k=2, filter="number >= 3")] == [
        chunk.id for chunk in engine.search(QUERY, k=2, where="number >= 3").chunks
    ]
    with pytest.raises(TypeError):
        retriever.invoke(QUERY, kk=3)


def test_embeddings_travel_and_copy():
    made = DartboardEmbeddings()
    vector = made.embed_query(QUERY)
    for again in (pickle.loads(pickle.dumps(made)), copy.deepcopy(made), copy.copy(made)):
        assert again.embed_query(QUERY) == vector
    held = DartboardEmbeddings(default_model())
    assert copy.deepcopy(held).model is default_model()


def test_a_blank_text_does_not_end_a_run():
    store = InMemoryVectorStore.from_documents(
        [Document(page_content=text) for text in ("tea", "", " \n")], DartboardEmbeddings()
    )
    assert store.similarity_search("tea", k=1)[0].page_content == "tea"
    assert len(store.store) == 3


def test_a_vector_store_of_our_own(tmp_path):
    documents = [Document(id=id, page_content=text, metadata={"kind": id}) for id, text in TEXTS.items()]
    url = str(tmp_path / "tea.dartboard")
    store = DartboardVectorStore.from_documents([*documents, Document(page_content=" ")], Bag(), url=url)
    with Engine.open(url, read_only=True, model=store.engine.model) as engine:
        wanted = [chunk.id for chunk in engine.search(QUERY, k=3).chunks]
    assert [one.id for one in store.as_retriever(search_kwargs={"k": 3}).invoke(QUERY)] == wanted
    nearest = store.similarity_search(QUERY, k=3, method="top_k", where='kind != "a"')
    assert [one.id for one in nearest] == ["c", "b", "e"] or len(nearest) == 3
    assert len(store.max_marginal_relevance_search(QUERY, k=2, fetch_k=5)) == 2
    scored = store.similarity_search_with_relevance_scores(QUERY, k=2, score_threshold=0.1)
    assert all(0.1 <= score <= 1 for _, score in scored)
    store.engine.close()
    again = DartboardVectorStore.open(url, Bag())
    assert again.get_by_ids(["b"])[0].metadata == {"kind": "b"}
    records = InMemoryRecordManager("tea")
    records.create_schema()
    report = index([Document(page_content="tea is new")], records, again, key_encoder="sha256")
    assert report["num_added"] == 1 and len(again.similarity_search(QUERY, k=20)) == 11
    again.engine.close()


@pytest.fixture
def anyio_backend():
    return "asyncio"


@pytest.mark.anyio
class TestRetriever(RetrieversIntegrationTests):
    retriever_constructor = DartboardRetriever
    retriever_query_example = QUERY

    @property
    def retriever_constructor_params(self):
        return {"engine": tea.filled()}


@pytest.mark.anyio
class TestMergingRetriever(TestRetriever):
    @property
    def retriever_constructor_params(self):
        return {"engine": tea.filled(), "merge": True}


@pytest.mark.anyio
class TestEmbeddings(EmbeddingsIntegrationTests):
    embeddings_class = DartboardEmbeddings


@pytest.mark.anyio
class TestVectorStore(VectorStoreIntegrationTests):
    @pytest.fixture
    def vectorstore(self):
        store = DartboardVectorStore.open("memory://", self.get_embeddings())
        yield store
        store.engine.close()
