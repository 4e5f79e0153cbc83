"""Is it up, is it ready, what does it serve, what has it done.

The three that probes ask for answer HEAD as well.
"""

from typing import Annotated

from fastapi import APIRouter, Depends
from starlette.responses import Response

from dartboard.api.auth import reader
from dartboard.api.errors import Stopping
from dartboard.api.json_body import answer
from dartboard.api.metrics import CONTENT_TYPE
from dartboard.api.schemas.health import Alive, Health
from dartboard.api.service import Service, service_of
from dartboard.errors import CollectionError
from dartboard.version import __version__

router = APIRouter(tags=["health"])


@router.get(
    "/api/dartboard/health", operation_id="health", response_model=Health, dependencies=[Depends(reader)]
)
async def health(service: Annotated[Service, Depends(service_of)]) -> Response:
    """Say what is served: version, model, and how many passages the default collection has."""
    return await service.run(_health, service)


@router.head("/healthz", include_in_schema=False)
@router.get("/healthz", operation_id="alive", response_model=Alive)
async def alive() -> Response:
    """Whether the process answers. For orchestrators; needs no key."""
    return answer({"status": "ok"})


@router.head("/readyz", include_in_schema=False)
@router.get("/readyz", operation_id="ready", response_model=Alive)
async def ready(service: Annotated[Service, Depends(service_of)]) -> Response:
    """Whether the model is loaded and the store open; 503 while starting or stopping. Needs no key."""
    if not service.engines.ready:
        raise Stopping("not ready: the service is starting or stopping")
    return answer({"status": "ready"})


@router.head("/metrics", include_in_schema=False, dependencies=[Depends(reader)])
@router.get(
    "/metrics",
    operation_id="metrics",
    dependencies=[Depends(reader)],
    responses={
        200: {
            "description": "Counters and histograms in Prometheus' text format.",
            "content": {
                "text/plain": {"schema": {"type": "string"}, "example": "dartboard_queue_waiting 0.0\n"}
            },
        }
    },
    response_class=Response,
)
async def metrics(service: Annotated[Service, Depends(service_of)]) -> Response:
    """Latency by stage, queue, cache, picks and redundancy removed, for Prometheus."""
    return Response(service.metrics.render(), headers={"content-type": CONTENT_TYPE})


def _health(service: Service) -> Response:
    engines = service.engines
    name = engines.default
    try:
        engine = engines.get(name)
        size, model = engine.collection.count(), engine.model.name
    except CollectionError:
        size, model = 0, engines.model.name
    return answer(
        {
            "status": "healthy",
            "version": __version__,
            "embedding_model": model,
            "corpus_size": size,
            "collection": name,
            "collections": engines.names(),
            "answer_model": service.answers.name,
        }
    )
