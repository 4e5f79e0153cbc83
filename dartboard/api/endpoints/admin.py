"""Is it up, is it ready, what does it serve, what has it done; ``/jobs``: how far long tasks are.

With keys in use, a caller sees the jobs of its own key; one that may write sees all.
"""

import asyncio
import time
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Path, Request
from pydantic import BaseModel, Field
from starlette.responses import JSONResponse, Response

from dartboard.api.authentication import READ, ReaderKey, reader
from dartboard.api.errors import NotFound, ReadOnly, Stopping, Unavailable
from dartboard.api.jobs import Job, State, Task
from dartboard.api.keys import Key
from dartboard.api.metrics import CONTENT_TYPE
from dartboard.api.service import Service, ServiceDep, in_thread
from dartboard.errors import CollectionError
from dartboard.version import __version__

SPARE = 2.0
"""Seconds of a request's time that are kept for the answer."""
_POLL_SECONDS = 0.05


class Health(BaseModel):
    """What is served."""

    status: Literal["healthy"]
    version: str
    embedding_model: str = Field(description="The model of the default collection.")
    corpus_size: int = Field(description="Passages in the default collection.")
    collection: str = Field(description="The collection that is asked where a request names none.")
    collections: list[str]
    answer_model: str | None = Field(description="The language model that `/ask` asks.")


class Alive(BaseModel):
    """A sign of life."""

    status: Literal["ok", "ready"]


class JobStatus(BaseModel):
    """A task and how far it is; times are seconds since 1970."""

    id: str
    kind: str
    state: State
    done: int
    total: int = Field(description="Steps in all; 0 while that is not known.")
    message: str
    created: float
    started: float | None
    finished: float | None
    result: dict[str, Any] | None = Field(description="What the operation that began it would have answered.")
    error: str | None


class JobList(BaseModel):
    """The tasks that are kept, newest first."""

    jobs: list[JobStatus]


class JobStarted(BaseModel):
    """A task that goes on by itself."""

    job_id: str
    status_url: str = Field(description="Where to ask how far it is, and, with DELETE, to stop it.")


router = APIRouter()
JobId = Annotated[str, Path(description="The job's id.", min_length=1, max_length=64)]
TAKES_LONGER: dict[int | str, dict[str, Any]] = {
    202: {"model": JobStarted, "description": "It takes longer: a job goes on with it."}
}
_TEXT: dict[int | str, dict[str, Any]] = {200: {"content": {"text/plain": {"schema": {"type": "string"}}}}}


@router.head("/api/dartboard/health", include_in_schema=False, dependencies=READ)
@router.get("/api/dartboard/health", tags=["health"], operation_id="health", dependencies=READ)
@in_thread
def health(service: ServiceDep) -> Health:
    """Say what is served: version, model, and how many passages the default collection has."""
    engines = service.engines
    name = engines.default
    try:
        engine = engines.get(name)
        size, model = engine.collection.count(), engine.model.name
    except CollectionError:
        size, model = 0, engines.model.name
    return Health(
        status="healthy",
        version=__version__,
        embedding_model=model,
        corpus_size=size,
        collection=name,
        collections=engines.names(),
        answer_model=None if service.answer_model is None else service.answer_model.name,
    )


@router.head("/healthz", include_in_schema=False)
@router.get("/healthz", tags=["health"], operation_id="alive")
async def alive() -> Alive:
    """Whether the process answers. For orchestrators; needs no key."""
    return Alive(status="ok")


@router.head("/readyz", include_in_schema=False)
@router.get("/readyz", tags=["health"], operation_id="ready")
async def ready(service: ServiceDep) -> Alive:
    """Whether the model is loaded and the store open; 503 while starting or stopping. Needs no key."""
    if not service.engines.ready:
        raise Stopping("not ready: the service is starting or stopping")
    return Alive(status="ready")


@router.head("/metrics", include_in_schema=False, dependencies=READ)
@router.get(
    "/metrics",
    tags=["health"],
    operation_id="metrics",
    dependencies=READ,
    response_class=Response,
    responses=_TEXT,
)
async def metrics(service: ServiceDep) -> Response:
    """Latency by stage, queue, cache, picks and near-duplicates removed, for Prometheus."""
    return Response(service.metrics.render(), headers={"content-type": CONTENT_TYPE})


@router.get("/api/dartboard/jobs", tags=["jobs"], operation_id="list_jobs")
async def jobs(service: ServiceDep, key: ReaderKey) -> JobList:
    """List the tasks that run, wait, or ended a while ago; the newest first."""
    return JobList(jobs=[status_of(job) for job in service.jobs.list() if _may_see(key, job)])


@router.get("/api/dartboard/jobs/{id}", tags=["jobs"], operation_id="get_job")
async def job(id: JobId, service: ServiceDep, key: ReaderKey) -> JobStatus:
    """Say how far a task is, and its result once it is done."""
    return status_of(_visible(service, key, id))


@router.delete("/api/dartboard/jobs/{id}", tags=["jobs"], operation_id="cancel_job")
async def cancel(id: JobId, service: ServiceDep, key: ReaderKey) -> JobStatus:
    """Stop a task: one that waits at once, one that runs at its next step. What it has done stays."""
    _visible(service, key, id)
    return status_of(service.jobs.cancel(id))


def status_of(job: Job) -> JobStatus:
    """What callers are told of a job."""
    return JobStatus.model_validate(job, from_attributes=True)


class JobOrAnswer:
    """A dependency for operations that may take longer than a request: ``await run(kind, task, background)``.

    The task runs as a job; the request waits almost as long as it may, and then hands over to the job's
    address. Of several processes, another one would not know the job: there the task has the time of a
    request.
    """

    def __init__(
        self, request: Request, service: ServiceDep, key: Annotated[Key | None, Depends(reader)]
    ) -> None:
        self._request, self._service, self._key = request, service, key

    async def run(self, kind: str, task: Task, background: bool) -> Any:
        """The result, or the answer that names the job."""
        service = self._service
        if service.settings.processes > 1:
            if background:
                raise ReadOnly("there are no jobs where several processes serve: leave background out")
            return await service.searches.run(task, lambda done, total, message: None)
        job = service.jobs.start(kind, task, self._key.id if self._key else None)
        if not background and await self._ended(job):
            if job.problem is not None:
                raise job.problem
            if job.result is not None:
                return job.result
            raise Unavailable("the task was cancelled", code="cancelled")
        return JSONResponse(started(job).model_dump(), 202)

    async def _ended(self, job: Job) -> bool:
        """Wait for the job as long as there is time and somebody to wait; whether it has ended."""
        end = time.monotonic() + self._service.settings.timeout - SPARE
        while not job.ended.is_set():
            if time.monotonic() >= end:
                return False
            if await self._request.is_disconnected():
                job.stop.set()
                return False
            await asyncio.sleep(_POLL_SECONDS)
        return True


def started(job: Job) -> JobStarted:
    """Where to ask for a job."""
    return JobStarted(job_id=job.id, status_url=f"/api/dartboard/jobs/{job.id}")


def _visible(service: Service, key: Key | None, id: str) -> Job:
    found = service.jobs.get(id)
    if not _may_see(key, found):
        raise NotFound("there is no such job: finished ones are kept for a while only")
    return found


def _may_see(key: Key | None, job: Job) -> bool:
    return key is None or "write" in key.scopes or job.owner == key.id
