"""What a request asks a search for: the fields of ``SearchOptions`` as JSON, with their limits, said once.

A field has the name that ``SearchOptions`` gives the option; where JSON has another name, that is its alias.
To add an option to ``/retrieve``, ``/retrieve/batch``, ``/context``, ``/ask`` and ``/explore``, declare its
field in :class:`CandidateRequest`: :meth:`~CandidateRequest.search_keywords` hands it on.
"""

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationInfo, field_validator

from dartboard.api.error_messages import plain
from dartboard.api.errors import Invalid
from dartboard.api.schemas import CollectionName, Id, Listed, RequestModel, Sigma, Text
from dartboard.api.settings import ServiceSettings
from dartboard.config import RerankerType
from dartboard.embeddings.base import EmbeddingModel
from dartboard.embeddings.texts import count_tokens
from dartboard.errors import InvalidInputError
from dartboard.search_options import DEFAULT_K, MOST_SEEN, TRIAGE, SearchKeywords, SearchOptions
from dartboard.selection.limits import RELEVANCE_BELOW
from dartboard.selection.pool import MOST_QUESTIONS
from dartboard.stores import Filter, filter_from_json, parse_filter
from dartboard.stores.filters import Among, And, Exists, In, Or, check_filter

Count = Annotated[int, Field(ge=1)]
K = Annotated[
    Count | None,
    Field(
        description="How many passages; 5 where neither this nor `token_budget` is given.",
        examples=[5],
    ),
]
MethodName = Annotated[
    Literal["dartboard", "mmr", "top_k", "near_duplicate_filter", "random"],
    Field(
        description="Who picks from the candidates; the others are there to compare.", examples=["dartboard"]
    ),
]
Reranker = Annotated[
    RerankerType,
    Field(
        description="Who says how close two texts are: the vectors, a pair scorer, or both.",
        examples=["cosine"],
    ),
]
MinGainShare = Annotated[
    float,
    Field(
        ge=0,
        le=1,
        description="Stop once a pick gains less than this share of what the first gained.",
        examples=[0.05],
    ),
]
Weight = Annotated[float, Field(gt=0, le=1e6)]
FieldName = Annotated[str, Field(min_length=1, max_length=200)]
Query = Annotated[
    Text,
    Field(
        description="What to ask, in the model's tokens no longer than the service's limit.",
        examples=["Why are our consumers falling behind?"],
    ),
]


class CandidateRequest(RequestModel):
    """How passages are found and picked, by whatever method."""

    k: K = Field(None, alias="top_k")
    token_budget: Count | None = Field(
        None,
        description="As many passages as fit into so many tokens of the model; with a number of passages, "
        "both hold.",
        examples=[1500],
    )
    sigma: Sigma = "auto"
    reranker: Reranker = Field("cosine", alias="reranker_type")
    where: Text | dict[str, Any] | None = Field(
        None,
        alias="filter",
        description="Only passages whose metadata match, as text or as JSON "
        '(`{"field": "year", "op": ">=", "value": 2020}`, `and`, `or`, `not`).',
        examples=['theme = "slow handlers"', {"field": "kind", "op": "=", "value": "original"}],
    )
    triage_k: Count | None = Field(
        None,
        description="How many candidates to pick from; 100, or the number of passages where that is more.",
        examples=[100],
    )
    offset: int = Field(
        0,
        ge=0,
        description="Leave out so many picks: those of earlier pages. Goes with a number of passages only.",
        examples=[0],
    )
    also: Listed[Query] = Field(
        [],
        max_length=MOST_QUESTIONS - 1,
        description="Further questions, answered together with `query`, such as the parts of it.",
        examples=[["How do I add consumers?"]],
    )
    weights: Listed[Weight] | None = Field(
        None,
        max_length=MOST_QUESTIONS,
        description="How much `query` and each question in `also` count; equal by default.",
        examples=[[1.0, 1.0]],
    )
    seen: Listed[Id] = Field(
        [],
        max_length=MOST_SEEN,
        description="Chunks that the reader has already: they count as covered, and only what adds something "
        "to them is picked.",
        examples=[["slow-02"]],
    )
    max_per: dict[FieldName, Count] | None = Field(
        None,
        max_length=10,
        description="At most so many passages that agree in a metadata field.",
        examples=[{"theme": 2}],
    )
    prefer: FieldName | None = Field(
        None,
        description="A metadata field, such as a version or a date: of near-duplicates, the passage with the "
        "largest value is picked.",
        examples=["source"],
    )
    must_include: Listed[Id] = Field(
        [],
        max_length=1000,
        description="Chunks that are picked first, whatever they gain.",
        examples=[["slow-01"]],
    )
    exclude: Listed[Id] = Field(
        [], max_length=10_000, description="Chunks that are left out.", examples=[["rebalance-02"]]
    )
    max_per_source: Count | None = Field(
        None, description="At most so many passages of one document.", examples=[2]
    )
    source_field: FieldName = Field(
        "source", description="The metadata field that `max_per_source` counts.", examples=["source"]
    )
    min_gain_share: MinGainShare = 0.0
    relevance_below: float = Field(
        RELEVANCE_BELOW,
        ge=0,
        le=1,
        description="Once no passage gains this share of P(t|q), go on with the most relevant ones.",
        examples=[RELEVANCE_BELOW],
    )
    min_similarity: float | None = Field(
        None,
        ge=-1,
        le=1,
        description="Leave out passages less similar to the question (cosine).",
        examples=[0.2],
    )
    collection: CollectionName | None = Field(
        None, description="The collection to ask; the service's own where none is named.", examples=["demo"]
    )

    @field_validator("triage_k")
    @classmethod
    def _room_for_k(cls, triage_k: int | None, before: ValidationInfo) -> int | None:
        k = before.data.get("k")
        if triage_k is not None and k is not None and triage_k < k:
            name = cls.model_fields["k"].alias or "k"
            raise ValueError(f"must be at least {name}: there have to be enough candidates to pick from")
        return triage_k

    @field_validator("exclude")
    @classmethod
    def _not_required(cls, exclude: list[str], before: ValidationInfo) -> list[str]:
        if set(exclude) & set(before.data.get("must_include", ())):
            raise ValueError("names a chunk that must_include names too")
        return exclude

    def search_keywords(self, settings: ServiceSettings) -> SearchKeywords:
        """The options of the request by their names in ``SearchOptions``, within the service's limits.

        Raises:
            Invalid: a number is above its limit, or the filter cannot be read.
        """
        fields = type(self).model_fields
        options: SearchKeywords = {}
        for name in SearchKeywords.__annotations__:
            if name in fields and (value := getattr(self, name)) is not None:
                if name in _LIMITED:
                    at_most(fields[name].alias or name, value, getattr(settings, name))
                options[name] = value  # type: ignore[literal-required]
        if self.k is None and self.token_budget is None:
            options["k"] = min(DEFAULT_K, settings.k)
        if self.triage_k is None:
            options["triage_k"] = min(settings.triage_k, TRIAGE)
        options["where"] = condition(self.where, getattr(self, "corpus_ids", None))
        return options

    def search_options(self, settings: ServiceSettings) -> SearchOptions:
        """What the request asks the engine for; raises as :meth:`search_keywords` does."""
        return SearchOptions(**self.search_keywords(settings))


class SearchRequest(CandidateRequest):
    """The same with one method, where ``/explore`` compares three."""

    method: MethodName = "dartboard"
    corpus_ids: Listed[Id] | None = Field(
        None,
        max_length=10_000,
        description="Only these: ids of chunks, or of documents (their `source`).",
        examples=[["wiki/why-is-my-consumer-slow.md", "slow-01"]],
    )


_LIMITED = ("k", "token_budget", "triage_k")
"""Options that the service limits by a setting of the same name."""


def at_most(field: str, value: float | None, limit: int, what: str = "") -> None:
    """Refuse a number above a limit of the service, which is named."""
    if value is not None and value > limit:
        raise Invalid(f"{field} is limited to {limit}{what} here", field=field)


def check_query(
    model: EmbeddingModel, query: str, settings: ServiceSettings, also: Sequence[str] = ()
) -> None:
    """Refuse a question longer than the limit, in the model's own tokens."""
    check_length(model, [query], settings, "query")
    check_length(model, also, settings, "also")


def check_length(
    model: EmbeddingModel, questions: Sequence[str], settings: ServiceSettings, field: str
) -> None:
    """The same for the questions of one field."""
    most = settings.query_tokens
    if questions and max(count_tokens(model, questions, most=most)) > most:
        raise Invalid(f"{field} is limited to {most} tokens here: shorten it", field=field)


def condition(given: str | dict[str, Any] | None, corpus_ids: Sequence[str] | None) -> Filter | None:
    """A filter, as text or as JSON, and ids together; None where everything is meant.

    Ids are those of passages, or of documents; passages need not have a source.
    """
    parts: list[Filter] = []
    try:
        if given is not None:
            parts.append(parse_filter(given) if isinstance(given, str) else filter_from_json(given))
        if corpus_ids is not None:
            wanted = tuple(dict.fromkeys(corpus_ids))
            parts.append(Or((Among(wanted), And((Exists("source"), In("source", wanted))))))
        if len(parts) < 2:
            return parts[0] if parts else None
        both = And(tuple(parts))
        check_filter(both)
    except InvalidInputError as error:
        raise Invalid(plain(str(error)), field="filter") from None
    return both
