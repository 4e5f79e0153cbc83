"""The options of a search as fields of pydantic models: LangChain's and LlamaIndex's components inherit them.

Names, types and defaults are those of :class:`~dartboard.search_options.SearchOptions`, which checks them.
"""

from typing import Any, Literal, Self

from pydantic import BaseModel, model_validator

from dartboard.config import RerankerType
from dartboard.integrations.notes import KEY
from dartboard.integrations.options import check_names, options_of
from dartboard.search_options import TRIAGE


class SelectionFields(BaseModel):
    """How much to select, and how."""

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
    min_gain_share: float = 0.0
    """Stop once a pick would add less than this share of what the first one added."""
    min_similarity: float | None = None
    """Leave out candidates whose cosine to the question is lower."""
    metadata_key: str = KEY
    """Where in the metadata the note on each pick is put."""

    @model_validator(mode="after")
    def _check_options(self) -> Self:
        options_of(self)
        return self


class SearchFields(SelectionFields):
    """What a retriever over an index can be asked for."""

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


class RerankFields(SelectionFields):
    """What a component that selects from given documents can be asked for."""

    source_field: str = "source"
    """The metadata field that ``max_per_source`` counts."""

    @model_validator(mode="before")
    @classmethod
    def _check_names(cls, settings: Any) -> Any:
        check_names(settings, cls.__name__)
        return settings
