"""A LlamaIndex postprocessor: of any retriever's nodes, those that together say most."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Self

import numpy as np
from llama_index.core.bridge.pydantic import ConfigDict, field_serializer, model_validator
from llama_index.core.callbacks import CBEventType, EventPayload
from llama_index.core.instrumentation.events.rerank import ReRankEndEvent, ReRankStartEvent
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import BaseNode, MetadataMode, NodeWithScore, QueryBundle
from llama_index.core.vector_stores import SimpleVectorStore
from llama_index_instrumentation import get_dispatcher
from pydantic import FieldSerializationInfo

from dartboard.errors import ConfigError, InvalidInputError
from dartboard.integrations.models import as_model
from dartboard.integrations.options import RerankFields, options_of
from dartboard.integrations.pick_metadata import with_note
from dartboard.integrations.rerank import Pick, rerank
from dartboard.integrations.vector_source import Item, StoredVectors, VectorSource, check_documents
from dartboard.search_options import SearchOptions

_dispatcher = get_dispatcher(__name__)
_NOT_PLAIN = {
    "embed_model": "give the model's name",
    "index": "leave it out and name its model (embed_model)",
    "vectors": "let nodes carry their vectors (use_node_embeddings=True) or name a model (embed_model)",
    "method": "give the method's name",
    "tokenizer": "give the tokenizer's name or file",
}
"""The settings that need not be plain data, and what to do instead."""
_NO_INDEX = "If they are from an index, use its vectors: DartboardPostprocessor(index=index, …)."


class DartboardPostprocessor(RerankFields, BaseNodePostprocessor):
    """Of any retriever's nodes, those that together say most about the question; the score is the relevance.

    Their vectors come from ``index``, the ``VectorStoreIndex`` that the nodes are from, where its vector
    store can return them; what it does not have is embedded by the index's own model. Without an index they
    are the nodes' own embeddings, if all have one and the query has one too. Otherwise ``embed_model`` (a
    LlamaIndex embedding, a dartboard ``EmbeddingModel`` or the name of one; the default model where it is
    left out) embeds each node once, as LlamaIndex does, with its metadata; or ``vectors``, a function of the
    nodes, gives them. With ``vectors`` and ``use_node_embeddings`` the query's vector is made by
    ``embed_model`` where it is given, else it is the one that the query already has. Each node's note says
    which it was.

    ``use_scores`` takes the order of the nodes' scores, such as another reranker's, on the query's side.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

    index: Any = None
    """The ``VectorStoreIndex`` that the nodes are from."""
    embed_model: Any = None
    """What makes vectors: a LlamaIndex embedding, an ``EmbeddingModel`` or its name; by default the index's,
    else ours."""
    vectors: Callable[[list[BaseNode]], Any] | None = None
    """A function of the nodes that gives their vectors."""
    use_node_embeddings: bool | None = None
    """Take the vectors that the nodes carry; by default where that is possible and no model is given."""
    use_scores: bool = False
    """Take the order of the nodes' scores on the query's side."""

    @model_validator(mode="after")
    def _check_source(self) -> Self:
        self._source(bool(self.use_node_embeddings))
        return self

    @classmethod
    def class_name(cls) -> str:
        """The name in serialised pipelines."""
        return "DartboardPostprocessor"

    def to_dict(self, **options: Any) -> dict[str, Any]:
        """All settings as plain data; an error where one of them cannot be written down."""
        for name in _NOT_PLAIN:
            _by_name(name, getattr(self, name))
        return super().to_dict(**options)

    @field_serializer(*_NOT_PLAIN)
    def _plain(self, value: Any, info: FieldSerializationInfo) -> Any:
        return _by_name(info.field_name, value)

    def __getstate__(self) -> dict[str, Any]:
        """What pickle writes down, whole: LlamaIndex would take what cannot be pickled out of ``self``."""
        kept = dict(self.__dict__)
        state = super().__getstate__()
        state = {**state, "__dict__": dict(state["__dict__"])}
        self.__dict__.update(kept)
        if missing := sorted(set(_NOT_PLAIN) - set(state["__dict__"])):
            raise TypeError(
                f"{missing[0]} is a {type(kept[missing[0]]).__name__} that cannot be pickled, and without it "
                "the picks would be others: give one that a module defines, or make the postprocessor in the "
                "other process"
            )
        return state

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        nodes = check_documents(nodes, NodeWithScore, "NodeWithScore(node=TextNode(text=…))")
        if not nodes:
            return []
        if query_bundle is None:
            raise InvalidInputError("nodes are picked for a question: pass query_bundle or query_str")
        options = options_of(self)
        most, name = min(options.k or len(nodes), len(nodes)), self.class_name()
        payload: dict[str, Any] = {
            EventPayload.NODES: nodes,
            EventPayload.MODEL_NAME: name,
            EventPayload.QUERY_STR: query_bundle.query_str,
            EventPayload.TOP_K: most,
        }
        _dispatcher.event(ReRankStartEvent(query=query_bundle, nodes=nodes, top_n=most, model_name=name))
        with self.callback_manager.event(CBEventType.RERANKING, payload=payload) as event:
            picked = [self._noted(pick) for pick in self._picks(nodes, query_bundle, options)]
            event.on_end(payload={EventPayload.NODES: picked})
        _dispatcher.event(ReRankEndEvent(nodes=picked))
        return picked

    def _picks(
        self, nodes: Sequence[NodeWithScore], query: QueryBundle, options: SearchOptions
    ) -> list[Pick]:
        source = self._source(self._takes_node_embeddings(nodes, query))
        items = [_item(place, scored) for place, scored in enumerate(nodes)]
        return rerank(
            query.query_str,
            items,
            source,
            options,
            query_vector=self._query_vector(source, query),
            scored=self.use_scores,
        )

    def _takes_node_embeddings(self, nodes: Sequence[NodeWithScore], query: QueryBundle) -> bool:
        """As it was said; else where all nodes have embeddings that fit the query's."""
        if self.use_node_embeddings is not None:
            return self.use_node_embeddings
        others = (self.index, self.embed_model, self.vectors)
        if query.embedding is None or any(given is not None for given in others):
            return False
        return all(len(scored.node.embedding or ()) == len(query.embedding) for scored in nodes)

    def _query_vector(self, source: VectorSource, query: QueryBundle) -> Any:
        """What stands in for embedding the question itself: its rewritings, else the vector that it has."""
        ready = not source.embeds or (source.store is not None and query.embedding is not None)
        if ready and self.embed_model is None:
            return query.embedding
        if query.custom_embedding_strs:
            return np.mean(as_model(source.model).encode_queries(query.custom_embedding_strs), axis=0)
        return None

    def _source(self, takes_node_embeddings: bool) -> VectorSource:
        store = None if self.index is None else store_of(self.index)
        stored = None if store is None else StoredVectors(type(store).__name__, partial(read_vectors, store))
        model = self.embed_model
        if store is not None and model is None:
            model = model_of(self.index)
        return VectorSource(
            model=model,
            function=self.vectors,
            carried="the nodes' own embeddings" if takes_node_embeddings else None,
            carried_name="embedding",
            store=stored,
            model_knob="embed_model",
            advice=_NO_INDEX,
        )

    def _noted(self, pick: Pick) -> NodeWithScore:
        node: BaseNode = pick.item.document
        key = self.metadata_key
        copy = node.model_copy(
            update={
                "metadata": with_note(node.metadata, key, pick.note),
                "excluded_llm_metadata_keys": _with(node.excluded_llm_metadata_keys, key),
                "excluded_embed_metadata_keys": _with(node.excluded_embed_metadata_keys, key),
            }
        )
        return NodeWithScore(node=copy, score=pick.note["score"])


def _by_name(setting: str, value: Any) -> Any:
    """The value, if it can be written down."""
    if value is None or isinstance(value, str):
        return value
    raise ConfigError(
        f"{setting} is a {type(value).__name__}, which cannot be written down, and without it the picks "
        f"would be others: {_NOT_PLAIN[setting]}, or save the other settings alone and hand it to "
        f"from_dict(saved, {setting}=…)"
    )


def _item(place: int, scored: NodeWithScore) -> Item:
    node = scored.node
    return Item(
        document=node,
        position=place,
        own_id=node.node_id,
        text=node.get_content(metadata_mode=MetadataMode.EMBED),
        shown=node.get_content(metadata_mode=MetadataMode.LLM),
        compared=node.get_content(metadata_mode=MetadataMode.NONE),
        metadata=node.metadata or {},
        vector=node.embedding,
        score=scored.score,
    )


def _with(keys: Sequence[str], key: str) -> list[str]:
    return [*keys, *([] if key in keys else [key])]


def store_of(index: Any) -> Any:
    """The vector store of an index."""
    store = getattr(index, "vector_store", None)
    if store is None:
        raise ConfigError(
            f"index must be a LlamaIndex VectorStoreIndex, or another index with a vector store, got "
            f"{type(index).__name__}"
        )
    return store


def model_of(index: Any) -> Any:
    """The embedding that made the index's vectors."""
    model = getattr(index, "_embed_model", None)
    if model is None:
        raise ConfigError(
            f"the {type(index).__name__} does not say which model made its vectors: say it with embed_model, "
            "so that the query is embedded alike"
        )
    return model


def read_vectors(store: Any, ids: Sequence[str]) -> dict[str, Any]:
    """Id → vector, of those that the store has and can return.

    LlamaIndex's own default store keeps vectors alone; others may give them with their nodes.
    """
    if isinstance(store, SimpleVectorStore):
        kept = store.data.embedding_dict
        return {id: kept[id] for id in ids if id in kept}
    try:
        nodes = store.get_nodes(node_ids=list(ids))
    except (AttributeError, NotImplementedError):
        return {}
    return {node.node_id: node.embedding for node in nodes if node.embedding is not None}
