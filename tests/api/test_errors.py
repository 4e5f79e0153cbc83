"""Errors have one shape and hold nothing of the request, of the machine, or of the store."""

import pytest
from fastapi import FastAPI
from hypothesis import given
from hypothesis import strategies as st
from starlette.exceptions import HTTPException
from starlette.testclient import TestClient

from dartboard import errors as library
from dartboard.api.error_messages import field_errors, plain
from dartboard.api.errors import ApiError, Invalid, as_api_error, install, problem
from tests.api.core_app import BASE, JSON, refused, running

SECRET = "/srv/secret/index.dartboard"


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    with running(tmp_path_factory.mktemp("errors")) as client:
        yield client


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (library.InvalidInputError(f"no chunk '{SECRET}' here"), 422, "invalid_input"),
        (library.ConfigError(f"k must be >= 1, got {SECRET!r}"), 422, "invalid_input"),
        (library.IngestError(f"there is no file '{SECRET}'"), 422, "invalid_input"),
        (library.DatasetError(f"put it into {SECRET}"), 422, "invalid_input"),
        (library.CollectionError(f"no collection '{SECRET}': there are none yet"), 404, "not_found"),
        (library.CollectionError(f"collection '{SECRET}' exists already: open it"), 409, "exists"),
        (library.StoreLockedError(f"{SECRET} is being written"), 409, "store_locked"),
        (library.StoreFormatError(f"{SECRET} is damaged"), 503, "unusable"),
        (library.StoreError(f"{SECRET} was closed"), 503, "unusable"),
        (library.StoreUnavailableError(f"{SECRET} is gone"), 503, "unavailable"),
        (library.EndpointError(f"{SECRET} refused"), 503, "unavailable"),
        (library.ModelError(f"{SECRET} is no model"), 503, "unusable"),
        (library.DeadlineError("out of time"), 504, "timed_out"),
        (library.MissingExtraError("pypdf", "docs", "reading PDF"), 501, "not_installed"),
    ],
)
def test_library_errors_in_our_terms(error, status, code):
    made = as_api_error(error)
    assert (made.status, made.code) == (status, code)
    assert SECRET not in made.message
    assert len(made.message) > 10


def test_a_missing_extra_names_its_command():
    message = as_api_error(library.MissingExtraError("pypdf", "docs", "reading PDF")).message
    assert library.install_command("docs") in message


@pytest.mark.parametrize(
    ("message", "left"),
    [
        ("k must be >= 1, got -5", "k must be >= 1"),
        ("unknown method 'x y': choose one of a, b", "unknown method …: choose one of a, b"),
        ('chunk "it\'s" is both', "chunk … is both"),
        (
            "a budget needs each candidate's tokens, and a user's",
            "a budget needs each candidate's tokens, and a user's",
        ),
        ("sigma must be a number or 'auto', got 'b'", "sigma must be a number or 'auto'"),
        ("a name is printable, got 'cut off here", "a name is printable"),
        ("filter: cannot read at '' of 'a b'", "filter: cannot read at … of …"),
        ("filter: cannot read at character 6 (near '~ 3' in 'a ~ 3')", "filter: cannot read at character 6"),
        ("filter: expected a value at the end (of 'a =')", "filter: expected a value at the end"),
    ],
)
def test_quoted_parts_go(message, left):
    assert plain(message) == left


@given(
    st.text(min_size=3, max_size=30).filter(lambda text: text.strip() not in ("...", "…") and "…" not in text)
)
def test_no_quoted_text_survives(text):
    if text in (
        "auto",
        "text",
        "field",
        "value",
        "exists",
        "year",
        "mmr",
        "not",
        "and",
        "hybrid",
        "cosine",
        "top_k",
    ):
        return
    left = plain(f"no chunk {text!r} in the collection: check must_include")
    assert left == "no chunk … in the collection: check must_include"


def test_fields_are_named_by_what_is_ours():
    errors = [
        {"type": "extra_forbidden", "loc": ("body", "<script>"), "msg": "x"},
        {"type": "float_type", "loc": ("body", "sigma", "float"), "msg": "Input should be a valid number"},
        {
            "type": "literal_error",
            "loc": ("body", "sigma", "literal['auto']"),
            "msg": "Input should be 'auto'",
        },
        {"type": "missing", "loc": ("body",), "msg": "Field required"},
        {"type": "value_error", "loc": ("body", "ids", 3), "msg": "Value error, too many"},
    ]
    assert field_errors(errors) == [
        {"field": "(a field)", "message": "there is no such field: see /openapi.json"},
        {"field": "sigma", "message": "should be a number or should be 'auto'"},
        {"field": "body", "message": "is required"},
        {"field": "ids.3", "message": "too many"},
    ]


@pytest.mark.parametrize(
    ("path", "sent", "said"),
    [
        ("/retrieve", {"query": " "}, {"query": "is empty, or nothing but space"}),
        ("/retrieve", {"query": "a", "corpus_ids": [""]}, {"corpus_ids.0": "is empty"}),
        (
            "/retrieve",
            {"query": "a", "collection": "a" * 201},
            {"collection": "should have at most 200 characters"},
        ),
        (
            "/retrieve",
            {"query": "a", "must_include": ["a"] * 1001},
            {"must_include": "should have at most 1000 entries"},
        ),
        ("/retrieve", {"query": "a", "filter": []}, {"filter": "should be text or should be a JSON object"}),
        (
            "/retrieve",
            {"query": 5, "explain": 1},
            {"query": "should be text", "explain": "should be true or false"},
        ),
        ("/retrieve", [], {"body": "should be a JSON object"}),
        ("/retrieve/batch", {"queries": []}, {"queries": "is empty: give at least one"}),
        (
            "/evaluate",
            {"dataset_name": "a", "metrics": ["A B"], "systems": ["mmr"], "config": {"top_k": 1.5}},
            {
                "config.top_k": "should be a whole number",
                "metrics.0": "should be a measure such as ndcg or ndcg@10",
                "systems.0": "should be a system such as cosine, mmr-0.7, dedup-0.90, dartboard, "
                "dartboard-0.09, dense, bm25, colbert, hybrid, rrf, random or oracle",
            },
        ),
        (
            "/evaluate",
            {"dataset_name": "a", "systems": ["mmr-" + "1" * 99]},
            {"systems.0": "should have at most 40 characters"},
        ),
        (
            "/cases",
            {"name": "../a", "query": "a", "relevant": ["a"]},
            {
                "name": "should be 1 to 64 letters, digits, dots, dashes or underscores, "
                "a letter or digit first"
            },
        ),
    ],
)
def test_the_framework_is_put_into_plain_words(client, path, sent, said):
    problem = refused(client.post(BASE + path, json=sent), 422)
    assert {one["field"]: one["message"] for one in problem["errors"]} == said


def test_a_byte_order_mark_is_called_what_it_is(client):
    sent = b'\xef\xbb\xbf{"query": "a"}'
    refused(
        client.post(f"{BASE}/retrieve", content=sent, headers=JSON),
        422,
        "the body begins with a byte order mark",
    )
    refused(
        client.post(f"{BASE}/retrieve", content=b'"\xff"', headers=JSON), 422, "the body is not valid UTF-8"
    )


def test_a_field_is_not_named_twice():
    assert Invalid("filter: cannot read", field="filter").errors[0]["message"] == "cannot read"
    limited = Invalid("query is limited to 9 tokens here", field="query")
    assert limited.errors[0]["message"] == "is limited to 9 tokens here"
    assert limited.message == "query is limited to 9 tokens here"
    assert Invalid("kind of", field="k").errors[0]["message"] == "kind of"


@pytest.mark.parametrize(
    ("filter", "said"),
    [
        ("year ~ 3", "cannot read at character 6"),
        ("secret = 1 other = 2", "expected and, or, or the end at character 12"),
        ("secret =", "expected a value at the end"),
        ("secret > true", "… > needs a number or text, not true/false"),
        ({"field": "secret", "op": "in", "value": 5}, "… in takes a list of values"),
        ({"ids": 5}, '"ids" takes a list of ids'),
    ],
)
def test_a_filter_is_pointed_at_and_not_repeated(client, filter, said):
    problem = refused(client.post(f"{BASE}/retrieve", json={"query": "a", "filter": filter}), 422)
    assert problem["detail"] == f"filter: {said}"
    assert problem["errors"] == [{"field": "filter", "message": said}]


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
