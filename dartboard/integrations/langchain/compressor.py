"""A LangChain document compressor: of any retriever's documents, those that together say most."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal, Self

from langchain_core.callbacks import Callbacks
from langchain_core.documents import BaseDocumentCompressor, Document
from pydantic import ConfigDict, model_validator

from dartboard.integrations.choosing import choose
from dartboard.integrations.items import Item, check_documents
from dartboard.integrations.langchain.stores import model_of, read_vectors, store_of
from dartboard.integrations.notes import KEY, with_note
from dartboard.integrations.options import check_names, options_of
from dartboard.integrations.vectors import VectorSource, VectorStore

_NO_STORE = (
    "If they are from a vector store, use its vectors: DartboardCompressor(vectorstore=store, …), or "
    "vectors=FUNCTION where it is of a kind that returns none."
)
_NO_VECTORS = "The {} returned no vectors for their ids: if it has them, read them with vectors=FUNCTION."


class DartboardCompressor(BaseDocumentCompressor):
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
    k: int | None = None
    """How many to pick; 5 where there is no ``token_budget`` either."""
    token_budget: int | None = None
    """What the picks may cost together, in tokens."""
    method: Any = "dartboard"
    """How to choose: a name, such as ``mmr``, or a selection method."""
    sigma: float | Literal["auto"] = "auto"
    """How near a pick has to be to stand for a passage; ``auto`` finds it from the candidates."""
    max_per_source: int | None = None
    """The most picks that one source may have."""
    source_field: str = "source"
    """The metadata field that ``max_per_source`` counts."""
    min_gain_share: float = 0.0
    """Stop once a pick would add less than this share of what the first one added."""
    min_similarity: float | None = None
    """Leave out candidates whose cosine to the question is lower."""
    metadata_key: str = KEY
    """Where in the metadata the note on each pick is put."""

    @model_validator(mode="before")
    @classmethod
    def _check_names(cls, settings: Any) -> Any:
        check_names(settings, cls.__name__)
        return settings

    @model_validator(mode="after")
    def _check(self) -> Self:
        options_of(self)
        self._source().require_model()
        return self

    def compress_documents(
        self, documents: Sequence[Document], query: str, callbacks: Callbacks | None = None
    ) -> list[Document]:
        """The picks in order, as copies whose metadata has a note under ``metadata_key``."""
        given = check_documents(documents, Document, "Document(page_content=…)")
        items = [self._item(place, document) for place, document in enumerate(given)]
        picks = choose(query, items, self._source(), options_of(self), scored=self.score_field is not None)
        return [
            pick.item.document.model_copy(
                update={"metadata": with_note(pick.item.metadata, self.metadata_key, pick.note)}
            )
            for pick in picks
        ]

    def _source(self) -> VectorSource:
        field = self.vector_field
        store = None if self.vectorstore is None else store_of(self.vectorstore)
        return VectorSource(
            model=self.embeddings if store is None or self.embeddings is not None else model_of(store),
            function=self.vectors,
            carried=None if field is None else f"metadata field {field!r}",
            carried_name=field or "",
            store=None if store is None else VectorStore(type(store).__name__, partial(read_vectors, store)),
            advice=_NO_STORE if store is None else _NO_VECTORS.format(type(store).__name__),
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
