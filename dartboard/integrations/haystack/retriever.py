"""Haystack retrievers over an index: its chunks, or the merged passages of a context."""

import asyncio
from collections.abc import Mapping, Sequence
from threading import Lock
from typing import Any, Self, Unpack

from haystack import Document, component, default_from_dict, default_to_dict
from haystack.core.errors import SerializationError
from haystack.document_stores.types import FilterPolicy, apply_filter_policy
from haystack.utils import Secret

from dartboard.context import DEFAULT_BUDGET, Order, check_options
from dartboard.embeddings.reader_tokenizer import Tokenizer
from dartboard.engine import Engine
from dartboard.errors import ConfigError, InvalidInputError
from dartboard.integrations.index_search import FoundChunk, search, search_passages
from dartboard.integrations.options import SearchFields, options_of, set_options, settings_of
from dartboard.integrations.pick_metadata import KEY
from dartboard.search_options import SearchKeywords, SearchOptions
from dartboard.selection import Method
from dartboard.stores import DEFAULT_COLLECTION
from dartboard.stores.filters import DEEPEST, Among, And, Exists, Filter, Not, Or, comparison
from dartboard.stores.urls import without_password


@component
class DartboardRetriever:
    """Documents of an index that together say most about a question; the score of each is its relevance.

    ``store`` is the index: a file path or a URL, a ``Secret`` where it holds a password. It is opened, only
    to be read, at the first question or by ``warm_up``; ``model`` and ``retriever`` are names, and where
    they are left out those that the index was made with. An ``engine`` that is open already can be given in
    place of all these, but not saved. The other options are those of :meth:`dartboard.engine.Engine.search`;
    ``filters`` are Haystack's.
    """

    def __init__(
        self,
        store: str | Secret | None = None,
        *,
        engine: Engine | None = None,
        collection: str = DEFAULT_COLLECTION,
        model: str | None = None,
        retriever: str | None = None,
        top_k: int | None = None,
        filters: dict[str, Any] | None = None,
        filter_policy: str | FilterPolicy = FilterPolicy.REPLACE,
        return_embedding: bool = False,
        meta_key: str = KEY,
        **options: Unpack[SearchKeywords],
    ) -> None:
        if (store is None) == (engine is None):
            raise ConfigError("give a store (a file path or a URL) or an open engine, one of them")
        self.store = store
        self.collection = collection
        self.model = model
        self.retriever = retriever
        self.top_k = top_k
        self.filters = filters
        self.filter_policy = (
            FilterPolicy.from_str(filter_policy) if isinstance(filter_policy, str) else filter_policy
        )
        self.return_embedding = return_embedding
        self.meta_key = meta_key
        self.method: Method | str
        self.tokenizer: Tokenizer | None
        set_options(self, SearchFields, options, "k", "where")
        self._engine = engine
        self._lock = Lock()
        self._options()

    def warm_up(self) -> None:
        """Open the index and load its model."""
        self._opened().model  # noqa: B018 - it is loaded when it is first looked at

    async def warm_up_async(self) -> None:
        """The same in a thread."""
        await asyncio.to_thread(self.warm_up)

    def close(self) -> None:
        """Close the index, if it was opened here; the next question opens it again."""
        with self._lock:
            if self.store is not None and self._engine is not None:
                self._engine.close()
                self._engine = None

    def to_dict(self) -> dict[str, Any]:
        """The component as plain data: the index by its path or URL, and all settings."""
        if self.store is None:
            raise SerializationError("an open engine cannot be saved: give the index as store")
        if isinstance(self.store, str) and without_password(self.store) != self.store:
            raise SerializationError(
                "store holds a password, which would be saved: give Secret.from_env_var with the whole URL"
            )
        for name, value in (("method", self.method), ("tokenizer", self.tokenizer)):
            if value is not None and not isinstance(value, str):
                raise SerializationError(
                    f"{name} is a {type(value).__name__} and cannot be saved: give it by name"
                )
        settings = settings_of(self, "engine")
        return default_to_dict(self, **settings | {"filter_policy": self.filter_policy.value})

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """The component that :meth:`to_dict` wrote down."""
        return default_from_dict(cls, data)

    @component.output_types(documents=list[Document])
    def run(
        self,
        query: str,
        filters: dict[str, Any] | None = None,
        top_k: int | None = None,
        also: list[str] | None = None,
        seen: list[str] | None = None,
        offset: int | None = None,
    ) -> dict[str, list[Document]]:
        """The picks in order, each with a score and, in its meta, a note.

        ``also``, ``seen`` and ``offset`` take the place of those that the component was made with.
        """
        options = self._options(filters, top_k, also=also, seen=seen, offset=offset)
        return {"documents": self._documents(query, options)}

    @component.output_types(documents=list[Document])
    async def run_async(
        self,
        query: str,
        filters: dict[str, Any] | None = None,
        top_k: int | None = None,
        also: list[str] | None = None,
        seen: list[str] | None = None,
        offset: int | None = None,
    ) -> dict[str, list[Document]]:
        """The same in a thread."""
        return await asyncio.to_thread(self.run, query, filters, top_k, also, seen, offset)

    def _opened(self) -> Engine:
        with self._lock:
            if self._engine is None:
                url = self.store.resolve_value() if isinstance(self.store, Secret) else self.store
                self._engine = Engine.open(
                    url or "",
                    read_only=True,
                    collection=self.collection,
                    model=self.model,
                    retriever=self.retriever,
                )
            return self._engine

    def _options(
        self, filters: dict[str, Any] | None = None, top_k: int | None = None, **changes: Any
    ) -> SearchOptions:
        given = {name: value for name, value in changes.items() if value is not None}
        asked = apply_filter_policy(self.filter_policy, self.filters, filters)
        return options_of(
            self,
            k=self.top_k if top_k is None else top_k,
            where=from_haystack(asked) if asked else None,
            **given,
        )

    def _documents(self, query: str, options: SearchOptions) -> list[Document]:
        return [self._document(hit) for hit in search(self._opened(), query, options)]

    def _document(self, hit: FoundChunk) -> Document:
        chunk = hit.chunk
        return Document(
            id=chunk.id,
            content=chunk.text,
            meta=hit.metadata(self.meta_key),
            score=hit.note["score"],
            embedding=chunk.embedding.tolist() if self.return_embedding else None,
        )


@component
class DartboardContextRetriever(DartboardRetriever):
    """The same as passages for a prompt, within a token budget (:meth:`dartboard.engine.Engine.context`).

    Chunks that follow each other in a document are one document here, without repeated text. The budget, by
    default 2,000, holds for all of them with their numbers, sources and headings; ``top_k`` is the most
    chunks that are picked. The score of a document is its gain.
    """

    def __init__(
        self,
        store: str | Secret | None = None,
        *,
        expand: bool = True,
        order: Order = "gain",
        **settings: Any,
    ) -> None:
        self.expand = expand
        self.order: Order = order
        DartboardRetriever.__init__(self, store, **{"token_budget": DEFAULT_BUDGET} | settings)
        check_options(self._options(), order)

    def _documents(self, query: str, options: SearchOptions) -> list[Document]:
        found = search_passages(
            self._opened(), query, options, self.meta_key, expand=self.expand, order=self.order
        )
        return [Document(id=one.id, content=one.text, meta=one.metadata, score=one.gain) for one in found]


def from_haystack(given: Mapping[str, Any], depth: int = 0) -> Filter:
    """``{"field": "meta.year", "operator": ">=", "value": 2020}`` and what ``conditions`` make of such.

    What it says that dartboard's own language cannot (a substring, a date) is an error, never a filter that
    lets more through. Fields that are missing behave as in :mod:`dartboard.stores.filters`.
    """
    if depth > DEEPEST:
        raise InvalidInputError(f"filters are nested more than {DEEPEST} deep")
    if not isinstance(given, Mapping) or "operator" not in given:
        raise InvalidInputError(
            'filters are such as {"field": "meta.year", "operator": ">=", "value": 2020}, or "operator" with '
            '"conditions"'
        )
    operator = given["operator"]
    if "field" in given:
        if "value" not in given:
            raise InvalidInputError(f"the filter on {given['field']!r} has no value")
        return _haystack_comparison(given["field"], operator, given["value"])
    conditions = given.get("conditions")
    if (
        operator not in ("AND", "OR", "NOT")
        or not isinstance(conditions, Sequence)
        or isinstance(conditions, str)
    ):
        raise InvalidInputError(
            'a filter without a field has an "operator" of AND, OR or NOT, and "conditions"'
        )
    parts = tuple(from_haystack(part, depth + 1) for part in conditions)
    if operator == "NOT":
        return Not(And(parts))
    return And(parts) if operator == "AND" else Or(parts)


def _haystack_comparison(field: Any, operator: Any, value: Any) -> Filter:
    if not isinstance(field, str):
        raise InvalidInputError(f"a filter's field is text, got {type(field).__name__}")
    if field in ("content", "score", "embedding", "blob"):
        raise InvalidInputError(f"an index cannot be filtered by {field!r}: use id or a field of meta")
    name = field.removeprefix("meta.")
    if field == "id" and operator in ("==", "in"):
        return Among((value,) if operator == "==" else tuple(value))
    if operator in ("==", "!=") and value is None:
        return Not(Exists(name)) if operator == "==" else Exists(name)
    if operator == "not in":
        return Not(comparison(name, "in", value))
    return comparison(name, operator, value)
