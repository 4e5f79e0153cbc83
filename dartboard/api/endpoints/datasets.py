"""``GET /datasets``: what there is to measure with; ``GET /questions``: what to ask the demo corpus."""

from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from fastapi import APIRouter
from pydantic import Field
from starlette.responses import Response

from dartboard.api.guards.authentication import READ
from dartboard.api.json_body import json_response
from dartboard.api.schemas import ResponseModel
from dartboard.api.service import Service, ServiceDep, in_worker
from dartboard.datasets import demo
from dartboard.datasets.catalogue import data_root, find_datasets, list_datasets


class DatasetEntry(ResponseModel):
    """A data set that is there."""

    name: str = Field(description="Its name, for `/evaluate`.", examples=["synthetic_clustered"])
    num_chunks: int = Field(description="Passages.", examples=[100])
    num_queries: int = Field(description="Judged queries.", examples=[20])
    type: Literal["synthetic", "real"] = Field(description="Made, or collected.", examples=["synthetic"])
    format: str = Field(description="How it is written.", examples=["synthetic"])
    splits: list[str] = Field(description="Its splits, the one that is taken first.", examples=[[]])
    usable: bool = Field(description="Whether it can be read.", examples=[True])


class DatasetList(ResponseModel):
    """The data sets that are there."""

    datasets: list[DatasetEntry] = Field(description="By name, synthetic ones first.")


class DemoQuestion(ResponseModel):
    """A question to the demo corpus."""

    text: str = Field(description="The question.", examples=["Why are our consumers falling behind?"])
    wants: str = Field(description="What a good set of passages covers.", examples=["five causes, once each"])


class DemoQuestions(ResponseModel):
    """Questions to begin with."""

    questions: list[DemoQuestion] = Field(description="The main one first.")


router = APIRouter(prefix="/api/dartboard", tags=["evaluate"], dependencies=READ)


@router.get("/datasets", operation_id="list_datasets", response_model=DatasetList)
@in_worker
def datasets(service: ServiceDep) -> Response:
    """List the data sets that can be evaluated on, with their sizes; saved cases are among them."""
    roots = roots_by_name(service)
    listed = _listed(data_root(), _state(data_root()))
    cases = service.settings.home / "cases"
    saved = [
        one
        for one in _listed(cases, _state(cases))
        if one["type"] == "real" and roots.get(one["name"]) == cases
    ]
    return json_response({"datasets": [*listed, *saved]})


@router.get("/questions", operation_id="demo_questions", response_model=DemoQuestions)
async def questions() -> Response:
    """Questions that the demo corpus was made for."""
    return json_response({"questions": [{"text": one.text, "wants": one.wants} for one in demo.questions()]})


def roots_by_name(service: Service) -> dict[str, Path]:
    """The folder of every data set that is there: that of data sets, then that of saved cases."""
    found: dict[str, Path] = {}
    for root in (data_root(), service.settings.home / "cases"):
        for entry in find_datasets(root):
            found.setdefault(entry.name, root)
    return found


def _state(root: Path) -> tuple[tuple[str, str, int], ...]:
    """What changes when a data set does."""
    return tuple(
        (entry.name, str(entry.path), entry.path.stat().st_mtime_ns) for entry in find_datasets(root)
    )


@lru_cache(maxsize=8)
def _listed(root: Path, there: tuple[tuple[str, str, int], ...]) -> list[dict[str, Any]]:
    """Sizes are counted once: a corpus may have millions of lines. Where files lie is not told."""
    return [
        {
            "name": info.name,
            "num_chunks": info.num_chunks,
            "num_queries": info.num_queries,
            "type": info.type,
            "format": info.format,
            "splits": list(info.splits),
            "usable": info.problem is None,
        }
        for info in list_datasets(root)
    ]
