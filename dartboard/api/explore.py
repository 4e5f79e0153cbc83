"""``POST /explore``: one question from all sides, as the playground draws it."""

import time
from typing import Annotated

from fastapi import APIRouter, Depends
from starlette.responses import Response

from dartboard.api.auth import reader
from dartboard.api.json_body import JsonRoute, answer
from dartboard.api.limits import at_most, check_query
from dartboard.api.narrowing import condition_of
from dartboard.api.schemas.explore import ExploreRequest, ExploreResponse
from dartboard.api.service import Service, service_of
from dartboard.inspection import explore as look_at
from dartboard.options import DEFAULT_K, TRIAGE

router = APIRouter(
    prefix="/api/dartboard", tags=["explore"], route_class=JsonRoute, dependencies=[Depends(reader)]
)


@router.post("/explore", operation_id="explore", response_model=ExploreResponse)
async def explore(body: ExploreRequest, service: Annotated[Service, Depends(service_of)]) -> Response:
    """Look at one question: candidates, three methods side by side, and why Dartboard picks what it picks.

    The picks are those of `/retrieve`. The map and the sweep take the most time and are left out on request;
    the map stays the same while σ and k change.
    """
    return await service.run(_explore, service, body)


def _explore(service: Service, body: ExploreRequest) -> Response:
    started = time.perf_counter()
    settings = service.settings
    at_most("k", body.k, settings.k)
    at_most("triage_k", body.triage_k, settings.triage_k)
    at_most("token_budget", body.token_budget, settings.token_budget)
    k = min(DEFAULT_K, settings.k) if body.k is None and body.token_budget is None else body.k
    engine = service.engines.get(body.collection)
    check_query(engine.model, body.query, settings)
    found = look_at(
        engine,
        body.query,
        k=k,
        token_budget=body.token_budget,
        sigma=body.sigma,
        triage_k=body.triage_k or min(settings.triage_k, max(TRIAGE, k or 0)),
        mmr_relevance=body.mmr_relevance,
        where=condition_of(body.filter, None),
        reranker=body.reranker_type,
        layout=body.layout,
        sweep=body.sweep,
    )
    service.metrics.observe_search(found.summary())
    content = found.to_json()
    content["execution_time_ms"] = round(1000 * (time.perf_counter() - started), 3)
    return answer(content)
