"""``POST /explore``: one question from all sides, as the playground draws it."""

from typing import TYPE_CHECKING, Annotated

import orjson
from fastapi import APIRouter
from pydantic import Field
from starlette.responses import Response

from dartboard.api.authentication import READ
from dartboard.api.errors import Invalid
from dartboard.api.schemas import Query, SearchBase, json_body, search_request
from dartboard.api.service import ServiceDep, in_thread
from dartboard.api.settings import ServiceSettings
from dartboard.explain import Exploration
from dartboard.explain import explore as look_at
from dartboard.search_options import SearchKeywords

MOST_CANDIDATES = 300
MOST_IN_ALL = 1200
"""Candidates of several questions together, and what was seen: the map takes the square of it."""

if TYPE_CHECKING:
    _ExploreBase = SearchBase
else:
    _ExploreBase = search_request(leave_out="method")


class ExploreRequest(_ExploreBase):
    """What to look at."""

    query: Query
    mmr_relevance: float = Field(
        0.7, ge=0, le=1, description="Weight of relevance in MMR; 1 is the retriever's order."
    )
    layout: bool = Field(True, description="Whether to draw the map; it depends on neither σ nor k.")
    sweep: bool = Field(True, description="Whether to select along σ as well.")

    def keywords(self, settings: ServiceSettings) -> SearchKeywords:
        """As for any search, with as many candidates as the map takes."""
        options: SearchKeywords = super().keywords(settings)
        questions, seen = 1 + len(options["also"]), len(options["seen"])
        room = min(MOST_CANDIDATES, (MOST_IN_ALL - seen) // questions)
        for name in ("k", "triage_k"):
            if (getattr(self, name) or 0) > room:
                raise Invalid(
                    f"{name}: {questions} questions of so many candidates each, and what was seen, are more "
                    f"than can be drawn: at most {room} each",
                    field="seen" if room < 1 else name,
                )
        options["triage_k"] = min(options["triage_k"], room)
        return options


router = APIRouter(prefix="/api/dartboard", tags=["explore"], dependencies=READ)


@router.post("/explore", operation_id="explore", response_model=Exploration)
@in_thread
def explore(service: ServiceDep, body: Annotated[ExploreRequest, json_body(ExploreRequest)]) -> Response:
    """Look at one question: candidates, three methods side by side, and why Dartboard picks what it picks.

    The picks are those of `/retrieve`. The map and the sweep take the most time and are left out on request;
    the map stays the same while σ and k change.
    """
    engine = service.engines.get(body.collection)
    options = body.options(service, engine, body.query)
    with service.engines.search_slot(engine, options):
        found = look_at(
            engine,
            body.query,
            options,
            mmr_relevance=body.mmr_relevance,
            layout=body.layout,
            sweep=body.sweep,
        )
    facts = {
        "seconds": found.seconds,
        "candidates": len(found.candidates),
        "near_copies": found.near_copies,
    }
    service.metrics.observe_search(facts, len(found.methods["dartboard"].picks))
    return Response(orjson.dumps(found.to_json()), media_type="application/json")
