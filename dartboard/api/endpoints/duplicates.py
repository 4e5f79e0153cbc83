"""``POST /collections/{name}/duplicates``: how redundant a collection is."""

from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Depends
from pydantic import Field

from dartboard.api.authentication import READ
from dartboard.api.endpoints.admin import TAKES_LONGER, JobOrAnswer
from dartboard.api.endpoints.collections import Name
from dartboard.api.jobs import Progress
from dartboard.api.schemas import FieldName, Listed, RequestModel, Text, json_body
from dartboard.api.service import ServiceDep
from dartboard.engine import Engine

_MOST_IDS = 100


class DuplicatesRequest(RequestModel):
    """What to compare."""

    similarity: Annotated[float, Field(gt=0, le=1)] | None = Field(
        None, description="The smallest cosine of passages that say nearly the same; by default from σ."
    )
    vectors: bool = Field(True, description="Whether to compare vectors and to search as well.")
    queries: Annotated[Listed[Text], Field(min_length=1, max_length=200)] | None = Field(
        None, description="Typical questions; by default 100 titles of the collection."
    )
    fields: Listed[FieldName] = Field(
        [],
        max_length=10,
        description="Metadata fields that may explain duplicates, beside source and version.",
    )
    background: bool = Field(False, description="Whether to answer at once with a job.")


router = APIRouter(prefix="/api/dartboard", tags=["collections"], dependencies=READ)


@router.post("/collections/{name}/duplicates", operation_id="duplicates", responses=TAKES_LONGER)
async def duplicates(
    name: Name,
    service: ServiceDep,
    job: Annotated[JobOrAnswer, Depends()],
    body: Annotated[DuplicatesRequest, json_body(DuplicatesRequest)],
) -> dict[str, Any]:
    """Say how redundant a collection is; where that takes longer than a request may, by a job.

    Nothing is changed: `dartboard duplicates --delete` deletes. The answer is that of
    `dartboard duplicates --json`.
    """
    engine = await service.searches.run(service.engines.get, name)
    found: dict[str, Any] = await job.run("duplicates", partial(_report, engine, body), body.background)
    return found


def _report(engine: Engine, body: DuplicatesRequest, progress: Progress) -> dict[str, Any]:
    found = engine.duplicates(
        queries=body.queries,
        similarity=body.similarity,
        vectors=body.vectors,
        fields=body.fields,
        listen=lambda step, done, total: progress(done, total, step),
    ).to_json()
    for group in found["groups"]:
        group["ids"] = group["ids"][:_MOST_IDS]
    return {"collection": engine.name, **found}
