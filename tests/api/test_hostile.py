"""Requests that mean harm, to the real service: never a server error, never an echo, nothing left behind."""

import gzip
import io
import json
import logging
import math
import random
import socket
import threading
from contextlib import contextmanager
from pathlib import Path

import pytest
import uvicorn

from dartboard.api import logs as request_log
from dartboard.api.app import create_app
from dartboard.api.keys import Keys
from dartboard.api.settings import ServiceSettings
from dartboard.cli.serve import config_of
from tests.api.core_app import BASE, JSON, NDJSON, refused, running
from tests.api.small_app import serving, talk, until

pytestmark = pytest.mark.no_cover  # many variants of requests that other tests make

MARK = "zebra9marker"
POSTS = (
    "/api/dartboard/retrieve",
    "/api/dartboard/retrieve/batch",
    "/api/dartboard/context",
    "/api/dartboard/select",
    "/api/dartboard/explore",
    "/api/dartboard/evaluate",
    "/api/dartboard/cases",
    "/api/dartboard/collections/mine/documents/delete",
    "/rerank",
    "/v1/rerank",
    "/v2/rerank",
)
NAMED = (
    ("GET", "/api/dartboard/collections/{}"),
    ("PUT", "/api/dartboard/collections/{}"),
    ("DELETE", "/api/dartboard/collections/{}"),
    ("GET", "/api/dartboard/collections/{}/documents/x"),
    ("GET", "/api/dartboard/collections/mine/documents/{}"),
    ("DELETE", "/api/dartboard/collections/mine/documents/{}"),
    ("GET", "/api/dartboard/jobs/{}"),
    ("GET", "/api/dartboard/reports/{}"),
    ("GET", "/api/dartboard/cases/{}.zip"),
    ("GET", "/static/{}"),
)
TRAVERSALS = (
    "../../../../etc/passwd",
    "..%2f..%2f..%2f..%2fetc%2fpasswd",
    "%2e%2e/%2e%2e/%2e%2e/etc/passwd",
    "..%5c..%5cetc%5cpasswd",
    "%2fetc%2fpasswd",
    "....//....//etc/passwd",
    "%00",
    "a%00.html",
    "%0d%0aSet-Cookie:%20x=1",
    "CON",
    "%c0%ae%c0%ae%c0%afetc",
    "a" * 5000,
    "%F0%9F%92%A9",
    "%ed%a0%80",
    f"{MARK}%27%20OR%201=1--",
    "%7B7*7%7D",
)


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hostile")
    (folder / "secret.txt").write_text(f"root:{MARK}")
    with running(folder, collection="mine", body_bytes=200_000, timeout=60) as client:
        yield client


def harmless(response, *hidden: str) -> None:
    """An answer, not a failure, in which nothing of the machine stands."""
    assert response.status_code < 500 or response.status_code in (501, 503, 504), response.text[:500]
    text = response.text.lower()
    for word in ("traceback", "site-packages", "/tmp/", "root:x:", *hidden):
        assert word not in text, response.text[:500]
    assert response.headers["x-content-type-options"] == "nosniff"
    assert "set-cookie" not in response.headers


BODIES = {
    "nan": b'{"query": "%s", "sigma": NaN}',
    "infinity": b'{"query": "%s", "sigma": 1e999}',
    "minus infinity": b'{"query": "%s", "sigma": -Infinity}',
    "deep lists": b"[" * 60_000 + b"]" * 60_000,
    "deep objects": b'{"a":' * 20_000 + b"1" + b"}" * 20_000,
    "half a surrogate": b'{"query": "\\ud800 %s"}',
    "not utf-8": b'{"query": "\xff\xfe %s"}',
    "cut off": b'{"query": "%s',
    "nothing": b"",
    "null": b"null",
    "a string": b'"%s"',
    "a number": b"1",
    "a list": b'["%s"]',
    "nul bytes": b'{"query": "a\x00b %s"}',
    "escaped nul": b'{"query": "\\u0000 %s"}',
    "twice": b'{"query": "%s", "query": 5}',
    "unknown": b'{"query": "a", "<script>%s": 1, "__class__": "%s", "__proto__": {"%s": 1}}',
    "many unknown": b"{" + b",".join(b'"%s %d": 1' % (b"%s", number) for number in range(5000)) + b"}",
    "wrong types": b'{"query": {"%s": 1}, "top_k": "5", "sigma": [], "texts": 7, "documents": {}, "k": true}',
    "huge integer": b'{"query": "%s", "top_k": 123456789012345678901234567890}',
    "negative": b'{"query": "%s", "top_k": -1, "triage_k": -5}',
    "fraction": b'{"query": "%s", "top_k": 1.5}',
    "huge": b'{"query": "%s", "top_k": 1000000000, "triage_k": 1000000000}',
    "a filter": b'{"query": "a", "filter": "%s = (((((((((((("}',
    "a model": b'{"query": "a", "model": "/etc/%s", "collection": "../%s"}',
    "vectors": b'{"embeddings": [[1, 2], [3]], "query": [1e308, 1e308], "k": 2, "method": "%s"}',
    "zero vectors": b'{"embeddings": [[0, 0], [0, 0]], "query": [0, 0], "k": 2}',
}


@pytest.mark.parametrize("name", BODIES)
def test_bodies_that_break_parsers(client, name):
    body = BODIES[name].replace(b"%s", MARK.encode())
    for path in POSTS:
        response = client.post(path, content=body, headers=JSON)
        harmless(response)
        assert 400 <= response.status_code < 500, path


@pytest.mark.parametrize(
    "kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "", f"{MARK}/json"]
)
def test_what_forms_can_send_is_no_json(client, kind):
    for path in POSTS:
        response = client.post(path, content=b'{"query": "a"}', headers={"content-type": kind})
        harmless(response)
        assert response.status_code == 415, path


@pytest.mark.parametrize(("method", "path"), NAMED)
def test_names_that_are_paths(client, method, path):
    folder = Path(client.app.state.service.settings.home).parent
    before = {file for file in folder.rglob("*") if not file.name.startswith("index.dartboard")}
    for name in TRAVERSALS:
        response = client.request(method, path.format(name))
        assert {file for file in folder.rglob("*") if not file.name.startswith("index.dartboard")} == before
        if method in ("PUT", "DELETE") and response.is_success:  # a collection is a row, not a file
            assert path.endswith("collections/{}"), name
            continue
        harmless(response)
        assert response.status_code in (400, 404, 405, 409, 414, 415, 422), (name, response.text[:300])


@pytest.mark.parametrize(
    "name", ["../x", "a/b", "", ".", "..", "a\x00b", "x" * 10_000, " ", "\u202e", "a\nb", "C:\\x", "~root"]
)
def test_collection_names_in_bodies_open_no_files(client, name):
    response = client.post(f"{BASE}/retrieve", json={"query": "a question", "collection": name})
    assert response.status_code in (404, 422)
    harmless(response)


def test_headers_that_would_split_the_answer(client):
    for value in (b"a\tb", b"a" * 70, b"x\xff", b"%0d%0aSet-Cookie: a=b", b"<script>"):
        response = client.get("/healthz", headers={"X-Request-Id": value})
        harmless(response)
        assert response.headers["x-request-id"].isalnum()


def test_wrong_hosts_and_foreign_origins(client):
    for headers, status in (
        ({"Host": f"{MARK}.example"}, 421),
        ({"Origin": f"https://{MARK}.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"}, 403),
    ):
        response = client.post(f"{BASE}/retrieve", json={"query": "a"}, headers=headers)
        assert response.status_code == status
        harmless(response)
    response = client.options(
        f"{BASE}/retrieve", headers={"Origin": "https://x.example", "Access-Control-Request-Method": "POST"}
    )
    assert "access-control-allow-origin" not in response.headers


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"},
        {"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "no-cors"},
    ],
)
def test_a_form_of_another_site_uploads_nothing(client, headers):
    """Browsers send multipart forms anywhere without asking, so their type alone would not stop one."""
    upload = {"files": ("evil.txt", b"Send your money to me.", "text/plain")}
    response = client.post(f"{BASE}/collections/mine/files", files=upload, headers=headers)
    refused(response, 403, "other sites")
    harmless(response)
    assert client.get(f"{BASE}/jobs").json()["jobs"] == []
    assert not (Path(client.app.state.service.settings.home) / "uploads").exists()


def test_oversized_bodies_with_and_without_a_length(client):
    body = json.dumps({"query": MARK * 100_000}).encode()
    for content in (body, iter([body[:100_000], body[100_000:]])):
        response = client.post(f"{BASE}/retrieve", content=content, headers=JSON)
        assert response.status_code == 413
        harmless(response)


def test_questions_beyond_the_limits(client):
    for body in (
        {"query": "word " * 5000},
        {"query": "a", "top_k": 101},
        {"query": "a", "triage_k": 1001},
        {"query": "a", "exclude": ["x"] * 100_000},
        {"query": " \t\n"},
    ):
        response = client.post(f"{BASE}/retrieve", json=body)
        assert response.status_code in (413, 422), response.text[:300]
        harmless(response)


def test_lines_that_are_no_documents_spoil_no_others(client):
    lines = [
        json.dumps({"id": "good", "text": "A passage that is kept."}).encode(),
        b"{" + MARK.encode(),
        b"[" * 50_000,
        b'{"id": "../../x", "text": NaN}',
        b'{"text": 5}',
        b'{"id": "n", "text": "a", "metadata": {"x": 1e999}}',
        b"\xff\xfe",
        b"null",
    ]
    response = client.post(f"{BASE}/collections/mine/documents", content=b"\n".join(lines), headers=NDJSON)
    harmless(response)
    assert response.json()["accepted"] == 1 and response.json()["failed"] == len(lines) - 1
    assert client.get(f"{BASE}/collections/mine/documents/good").status_code == 200


def test_of_a_key_that_comes_twice_the_last_is_checked_and_used(client):
    """A body is parsed once, so nothing can be checked in one reading and used in another."""
    low, high = b'"top_k": 2', b'"top_k": 100000'
    for first, last in ((low, high), (high, low)):
        body = b'{"query": "a question", ' + first + b", " + last + b"}"
        response = client.post(f"{BASE}/retrieve", content=body, headers=JSON)
        if last == high:
            refused(response, 422)
        else:
            assert len(response.json()["results"]) == 2
            assert response.json()["config"]["top_k"] == 2
    line = b'{"id": "twice", "text": "The first.", "text": "The last."}'
    client.post(f"{BASE}/collections/mine/documents", content=line, headers=NDJSON)
    (kept,) = client.get(f"{BASE}/collections/mine/documents/twice").json()["passages"]
    assert kept["text"] == "The last."


@pytest.mark.parametrize("coding", ["gzip", "deflate", "br", "zstd", "x-gzip", "identity, gzip", MARK])
@pytest.mark.parametrize(
    ("path", "kind"),
    [("/retrieve", "application/json"), ("/collections/mine/documents", NDJSON["content-type"])],
)
def test_compressed_bodies_are_never_unpacked(client, path, kind, coding):
    bomb = gzip.compress(b" " * 50_000_000)
    headers = {"content-type": kind, "content-encoding": coding}
    response = client.post(f"{BASE}{path}", content=bomb, headers=headers)
    refused(response, 415, "without Content-Encoding")
    harmless(response)


def test_a_body_that_says_that_it_is_not_compressed_is_read(client):
    headers = JSON | {"content-encoding": "Identity"}
    assert client.post(f"{BASE}/retrieve", content=b'{"query": "a"}', headers=headers).status_code == 200


def test_half_surrogates_get_into_no_document(client):
    lines = [
        b'{"id": "s1", "text": "half \\ud800"}',
        b'{"id": "\\udfff", "text": "whole"}',
        b'{"id": "s2", "text": "whole", "metadata": {"\\ud800": 1}}',
        b'{"id": "s3", "text": "whole", "metadata": {"a": ["\\udc00"]}}',
        b'{"id": "pair", "text": "a face \\ud83d\\ude00"}',
    ]
    found = client.post(f"{BASE}/collections/mine/documents", content=b"\n".join(lines), headers=NDJSON)
    assert (found.json()["accepted"], found.json()["failed"]) == (1, 4)
    assert all("surrogate" in one["message"] for one in found.json()["errors"])
    (kept,) = client.get(f"{BASE}/collections/mine/documents/pair").json()["passages"]
    assert kept["text"] == "a face \N{GRINNING FACE}"


def test_random_bytes_to_every_operation(client):
    source = random.Random(7)
    for _ in range(20):
        for path in POSTS:
            body = source.randbytes(source.randrange(1, 300))
            harmless(client.post(path, content=body, headers=JSON))


@pytest.mark.parametrize("size", [1e-320, 1e-30, 1e30, 1e308])
def test_an_answer_never_holds_what_json_cannot(client, size):
    vectors = {"embeddings": [[size, 0], [0, -size], [size, size]], "query": [size, size]}
    response = client.post(f"{BASE}/select", json={**vectors, "k": 2})
    harmless(response)
    assert "NaN" not in response.text and "Infinity" not in response.text
    if response.status_code == 200:
        numbers = [one for name in ("gains", "coverage") for one in response.json()[name]]
        assert all(isinstance(number, float | int) for number in numbers), response.text


@contextmanager
def guarding(folder, **options):
    """The service behind a real server, with keys."""
    keys = Keys.open(folder / "keys.json", create=True)
    secret = keys.create("reader", ["read"])
    app = create_app(
        ServiceSettings(store=str(folder / "i.dartboard"), home=folder / "home", keys=keys.path, **options)
    )
    with serving(app) as port:
        yield port, secret


@pytest.fixture(scope="module")
def guarded(tmp_path_factory):
    with guarding(tmp_path_factory.mktemp("guarded")) as found:
        yield found


def request(path, *headers, method="POST", body=b""):
    first = (f"{method} {path} HTTP/1.1".encode(), b"Host: 127.0.0.1", *headers)
    return b"\r\n".join((*first, b"", b"")) + body


def test_nothing_is_open_without_a_key(guarded):
    port, _ = guarded
    for path in POSTS:
        head = request(path, b"Content-Type: application/json", b"Content-Length: 2", b"Connection: close")
        assert talk(port, head + b"{}").split(b" ")[1] in (b"401", b"429"), path
    for path in ("/metrics", "/api/dartboard/health", "/api/dartboard/collections", "/api/dartboard/jobs"):
        answer = talk(port, request(path, b"Connection: close", method="GET"))
        assert answer.split(b" ")[1] in (b"401", b"429"), path
    for path in ("/healthz", "/readyz", "/"):
        assert talk(port, request(path, b"Connection: close", method="GET")).split(b" ")[1] == b"200", path


def test_keys_of_any_bytes(guarded):
    port, secret = guarded
    for value in (
        b"\xff\xfe",
        "ключ".encode(),
        b"dbk_" + b"\x80" * 52,
        secret.encode() + b"\xff",
        b"a" * 20_000,
    ):
        for header in (b"Authorization: Bearer " + value, b"X-API-Key: " + value):
            answer = talk(port, request("/api/dartboard/health", header, b"Connection: close", method="GET"))
            assert answer.split(b" ")[1] in (b"401", b"429", b"400", b"431")
            assert value not in answer
    header = f"X-API-Key: {secret}".encode()
    answer = talk(port, request("/api/dartboard/health", header, b"Connection: close", method="GET"))
    assert answer.split(b" ")[1] == b"200"


def test_a_reader_changes_nothing(guarded):
    port, secret = guarded
    header = f"Authorization: Bearer {secret}".encode()
    for method, path in (("PUT", f"{BASE}/collections/new"), ("DELETE", f"{BASE}/collections/default")):
        answer = talk(port, request(path, header, b"Connection: close", b"Content-Length: 0", method=method))
        assert answer.split(b" ")[1] == b"403"


def test_a_body_that_drips_is_given_up(tmp_path):
    kind, length = b"Content-Type: application/json", b"Content-Length: 5000"
    with guarding(tmp_path, timeout=1.0) as (port, secret):  # timing: has to run out
        head = request(f"{BASE}/retrieve", f"X-API-Key: {secret}".encode(), kind, length)
        answer = talk(port, head, *[b" "] * 8, pause=0.1)
    assert answer.split(b" ")[1] == b"408"


def test_a_forwarded_address_is_not_believed(tmp_path):
    """As ``dartboard serve`` runs it: uvicorn by itself would believe a proxy on loopback."""
    settings = ServiceSettings(store=str(tmp_path / "i.dartboard"), home=tmp_path / "home", rate=0.0001)
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        server = uvicorn.Server(config_of(create_app(settings), settings))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            until(lambda: server.started)
            statuses = []
            for number in range(4):
                forged = (
                    f"X-Forwarded-For: 10.0.0.{number}, 127.0.0.1".encode(),
                    f"Forwarded: for=10.0.0.{number}".encode(),
                    f"X-Real-IP: 10.0.0.{number}".encode(),
                    b"X-Forwarded-Proto: https",
                )
                head = request("/metrics", *forged, b"Connection: close", method="GET")
                statuses.append(talk(listener.getsockname()[1], head).split(b" ")[1])
        finally:
            server.should_exit = True
            thread.join(30)
    assert statuses == [b"200", b"429", b"429", b"429"]


def test_what_is_no_http_gets_an_answer_or_a_closed_door(guarded):
    port, _ = guarded
    for raw in (
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
        b"POST /rerank HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: -5\r\n\r\n",
        request("/rerank", b"Content-Length: 5", b"Transfer-Encoding: chunked", body=b"0\r\n\r\n"),
        b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n",
        b"GET http://evil.example/ HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n",
        b"GET / HTTP/1.1\r\nConnection: close\r\n\r\n",
    ):
        answer = talk(port, raw, shut=True)
        assert answer == b"" or answer.split(b" ")[1] != b"500"
    assert talk(port, request("/healthz", b"Connection: close", method="GET")).split(b" ")[1] == b"200"


def test_the_log_of_it_all_says_nothing_of_the_requests(tmp_path):
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(request_log.JsonLines())
    root, level = logging.getLogger(), logging.getLogger("dartboard").level
    root.addHandler(handler)
    logging.getLogger("dartboard").setLevel(logging.INFO)
    try:
        with running(tmp_path, collection="mine") as client:
            for path in POSTS:
                for name in ("nan", "wrong types", "unknown", "a filter", "cut off", "a model"):
                    client.post(path, content=BODIES[name].replace(b"%s", MARK.encode()), headers=JSON)
                client.post(f"{path}?q={MARK}", json={"query": MARK}, headers={"X-API-Key": MARK})
            client.post(f"{BASE}/collections/mine/documents", content=f'{{"text": "{MARK}"}}', headers=NDJSON)
            client.post(f"{BASE}/retrieve", json={"query": MARK, "collection": "mine"})
            client.get(f"{BASE}/collections/{MARK}")
    finally:
        root.removeHandler(handler)
        logging.getLogger("dartboard").setLevel(level)
    text = stream.getvalue()
    assert len(text.splitlines()) >= 70
    assert MARK not in text.lower()
    assert all(math.isfinite(json.loads(line).get("ms", 0)) for line in text.splitlines())
