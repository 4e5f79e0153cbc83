"""In a crowd searches are turned away before they are read; everything that is no search still comes in."""

import time

import pytest
from fastapi.testclient import TestClient

from dartboard.api import create_app
from dartboard.api.guards.admission_control import CONTROLLED
from dartboard.api.settings import ServiceSettings

NONSENSE = b"{ this is no JSON"


@pytest.fixture(scope="module")
def client():
    with TestClient(create_app(ServiceSettings(queue=0)), base_url="http://127.0.0.1") as client:
        yield client


def crowd(client) -> None:
    """Half a second in which everybody is refused."""
    now = time.monotonic()
    for step in range(50):
        client.app.state.service.workers._overload.refused(now - 0.5 + step / 100)


def test_every_path_of_the_door_is_an_operation(client):
    known = client.get("/openapi.json").json()["paths"]
    assert all("post" in known[path] for path in CONTROLLED)


def test_in_a_crowd_a_search_is_refused_before_it_is_read(client):
    calm = [client.post(path, content=NONSENSE).status_code for path in sorted(CONTROLLED)]
    assert set(calm) == {415}, "read, and found to be no JSON"
    for path in sorted(CONTROLLED):
        crowd(client)
        refused = client.post(path, content=NONSENSE)
        assert refused.status_code == 429
        assert int(refused.headers["Retry-After"]) >= 1
        assert refused.json()["code"] == "busy"
        assert refused.headers["X-Request-Id"]
        assert refused.headers["X-Content-Type-Options"] == "nosniff"


def test_what_is_no_search_comes_in(client):
    crowd(client)
    assert client.get("/healthz").status_code == 200
    assert client.get("/api/dartboard/datasets").status_code == 200
    assert 'dartboard_rejected_total{reason="busy"}' in client.get("/metrics").text
