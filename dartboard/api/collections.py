"""``/collections``: list, look at, make and drop them. Models are the service's own, never a request's."""

import logging
import pathlib
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path
from starlette.responses import Response

from dartboard.api.auth import reader, writer
from dartboard.api.errors import Conflict, Invalid
from dartboard.api.json_body import JsonRoute, answer
from dartboard.api.schemas.documents import CollectionInfo, CollectionList, CreateRequest, Deleted
from dartboard.api.service import Service, service_of
from dartboard.api.wording import plain
from dartboard.api.writing import demo_is_read_only, our_turn, when_free, writable
from dartboard.engine import Engine
from dartboard.engine.chunk_writer import stored_chunking
from dartboard.errors import ConfigError, DartboardError
from dartboard.ingest import ChunkingConfig
from dartboard.stores.checks import check_name

logger = logging.getLogger(__name__)

router = APIRouter(prefix="/api/dartboard", tags=["collections"], route_class=JsonRoute)

Name = Annotated[
    str, Path(description="The collection's name.", examples=["handbook"], min_length=1, max_length=200)
]


@router.get(
    "/collections",
    operation_id="list_collections",
    response_model=CollectionList,
    dependencies=[Depends(reader)],
)
async def collections(service: Annotated[Service, Depends(service_of)]) -> Response:
    """List the collections."""
    return await service.run(_list, service)


@router.get(
    "/collections/{name}",
    operation_id="get_collection",
    response_model=CollectionInfo,
    dependencies=[Depends(reader)],
)
async def collection(name: Name, service: Annotated[Service, Depends(service_of)]) -> Response:
    """Describe a collection."""
    return await service.run(_get, service, name)


@router.put(
    "/collections/{name}",
    operation_id="create_collection",
    response_model=CollectionInfo,
    status_code=201,
    responses={200: {"model": CollectionInfo, "description": "It was there already, made the same way."}},
    dependencies=[Depends(writer)],
)
async def create(
    name: Name, service: Annotated[Service, Depends(service_of)], body: CreateRequest | None = None
) -> Response:
    """Make a collection with the service's model. One that is there stays as it is."""
    return await service.writes.run(_create, service, name, body)


@router.delete(
    "/collections/{name}",
    operation_id="drop_collection",
    response_model=Deleted,
    dependencies=[Depends(writer)],
)
async def drop(name: Name, service: Annotated[Service, Depends(service_of)]) -> Response:
    """Drop a collection and all in it."""
    return await service.writes.run(_drop, service, name)


def _list(service: Service) -> Response:
    found = []
    for name in service.engines.names():
        try:
            found.append(_described(service, service.engines.get(name)))
        except DartboardError as error:  # it cannot be searched, and must not hide the others
            logger.error("collection %r left out: %s", name, error)
    return answer({"collections": found})


def _get(service: Service, name: str) -> Response:
    return answer(_described(service, service.engines.get(name)))


def _create(service: Service, name: str, body: CreateRequest | None) -> Response:
    try:
        check_name(name)
    except ConfigError as error:
        raise Invalid(plain(str(error)), field="name") from None
    if service.engines.is_demo(name):
        raise demo_is_read_only()
    wanted = ChunkingConfig(**(body or CreateRequest()).chunking.model_dump())
    with our_turn(service):
        made = service.engines.new(name)
        there = made.exists
        if not there:
            settings = {"model": service.engines.model_name, "chunking": wanted.to_json()}
            settings |= {"root": str(pathlib.Path.cwd())}
            when_free(lambda: made.create(settings=settings))
            service.engines.forget(name)
    engine = service.engines.get(name)
    if there and body is not None and (stored_chunking(engine.collection) or ChunkingConfig()) != wanted:
        raise Conflict("the collection exists already and splits documents another way", code="exists")
    return answer(_described(service, engine), 200 if there else 201)


def _drop(service: Service, name: str) -> Response:
    engine = writable(service, name)
    with our_turn(service):
        count = engine.collection.count()
        when_free(lambda: engine.store.drop(name))
    service.engines.forget(name)
    return answer({"deleted": count})


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
