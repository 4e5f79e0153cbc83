"""Dartboard in LlamaIndex: a retriever, a node postprocessor and an embedding.

All are synchronous inside; their asynchronous methods run in a thread, so that the event loop stays free.
Notes are kept from the language model and from embeddings. Needs the extra ``llama-index``.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Self

import numpy as np

from dartboard.errors import MissingExtraError

try:
    from llama_index.core.base.base_retriever import BaseRetriever
    from llama_index.core.base.embeddings.base import BaseEmbedding
    from llama_index.core.bridge.pydantic import ConfigDict, PrivateAttr, field_serializer, model_validator
    from llama_index.core.callbacks import CallbackManager
    from llama_index.core.instrumentation.events.rerank import ReRankEndEvent, ReRankStartEvent
    from llama_index.core.postprocessor.types import BaseNodePostprocessor
    from llama_index.core.schema import (
        BaseNode,
        MetadataMode,
        NodeRelationship,
        NodeWithScore,
        QueryBundle,
        RelatedNodeInfo,
        TextNode,
    )
    from llama_index.core.vector_stores import SimpleVectorStore
    from llama_index.core.vector_stores.types import MetadataFilters
    from llama_index_instrumentation import get_dispatcher
except ImportError as missing:
    raise MissingExtraError(
        "llama-index-core", "llama-index", "dartboard.integrations.llama_index"
    ) from missing

from dartboard.context import DEFAULT_BUDGET, Order, check_options
from dartboard.embeddings.base import EmbeddingModel
from dartboard.engine import Engine
from dartboard.errors import ConfigError, InvalidInputError
from dartboard.integrations.index_search import HIDDEN, Found, search
from dartboard.integrations.models import ModelChoice, as_model, check_model
from dartboard.integrations.options import OptionsField, gathered
from dartboard.integrations.rerank import KEY, Item, Pick, rerank, with_note
from dartboard.stores.filters import And, Equal, Exists, Filter, Not, Or, comparison

__all__ = ["DartboardEmbedding", "DartboardPostprocessor", "DartboardRetriever"]

_dispatcher = get_dispatcher(__name__)


class DartboardRetriever(BaseRetriever):
    """Nodes of an index that together say most about a question; the score of each is its relevance.

    Args:
        engine: The index; it stays the caller's to close.
        filters: LlamaIndex's own, in place of ``where``.
        merge: Whether nodes are the passages of a context (:meth:`dartboard.engine.Engine.context`): chunks
            that follow each other in a document are one, without repeated text, and all of them with their
            numbers, sources and headings fit into ``token_budget``, by default 2,000. The score is the gain.
        expand: With ``merge``: whether chunks before and after a pick may be added.
        order: With ``merge``: ``gain``, ``source`` or ``ends``.
        metadata_key: Where in the metadata the note on each pick is put.
        callback_manager: LlamaIndex's.
        options: ``options=SearchOptions(…)``, or single options: ``k=3``, ``method="mmr"``.
    """

    def __init__(
        self,
        engine: Engine,
        *,
        filters: MetadataFilters | None = None,
        merge: bool = False,
        expand: bool = True,
        order: Order = "gain",
        metadata_key: str = KEY,
        callback_manager: CallbackManager | None = None,
        **options: Any,
    ) -> None:
        if not isinstance(engine, Engine):
            raise ConfigError(
                f"engine must be a dartboard Engine, got {type(engine).__name__}", field="engine"
            )
        if filters is not None:
            if options.get("where") is not None:
                raise ConfigError("give where or filters, not both", field="filters")
            options["where"] = from_llama_index(filters)
        given = gathered(options, **({"token_budget": DEFAULT_BUDGET} if merge else {}))
        self.options = given.pop("options")
        if given:
            raise TypeError(f"DartboardRetriever() takes no {min(given)!r}")
        if merge:
            check_options(self.options, order)
        super().__init__(callback_manager=callback_manager)
        self.engine, self.metadata_key = engine, metadata_key
        self.how: Any = {"merge": merge, "expand": expand, "order": order}

    @classmethod
    def open(cls, url: str, *, engine_options: dict[str, Any] | None = None, **settings: Any) -> Self:
        """A retriever over the index at ``url``, which is only read; ``engine_options`` as in ``Engine``."""
        return cls(Engine.open(url, read_only=True, **(engine_options or {})), **settings)

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        query, key = query_bundle.query_str, self.metadata_key
        found = search(self.engine, query, self.options, key, **self.how)
        return [NodeWithScore(node=self._node(one), score=one.score) for one in found]

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return await asyncio.to_thread(self._retrieve, query_bundle)

    def _node(self, found: Found) -> TextNode:
        ours = self.how["merge"] or "document_hash" in found.metadata
        hidden = [self.metadata_key, *(HIDDEN if ours else ())]
        source = found.metadata.get("source")
        return TextNode(
            id_=found.id,
            text=found.text,
            metadata=found.metadata,
            excluded_llm_metadata_keys=hidden,
            excluded_embed_metadata_keys=hidden,
            relationships={NodeRelationship.SOURCE: RelatedNodeInfo(node_id=source)}
            if isinstance(source, str)
            else {},
        )


class DartboardPostprocessor(OptionsField, BaseNodePostprocessor):
    """Of any retriever's nodes, those that together say most about the question; the score is the relevance.

    Their vectors are those of ``index``, the ``VectorStoreIndex`` that the nodes are from, where its vector
    store returns them, or those that ``vectors`` gives, a function of the nodes, or the nodes' own embeddings
    (``use_node_embeddings=True``). What has none is embedded by ``embed_model``, which embeds the query as
    well: a LlamaIndex embedding, a dartboard ``EmbeddingModel`` or the name of one, by default the index's,
    else dartboard's default model. A vector that comes with the query is used where no ``embed_model`` is
    given.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

    index: Any = None
    """The ``VectorStoreIndex`` that the nodes are from."""
    embed_model: Any = None
    """What embeds the query, and nodes without a vector."""
    vectors: Callable[[list[BaseNode]], Sequence[Any]] | None = None
    """A function of the nodes that gives their vectors, None for those that have none."""
    use_node_embeddings: bool = False
    """Take the vectors that the nodes carry."""
    use_scores: bool = False
    """Take the order of the nodes' scores, such as another reranker's, on the query's side."""

    @model_validator(mode="after")
    def _check_vectors(self) -> Self:
        check_model(self.embed_model, "embed_model")
        given = (self.index is not None, self.vectors is not None, self.use_node_embeddings)
        if sum(given) > 1:
            raise ConfigError(
                "vectors come from an index, a function or the nodes: give one of index, vectors and "
                "use_node_embeddings",
                field="vectors",
            )
        if self.index is not None and getattr(self.index, "vector_store", None) is None:
            raise ConfigError(
                f"index must be an index with a vector store, got {type(self.index).__name__}", field="index"
            )
        return self

    @classmethod
    def class_name(cls) -> str:
        """The name in serialised pipelines."""
        return "DartboardPostprocessor"

    @field_serializer("index", "embed_model", "vectors")
    def _named(self, value: Any, info: Any) -> str | None:
        if value is None or isinstance(value, str):
            return value
        raise ConfigError(
            f"{info.field_name} is a {type(value).__name__}, which cannot be written down: save the other "
            f"settings, and hand it to from_dict(saved, {info.field_name}=…)",
            field=info.field_name,
        )

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        if not nodes:
            return []
        if query_bundle is None:
            raise InvalidInputError("nodes are picked for a question: pass query_bundle or query_str")
        _dispatcher.event(
            ReRankStartEvent(
                query=query_bundle,
                nodes=nodes,
                top_n=self.options.k or len(nodes),
                model_name=self.class_name(),
            )
        )
        picked = [self._noted(pick) for pick in self._picks(nodes, query_bundle)]
        _dispatcher.event(ReRankEndEvent(nodes=picked))
        return picked

    def _picks(self, nodes: Sequence[NodeWithScore], query: QueryBundle) -> list[Pick]:
        vectors, model = self.vectors, self.embed_model
        if self.use_node_embeddings:
            vectors = _own_embeddings
        if self.index is not None:
            vectors = partial(read_vectors, self.index.vector_store)
            model = getattr(self.index, "_embed_model", None) if model is None else model
        query_vector = query.embedding if vectors is not None and self.embed_model is None else None
        if query_vector is None and query.custom_embedding_strs:
            query_vector = np.mean(as_model(model).encode_queries(query.custom_embedding_strs), axis=0)
        return rerank(
            query.query_str,
            [_item(scored) for scored in nodes],
            model=model,
            options=self.options,
            vectors=vectors,
            query_vector=query_vector,
            scored=self.use_scores,
        )

    def _noted(self, pick: Pick) -> NodeWithScore:
        node: BaseNode = pick.document
        key = self.metadata_key
        copy = node.model_copy(
            update={
                "metadata": with_note(node.metadata, key, pick.note),
                "excluded_llm_metadata_keys": [*node.excluded_llm_metadata_keys, key],
                "excluded_embed_metadata_keys": [*node.excluded_embed_metadata_keys, key],
            }
        )
        return NodeWithScore(node=copy, score=pick.note.get("score"))


class DartboardEmbedding(BaseEmbedding):
    """A dartboard model for LlamaIndex's indexes; by default the one that needs no server and no key."""

    _choice: ModelChoice = PrivateAttr()

    def __init__(self, model: Any = None, **settings: Any) -> None:
        choice = ModelChoice(model)
        super().__init__(**{"model_name": choice.model.name} | settings)
        self._choice = choice

    @classmethod
    def class_name(cls) -> str:
        """The name in serialised pipelines."""
        return "DartboardEmbedding"

    @property
    def model(self) -> EmbeddingModel:
        """The model itself."""
        return self._choice.model

    def _get_query_embedding(self, query: str) -> list[float]:
        return self._choice.embed_query(query)

    def _get_text_embedding(self, text: str) -> list[float]:
        return self._choice.embed_documents([text])[0]

    def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        return self._choice.embed_documents(texts)

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return await asyncio.to_thread(self._get_query_embedding, query)

    async def _aget_text_embedding(self, text: str) -> list[float]:
        return await asyncio.to_thread(self._get_text_embedding, text)

    async def _aget_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        return await asyncio.to_thread(self._get_text_embeddings, texts)


def _item(scored: NodeWithScore) -> Item:
    node = scored.node
    return Item(
        document=node,
        id=node.node_id,
        text=node.get_content(metadata_mode=MetadataMode.NONE),
        embedded=node.get_content(metadata_mode=MetadataMode.EMBED),
        counted=node.get_content(metadata_mode=MetadataMode.LLM),
        metadata=node.metadata or {},
        score=scored.score,
    )


def _own_embeddings(nodes: Sequence[BaseNode]) -> list[Any]:
    return [node.embedding for node in nodes]


def read_vectors(store: Any, nodes: Sequence[BaseNode]) -> list[Any]:
    """The vector of each node as its store has it, None where there is none.

    LlamaIndex's own default store keeps vectors alone; others may give them with their nodes.
    """
    ids = [node.node_id for node in nodes]
    found: Mapping[str, Any] = {}
    if isinstance(store, SimpleVectorStore):
        found = store.data.embedding_dict
    else:
        with suppress(AttributeError, NotImplementedError):
            found = {node.node_id: node.embedding for node in store.get_nodes(node_ids=ids)}
    return [found.get(id) for id in ids]


def from_llama_index(given: Any) -> Filter:
    """``MetadataFilters``, of ``MetadataFilter`` and of themselves.

    What it says that dartboard's own language cannot (a substring, a date) is an error, never a filter that
    lets more through. Fields that are missing behave as in :mod:`dartboard.stores.filters`.
    """
    if not hasattr(given, "filters"):
        if not hasattr(given, "key"):
            raise InvalidInputError(
                f"filters must be MetadataFilters, got {type(given).__name__}", field="filters"
            )
        return _comparison(given.key, _plain(given.operator), given.value)
    parts = tuple(from_llama_index(part) for part in given.filters)
    condition = _plain(given.condition or "and")
    if condition == "not":  # as LlamaIndex has it: none of them matches
        return Not(Or(parts))
    return And(parts) if condition == "and" else Or(parts)


def _comparison(key: str, operator: str, value: Any) -> Filter:
    if operator in ("any", "nin"):
        among = comparison(key, "in", value)
        return among if operator == "any" else Not(among)
    if operator == "all":
        return And(tuple(Equal(key, each) for each in value))
    if operator == "contains":
        return Equal(key, value)
    if operator == "is_empty":
        return Not(Exists(key))
    if operator.startswith("text_match"):
        raise InvalidInputError(f"an index cannot look for a part of {key!r}: use == or in", field="filters")
    return comparison(key, operator, value)


def _plain(value: Any) -> str:
    """An enumeration's value, or the text itself."""
    return str(getattr(value, "value", value))
