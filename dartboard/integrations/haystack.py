"""Dartboard in Haystack: a retriever over an index, and a ranker of any retriever's documents.

``run_async`` and ``warm_up_async`` run in a thread, so that the event loop stays free. Needs the extra
``haystack``.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from threading import Lock
from typing import Any, Self

from dartboard.errors import MissingExtraError

try:
    from haystack import Document, component, default_from_dict, default_to_dict
    from haystack.core.errors import SerializationError
    from haystack.document_stores.types import FilterPolicy, apply_filter_policy
    from haystack.utils import Secret, deserialize_callable, serialize_callable
except ImportError as missing:
    raise MissingExtraError("haystack-ai", "haystack", "dartboard.integrations.haystack") from missing

from dartboard.context import DEFAULT_BUDGET, Order, check_options
from dartboard.embeddings.base import EmbeddingModel
from dartboard.engine import Engine
from dartboard.errors import ConfigError, InvalidInputError
from dartboard.integrations.index_search import Found, search
from dartboard.integrations.models import as_model, check_model
from dartboard.integrations.options import as_options, gathered, plain
from dartboard.integrations.rerank import KEY, Item, rerank, with_note
from dartboard.search_options import SearchOptions
from dartboard.stores.filters import Among, And, Exists, Filter, Not, Or, comparison
from dartboard.stores.urls import without_password

__all__ = ["DartboardRanker", "DartboardRetriever"]


@component
class DartboardRetriever:
    """Documents of an index that together say most about a question; the score of each is its relevance.

    Args:
        store: The index: a file path or a URL, a ``Secret`` where it holds a password. It is opened, only to
            be read, at the first question or by ``warm_up``.
        engine: An engine that is open already, in place of ``store``; it cannot be saved.
        engine_options: As in ``Engine``, by name: ``{"retriever": "bm25"}``.
        filters: Haystack's own, in place of ``where``.
        filter_policy: Whether filters of a run replace these or are merged with them.
        return_embedding: Whether documents come with their vectors.
        merge: Whether documents are the passages of a context (:meth:`dartboard.engine.Engine.context`):
            chunks that follow each other in a document are one, without repeated text, and all of them with
            their numbers, sources and headings fit into ``token_budget``, by default 2,000. The score is the
            gain.
        expand: With ``merge``: whether chunks before and after a pick may be added.
        order: With ``merge``: ``gain``, ``source`` or ``ends``.
        meta_key: Where in the meta the note on each pick is put.
        options: ``options=SearchOptions(…)`` or a dictionary of options, or single ones: ``top_k=3``,
            ``method="mmr"``.
    """

    def __init__(
        self,
        store: str | Secret | None = None,
        *,
        engine: Engine | None = None,
        engine_options: dict[str, Any] | None = None,
        filters: dict[str, Any] | None = None,
        filter_policy: str | FilterPolicy = FilterPolicy.REPLACE,
        return_embedding: bool = False,
        merge: bool = False,
        expand: bool = True,
        order: Order = "gain",
        meta_key: str = KEY,
        **options: Any,
    ) -> None:
        if (store is None) == (engine is None):
            raise ConfigError(
                "give a store (a file path or a URL) or an open engine, one of them", field="store"
            )
        self.store, self.engine_options = store, engine_options
        self.filters, self.filter_policy = filters, FilterPolicy(filter_policy)
        self.return_embedding, self.meta_key = return_embedding, meta_key
        self.merge, self.expand, self.order = merge, expand, order
        self.options = _options(self, options, **({"token_budget": DEFAULT_BUDGET} if merge else {}))
        if merge:
            check_options(self.options, order)
        if filters:
            from_haystack(filters)
        self._engine = engine
        self._lock = Lock()

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
        names = (
            "store",
            "engine_options",
            "filters",
            "return_embedding",
            "merge",
            "expand",
            "order",
            "meta_key",
        )
        settings = {name: getattr(self, name) for name in names}
        settings["filter_policy"] = self.filter_policy.value
        return default_to_dict(self, **settings, options=_saved(self.options))

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
        asked = apply_filter_policy(self.filter_policy, self.filters, filters)
        where = from_haystack(asked) if asked else None
        options = _changed(self.options, k=top_k, also=also, seen=seen, offset=offset, where=where)
        how: Any = {"merge": self.merge, "expand": self.expand, "order": self.order}
        found = search(self._opened(), query, options, self.meta_key, **how)
        return {"documents": [self._document(one) for one in found]}

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
                self._engine = Engine.open(url or "", read_only=True, **(self.engine_options or {}))
            return self._engine

    def _document(self, found: Found) -> Document:
        embedding = (
            found.embedding.tolist() if self.return_embedding and found.embedding is not None else None
        )
        return Document(
            id=found.id, content=found.text, meta=found.metadata, score=found.score, embedding=embedding
        )


@component
class DartboardRanker:
    """Picks the documents that together say most about a question; the score of each is its relevance.

    Args:
        model: What embeds the query, and the documents without a vector: a dartboard ``EmbeddingModel`` or
            the name of one, by default dartboard's default model. The input ``query_embedding`` of a run
            stands in for the query's vector.
        vectors: A function of the documents that gives their vectors, None for those that have none.
        use_document_embeddings: Take ``Document.embedding``; retrievers give it with
            ``return_embedding=True``.
        use_scores: Take the order of the documents' scores, such as another ranker's, on the query's side.
        meta_key: Where in the meta the note on each pick is put.
        options: ``options=SearchOptions(…)`` or a dictionary of options, or single ones: ``top_k=3``,
            ``method="mmr"``.
    """

    def __init__(
        self,
        *,
        model: EmbeddingModel | str | None = None,
        vectors: Callable[[list[Document]], Sequence[Any]] | None = None,
        use_document_embeddings: bool = False,
        use_scores: bool = False,
        meta_key: str = KEY,
        **options: Any,
    ) -> None:
        check_model(model, "model")
        if vectors is not None and use_document_embeddings:
            raise ConfigError(
                "vectors come from a function or from the documents: give vectors or use_document_embeddings",
                field="vectors",
            )
        self.model, self.vectors, self.meta_key = model, vectors, meta_key
        self.use_document_embeddings, self.use_scores = use_document_embeddings, use_scores
        self.options = _options(self, options)

    def warm_up(self) -> None:
        """Load the model."""
        as_model(self.model)

    async def warm_up_async(self) -> None:
        """The same in a thread."""
        await asyncio.to_thread(self.warm_up)

    def to_dict(self) -> dict[str, Any]:
        """The component as plain data; a model or a method must have been given by name for that."""
        if self.model is not None and not isinstance(self.model, str):
            raise SerializationError(
                f"model is a {type(self.model).__name__} and cannot be saved: give it by name"
            )
        return default_to_dict(
            self,
            model=self.model,
            vectors=None if self.vectors is None else serialize_callable(self.vectors),
            use_document_embeddings=self.use_document_embeddings,
            use_scores=self.use_scores,
            meta_key=self.meta_key,
            options=_saved(self.options),
        )

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
        seen: list[str] | None = None,
        offset: int | None = None,
    ) -> dict[str, list[Document]]:
        """The picks in order, as copies with a score and, in their meta, a note.

        ``query_embedding`` is the query as the model of the documents' vectors embeds it. ``also``, ``seen``
        and ``offset`` take the place of those that the component was made with.
        """
        picks = rerank(
            query,
            [_item(document) for document in documents],
            model=self.model,
            options=_changed(self.options, k=top_k, also=also, seen=seen, offset=offset),
            vectors=_own_embeddings if self.use_document_embeddings else self.vectors,
            query_vector=query_embedding,
            scored=self.use_scores,
        )
        return {
            "documents": [
                replace(one, meta=with_note(one.meta, self.meta_key, note), score=note.get("score"))
                for one, note in picks
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
        seen: list[str] | None = None,
        offset: int | None = None,
    ) -> dict[str, list[Document]]:
        """The same in a thread."""
        return await asyncio.to_thread(self.run, query, documents, top_k, query_embedding, also, seen, offset)


def _options(component: object, given: Mapping[str, Any], **defaults: Any) -> SearchOptions:
    settings = gathered(given, **defaults)
    options: SearchOptions = settings.pop("options")
    if settings:
        raise TypeError(f"{type(component).__name__}() takes no {min(settings)!r}")
    return options


def _changed(options: SearchOptions, **changes: Any) -> SearchOptions:
    """The options with what a run gives in their place."""
    return as_options(options, {name: value for name, value in changes.items() if value is not None})


def _saved(options: SearchOptions) -> dict[str, Any]:
    try:
        return plain(options)
    except ConfigError as error:
        raise SerializationError(str(error)) from error


def _item(document: Document) -> Item:
    return Item(
        document=document,
        id=document.id,
        text=document.content or "",
        metadata=document.meta or {},
        score=document.score,
    )


def _own_embeddings(documents: Sequence[Document]) -> list[Any]:
    return [document.embedding for document in documents]


def from_haystack(given: Mapping[str, Any]) -> Filter:
    """``{"field": "meta.year", "operator": ">=", "value": 2020}`` and what ``conditions`` make of such.

    What it says that dartboard's own language cannot (a substring, a date) is an error, never a filter that
    lets more through. Fields that are missing behave as in :mod:`dartboard.stores.filters`.
    """
    if not isinstance(given, Mapping) or "operator" not in given:
        raise InvalidInputError(
            'filters are such as {"field": "meta.year", "operator": ">=", "value": 2020}, or "operator" with '
            '"conditions"',
            field="filters",
        )
    operator = given["operator"]
    if "field" in given:
        if "value" not in given:
            raise InvalidInputError(f"the filter on {given['field']!r} has no value", field="filters")
        return _comparison(given["field"], operator, given["value"])
    conditions = given.get("conditions")
    if operator not in ("AND", "OR", "NOT") or not isinstance(conditions, list | tuple):
        raise InvalidInputError(
            'a filter without a field has an "operator" of AND, OR or NOT, and "conditions"', field="filters"
        )
    parts = tuple(from_haystack(part) for part in conditions)
    if operator == "NOT":
        return Not(And(parts))
    return And(parts) if operator == "AND" else Or(parts)


def _comparison(field: Any, operator: Any, value: Any) -> Filter:
    if not isinstance(field, str):
        raise InvalidInputError(f"a filter's field is text, got {type(field).__name__}", field="filters")
    if field in ("content", "score", "embedding", "blob"):
        raise InvalidInputError(
            f"an index cannot be filtered by {field!r}: use id or a field of meta", field="filters"
        )
    name = field.removeprefix("meta.")
    if field == "id" and operator in ("==", "in"):
        return Among((value,) if operator == "==" else tuple(value))
    if operator in ("==", "!=") and value is None:
        return Not(Exists(name)) if operator == "==" else Exists(name)
    if operator == "not in":
        return Not(comparison(name, "in", value))
    return comparison(name, operator, value)
