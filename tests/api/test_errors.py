"""Errors have one shape: status by class, code, field; nothing of the machine, and never very much."""

import pytest
from fastapi import FastAPI
from starlette.exceptions import HTTPException
from starlette.testclient import TestClient

from dartboard import errors as library
from dartboard.api.errors import ApiError, Invalid, as_api_error, install, problem
from tests.api.core_app import BASE, JSON, refused, running

SECRET = "/srv/secret/index.dartboard"


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    with running(tmp_path_factory.mktemp("errors")) as client:
        yield client


@pytest.mark.parametrize(
    ("error", "status", "shown"),
    [
        (library.InvalidInputError("no chunk 'a' here", field="must_include"), 422, True),
        (library.ConfigError("k must be >= 1, got -1", field="k"), 422, True),
        (library.IngestError("the file cannot be read"), 422, True),
        (library.CollectionError("no collection 'a': there are none yet"), 404, True),
        (library.MissingExtraError("pypdf", "docs", "reading PDF"), 501, True),
        (library.DatasetError(f"put it into {SECRET}"), 422, False),
        (library.StoreLockedError(f"{SECRET} is being written"), 409, False),
        (library.StoreFormatError(f"{SECRET} is damaged"), 503, False),
        (library.StoreError(f"{SECRET} was closed"), 503, False),
        (library.StoreUnavailableError(f"{SECRET} is gone"), 503, False),
        (library.EndpointError(f"{SECRET} refused"), 503, False),
        (library.ModelError(f"{SECRET} is no model"), 503, False),
        (library.DeadlineError("out of time"), 504, False),
    ],
)
def test_library_errors(error, status, shown):
    made = as_api_error(error)
    assert (made.status, made.code) == (status, error.code)
    assert (made.message == str(error)) == shown and SECRET not in made.message
    assert [one["field"] for one in made.errors] == ([error.field] if error.field else [])


@pytest.mark.parametrize(
    ("path", "sent", "fields"),
    [
        ("/retrieve", {"query": " "}, {"query"}),
        ("/retrieve", {"query": "a", "corpus_ids": [""]}, {"corpus_ids.0"}),
        ("/retrieve", {"query": "a", "collection": "a" * 201}, {"collection"}),
        ("/retrieve", {"query": "a", "must_include": ["a"] * 1001}, {"must_include"}),
        ("/retrieve", {"query": "a", "filter": []}, {"where"}),
        ("/retrieve", {"query": 5, "explain": 1}, {"query", "explain"}),
        ("/retrieve", {"query": "a", "<b>": 1}, {"<b>"}),
        ("/retrieve", [], {"body"}),
        ("/retrieve/batch", {"queries": []}, {"queries"}),
        (
            "/evaluate",
            {"dataset_name": "a", "systems": ["run:/etc/passwd"], "config": {"top_k": 1.5}},
            {"config.top_k", "systems.0"},
        ),
        ("/evaluate", {"dataset_name": "a", "systems": ["mmr-" + "1" * 99]}, {"systems.0"}),
        ("/cases", {"name": "../a", "query": "a", "relevant": ["a"]}, {"name"}),
    ],
)
def test_fields_are_named(client, path, sent, fields):
    said = refused(client.post(BASE + path, json=sent), 422)
    assert {one["field"] for one in said["errors"]} == fields and all(
        one["message"] for one in said["errors"]
    )


def test_a_byte_order_mark_is_called_what_it_is(client):
    sent = b'\xef\xbb\xbf{"query": "a"}'
    refused(client.post(f"{BASE}/retrieve", content=sent, headers=JSON), 422, "byte order mark")
    refused(client.post(f"{BASE}/retrieve", content=b'"\xff"', headers=JSON), 422)


def test_a_filter_is_pointed_at(client):
    for filter in ("year ~ 3", "a = 1 b = 2", {"field": "a", "op": "in", "value": 5}, {"ids": 5}):
        said = refused(client.post(f"{BASE}/retrieve", json={"query": "a", "filter": filter}), 422)
        assert [one["field"] for one in said["errors"]] == ["where"]


def test_rerank_clients_find_the_message_where_they_look(client):
    assert refused(client.post("/v2/rerank", json={}), 422)["message"]
    assert "message" not in refused(client.post(f"{BASE}/retrieve", json={}), 422)


def test_a_problem_of_any_status():
    response = problem(ApiError("gone", status=499, code="odd"), {"state": {"request_id": "abc"}})
    assert response.status_code == 499
    assert b'"title":"Error"' in response.body
    assert Invalid("no", field="a").errors == [{"field": "a", "message": "no"}]


def test_http_errors_of_the_framework():
    app = FastAPI()
    install(app)

    @app.get("/teapot")
    def teapot():
        raise HTTPException(418, SECRET, headers={"x-odd": "1"})

    response = TestClient(app).get("/teapot")
    assert response.status_code == 418
    assert response.headers["x-odd"] == "1"
    assert SECRET not in response.text


def test_addresses_and_methods_that_are_not_there(tmp_path):
    with running(tmp_path, demo=False) as client:
        assert SECRET not in refused(client.get(f"{BASE}{SECRET}"), 404)["detail"]
        refused(client.get(f"{BASE}/retrieve"), 405)
        refused(client.get("/healthz", headers={"host": "evil.example"}), 421)
        refused(
            client.post(f"{BASE}/retrieve", content=b"x" * 10, headers={"content-length": "999999999"}), 413
        )


def test_what_nobody_foresaw_says_nothing(tmp_path, monkeypatch):
    with running(tmp_path, demo=False) as client:
        monkeypatch.setattr(
            client.app.state.service.engines, "names", lambda: (_ for _ in ()).throw(KeyError(SECRET))
        )
        response = client.get(f"{BASE}/collections")
        assert response.status_code == 500
        assert response.json()["code"] == "internal"
        assert SECRET not in response.text


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/retrieve", {"query": "a", **{f"x{number}": 1 for number in range(300_000)}}),
        ("/retrieve/batch", {"queries": [1] * 900_000}),
        ("/retrieve", {"query": "a", "exclude": [None] * 900_000}),
        ("/select", {"embeddings": [[None] * 900_000], "query": [1.0]}),
        ("/select", {"embeddings": [[1.0]], "query": [1.0], "texts": [5] * 900_000}),
    ],
)
def test_one_body_of_many_errors_is_told_a_few(client, path, body):
    response = client.post(f"{BASE}{path}", json=body)
    assert response.status_code == 422
    assert len(response.json()["errors"]) <= 20
    assert len(response.content) < 5_000
