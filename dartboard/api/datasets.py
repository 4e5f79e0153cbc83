"""``GET /datasets``: what there is to measure with; ``GET /questions``: what to ask the demo corpus."""

from functools import lru_cache
from typing import Annotated, Any

from fastapi import APIRouter, Depends
from starlette.responses import Response

from dartboard.api.auth import reader
from dartboard.api.json_body import answer
from dartboard.api.schemas.evaluate import DatasetList, DemoQuestions
from dartboard.api.service import Service, service_of
from dartboard.datasets import demo
from dartboard.datasets.catalogue import find_datasets, list_datasets

router = APIRouter(prefix="/api/dartboard", tags=["evaluate"], dependencies=[Depends(reader)])


@router.get("/datasets", operation_id="list_datasets", response_model=DatasetList)
async def datasets(service: Annotated[Service, Depends(service_of)]) -> Response:
    """List the data sets that can be evaluated on, with their sizes."""
    return await service.run(_datasets)


@router.get("/questions", operation_id="demo_questions", response_model=DemoQuestions)
async def questions() -> Response:
    """Questions that the demo corpus was made for."""
    return answer({"questions": [{"text": one.text, "wants": one.wants} for one in demo.questions()]})


def _datasets() -> Response:
    there = tuple((entry.name, str(entry.path), entry.path.stat().st_mtime_ns) for entry in find_datasets())
    return answer({"datasets": _listed(there)})


@lru_cache(maxsize=4)
def _listed(there: tuple[tuple[str, str, int], ...]) -> list[dict[str, Any]]:
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
        for info in list_datasets()
    ]
