"""``POST /collections/{name}/duplicates``: how redundant a collection is. It always runs as a job."""

from functools import partial
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Request
from pydantic import Field
from starlette.responses import Response

from dartboard.api.endpoints.admin import JobStarted
from dartboard.api.endpoints.collections import Name
from dartboard.api.endpoints.evaluate import SPARE, ended
from dartboard.api.errors import Unavailable
from dartboard.api.guards.authentication import reader
from dartboard.api.job_queue import Progress
from dartboard.api.json_body import JsonRoute, json_response
from dartboard.api.keys import Key
from dartboard.api.schemas import Listed, RequestModel, ResponseModel
from dartboard.api.service import ServiceDep
from dartboard.engine import Engine

MOST_QUERIES = 200


class DuplicatesRequest(RequestModel):
    """What to compare."""

    similarity: Annotated[float, Field(gt=0, le=1)] | None = Field(
        None,
        description="The smallest cosine of passages that say nearly the same; by default from σ.",
        examples=[0.85],
    )
    vectors: bool = Field(
        True, description="Whether to compare vectors and to search as well.", examples=[True]
    )
    queries: Listed[Annotated[str, Field(min_length=1, max_length=2000, pattern=r"\S")]] | None = Field(
        None,
        min_length=1,
        max_length=MOST_QUERIES,
        description="Typical questions; by default 100 titles of the collection.",
        examples=[["How do I add consumers?"]],
    )
    fields: Listed[Annotated[str, Field(min_length=1, max_length=200)]] = Field(
        [],
        max_length=10,
        description="Metadata fields that may explain duplicates, beside source and version.",
        examples=[["theme"]],
    )
    background: bool = Field(False, description="Whether to answer at once with a job.", examples=[False])


class Repeats(ResponseModel):
    """What typical searches show."""

    queries: int = Field(description="How many searches.", examples=[100])
    given: bool = Field(description="Whether the queries were given.", examples=[False])
    k: int = Field(description="Passages of each search.", examples=[5])
    top_k: float = Field(
        description="How many of them repeat an earlier one, with nearest neighbours.", examples=[2.3]
    )
    dartboard: float = Field(description="The same with Dartboard.", examples=[0.1])


class Cause(ResponseModel):
    """Two values of a field, and how many groups they share."""

    values: list[str] = Field(description="The values; equal ones within one.", examples=[["a.md", "b.md"]])
    groups: int = Field(description="Groups with both.", examples=[12])


class Example(ResponseModel):
    """A passage of a group."""

    id: str = Field(description="Its id.", examples=["slow-01"])
    place: str = Field(description="Where it is from.", examples=["faq/consumers.md:12"])
    text: str = Field(description="Its beginning.", examples=["Consumers fall behind because …"])
    diff: list[list[str]] | None = Field(
        None,
        description="How it differs from the first, as pairs of same, removed or added, and words.",
        examples=[[["same", "The fee is"], ["removed", "5"], ["added", "6"]]],
    )


class DuplicateGroup(ResponseModel):
    """Passages that repeat each other."""

    kind: Literal["exact", "text", "vectors"] = Field(
        description="Equal texts, nearly the same words, or nearly the same by vectors.", examples=["text"]
    )
    size: int = Field(description="How many passages.", examples=[3])
    ids: list[str] = Field(description="Their ids, 100 at most.", examples=[["slow-01", "slow-02"]])
    examples: list[Example] = Field(description="The first of them.")


class DuplicatesResponse(ResponseModel):
    """The duplicates of a collection."""

    collection: str = Field(description="The collection.", examples=["demo"])
    answer: str = Field(
        description="Whether Dartboard helps, in a sentence.",
        examples=["Of the first 5 passages that a search finds, 2.3 repeat an earlier one …"],
    )
    chunks: int = Field(description="Passages of the collection.", examples=[150])
    exact: int = Field(description="Those whose text is equal to that of another.", examples=[3])
    near: int = Field(description="Further ones that have nearly the same words.", examples=[12])
    similar: int | None = Field(
        description="Further ones that are nearly the same by vectors; null without vectors.", examples=[20]
    )
    similarity: float | None = Field(description="The smallest cosine of those.", examples=[0.83])
    sigma: float | None = Field(description="The median σ of the searches.", examples=[0.07])
    repeats: Repeats | None = Field(
        description="What searches show; null without vectors.",
        examples=[{"queries": 100, "given": False, "k": 5, "top_k": 2.3, "dartboard": 0.1}],
    )
    causes: dict[str, list[Cause]] = Field(
        description="By metadata field, the values that share most groups.", examples=[{}]
    )
    groups_in_all: int = Field(description="How many groups there are.", examples=[9])
    groups: list[DuplicateGroup] = Field(description="The 20 largest.")


router = APIRouter(prefix="/api/dartboard", tags=["collections"], route_class=JsonRoute)


@router.post(
    "/collections/{name}/duplicates",
    operation_id="duplicates",
    response_model=DuplicatesResponse,
    responses={202: {"model": JobStarted, "description": "It takes longer: a job goes on with it."}},
)
async def duplicates(
    name: Name,
    body: DuplicatesRequest,
    request: Request,
    service: ServiceDep,
    key: Annotated[Key | None, Depends(reader)],
) -> Response:
    """Say how redundant a collection is; where that takes longer than a request may, by a job.

    Nothing is changed: `dartboard duplicates --delete` deletes.
    """
    engine = await service.workers.run(service.engines.get, name)
    job = service.jobs.start("duplicates", partial(_report, engine, body), key.id if key else None)
    if not body.background and await ended(job, request, service.settings.timeout - SPARE):
        if job.problem is not None:
            raise job.problem
        if job.result is not None:
            return json_response(job.result)
        raise Unavailable("the comparison was cancelled", code="cancelled")
    return json_response({"job_id": job.id, "status_url": f"/api/dartboard/jobs/{job.id}"}, 202)


def _report(engine: Engine, body: DuplicatesRequest, progress: Progress) -> dict[str, Any]:
    def listen(step: str, done: int, total: int) -> None:
        progress(done, total, step)

    found = engine.duplicates(
        queries=body.queries,
        similarity=body.similarity,
        vectors=body.vectors,
        fields=body.fields,
        listen=listen,
    ).to_json()
    for group in found["groups"]:
        group["ids"] = group["ids"][:100]
    return {"collection": engine.name, **found}
