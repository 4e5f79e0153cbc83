"""Is it up, is it ready, what does it serve, what has it done; ``/jobs``: how far long tasks are.

The three that probes ask for answer HEAD as well. With keys in use, a caller sees the jobs of its own key;
one that may write sees all.
"""

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Path
from pydantic import Field
from starlette.responses import Response

from dartboard.api.errors import NotFound, Stopping
from dartboard.api.guards.authentication import READ, reader
from dartboard.api.job_queue import Job, State
from dartboard.api.json_body import json_response
from dartboard.api.keys import Key
from dartboard.api.metrics import CONTENT_TYPE
from dartboard.api.schemas import ResponseModel
from dartboard.api.service import Service, ServiceDep, in_worker
from dartboard.errors import CollectionError
from dartboard.version import __version__


class Health(ResponseModel):
    """What is served."""

    status: Literal["healthy"] = Field(
        description="`healthy`; a service that is not answers with an error.", examples=["healthy"]
    )
    version: str = Field(description="The version of dartboard.", examples=["1.0.0"])
    embedding_model: str = Field(
        description="The model of the default collection.", examples=["all-MiniLM-L6-v2"]
    )
    corpus_size: int = Field(description="Passages in the default collection.", examples=[10000])
    collection: str = Field(
        description="The collection that is asked where a request names none.", examples=["default"]
    )
    collections: list[str] = Field(description="All collections.", examples=[["default", "demo"]])
    answer_model: str | None = Field(
        description="The language model that `/ask` asks; null where there is none.",
        examples=["openai:llama3.1"],
    )


class Alive(ResponseModel):
    """A sign of life."""

    status: Literal["ok", "ready"] = Field(description="`ok` or `ready`.", examples=["ok"])


class JobStatus(ResponseModel):
    """A task and how far it is."""

    id: str = Field(description="Its id.", examples=["3f9a1c0b7d2e4f68"])
    kind: str = Field(description="What it does.", examples=["evaluate"])
    state: State = Field(description="Where it stands.", examples=["running"])
    done: int = Field(description="Steps that are finished.", examples=[40])
    total: int = Field(description="Steps in all; 0 while that is not known.", examples=[100])
    message: str = Field(description="What it is doing now.", examples=["Answering synthetic_clustered"])
    created: float = Field(description="Seconds since 1970.", examples=[1767225600.0])
    started: float | None = Field(
        description="Seconds since 1970; null while it waits.", examples=[1767225601.0]
    )
    finished: float | None = Field(
        description="Seconds since 1970; null until it has ended.", examples=[None]
    )
    result: dict[str, Any] | None = Field(
        description="What it found, once it is done: what the operation that began it would have answered.",
        examples=[{"dataset": "synthetic_clustered", "metrics": {"ndcg@5": 0.9}}],
    )
    error: str | None = Field(description="Why it failed.", examples=[None])


class JobList(ResponseModel):
    """The tasks that are kept, newest first."""

    jobs: list[JobStatus] = Field(description="The tasks.")


class JobStarted(ResponseModel):
    """A task that goes on by itself."""

    job_id: str = Field(description="Its id.", examples=["3f9a1c0b7d2e4f68"])
    status_url: str = Field(
        description="Where to ask how far it is, and, with DELETE, to stop it.",
        examples=["/api/dartboard/jobs/3f9a1c0b7d2e4f68"],
    )


router = APIRouter()

JobId = Annotated[
    str, Path(description="The job's id.", examples=["3f9a1c0b7d2e4f68"], min_length=1, max_length=64)
]
Reader = Annotated[Key | None, Depends(reader)]


@router.get(
    "/api/dartboard/health", tags=["health"], operation_id="health", response_model=Health, dependencies=READ
)
@in_worker
def health(service: ServiceDep) -> Response:
    """Say what is served: version, model, and how many passages the default collection has."""
    engines = service.engines
    name = engines.default
    try:
        engine = engines.get(name)
        size, model = engine.collection.count(), engine.model.name
    except CollectionError:
        size, model = 0, engines.model.name
    return json_response(
        {
            "status": "healthy",
            "version": __version__,
            "embedding_model": model,
            "corpus_size": size,
            "collection": name,
            "collections": engines.names(),
            "answer_model": None if service.answer_model is None else service.answer_model.name,
        }
    )


@router.head("/healthz", include_in_schema=False)
@router.get("/healthz", tags=["health"], operation_id="alive", response_model=Alive)
async def alive() -> Response:
    """Whether the process answers. For orchestrators; needs no key."""
    return json_response({"status": "ok"})


@router.head("/readyz", include_in_schema=False)
@router.get("/readyz", tags=["health"], operation_id="ready", response_model=Alive)
async def ready(service: ServiceDep) -> Response:
    """Whether the model is loaded and the store open; 503 while starting or stopping. Needs no key."""
    if not service.engines.ready:
        raise Stopping("not ready: the service is starting or stopping")
    return json_response({"status": "ready"})


@router.head("/metrics", include_in_schema=False, dependencies=READ)
@router.get(
    "/metrics",
    tags=["health"],
    operation_id="metrics",
    dependencies=READ,
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
async def metrics(service: ServiceDep) -> Response:
    """Latency by stage, queue, cache, picks and redundancy removed, for Prometheus."""
    return Response(service.metrics.render(), headers={"content-type": CONTENT_TYPE})


@router.get("/api/dartboard/jobs", tags=["jobs"], operation_id="list_jobs", response_model=JobList)
async def jobs(service: ServiceDep, key: Reader) -> Response:
    """List the tasks that run, wait, or ended a while ago; the newest first."""
    return json_response({"jobs": [job.as_dict() for job in service.jobs.list() if _may_see(key, job)]})


@router.get("/api/dartboard/jobs/{id}", tags=["jobs"], operation_id="get_job", response_model=JobStatus)
async def job(id: JobId, service: ServiceDep, key: Reader) -> Response:
    """Say how far a task is, and its result once it is done."""
    return json_response(_visible(service, key, id).as_dict())


@router.delete("/api/dartboard/jobs/{id}", tags=["jobs"], operation_id="cancel_job", response_model=JobStatus)
async def cancel(id: JobId, service: ServiceDep, key: Reader) -> Response:
    """Stop a task: one that waits at once, one that runs at its next step. What it has done stays."""
    _visible(service, key, id)
    return json_response(service.jobs.cancel(id).as_dict())


def _visible(service: Service, key: Key | None, id: str) -> Job:
    found = service.jobs.get(id)
    if not _may_see(key, found):
        raise NotFound("there is no such job: finished ones are kept for a while only")
    return found


def _may_see(key: Key | None, job: Job) -> bool:
    return key is None or "write" in key.scopes or job.owner == key.id
