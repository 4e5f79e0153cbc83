"""A Haystack ranker: of any retriever's documents, those that together say most."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Self, Unpack

from haystack import Document, component, default_from_dict, default_to_dict
from haystack.components.embedders.types import DocumentEmbedder, TextEmbedder
from haystack.core.errors import SerializationError
from haystack.core.serialization import component_to_dict
from haystack.utils import deserialize_callable, serialize_callable

from dartboard.embeddings.base import EmbeddingModel
from dartboard.embeddings.reader_tokenizer import Tokenizer
from dartboard.errors import ConfigError
from dartboard.integrations.models import ForeignModel, as_model
from dartboard.integrations.options import RerankFields, options_of, set_options, settings_of
from dartboard.integrations.pick_metadata import KEY, with_note
from dartboard.integrations.rerank import rerank
from dartboard.integrations.vector_source import Item, VectorSource, check_documents
from dartboard.search_options import SearchKeywords, SearchOptions
from dartboard.selection import Method

_NO_EMBEDDINGS = (
    "If the document store has their vectors, use these: return_embedding=True in the retriever and "
    "DartboardRanker(use_document_embeddings=True, …)."
)


@component
class DartboardRanker:
    """Picks the documents that together say most about a question; the score of each is its relevance.

    Their vectors come from ``model``, a dartboard ``EmbeddingModel`` or the name of one (the default model
    where it is left out); or from ``document_embedder``, a component of Haystack; or from ``vectors``, a
    function of the documents; or, with ``use_document_embeddings``, from ``Document.embedding`` (retrievers
    give it with ``return_embedding=True``). In the last three cases the query's vector is the
    ``query_embedding`` that ``run`` gets, else what ``text_embedder`` or ``model`` makes.

    ``use_scores`` takes the order of the documents' scores, such as another ranker's, on the query's side.

    ``options`` are ``token_budget``, ``tokenizer``, ``also``, ``weights``, ``offset``, ``method``, ``sigma``,
    ``max_per_source``, ``source_field``, ``max_per``, ``prefer``, ``min_gain_share`` and ``min_similarity``,
    as in :class:`~dartboard.search_options.SearchOptions`.
    """

    def __init__(
        self,
        *,
        top_k: int | None = None,
        model: EmbeddingModel | str | None = None,
        document_embedder: DocumentEmbedder | None = None,
        text_embedder: TextEmbedder | None = None,
        vectors: Callable[[list[Document]], Any] | None = None,
        use_document_embeddings: bool = False,
        use_scores: bool = False,
        meta_key: str = KEY,
        **options: Unpack[SearchKeywords],
    ) -> None:
        self.top_k = top_k
        self.model = model
        self.document_embedder = document_embedder
        self.text_embedder = text_embedder
        self.vectors = vectors
        self.use_document_embeddings = use_document_embeddings
        self.use_scores = use_scores
        self.meta_key = meta_key
        self.method: Method | str
        self.tokenizer: Tokenizer | None
        set_options(self, RerankFields, options, "k")
        self._options()
        self._source()

    def warm_up(self) -> None:
        """Load the model, and whatever the embedders load."""
        if self.text_embedder is None and (self._source().embeds or self.model is not None):
            as_model(self.model)
        for embedder in self._embedders():
            if hasattr(embedder, "warm_up"):
                embedder.warm_up()

    async def warm_up_async(self) -> None:
        """The same in a thread."""
        await asyncio.to_thread(self.warm_up)

    def close(self) -> None:
        """Let the embedders release what they hold."""
        for embedder in self._embedders():
            if hasattr(embedder, "close"):
                embedder.close()

    def to_dict(self) -> dict[str, Any]:
        """The component as plain data; a model or a method must have been given by name for that."""
        for name, value in (
            ("model", self.model),
            ("method", self.method),
            ("tokenizer", self.tokenizer),
        ):
            if value is not None and not isinstance(value, str):
                raise SerializationError(
                    f"{name} is a {type(value).__name__} and cannot be saved: give it by name"
                )
        embedders = {"document_embedder": self.document_embedder, "text_embedder": self.text_embedder}
        settings = settings_of(self) | {
            name: None if given is None else component_to_dict(given, name)
            for name, given in embedders.items()
        }
        if self.vectors is not None:
            settings["vectors"] = serialize_callable(self.vectors)
        return default_to_dict(self, **settings)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """The component that :meth:`to_dict` wrote down."""
        parameters = dict(data.get("init_parameters", {}))
        if isinstance(parameters.get("vectors"), str):
            parameters["vectors"] = deserialize_callable(parameters["vectors"])
        return default_from_dict(cls, {**data, "init_parameters": parameters})

    @component.output_types(documents=list[Document])
    def run(
        self,
        query: str,
        documents: list[Document],
        top_k: int | None = None,
        query_embedding: list[float] | None = None,
        also: list[str] | None = None,
        offset: int | None = None,
    ) -> dict[str, list[Document]]:
        """The picks in order, as copies with a score and, in their meta, a note.

        ``query_embedding`` is the query as the model of the documents' vectors knows it. ``also`` and
        ``offset`` take the place of those that the component was made with.
        """
        documents = check_documents(documents, Document, "Document(content=…)")
        source, options = self._source(), self._options(top_k, also=also, offset=offset)
        if query_embedding is not None and source.embeds:
            raise ConfigError(
                "query_embedding goes with vectors that are there already: set use_document_embeddings, "
                "document_embedder or vectors, or leave query_embedding unconnected"
            )
        if documents:
            self.warm_up()
        items = [_item(place, document) for place, document in enumerate(documents)]
        picks = rerank(query, items, source, options, query_vector=query_embedding, scored=self.use_scores)
        return {
            "documents": [
                replace(
                    pick.item.document,
                    score=pick.note["score"],
                    meta=with_note(pick.item.metadata, self.meta_key, pick.note),
                )
                for pick in picks
            ]
        }

    @component.output_types(documents=list[Document])
    async def run_async(
        self,
        query: str,
        documents: list[Document],
        top_k: int | None = None,
        query_embedding: list[float] | None = None,
        also: list[str] | None = None,
        offset: int | None = None,
    ) -> dict[str, list[Document]]:
        """The same in a thread."""
        return await asyncio.to_thread(self.run, query, documents, top_k, query_embedding, also, offset)

    def _embedders(self) -> list[TextEmbedder | DocumentEmbedder]:
        given = (self.text_embedder, self.document_embedder)
        return [embedder for embedder in given if embedder is not None]

    def _options(self, top_k: int | None = None, **changes: Any) -> SearchOptions:
        given = {name: value for name, value in changes.items() if value is not None}
        return options_of(self, k=self.top_k if top_k is None else top_k, **given)

    def _source(self) -> VectorSource:
        if self.model is not None and self.text_embedder is not None:
            raise ConfigError("model and text_embedder both embed the query: give one of them")
        if self.vectors is not None and self.document_embedder is not None:
            raise ConfigError(
                "vectors and document_embedder both make the documents' vectors: give one of them"
            )
        embedder = self.document_embedder
        source = VectorSource(
            model=self.model if self.text_embedder is None else query_model(self.text_embedder),
            function=self.vectors if embedder is None else EmbedderFunction(embedder),
            carried="Document.embedding" if self.use_document_embeddings else None,
            carried_name="embedding",
            model_knob="model, text_embedder or query_embedding",
            advice=_NO_EMBEDDINGS,
        )
        if self.text_embedder is not None and source.embeds:
            raise ConfigError(
                "text_embedder embeds the query alone: say where the documents' vectors come from, with "
                "document_embedder, use_document_embeddings or vectors"
            )
        return source


def _item(place: int, document: Document) -> Item:
    return Item(
        document=document,
        position=place,
        own_id=document.id,
        text=document.content,
        metadata=document.meta or {},
        vector=document.embedding,
        score=document.score,
    )


class EmbedderFunction:
    """The function of documents that a document embedder is; it is known by the embedder's name."""

    def __init__(self, embedder: DocumentEmbedder) -> None:
        if not callable(getattr(embedder, "run", None)):
            raise ConfigError(
                f"document_embedder must be a component that embeds documents, got {type(embedder).__name__}"
            )
        self._embedder = embedder
        self.__qualname__ = type(embedder).__qualname__

    def __call__(self, documents: list[Document]) -> list[Any]:
        """One vector a document."""
        embedded: list[Document] = self._embedder.run(documents=documents)["documents"]
        return [document.embedding for document in embedded]


def query_model(embedder: TextEmbedder) -> ForeignModel:
    """The model that a text embedder is, for queries alone."""
    if not callable(getattr(embedder, "run", None)):
        raise ConfigError(
            f"text_embedder must be a component that embeds a text, got {type(embedder).__name__}"
        )
    named = getattr(embedder, "model", None)
    return ForeignModel(
        named if isinstance(named, str) and named else type(embedder).__qualname__,
        embed_query=lambda text: embedder.run(text=text)["embedding"],
        embed_documents=_refuse_documents,
    )


def _refuse_documents(texts: list[str]) -> Any:
    raise ConfigError("a text embedder embeds queries: documents need a document_embedder")
