"""A real service over a store of its own, for the endpoints behind the pages."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fastapi import FastAPI
from starlette.testclient import TestClient

from dartboard.api.app import create_app
from dartboard.api.endpoints.admin import status_of
from dartboard.api.keys import Keys
from dartboard.api.settings import ServiceSettings
from tests.waiting import PATIENCE

BASE = "/api/dartboard"


def make_app(folder: Path, **options) -> FastAPI:
    return create_app(ServiceSettings(store=str(folder / "index.db"), home=folder / "home", **options))


@contextmanager
def running(folder: Path, *, collection: str | None = "notes", **options) -> Iterator[TestClient]:
    """A client of a started service, with an empty collection."""
    app = make_app(folder, **options)
    with TestClient(app, base_url="http://127.0.0.1") as client:
        if collection:
            app.state.service.engines.new(collection).create()
        yield client


def keys_of(folder: Path) -> tuple[Path, dict[str, dict[str, str]]]:
    """A key file, and headers for a reader and for a writer."""
    path = folder / "keys.json"
    keys = Keys.open(path, create=True)
    secrets = {"reader": keys.create("r", ["read"]), "writer": keys.create("w", ["read", "write"])}
    return path, {name: {"Authorization": f"Bearer {secret}"} for name, secret in secrets.items()}


def finished(client: TestClient, accepted: dict) -> dict:
    """The job that an upload started, when it has ended."""
    job = client.app.state.service.jobs.get(accepted["job_id"])
    assert job.ended.wait(PATIENCE)
    return status_of(job).model_dump()
