"""``/collections``: list, look at, make and drop them. Models are the service's own, never a request's."""

import logging
import pathlib
from typing import Annotated, Any, Literal, Self

from fastapi import APIRouter, Path, Response
from pydantic import BaseModel, Field, model_validator

from dartboard.api.authentication import READ, WRITE_INDEX
from dartboard.api.errors import Conflict
from dartboard.api.schemas import RequestModel, Whole, json_body
from dartboard.api.service import Service, ServiceDep, in_thread, in_write_thread
from dartboard.engine import Engine
from dartboard.engine.chunk_writer import chunking_for, stored_chunking
from dartboard.errors import DartboardError
from dartboard.ingest import ChunkingConfig
from dartboard.stores.checks import check_name


class Chunking(RequestModel):
    """How documents are split; sizes in tokens of the model."""

    method: Literal["auto", "sentences", "tokens"] = "auto"
    size: Whole = Field(256, ge=16, le=2048, description="Longest passage.")
    overlap: Whole = Field(32, ge=0, le=512, description="What neighbours share.")

    @model_validator(mode="after")
    def _smaller(self) -> Self:
        if self.overlap >= self.size:
            raise ValueError("overlap must be smaller than size")
        return self


class CreateRequest(RequestModel):
    """A new collection; its model and retriever are those of the service."""

    chunking: Chunking | None = Field(None, description="How its documents are split.")


class CollectionInfo(BaseModel):
    """A collection."""

    name: str
    passages: int
    embedding_model: str
    dimension: int
    retriever: str
    chunking: dict[str, Any] | None = Field(description="Null where that is not known.")
    calibrated: bool = Field(description="Whether σ was calibrated on it.")
    writable: bool = Field(description="Whether documents can be added here.")
    default: bool = Field(description="Whether requests that name none ask it.")


class CollectionList(BaseModel):
    """All collections, by name."""

    collections: list[CollectionInfo]


class Deleted(BaseModel):
    """How many passages are gone."""

    deleted: int


logger = logging.getLogger(__name__)
router = APIRouter(prefix="/api/dartboard", tags=["collections"])
Name = Annotated[str, Path(description="The collection's name.", min_length=1, max_length=200)]


@router.get("/collections", operation_id="list_collections", dependencies=READ)
@in_thread
def collections(service: ServiceDep) -> CollectionList:
    """List the collections."""
    found = []
    for name in service.engines.names():
        try:
            found.append(_described(service, service.engines.get(name)))
        except DartboardError as error:  # it cannot be searched, and must not hide the others
            logger.error("collection %r left out: %s", name, error)
    return CollectionList(collections=found)


@router.get("/collections/{name}", operation_id="get_collection", dependencies=READ)
@in_thread
def collection(name: Name, service: ServiceDep) -> CollectionInfo:
    """Describe a collection."""
    return _described(service, service.engines.get(name))


@router.put(
    "/collections/{name}",
    operation_id="create_collection",
    status_code=201,
    responses={200: {"model": CollectionInfo, "description": "It was there already, made the same way."}},
    dependencies=WRITE_INDEX,
)
@in_write_thread
def create(
    name: Name,
    service: ServiceDep,
    response: Response,
    body: Annotated[CreateRequest, json_body(CreateRequest, optional=True, line="writes")],
) -> CollectionInfo:
    """Make a collection with the service's model. One that is there stays as it is."""
    check_name(name)
    service.engines.check_writable(name)
    made = service.engines.new(name)
    asked = ChunkingConfig(**body.chunking.model_dump()) if body.chunking else None
    wanted = chunking_for(made.model, asked)
    if made.exists:
        response.status_code = 200
        engine = service.engines.get(name)
        if body.chunking and (stored_chunking(engine.collection) or ChunkingConfig()) != wanted:
            raise Conflict("the collection exists already and splits documents another way", code="exists")
        return _described(service, engine)
    settings = {
        "model": service.engines.model_name,
        "chunking": wanted.to_json(),
        "root": str(pathlib.Path.cwd()),
    }
    made.create(settings=settings)
    service.engines.forget(name)
    return _described(service, service.engines.get(name))


@router.delete("/collections/{name}", operation_id="drop_collection", dependencies=WRITE_INDEX)
@in_write_thread
def drop(name: Name, service: ServiceDep) -> Deleted:
    """Drop a collection and all in it."""
    engine = service.engines.writable(name)
    count = engine.collection.count()
    engine.store.drop(name)
    service.engines.forget(name)
    return Deleted(deleted=count)


def _described(service: Service, engine: Engine) -> CollectionInfo:
    manifest = engine.collection.manifest
    return CollectionInfo(
        name=engine.name,
        passages=engine.collection.count(),
        embedding_model=manifest.model_name or manifest.model,
        dimension=manifest.dimension,
        retriever=engine.retriever.name,
        chunking=manifest.settings.get("chunking"),
        calibrated=bool(manifest.settings.get("calibration")),
        writable=service.engines.is_writable(engine.name),
        default=engine.name == service.engines.default,
    )
