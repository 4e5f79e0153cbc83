"""A real service with a store of its own, and short names for what tests do with it."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from starlette.testclient import TestClient

from dartboard.api.app import create_app
from dartboard.api.settings import ServiceSettings

BASE = "/api/dartboard"
JSON = {"content-type": "application/json"}
NDJSON = {"content-type": "application/x-ndjson"}
QUESTION = "Why are our consumers falling behind?"

LEAVE = "You earn two days of leave a month. Unused leave is paid out in March."
PAY = "Salaries are paid on the last Friday of the month."
REMOTE = "Work from anywhere for up to sixty days a year; tell your lead a week before."


@contextmanager
def running(folder: Path, *, collection: str | None = None, **options) -> Iterator[TestClient]:
    """A client of a started service; ``collection`` is made, empty."""
    given = {"store": str(folder / "index.dartboard"), "home": folder / "home"} | options
    with TestClient(create_app(ServiceSettings(**given)), base_url="http://127.0.0.1") as client:
        if collection:
            assert client.put(f"{BASE}/collections/{collection}").status_code == 201
        yield client


def upsert(client: TestClient, collection: str, *documents: dict, **options):
    body = "".join(json.dumps(document) + "\n" for document in documents)
    return client.post(
        f"{BASE}/collections/{collection}/documents",
        content=body,
        headers=NDJSON | options.get("headers", {}),
    )


def retrieve(client: TestClient, query: str = QUESTION, **options):
    return client.post(f"{BASE}/retrieve", json={"query": query, **options})


def ids(response) -> list[str]:
    assert response.status_code == 200, response.text
    return [result["chunk_id"] for result in response.json()["results"]]


def refused(response, status: int, *words: str) -> dict:
    """The problem that a response is, checked for its shape."""
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/problem+json"
    problem = response.json()
    assert set(problem) - {"message"} == {"title", "status", "code", "detail", "errors", "request_id"}
    assert problem["status"] == status
    assert problem["request_id"] == response.headers["x-request-id"]
    for word in words:
        assert word in problem["detail"], problem
    return problem
