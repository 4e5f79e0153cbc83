"""``POST /context``: the text that a language model reads, merged and numbered, within a token budget."""

import time
from typing import Any, Literal

from fastapi import APIRouter
from pydantic import Field
from starlette.responses import Response

from dartboard.api.endpoints.retrieve import FoundResponse, described, run_search
from dartboard.api.guards.authentication import READ
from dartboard.api.json_body import JsonRoute, json_response
from dartboard.api.schemas import ResponseModel
from dartboard.api.search_request import Count, Query, SearchRequest, check_query
from dartboard.api.service import ServiceDep, in_worker
from dartboard.api.settings import ServiceSettings
from dartboard.context import DEFAULT_BUDGET, Format, Order
from dartboard.search_options import SearchKeywords

_TEXT = "[1] runbook/consumers-falling-behind.md\nConsumers fall behind, as a rule, because …"


class ContextRequest(SearchRequest):
    """A question, and how its context is written."""

    query: Query
    token_budget: Count | None = Field(
        None,
        description="How many tokens of the model the whole text may have; 2000, or the service's limit "
        "where that is less. With a number of passages, both hold.",
        examples=[1500],
    )
    offset: Literal[0] = Field(0, description="Always 0: a context has no pages.", examples=[0])
    expand: bool = Field(
        True,
        description="Whether chunks before and after a pick may be added where they add most per token.",
        examples=[True],
    )
    order: Order = Field(
        "gain",
        description="`gain` (what adds most comes first), `source` (passages of one document together, in "
        "its order), or `ends` (the best first and last).",
        examples=["gain"],
    )
    format: Format = Field(
        "markdown", description="How the text is written: `markdown`, `xml` or `json`.", examples=["markdown"]
    )

    def search_keywords(self, settings: ServiceSettings) -> SearchKeywords:
        """As in ``CandidateRequest``; without a budget the default one, never a number of passages alone."""
        options = super().search_keywords(settings)
        if self.token_budget is None:
            options["token_budget"] = min(DEFAULT_BUDGET, settings.token_budget)
            options["k"] = self.k
        return options


class ContextPassage(ResponseModel):
    """A part of a context: one chunk, or several that were merged."""

    number: int = Field(description="What an answer cites, from 1.", examples=[1])
    text: str = Field(description="The passage.", examples=["Consumers fall behind, as a rule, because …"])
    source: str = Field(
        description="Where it is from: a document with its line or page, or the chunk's id.",
        examples=["runbook/consumers-falling-behind.md"],
    )
    heading: str = Field(description="The sections that it stands in; may be empty.", examples=[""])
    chunk_ids: list[str] = Field(
        description="The chunks that it was made from, in reading order.", examples=[["slow-01"]]
    )
    gain: float = Field(
        description="What these chunks add to the others: a share of what all candidates would cover.",
        examples=[0.41],
    )


class ContextResponse(FoundResponse):
    """What a language model reads before it answers a question; empty where nothing matches."""

    text: str = Field(description="The passages in the format asked for.", examples=[_TEXT])
    tokens: int = Field(description="How many tokens of the model the text has.", examples=[1480])
    token_budget: int = Field(description="How many it may have.", examples=[1500])
    order: Order = Field(description="As asked for.", examples=["gain"])
    format: Format = Field(description="As asked for.", examples=["markdown"])
    passages: list[ContextPassage] = Field(description="The passages in the order of the text.")
    coverage: float = Field(description="What all passages cover together, of 1.", examples=[0.83])


router = APIRouter(prefix="/api/dartboard", tags=["retrieve"], route_class=JsonRoute, dependencies=READ)

_FIELDS = ("text", "tokens", "token_budget", "order", "format", "passages", "coverage")


@router.post("/context", operation_id="context", response_model=ContextResponse)
@in_worker
def context(body: ContextRequest, service: ServiceDep) -> Response:
    """Write the text that a language model reads: passages that together say most, within a token budget.

    Neighbours in a document merge into one passage without repeated text; passages are numbered, with source
    and heading.
    """
    started = time.perf_counter()
    options = body.search_options(service.settings)
    engine = service.engines.get(body.collection)
    check_query(engine.model, body.query, service.settings, body.also)
    written: dict[str, Any] = {"expand": body.expand, "order": body.order, "format": body.format}
    built = run_search(
        service,
        engine,
        body.query,
        options,
        lambda vector: engine.context(body.query, options, query_vector=vector, **written),
    )
    said = built.to_json()
    answer = described(built.result, engine, body, options, started)
    return json_response(answer | {name: said[name] for name in _FIELDS})
