"""One of several processes behind a port: it searches, changes nothing, and allows its share of a rate."""

import pytest
from fastapi.testclient import TestClient

from dartboard.api import ServiceSettings, create_app
from dartboard.engine import Engine, index_paths

REFUSED = [
    ("PUT", "/api/dartboard/collections/new", {}),
    ("DELETE", "/api/dartboard/collections/default", None),
    ("POST", "/api/dartboard/collections/default/documents", {"documents": []}),
    ("POST", "/api/dartboard/evaluate", {"dataset_name": "synthetic_clustered", "background": True}),
]


@pytest.fixture
def client(tmp_path):
    store = str(tmp_path / "i.dartboard")
    (tmp_path / "cats.md").write_text("Cats sleep on mats.\n")
    with Engine.open(store) as engine:
        index_paths(engine, tmp_path / "cats.md")
    settings = ServiceSettings(
        store=store, home=tmp_path / "home", demo=False, processes=2, hosts=("testserver",)
    )
    with TestClient(create_app(settings)) as client:
        yield client


def test_searches_and_sees_what_others_write(client, tmp_path):
    def found(query):
        asked = client.post("/api/dartboard/retrieve", json={"query": query, "top_k": 1})
        return asked.json()["results"][0]["text"]

    assert "Cats" in found("where do cats sleep?")
    (tmp_path / "dogs.md").write_text("Dogs bark at night.\n")
    with Engine.open(str(tmp_path / "i.dartboard")) as engine:
        index_paths(engine, tmp_path / "dogs.md")
    assert "Dogs" in found("when do dogs bark?")


@pytest.mark.parametrize(("method", "path", "body"), REFUSED, ids=[path for _, path, _ in REFUSED])
def test_changes_and_tasks_are_refused(client, tmp_path, method, path, body):
    refused = client.request(method, path, json=body)
    assert (refused.status_code, refused.json()["code"]) == (409, "read_only"), refused.text
    assert not (tmp_path / "home").exists()


def test_what_changes_no_index_is_done(client, tmp_path):
    base = "/api/dartboard"
    [collection] = client.get(f"{base}/collections").json()["collections"]
    assert collection["writable"] is False
    chunk = client.post(f"{base}/retrieve", json={"query": "cats"}).json()["results"][0]["chunk_id"]
    case = {"name": "mine", "query": "where do cats sleep?", "relevant": [chunk]}
    assert client.post(f"{base}/cases", json=case).status_code == 201
    measured = client.post(f"{base}/evaluate", json={"dataset_name": "synthetic_clustered"})
    assert measured.json()["num_queries"] == 20, measured.text
    assert client.post(f"{base}/collections/default/duplicates", json={}).json()["chunks"] == 1
