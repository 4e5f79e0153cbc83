"""LlamaIndex retrievers over an index: its chunks, or the merged passages of a context."""

import asyncio
from typing import Any, Self, Unpack

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.callbacks import CallbackManager
from llama_index.core.schema import NodeRelationship, NodeWithScore, QueryBundle, RelatedNodeInfo, TextNode
from llama_index.core.vector_stores.types import MetadataFilters

from dartboard.context import DEFAULT_BUDGET, Order, check_options
from dartboard.engine import Engine
from dartboard.errors import ConfigError, InvalidInputError
from dartboard.integrations.index_search import HIDDEN, NO_PICKLE, FoundChunk, search, search_passages
from dartboard.integrations.pick_metadata import KEY
from dartboard.search_options import SearchKeywords, SearchOptions
from dartboard.stores.filters import DEEPEST, And, Equal, Exists, Filter, Not, Or, comparison

BOOKKEEPING = ("content_hash", "document_hash", "pieces", "position", "start", "end", "read_as", "uploaded")
"""What indexing writes into metadata for itself: no language model needs to read it."""


class DartboardRetriever(BaseRetriever):
    """Nodes of an index that together say most about a question; the score of each is its relevance.

    The options are those of :meth:`dartboard.engine.Engine.search`; ``filters`` are LlamaIndex's own, in
    place of ``where``. The engine stays the caller's to close.
    """

    def __init__(
        self,
        engine: Engine,
        *,
        filters: MetadataFilters | None = None,
        metadata_key: str = KEY,
        callback_manager: CallbackManager | None = None,
        **options: Unpack[SearchKeywords],
    ) -> None:
        if not isinstance(engine, Engine):
            raise ConfigError(f"engine must be a dartboard Engine, got {type(engine).__name__}")
        if options.get("where") is not None and filters is not None:
            raise ConfigError("give where or filters, not both: they say the same thing in two languages")
        super().__init__(callback_manager=callback_manager)
        self.engine = engine
        self.metadata_key = metadata_key
        if filters is not None:
            options["where"] = from_llama_index(filters)
        self.options = SearchOptions.of(None, options, type(self).__name__)

    @classmethod
    def open(cls, url: str, *, engine_options: dict[str, Any] | None = None, **options: Any) -> Self:
        """A retriever over the index at ``url``, which is only read; ``engine_options`` as in ``Engine``."""
        return cls(Engine.open(url, read_only=True, **(engine_options or {})), **options)

    def __getstate__(self) -> object:
        raise TypeError(NO_PICKLE.format(type(self).__name__))

    def __copy__(self) -> Self:
        copy = type(self).__new__(type(self))
        copy.__dict__.update(self.__dict__)
        return copy

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        found = search(self.engine, query_bundle.query_str, self.options)
        return [NodeWithScore(node=self._node(hit), score=hit.note["score"]) for hit in found]

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return await asyncio.to_thread(self._retrieve, query_bundle)

    def _node(self, hit: FoundChunk) -> TextNode:
        indexed = "document_hash" in hit.chunk.metadata
        hidden = [self.metadata_key, *(BOOKKEEPING if indexed else ())]
        source = hit.chunk.metadata.get("source")
        return TextNode(
            id_=hit.chunk.id,
            text=hit.chunk.text,
            metadata=hit.metadata(self.metadata_key),
            excluded_llm_metadata_keys=hidden,
            excluded_embed_metadata_keys=hidden,
            relationships={NodeRelationship.SOURCE: RelatedNodeInfo(node_id=source)}
            if isinstance(source, str)
            else {},
        )


class DartboardContextRetriever(DartboardRetriever):
    """The same as passages for a prompt, within a token budget (:meth:`dartboard.engine.Engine.context`).

    Chunks that follow each other in a document are one node here, without repeated text. The budget, by
    default 2,000, holds for all of them with their numbers, sources and headings. The score of a node is
    its gain.
    """

    def __init__(self, engine: Engine, *, expand: bool = True, order: Order = "gain", **options: Any) -> None:
        super().__init__(engine, **{"token_budget": DEFAULT_BUDGET} | options)
        self.expand = expand
        self.order: Order = order
        check_options(self.options, order)

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        found = search_passages(
            self.engine,
            query_bundle.query_str,
            self.options,
            self.metadata_key,
            expand=self.expand,
            order=self.order,
        )
        hidden = [self.metadata_key, *HIDDEN]
        return [
            NodeWithScore(
                node=TextNode(
                    id_=one.id,
                    text=one.text,
                    metadata=one.metadata,
                    excluded_llm_metadata_keys=hidden,
                    excluded_embed_metadata_keys=hidden,
                ),
                score=one.gain,
            )
            for one in found
        ]


def from_llama_index(given: Any, depth: int = 0) -> Filter:
    """``MetadataFilters``, of ``MetadataFilter`` and of themselves.

    What it says that dartboard's own language cannot (a substring, a date) is an error, never a filter that
    lets more through. Fields that are missing behave as in :mod:`dartboard.stores.filters`.
    """
    if depth > DEEPEST:
        raise InvalidInputError(f"filters are nested more than {DEEPEST} deep")
    if not hasattr(given, "filters"):
        if not hasattr(given, "key"):
            raise InvalidInputError(f"filters must be MetadataFilters, got {type(given).__name__}")
        return _llama_index_comparison(given.key, _plain(given.operator), given.value)
    parts = tuple(from_llama_index(part, depth + 1) for part in given.filters)
    condition = _plain(given.condition or "and")
    if condition == "not":  # as LlamaIndex has it: none of them matches
        return Not(Or(parts))
    return And(parts) if condition == "and" else Or(parts)


def _llama_index_comparison(key: str, operator: str, value: Any) -> Filter:
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
        raise InvalidInputError(f"an index cannot look for a part of {key!r}: use == or in")
    return comparison(key, operator, value)


def _plain(value: Any) -> str:
    """An enumeration's value, or the text itself."""
    return str(getattr(value, "value", value))
