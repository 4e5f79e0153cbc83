"""The three frameworks behind one face each, so that one suite holds all of them to the same."""

import asyncio
import os
import threading
from dataclasses import dataclass, field
from typing import Any

# Before Haystack is imported: tests report nothing to anybody.
os.environ["HAYSTACK_TELEMETRY_ENABLED"] = "False"

import haystack as haystack_ai
from langchain_core.documents import Document
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode

from dartboard.integrations import haystack, langchain, llama_index
from tests.models import WordBag
from tests.tea import QUERY, TEXTS


@dataclass
class Doc:
    """A document of no framework."""

    id: str
    text: str
    metadata: dict[str, Any] = field(default_factory=dict)
    vector: Any = None
    score: float | None = None


def docs(texts=TEXTS):
    return [Doc(id, text, {"source": "x", "number": n}) for n, (id, text) in enumerate(texts.items())]


class LangChain:
    """Vectors and scores travel in the metadata."""

    def rerank(
        self, documents, query=QUERY, *, model=None, given=False, scored=False, query_vector=None, **options
    ):
        assert query_vector is None, "LangChain has no vectors of questions"
        more = {"vectors": lambda some: [one.metadata["vector"] for one in some]} if given else {}
        component = langchain.DartboardCompressor(
            embeddings=model, score_field="score" if scored else None, **more, **options
        )
        found = component.compress_documents(self.documents(documents), query)
        return [(one.id, one.page_content, one.metadata, None) for one in found]

    def documents(self, documents):
        return [
            Document(
                id=one.id,
                page_content=one.text,
                metadata=one.metadata
                | {"vector": one.vector}
                | ({} if one.score is None else {"score": one.score}),
            )
            for one in documents
        ]

    def arerank(self, documents, model):
        component = langchain.DartboardCompressor(embeddings=model, k=2)
        return component.acompress_documents(self.documents(documents), QUERY)

    def retriever(self, engine, **options):
        return langchain.DartboardRetriever(engine=engine, **options)

    def retrieve(self, engine, query=QUERY, **options):
        found = self.retriever(engine, **options).invoke(query)
        return [(one.id, one.page_content, one.metadata, None) for one in found]

    def aretrieve(self, engine):
        return self.retriever(engine, k=2).ainvoke(QUERY)


class LlamaIndex:
    """Vectors and scores are the node's own."""

    def rerank(
        self, documents, query=QUERY, *, model=None, given=False, scored=False, query_vector=None, **options
    ):
        component = llama_index.DartboardPostprocessor(
            embed_model=model, use_node_embeddings=given, use_scores=scored, **options
        )
        bundle = QueryBundle(query, embedding=query_vector)
        found = component.postprocess_nodes(self.documents(documents), query_bundle=bundle)
        return [(one.node_id, one.text, one.metadata, one.score) for one in found]

    def documents(self, documents):
        return [
            NodeWithScore(
                node=TextNode(
                    id_=one.id,
                    text=one.text,
                    metadata=one.metadata,
                    excluded_embed_metadata_keys=list(one.metadata),
                    excluded_llm_metadata_keys=list(one.metadata),
                    embedding=None if one.vector is None else list(map(float, one.vector)),
                ),
                score=one.score,
            )
            for one in documents
        ]

    def arerank(self, documents, model):
        component = llama_index.DartboardPostprocessor(embed_model=model, k=2)
        return component.apostprocess_nodes(self.documents(documents), query_str=QUERY)

    def retriever(self, engine, **options):
        return llama_index.DartboardRetriever(engine, **options)

    def retrieve(self, engine, query=QUERY, **options):
        found = self.retriever(engine, **options).retrieve(query)
        return [(one.node_id, one.text, one.metadata, one.score) for one in found]

    def aretrieve(self, engine):
        return self.retriever(engine, k=2).aretrieve(QUERY)


class Haystack:
    """Vectors and scores are the document's own."""

    def rerank(
        self, documents, query=QUERY, *, model=None, given=False, scored=False, query_vector=None, **options
    ):
        component = haystack.DartboardRanker(
            model=model, use_document_embeddings=given, use_scores=scored, **options
        )
        found = component.run(query, self.documents(documents), query_embedding=query_vector)
        return [(one.id, one.content, one.meta, one.score) for one in found["documents"]]

    def documents(self, documents):
        return [
            haystack_ai.Document(
                id=one.id,
                content=one.text,
                meta=one.metadata,
                embedding=None if one.vector is None else list(map(float, one.vector)),
                score=one.score,
            )
            for one in documents
        ]

    def arerank(self, documents, model):
        return haystack.DartboardRanker(model=model, top_k=2).run_async(QUERY, self.documents(documents))

    def retriever(self, engine, **options):
        return haystack.DartboardRetriever(engine=engine, **options)

    def retrieve(self, engine, query=QUERY, **options):
        found = self.retriever(engine, **options).run(query)["documents"]
        return [(one.id, one.content, one.meta, one.score) for one in found]

    def aretrieve(self, engine):
        return self.retriever(engine, k=2).run_async(QUERY)


FRAMEWORKS = [LangChain(), LlamaIndex(), Haystack()]


class CountingBag(WordBag):
    """Keeps the texts that it is given."""

    def __init__(self):
        super().__init__()
        self.encoded = []

    def encode(self, texts, batch_size=32):
        self.encoded += list(texts)
        return super().encode(texts, batch_size)


class Patient(WordBag):
    """A model that waits until the event loop has done something else: it never does if it is blocked."""

    def __init__(self):
        super().__init__()
        self.free = threading.Event()

    def encode(self, texts, batch_size=32):
        assert self.free.wait(30), "the event loop was blocked"
        return super().encode(texts, batch_size)


async def while_free(patient, work):
    """What ``work`` gives; the model is let go from the loop while it runs."""

    async def let_go():
        await asyncio.sleep(0)
        patient.free.set()

    found, _ = await asyncio.gather(work, let_go())
    return found
