"""``/collections``: list, look at, make and drop them. Models are the service's own, never a request's."""

import logging
import pathlib
from typing import Annotated, Any, Literal, Self

from fastapi import APIRouter, Path
from pydantic import Field, model_validator
from starlette.responses import Response

from dartboard.api.error_messages import plain
from dartboard.api.errors import Conflict, Invalid
from dartboard.api.guards.authentication import READ, WRITE
from dartboard.api.json_body import JsonRoute, json_response
from dartboard.api.locks import retry_locked
from dartboard.api.schemas import RequestModel, ResponseModel
from dartboard.api.service import Service, ServiceDep, in_worker, in_write_queue
from dartboard.engine import Engine
from dartboard.engine.chunk_writer import chunking_for, stored_chunking
from dartboard.errors import ConfigError, DartboardError
from dartboard.ingest import ChunkingConfig
from dartboard.stores.checks import check_name


class Chunking(RequestModel):
    """How documents are split; sizes in tokens of the model."""

    method: Literal["auto", "sentences", "tokens"] = Field(
        "auto", description="Where to cut.", examples=["auto"]
    )
    size: int = Field(256, ge=16, le=2048, description="Longest passage.", examples=[256])
    overlap: int = Field(32, ge=0, le=512, description="What neighbours share.", examples=[32])

    @model_validator(mode="after")
    def _smaller(self) -> Self:
        if self.overlap >= self.size:
            raise ValueError("overlap must be smaller than size")
        return self


class CreateRequest(RequestModel):
    """A new collection; its model and retriever are those of the service."""

    chunking: Chunking = Field(
        default_factory=lambda: Chunking.model_validate({}),
        description="How its documents are split.",
        examples=[{"size": 256, "overlap": 32}],
    )


class CollectionInfo(ResponseModel):
    """A collection."""

    name: str = Field(description="Its name.", examples=["default"])
    passages: int = Field(description="How many passages it has.", examples=[10000])
    embedding_model: str = Field(
        description="The model that made its vectors.", examples=["all-MiniLM-L6-v2"]
    )
    dimension: int = Field(description="The length of its vectors.", examples=[384])
    retriever: str = Field(description="Who finds candidates in it.", examples=["hybrid"])
    chunking: dict[str, Any] | None = Field(
        description="How its documents are split; null where that is not known.",
        examples=[{"method": "auto", "size": 256, "overlap": 32, "smallest": 32}],
    )
    calibrated: bool = Field(description="Whether σ was calibrated on it.", examples=[False])
    writable: bool = Field(description="Whether documents can be added.", examples=[True])
    default: bool = Field(description="Whether requests that name none ask it.", examples=[True])


class CollectionList(ResponseModel):
    """All collections."""

    collections: list[CollectionInfo] = Field(description="By name.")


class Deleted(ResponseModel):
    """What is gone."""

    deleted: int = Field(description="Passages that were deleted.", examples=[3])


logger = logging.getLogger(__name__)

router = APIRouter(prefix="/api/dartboard", tags=["collections"], route_class=JsonRoute)

Name = Annotated[
    str, Path(description="The collection's name.", examples=["handbook"], min_length=1, max_length=200)
]


@router.get("/collections", operation_id="list_collections", response_model=CollectionList, dependencies=READ)
@in_worker
def collections(service: ServiceDep) -> Response:
    """List the collections."""
    found = []
    for name in service.engines.names():
        try:
            found.append(_described(service, service.engines.get(name)))
        except DartboardError as error:  # it cannot be searched, and must not hide the others
            logger.error("collection %r left out: %s", name, error)
    return json_response({"collections": found})


@router.get(
    "/collections/{name}", operation_id="get_collection", response_model=CollectionInfo, dependencies=READ
)
@in_worker
def collection(name: Name, service: ServiceDep) -> Response:
    """Describe a collection."""
    return json_response(_described(service, service.engines.get(name)))


@router.put(
    "/collections/{name}",
    operation_id="create_collection",
    response_model=CollectionInfo,
    status_code=201,
    responses={200: {"model": CollectionInfo, "description": "It was there already, made the same way."}},
    dependencies=WRITE,
)
@in_write_queue
def create(name: Name, service: ServiceDep, body: CreateRequest | None = None) -> Response:
    """Make a collection with the service's model. One that is there stays as it is."""
    try:
        check_name(name)
    except ConfigError as error:
        raise Invalid(plain(str(error)), field="name") from None
    service.engines.check_writable(name)
    wanted = ChunkingConfig(**(body or CreateRequest()).chunking.model_dump())
    with service.write_lock.held():
        made = service.engines.new(name)
        wanted = chunking_for(made.model, None if body is None else wanted)
        there = made.exists
        if not there:
            settings = {"model": service.engines.model_name, "chunking": wanted.to_json()}
            settings |= {"root": str(pathlib.Path.cwd())}
            retry_locked(lambda: made.create(settings=settings))
            service.engines.forget(name)
    engine = service.engines.get(name)
    if there and body is not None and (stored_chunking(engine.collection) or ChunkingConfig()) != wanted:
        raise Conflict("the collection exists already and splits documents another way", code="exists")
    return json_response(_described(service, engine), 200 if there else 201)


@router.delete(
    "/collections/{name}", operation_id="drop_collection", response_model=Deleted, dependencies=WRITE
)
@in_write_queue
def drop(name: Name, service: ServiceDep) -> Response:
    """Drop a collection and all in it."""
    engine = service.engines.writable(name)
    with service.write_lock.held():
        count = engine.collection.count()
        retry_locked(lambda: engine.store.drop(name))
    service.engines.forget(name)
    return json_response({"deleted": count})


def _described(service: Service, engine: Engine) -> dict[str, Any]:
    manifest = engine.collection.manifest
    return {
        "name": engine.name,
        "passages": engine.collection.count(),
        "embedding_model": manifest.model_name or manifest.model,
        "dimension": manifest.dimension,
        "retriever": engine.retriever.name,
        "chunking": manifest.settings.get("chunking"),
        "calibrated": bool(manifest.settings.get("calibration")),
        "writable": not service.engines.is_demo(engine.name),
        "default": engine.name == service.engines.default,
    }
