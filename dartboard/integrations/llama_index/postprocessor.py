"""A LlamaIndex postprocessor: of any retriever's nodes, those that together say most."""

from collections.abc import Callable, Sequence
from typing import Any, Literal, Self

import numpy as np
from llama_index.core.bridge.pydantic import ConfigDict, Field, model_validator
from llama_index.core.callbacks import CBEventType, EventPayload
from llama_index.core.instrumentation.events.rerank import ReRankEndEvent, ReRankStartEvent
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import BaseNode, MetadataMode, NodeWithScore, QueryBundle
from llama_index_instrumentation import get_dispatcher

from dartboard.errors import InvalidInputError
from dartboard.integrations.choosing import Pick, choose
from dartboard.integrations.items import Item
from dartboard.integrations.knobs import ChoosingKnobs
from dartboard.integrations.models import as_model
from dartboard.integrations.notes import KEY, with_note
from dartboard.integrations.vectors import VectorSource

_dispatcher = get_dispatcher(__name__)


class DartboardPostprocessor(BaseNodePostprocessor):
    """Of any retriever's nodes, those that together say most about the question; the score is the gain.

    Their vectors come from ``embed_model`` (a LlamaIndex embedding, a dartboard ``EmbeddingModel`` or the
    name of one; the default model where it is left out), which reads nodes as LlamaIndex embeds them, with
    their metadata; or from ``vectors``, a function of the nodes; or, with ``use_node_embeddings``, from the
    nodes. In the last two cases the query's vector is made by ``embed_model`` where it is given, else it is
    the one that the query already has. Each node's note says which it was.

    ``use_scores`` takes the order of the nodes' scores, such as another reranker's, on the query's side.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

    embed_model: Any = Field(default=None, exclude=True)
    """What makes vectors: a LlamaIndex embedding, an ``EmbeddingModel`` or its name; by default ours."""
    vectors: Callable[[list[BaseNode]], Any] | None = Field(default=None, exclude=True)
    """A function of the nodes that gives their vectors."""
    use_node_embeddings: bool = False
    """Take the vectors that the nodes carry."""
    use_scores: bool = False
    """Take the order of the nodes' scores on the query's side."""
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

    @model_validator(mode="after")
    def _check(self) -> Self:
        ChoosingKnobs.of(self)
        self._source()
        return self

    @classmethod
    def class_name(cls) -> str:
        """The name in serialised pipelines."""
        return "DartboardPostprocessor"

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        if not nodes:
            return []
        if query_bundle is None:
            raise InvalidInputError("nodes are picked for a question: pass query_bundle or query_str")
        knobs = ChoosingKnobs.of(self)
        most, name = min(knobs.k or len(nodes), len(nodes)), self.class_name()
        payload: dict[str, Any] = {
            EventPayload.NODES: nodes,
            EventPayload.MODEL_NAME: name,
            EventPayload.QUERY_STR: query_bundle.query_str,
            EventPayload.TOP_K: most,
        }
        _dispatcher.event(ReRankStartEvent(query=query_bundle, nodes=nodes, top_n=most, model_name=name))
        with self.callback_manager.event(CBEventType.RERANKING, payload=payload) as event:
            picked = [self._noted(pick) for pick in self._choose(nodes, query_bundle, knobs)]
            event.on_end(payload={EventPayload.NODES: picked})
        _dispatcher.event(ReRankEndEvent(nodes=picked))
        return picked

    def _choose(self, nodes: Sequence[NodeWithScore], query: QueryBundle, knobs: ChoosingKnobs) -> list[Pick]:
        source = self._source()
        items = [_item(place, scored) for place, scored in enumerate(nodes)]
        return choose(
            query.query_str,
            items,
            source,
            knobs,
            query_vector=self._query_vector(source, query),
            scored=self.use_scores,
        )

    def _query_vector(self, source: VectorSource, query: QueryBundle) -> Any:
        """What stands in for embedding the question itself: its rewritings, else the vector that it has."""
        if not source.embeds and self.embed_model is None:
            return query.embedding
        if query.custom_embedding_strs:
            return np.mean(as_model(self.embed_model).encode_queries(query.custom_embedding_strs), axis=0)
        return None

    def _source(self) -> VectorSource:
        return VectorSource(
            model=self.embed_model,
            function=self.vectors,
            carried="the nodes' own embeddings" if self.use_node_embeddings else None,
            carried_name="embedding",
            model_knob="embed_model",
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
        return NodeWithScore(node=copy, score=pick.note["gain"])


def _item(place: int, scored: NodeWithScore) -> Item:
    node = scored.node
    return Item(
        document=node,
        position=place,
        own_id=node.node_id,
        text=node.get_content(metadata_mode=MetadataMode.EMBED),
        shown=node.get_content(metadata_mode=MetadataMode.LLM),
        metadata=node.metadata or {},
        vector=node.embedding,
        score=scored.score,
    )


def _with(keys: Sequence[str], key: str) -> list[str]:
    return [*keys, *([] if key in keys else [key])]
