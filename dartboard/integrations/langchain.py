"""Dartboard in LangChain: a retriever, a document compressor, embeddings and a vector store.

All are synchronous inside; their asynchronous methods run in LangChain's thread pool, so that the event loop
stays free. Needs the extra ``langchain``.
"""

import uuid
import warnings
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, Self

from dartboard.errors import MissingExtraError

try:
    from langchain_core.callbacks import (
        AsyncCallbackManagerForRetrieverRun,
        CallbackManagerForRetrieverRun,
        Callbacks,
    )
    from langchain_core.documents import BaseDocumentCompressor, Document
    from langchain_core.embeddings import Embeddings
    from langchain_core.retrievers import BaseRetriever
    from langchain_core.runnables import run_in_executor
    from langchain_core.vectorstores import VectorStore
except ImportError as missing:
    raise MissingExtraError("langchain-core", "langchain", "dartboard.integrations.langchain") from missing

from pydantic import ConfigDict, model_validator

from dartboard.context import DEFAULT_BUDGET, Order, check_options
from dartboard.embeddings.base import EmbeddingModel
from dartboard.engine import Engine
from dartboard.errors import ConfigError
from dartboard.integrations.index_search import search
from dartboard.integrations.models import ModelChoice, as_model, check_model
from dartboard.integrations.options import OptionsField, as_options, gathered
from dartboard.integrations.rerank import Item, rerank, with_note
from dartboard.selection.baselines import MMR
from dartboard.stores import Record
from dartboard.stores.records import with_fingerprints

__all__ = ["DartboardCompressor", "DartboardEmbeddings", "DartboardRetriever", "DartboardVectorStore"]


class DartboardRetriever(OptionsField, BaseRetriever):
    """Documents of an index that together say most about a question.

    Options are those of :meth:`dartboard.engine.Engine.search`, all of them in ``options`` or single ones as
    keywords; any of them can be changed for one call: ``retriever.invoke(question, k=3)``. The engine stays
    the caller's to close.

    With ``merge=True`` the documents are the passages of a context (:meth:`dartboard.engine.Engine.context`):
    chunks that follow each other in a document are one, without repeated text, and all of them with their
    numbers, sources and headings fit into ``token_budget``, by default 2,000.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

    engine: Engine
    """The index that is searched."""
    merge: bool = False
    """Whether chunks are merged to the passages of a context."""
    expand: bool = True
    """With ``merge``: whether chunks before and after a pick may be added where they add most per token."""
    order: Order = "gain"
    """With ``merge``: ``gain`` (what adds most comes first), ``source`` or ``ends`` (best at both ends)."""

    @model_validator(mode="before")
    @classmethod
    def _gather(cls, given: Any) -> Any:
        return gathered(given, **({"token_budget": DEFAULT_BUDGET} if given.get("merge") else {}))

    @model_validator(mode="after")
    def _check_context(self) -> Self:
        if self.merge:
            check_options(self.options, self.order)
        return self

    @classmethod
    def open(cls, url: str, *, engine_options: dict[str, Any] | None = None, **settings: Any) -> Self:
        """A retriever over the index at ``url``, which is only read; ``engine_options`` as in ``Engine``."""
        return cls(engine=Engine.open(url, read_only=True, **(engine_options or {})), **settings)

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, **changes: Any
    ) -> list[Document]:
        options = as_options(self.options, changes)
        how: Any = {"merge": self.merge, "expand": self.expand, "order": self.order}
        found = search(self.engine, query, options, self.metadata_key, **how)
        return [Document(id=one.id, page_content=one.text, metadata=one.metadata) for one in found]

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun, **changes: Any
    ) -> list[Document]:
        work = partial(self._get_relevant_documents, query, run_manager=run_manager.get_sync(), **changes)
        return await run_in_executor(None, work)


class DartboardCompressor(OptionsField, BaseDocumentCompressor):
    """Of any retriever's documents, those that together say most about the question.

    Their vectors are those of ``vectorstore``, the store that the documents are from, where it is in
    ``READERS``, or those that ``vectors`` gives, a function of the documents; what has none is embedded by
    ``embeddings``, which embeds the query as well: a LangChain ``Embeddings``, a dartboard ``EmbeddingModel``
    or the name of one, by default the store's, else dartboard's default model.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

    vectorstore: Any = None
    """The vector store that the documents are from, or its retriever."""
    embeddings: Any = None
    """What embeds the query, and documents without a vector."""
    vectors: Callable[[list[Document]], Sequence[Any]] | None = None
    """A function of the documents that gives their vectors, None for those that have none."""
    score_field: str | None = None
    """The metadata field with another ranker's scores, whose order then counts on the query's side."""

    @model_validator(mode="after")
    def _check_vectors(self) -> Self:
        check_model(self.embeddings, "embeddings")
        if self.vectorstore is None:
            return self
        if self.vectors is not None:
            raise ConfigError("vectors come from a vectorstore or from a function: give one", field="vectors")
        store = _store_of(self.vectorstore)
        if store.embeddings is None and self.embeddings is None:
            raise ConfigError(
                f"the {type(store).__name__} does not say which model made its vectors: say it with "
                "embeddings, so that the query is embedded alike",
                field="embeddings",
            )
        return self

    def compress_documents(
        self, documents: Sequence[Document], query: str, callbacks: Callbacks | None = None
    ) -> list[Document]:
        """The picks in order, as copies whose metadata has a note under ``metadata_key``."""
        vectors, model = self.vectors, self.embeddings
        if self.vectorstore is not None:
            store = _store_of(self.vectorstore)
            vectors = partial(read_vectors, store)
            model = store.embeddings if model is None else model
        picks = rerank(
            query,
            [self._item(document) for document in documents],
            model=model,
            options=self.options,
            vectors=vectors,
            scored=self.score_field is not None,
        )
        return [
            document.model_copy(update={"metadata": with_note(document.metadata, self.metadata_key, note)})
            for document, note in picks
        ]

    def _item(self, document: Document) -> Item:
        metadata = document.metadata
        score = None if self.score_field is None else metadata.get(self.score_field)
        return Item(
            document=document,
            id=_id_of(document),
            text=document.page_content,
            metadata=metadata,
            score=score,
        )


class DartboardEmbeddings(Embeddings):
    """A dartboard model for vector stores; by default the one that needs no server and no key."""

    def __init__(self, model: Any = None) -> None:
        self._choice = ModelChoice(model)

    @property
    def model(self) -> EmbeddingModel:
        """The model itself."""
        return self._choice.model

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """One vector a text; a blank one gets that of a full stop."""
        return self._choice.embed_documents(texts)

    def embed_query(self, text: str) -> list[float]:
        """The vector of a question."""
        return self._choice.embed_query(text)


class DartboardVectorStore(VectorStore):
    """An index as a vector store: written from documents, and searched for those that together say most.

    ``as_retriever()`` and ``similarity_search`` pick with Dartboard; any option of a search can be given
    (``method="top_k"`` for the nearest alone, ``where="year >= 2020"``). Documents are stored as they are:
    split long ones first. Those without text are left out.
    """

    def __init__(self, engine: Engine) -> None:
        self.engine = engine

    @classmethod
    def open(cls, url: str, embedding: Any = None, **engine_options: Any) -> Self:
        """The store at ``url`` (a file, or the URL of a server), which is made at the first document."""
        model = as_model(embedding) if isinstance(embedding, Embeddings) else embedding
        return cls(Engine.open(url, model=model, **engine_options))

    @classmethod
    def from_texts(
        cls,
        texts: list[str],
        embedding: Embeddings,
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: list[str] | None = None,
        url: str = "memory://",
        **engine_options: Any,
    ) -> Self:
        """A store with these texts at ``url``, by default in memory."""
        store = cls.open(url, embedding, **engine_options)
        store.add_texts(texts, metadatas, ids=ids)
        return store

    @property
    def embeddings(self) -> Embeddings:
        """The model that makes the vectors."""
        return DartboardEmbeddings(self.engine.model)

    def add_texts(
        self,
        texts: Iterable[str],
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: list[str] | None = None,
        **more: Any,
    ) -> list[str]:
        """Store texts, and replace those whose id is known; returns the ids."""
        listed = list(texts)
        found = [id or str(uuid.uuid4()) for id in ids or [""] * len(listed)]
        rows = [
            row for row in zip(found, listed, metadatas or [{}] * len(listed), strict=True) if row[1].strip()
        ]
        if rows:
            vectors = self.engine.model.encode_documents([text for _, text, _ in rows])
            records = [
                Record(id, text, vector, dict(metadata))
                for (id, text, metadata), vector in zip(rows, vectors, strict=True)
            ]
            collection = self.engine.collection if self.engine.exists else self.engine.create()
            collection.upsert(with_fingerprints(self.engine.retriever.index(records)))
        return found

    def delete(self, ids: list[str] | None = None, **more: Any) -> bool:
        """Remove documents by id."""
        if self.engine.exists and ids:
            self.engine.delete(ids)
        return True

    def get_by_ids(self, ids: Sequence[str], /) -> list[Document]:
        """The documents with these ids, of those that there are."""
        records = self.engine.collection.get(list(ids)) if self.engine.exists else []
        return [Document(id=one.id, page_content=one.text, metadata=dict(one.metadata)) for one in records]

    def similarity_search(self, query: str, k: int = 4, **options: Any) -> list[Document]:
        """The documents that together say most, as they were stored."""
        return [document for document, _ in self.similarity_search_with_score(query, k, **options)]

    def similarity_search_with_score(
        self, query: str, k: int = 4, **options: Any
    ) -> list[tuple[Document, float]]:
        """The same with the cosine of each to the query."""
        if not self.engine.exists:
            return []
        found = self.engine.search(query, as_options(None, {"k": k} | options))
        documents = [
            Document(id=one.id, page_content=one.text, metadata=dict(one.metadata)) for one in found.chunks
        ]
        return list(zip(documents, found.metadata.get("similarity", ()), strict=True))

    def max_marginal_relevance_search(
        self, query: str, k: int = 4, fetch_k: int = 20, lambda_mult: float = 0.5, **options: Any
    ) -> list[Document]:
        """By MMR, to compare."""
        return self.similarity_search(query, k, triage_k=fetch_k, method=MMR(lambda_mult), **options)

    def _select_relevance_score_fn(self) -> Callable[[float], float]:
        return lambda cosine: max(cosine, 0.0)


def _store_of(given: Any) -> VectorStore:
    """The vector store itself, or the one behind a retriever."""
    store = getattr(given, "vectorstore", given)
    if not isinstance(store, VectorStore):
        raise ConfigError(
            f"vectorstore must be a VectorStore or the retriever of one, got {type(given).__name__}",
            field="vectorstore",
        )
    return store


def read_vectors(store: VectorStore, documents: Sequence[Document]) -> list[Any]:
    """The vector of each document as its store has it, None where there is none.

    LangChain has no method for that: each kind of store has its own way, in ``READERS``.
    """
    wanted = [_id_of(document) for document in documents]
    ids = list(dict.fromkeys(id for id in wanted if id is not None))
    readers = (READERS[kind.__name__] for kind in type(store).__mro__ if kind.__name__ in READERS)
    read = next(readers, None)
    if read is None:
        warnings.warn(
            f"the vectors of {type(store).__name__} cannot be read, so that documents are embedded again: "
            "give vectors=FUNCTION, which reads them",
            stacklevel=2,
        )
    found = read(store, ids) if read is not None and ids else {}
    return [None if id is None else found.get(id) for id in wanted]


def _id_of(document: Document) -> str | None:
    """The id, which Qdrant's documents carry in their metadata."""
    id = document.metadata.get("_id") if document.id is None else document.id
    return None if id is None else str(id)


def _read_memory(store: Any, ids: list[str]) -> dict[str, Any]:
    return {id: store.store[id]["vector"] for id in ids if id in store.store}


def _read_faiss(store: Any, ids: list[str]) -> dict[str, Any]:
    wanted = set(ids)
    rows = {id: row for row, id in store.index_to_docstore_id.items() if id in wanted}
    if not rows:
        return {}
    try:
        return dict(zip(rows, store.index.reconstruct_batch(list(rows.values())), strict=True))
    except RuntimeError:  # some kinds of FAISS index do not keep the vectors
        return {}


def _read_chroma(store: Any, ids: list[str]) -> dict[str, Any]:
    found = store.get(ids=ids, include=["embeddings"])
    return dict(zip(found["ids"], found["embeddings"], strict=True))


def _read_qdrant(store: Any, ids: list[str]) -> dict[str, Any]:
    points = store.client.retrieve(
        store.collection_name,
        [int(id) if id.isdecimal() else id for id in ids],  # its ids are whole numbers and UUIDs
        with_payload=False,
        with_vectors=True,
    )
    vectors = {str(point.id): point.vector for point in points}
    name = store.vector_name
    return {id: one.get(name) if isinstance(one, dict) else one for id, one in vectors.items()}


def _read_pgvector(store: Any, ids: list[str]) -> dict[str, Any]:
    table = store.EmbeddingStore
    with store._make_sync_session() as session:
        collection = store.get_collection(session)
        rows = session.query(table.id, table.embedding).filter(
            table.id.in_(ids), table.collection_id == collection.uuid
        )
        return {str(row.id): row.embedding for row in rows}


READERS: dict[str, Callable[[Any, list[str]], dict[str, Any]]] = {
    "InMemoryVectorStore": _read_memory,
    "FAISS": _read_faiss,
    "Chroma": _read_chroma,
    "QdrantVectorStore": _read_qdrant,
    "PGVector": _read_pgvector,
}
"""How the vectors of a kind of store are read, by the name of its class."""
