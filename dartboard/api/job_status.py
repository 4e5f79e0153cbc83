"""``/jobs``: how far long tasks are, and stopping them.

With keys in use, a caller sees the tasks of its own key; one that may write sees all.
"""

from typing import Annotated

from fastapi import APIRouter, Depends, Path
from starlette.responses import Response

from dartboard.api.auth import reader
from dartboard.api.errors import NotFound
from dartboard.api.jobs import Job
from dartboard.api.json_body import answer
from dartboard.api.keys import Key
from dartboard.api.schemas.jobs import JobList, JobStatus
from dartboard.api.service import Service, service_of

router = APIRouter(prefix="/api/dartboard", tags=["jobs"])

JobId = Annotated[
    str, Path(description="The job's id.", examples=["3f9a1c0b7d2e4f68"], min_length=1, max_length=64)
]


@router.get("/jobs", operation_id="list_jobs", response_model=JobList)
async def jobs(
    service: Annotated[Service, Depends(service_of)], key: Annotated[Key | None, Depends(reader)]
) -> Response:
    """List the tasks that run, wait, or ended a while ago; the newest first."""
    return answer({"jobs": [job.as_dict() for job in service.jobs.list() if _may_see(key, job)]})


@router.get("/jobs/{id}", operation_id="get_job", response_model=JobStatus)
async def job(
    id: JobId, service: Annotated[Service, Depends(service_of)], key: Annotated[Key | None, Depends(reader)]
) -> Response:
    """Say how far a task is, and its result once it is done."""
    return answer(_visible(service, key, id).as_dict())


@router.delete("/jobs/{id}", operation_id="cancel_job", response_model=JobStatus)
async def cancel(
    id: JobId, service: Annotated[Service, Depends(service_of)], key: Annotated[Key | None, Depends(reader)]
) -> Response:
    """Stop a task: one that waits at once, one that runs at its next step. What it has done stays."""
    _visible(service, key, id)
    return answer(service.jobs.cancel(id).as_dict())


def _visible(service: Service, key: Key | None, id: str) -> Job:
    found = service.jobs.get(id)
    if not _may_see(key, found):
        raise NotFound("there is no such job: finished ones are kept for a while only")
    return found


def _may_see(key: Key | None, job: Job) -> bool:
    return key is None or "write" in key.scopes or job.owner == key.id
