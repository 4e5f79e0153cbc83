"""A LangChain document compressor: of any retriever's documents, those that together say most."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Self

from langchain_core.callbacks import Callbacks
from langchain_core.documents import BaseDocumentCompressor, Document
from langchain_core.vectorstores import InMemoryVectorStore, VectorStore
from pydantic import ConfigDict, model_validator

from dartboard.errors import ConfigError
from dartboard.integrations.options import RerankFields, options_of
from dartboard.integrations.pick_metadata import with_note
from dartboard.integrations.rerank import rerank
from dartboard.integrations.vector_source import Item, StoredVectors, VectorSource, check_documents

_NO_STORE = (
    "If they are from a vector store, use its vectors: DartboardCompressor(vectorstore=store, …), or "
    "vectors=FUNCTION where it is of a kind that returns none."
)


class DartboardCompressor(RerankFields, BaseDocumentCompressor):
    """Of any retriever's documents, those that together say most about the question.

    Their vectors come from ``vectorstore``, the store that the documents are from, where it can return them;
    what it does not have is embedded by its own model. Without a store they come from ``embeddings`` (a
    LangChain ``Embeddings``, a dartboard ``EmbeddingModel`` or the name of one; the default model where it is
    left out), which embeds each document once, or from ``vectors``, a function of the documents, or from the
    metadata field ``vector_field``. With either of these, ``embeddings`` must be the model that made the
    vectors, for it embeds the query. Each document's note says which it was.

    ``score_field`` names a metadata field with another ranker's scores, whose order then counts on the
    query's side. ``source_field`` is what ``max_per_source`` counts.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

    vectorstore: Any = None
    """The vector store that the documents are from, or its retriever."""
    embeddings: Any = None
    """What makes vectors: a LangChain ``Embeddings``, an ``EmbeddingModel`` or its name; by default the
    store's, else ours."""
    vectors: Callable[[list[Document]], Any] | None = None
    """A function of the documents that gives their vectors."""
    vector_field: str | None = None
    """The metadata field that holds each document's vector."""
    score_field: str | None = None
    """The metadata field with another ranker's scores."""

    @model_validator(mode="after")
    def _check_source(self) -> Self:
        self._source().require_model()
        return self

    def compress_documents(
        self, documents: Sequence[Document], query: str, callbacks: Callbacks | None = None
    ) -> list[Document]:
        """The picks in order, as copies whose metadata has a note under ``metadata_key``."""
        given = check_documents(documents, Document, "Document(page_content=…)")
        items = [self._item(place, document) for place, document in enumerate(given)]
        picks = rerank(query, items, self._source(), options_of(self), scored=self.score_field is not None)
        return [
            pick.item.document.model_copy(
                update={"metadata": with_note(pick.item.metadata, self.metadata_key, pick.note)}
            )
            for pick in picks
        ]

    def _source(self) -> VectorSource:
        field = self.vector_field
        store = None if self.vectorstore is None else store_of(self.vectorstore)
        stored = None if store is None else StoredVectors(type(store).__name__, partial(read_vectors, store))
        model = self.embeddings
        if store is not None and model is None:
            model = model_of(store)
        return VectorSource(
            model=model,
            function=self.vectors,
            carried=None if field is None else f"metadata field {field!r}",
            carried_name=field or "",
            store=stored,
            advice=_NO_STORE,
        )

    def _item(self, place: int, document: Document) -> Item:
        metadata = document.metadata or {}
        return Item(
            document=document,
            position=place,
            own_id=document.id,
            text=document.page_content,
            metadata=metadata,
            vector=None if self.vector_field is None else metadata.get(self.vector_field),
            score=None if self.score_field is None else metadata.get(self.score_field),
        )


def store_of(given: Any) -> VectorStore:
    """The vector store itself, or the one behind a retriever."""
    store = getattr(given, "vectorstore", given)
    if not isinstance(store, VectorStore):
        raise ConfigError(
            f"vectorstore must be a LangChain VectorStore or the retriever of one, got {type(given).__name__}"
        )
    return store


def model_of(store: VectorStore) -> Any:
    """The embeddings that made the store's vectors."""
    if store.embeddings is None:
        raise ConfigError(
            f"the {type(store).__name__} does not say which model made its vectors: say it with embeddings, "
            "so that the query is embedded alike"
        )
    return store.embeddings


def read_vectors(store: Any, ids: Sequence[str]) -> dict[str, Any]:
    """Id → vector, of those that the store has and can return.

    LangChain has no method for that, so each kind of store has its own way; one of another kind gives none.
    """
    if isinstance(store, InMemoryVectorStore):
        return {id: store.store[id]["vector"] for id in ids if id in store.store}
    if hasattr(store, "index_to_docstore_id"):
        return _from_faiss(store, ids)
    if any(kind.__name__ == "Chroma" for kind in type(store).__mro__):
        found = store.get(ids=list(ids), include=["embeddings"])
        return dict(zip(found["ids"], found["embeddings"], strict=True))
    return {}


def _from_faiss(store: Any, ids: Sequence[str]) -> dict[str, Any]:
    wanted = set(ids)
    rows = {id: row for row, id in store.index_to_docstore_id.items() if id in wanted}
    try:
        return {id: store.index.reconstruct(row) for id, row in rows.items()}
    except RuntimeError:  # some kinds of FAISS index do not keep the vectors
        return {}
