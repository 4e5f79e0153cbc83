"""A LangChain retriever over an index."""

from functools import partial
from typing import Any, Literal, Self

from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import run_in_executor
from pydantic import ConfigDict, model_validator

from dartboard.config import RerankerType
from dartboard.engine import Engine
from dartboard.engine.engine import TRIAGE
from dartboard.integrations.knobs import SearchingKnobs
from dartboard.integrations.notes import KEY
from dartboard.integrations.searching import search


class DartboardRetriever(BaseRetriever):
    """Documents of an index that together say most about a question.

    The knobs are those of :meth:`dartboard.engine.Engine.search`; any of them can be changed for one call:
    ``retriever.invoke(question, k=3, where="year >= 2020")``. The engine stays the caller's to close.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

    engine: Engine
    k: int | None = None
    token_budget: int | None = None
    method: Any = "dartboard"
    sigma: float | Literal["auto"] = "auto"
    where: Any = None
    triage_k: int = TRIAGE
    reranker: RerankerType = "cosine"
    must_include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    max_per_source: int | None = None
    min_gain_share: float = 0.0
    min_similarity: float | None = None
    metadata_key: str = KEY

    @model_validator(mode="after")
    def _check(self) -> Self:
        SearchingKnobs.of(self)
        return self

    @classmethod
    def open(cls, url: str, *, engine_options: dict[str, Any] | None = None, **knobs: Any) -> Self:
        """A retriever over the index at ``url``, which is only read; ``engine_options`` as in ``Engine``."""
        return cls(engine=Engine.open(url, read_only=True, **(engine_options or {})), **knobs)

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, **changes: Any
    ) -> list[Document]:
        return [
            Document(
                id=answer.chunk.id,
                page_content=answer.chunk.text,
                metadata=answer.metadata(self.metadata_key),
            )
            for answer in search(self.engine, query, SearchingKnobs.of(self, **changes))
        ]

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun, **changes: Any
    ) -> list[Document]:
        work = partial(self._get_relevant_documents, query, run_manager=run_manager.get_sync(), **changes)
        return await run_in_executor(None, work)
