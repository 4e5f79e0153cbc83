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
from dartboard.integrations.notes import KEY
from dartboard.integrations.options import options_of
from dartboard.integrations.searching import NO_PICKLE, search
from dartboard.options import TRIAGE


class DartboardRetriever(BaseRetriever):
    """Documents of an index that together say most about a question.

    The options are those of :meth:`dartboard.engine.Engine.search`; any of them can be changed for one call:
    ``retriever.invoke(question, k=3, where="year >= 2020")``. The engine stays the caller's to close.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

    engine: Engine
    """The index that is searched."""
    k: int | None = None
    """How many to pick; 5 where there is no ``token_budget`` either."""
    token_budget: int | None = None
    """What the picks may cost together, in tokens."""
    method: Any = "dartboard"
    """How to choose: a name, such as ``mmr``, or a selection method."""
    sigma: float | Literal["auto"] = "auto"
    """How near a pick has to be to stand for a passage; ``auto`` finds it from the candidates."""
    where: Any = None
    """A filter on metadata, as text or made by ``parse_filter``."""
    triage_k: int = TRIAGE
    """How many candidates are found before some are chosen."""
    reranker: RerankerType = "cosine"
    """By what the question's side is scored: ``cosine``, ``crossencoder`` or ``hybrid``."""
    must_include: tuple[str, ...] = ()
    """Ids of chunks that have to be among the picks."""
    exclude: tuple[str, ...] = ()
    """Ids of chunks that must not be."""
    max_per_source: int | None = None
    """The most picks that one source may have."""
    min_gain_share: float = 0.0
    """Stop once a pick would add less than this share of what the first one added."""
    min_similarity: float | None = None
    """Leave out candidates whose cosine to the question is lower."""
    metadata_key: str = KEY
    """Where in the metadata the note on each pick is put."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        options_of(self)
        return self

    @classmethod
    def open(cls, url: str, *, engine_options: dict[str, Any] | None = None, **options: Any) -> Self:
        """A retriever over the index at ``url``, which is only read; ``engine_options`` as in ``Engine``."""
        return cls(engine=Engine.open(url, read_only=True, **(engine_options or {})), **options)

    def __getstate__(self) -> dict[Any, Any]:
        raise TypeError(NO_PICKLE)

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, **changes: Any
    ) -> list[Document]:
        return [
            Document(
                id=answer.chunk.id,
                page_content=answer.chunk.text,
                metadata=answer.metadata(self.metadata_key),
            )
            for answer in search(self.engine, query, options_of(self, **changes))
        ]

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun, **changes: Any
    ) -> list[Document]:
        work = partial(self._get_relevant_documents, query, run_manager=run_manager.get_sync(), **changes)
        return await run_in_executor(None, work)
