"""Bodies that are too large or too slow, with and without a length."""

import time

import pytest
from starlette.testclient import TestClient

from dartboard.api.keys import Keys
from dartboard.api.middleware import WITHOUT_KEY
from tests.api.small_app import BASE, serving, small_app, talk

LIMIT = 1000
DOCUMENTS = "/api/dartboard/collections/mine/documents"


@pytest.fixture(scope="module")
def app():
    return small_app(body_bytes=LIMIT, upload_bytes=5 * LIMIT)


@pytest.fixture(scope="module")
def client(app):
    return TestClient(app, base_url=BASE)


def pieces(total, size=100):
    for _ in range(total // size):
        yield b" " * size


def head(path, *more):
    lines = (f"POST {path} HTTP/1.1", "Host: 127.0.0.1", "Content-Type: application/json", *more)
    return "\r\n".join((*lines, "", "")).encode()


def json_of(length):
    return b'{"a":"' + b"x" * (length - 8) + b'"}'


@pytest.mark.parametrize("chunked", [False, True])
@pytest.mark.parametrize(("length", "status"), [(LIMIT, 200), (LIMIT + 1, 413), (100 * LIMIT, 413)])
def test_bytes_are_counted_with_and_without_a_length(client, length, status, chunked):
    body = json_of(length)
    content = iter([body[:500], body[500:]]) if chunked else body
    answer = client.post("/write", content=content, headers={"content-type": "application/json"})
    assert answer.status_code == status
    if status == 413:
        assert answer.headers["content-type"] == "application/problem+json"
        assert answer.json()["code"] == "too_large" and "1000" in answer.json()["detail"]
        assert answer.json()["request_id"] == answer.headers["x-request-id"]
        assert "xxx" not in answer.text
        assert answer.headers["x-content-type-options"] == "nosniff"


def test_streamed_routes_have_their_own_limit(client):
    assert client.post(DOCUMENTS, content=pieces(5 * LIMIT)).json() == {"bytes": 5 * LIMIT}
    assert client.post(DOCUMENTS, content=pieces(6 * LIMIT)).status_code == 413
    assert client.post(DOCUMENTS + "/delete", content=pieces(2 * LIMIT)).status_code in (404, 413)


def test_a_length_that_is_too_large_is_refused_before_a_byte_is_read(app):
    with serving(app) as port:
        for length in (LIMIT + 1, 10**15):
            answer = talk(port, head("/write", f"Content-Length: {length}"))
            assert answer.startswith(b"HTTP/1.1 413") and b"connection: close" in answer.lower()


def test_a_chunked_body_is_stopped_as_it_comes(app):
    chunk = b"64\r\n" + b"y" * 100 + b"\r\n"
    with serving(app) as port:
        answer = talk(port, head("/write", "Transfer-Encoding: chunked"), *[chunk] * 11, pause=0.01)
        assert answer.startswith(b"HTTP/1.1 413") and b"yyy" not in answer


@pytest.mark.parametrize("path", ["/write", DOCUMENTS])
def test_a_slow_body_is_given_up(path):
    app = small_app(body_bytes=LIMIT, upload_bytes=5 * LIMIT, timeout=0.5)  # timing: has to run out
    with serving(app) as port:
        began = time.monotonic()
        answer = talk(port, head(path, "Content-Length: 900"), b"{", b" ", pause=0.1)
        assert answer.startswith(b"HTTP/1.1 408") and b"too_slow" in answer
        assert time.monotonic() - began >= 0.4  # timing: a slow machine takes longer


def test_a_client_that_leaves_in_the_middle_breaks_nothing(app):
    with serving(app) as port:
        talk(port, head("/write", "Content-Length: 900") + b"{", read=False)
        whole = head("/write", "Connection: close", "Content-Length: 2") + b"{}"
        assert b"200 OK" in talk(port, whole)


@pytest.mark.parametrize("chunked", [False, True])
def test_without_a_key_only_a_small_body_gets_in(tmp_path, chunked):
    keys = Keys.open(tmp_path / "keys.json", create=True)
    known = {"X-API-Key": keys.create("indexer", ["read", "write"])}
    client = TestClient(small_app(keys=keys.path), base_url=BASE)

    def post(length, **headers):
        body = json_of(length)
        content = iter([body[:500], body[500:]]) if chunked else body
        return client.post("/write", content=content, headers={"content-type": "application/json", **headers})

    assert post(2 * WITHOUT_KEY, **known).status_code == 200
    for headers in ({}, {"X-API-Key": "wrong"}):
        refused = post(2 * WITHOUT_KEY, **headers)
        assert refused.status_code == 401
        assert post(1000, **headers).status_code == 401
