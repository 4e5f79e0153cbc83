"""LangChain retrievers over an index: its chunks, or the merged passages of a context."""

from functools import partial
from typing import Any, Self

from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import run_in_executor
from pydantic import ConfigDict

from dartboard.context import DEFAULT_BUDGET, Order
from dartboard.engine import Engine
from dartboard.integrations.index_search import NO_PICKLE, search, search_passages
from dartboard.integrations.options import SearchFields, options_of


class DartboardRetriever(SearchFields, BaseRetriever):
    """Documents of an index that together say most about a question.

    The options are those of :meth:`dartboard.engine.Engine.search`; any of them can be changed for one call:
    ``retriever.invoke(question, k=3, where="year >= 2020")``. The engine stays the caller's to close.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

    engine: Engine
    """The index that is searched."""

    @classmethod
    def open(cls, url: str, *, engine_options: dict[str, Any] | None = None, **options: Any) -> Self:
        """A retriever over the index at ``url``, which is only read; ``engine_options`` as in ``Engine``."""
        return cls(engine=Engine.open(url, read_only=True, **(engine_options or {})), **options)

    def __getstate__(self) -> dict[Any, Any]:
        raise TypeError(NO_PICKLE.format(type(self).__name__))

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, **changes: Any
    ) -> list[Document]:
        return [
            Document(
                id=hit.chunk.id,
                page_content=hit.chunk.text,
                metadata=hit.metadata(self.metadata_key),
            )
            for hit in search(self.engine, query, options_of(self, **changes))
        ]

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun, **changes: Any
    ) -> list[Document]:
        work = partial(self._get_relevant_documents, query, run_manager=run_manager.get_sync(), **changes)
        return await run_in_executor(None, work)


class DartboardContextRetriever(DartboardRetriever):
    """The same as passages for a prompt, within a token budget (:meth:`dartboard.engine.Engine.context`).

    Chunks that follow each other in a document are one document here, without repeated text. The budget holds
    for all of them with their numbers, sources and headings.
    """

    token_budget: int = DEFAULT_BUDGET
    """What all passages may have together, in tokens of the embedding model or of ``tokenizer``."""
    expand: bool = True
    """Whether chunks before and after a pick may be added where they add most per token."""
    order: Order = "gain"
    """``gain`` (what adds most comes first), ``source``, or ``ends`` (the best first and last)."""

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, **changes: Any
    ) -> list[Document]:
        expand, order = changes.pop("expand", self.expand), changes.pop("order", self.order)
        options = options_of(self, **changes)
        found = search_passages(self.engine, query, options, self.metadata_key, expand=expand, order=order)
        return [Document(id=one.id, page_content=one.text, metadata=one.metadata) for one in found]
