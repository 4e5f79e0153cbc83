"""Request ids and lines of JSON that never hold what was asked."""

import asyncio
import io
import json
import logging
import re
from types import SimpleNamespace

import httpx
import pytest
from starlette.testclient import TestClient

from dartboard.api import logs
from dartboard.api.app import create_app
from dartboard.api.keys import Keys
from dartboard.api.metrics import Metrics
from dartboard.api.middleware import BodyLimit, Guard
from dartboard.api.settings import ServiceSettings
from tests.api import core_app as core
from tests.api.small_app import BASE, serving, small_app, talk, until

MARK = "zebra9marker"


@pytest.fixture
def lines():
    """Everything that is logged in a test, as the service writes it; loggers as before afterwards."""
    loggers = [
        logging.getLogger(name) for name in (None, "dartboard", "uvicorn", "uvicorn.error", "uvicorn.access")
    ]
    before = [(one, one.level, one.propagate, one.disabled, list(one.handlers)) for one in loggers]
    stream = io.StringIO()
    logs.configure(stream=stream)
    yield lambda: [json.loads(line) for line in stream.getvalue().splitlines()]
    for one, level, propagate, disabled, handlers in before:
        one.setLevel(level)
        one.propagate, one.disabled, one.handlers = propagate, disabled, handlers


def test_a_line_has_what_finds_a_request_again(lines, tmp_path):
    keys = Keys.open(tmp_path / "keys.json", create=True)
    secret = keys.create("page", ["read"])
    client = TestClient(small_app(keys=keys.path), base_url=BASE)
    answer = client.get("/read/a", headers={"X-API-Key": secret, "X-Request-Id": "my-own.id_1"})
    assert answer.headers["x-request-id"] == "my-own.id_1"
    [line] = lines()
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\+00:00", line.pop("time"))
    assert line.pop("ms") > 0
    assert line == {
        "level": "info",
        "logger": "dartboard.access",
        "request_id": "my-own.id_1",
        "method": "GET",
        "route": "/read/{name}",
        "status": 200,
        "key": keys.find(secret).id,
        "bytes": len(answer.content),
    }


@pytest.mark.parametrize("given", ["", "a" * 65, "a b", 'x","y":"z', "ä", "a/b", "<script>"])
def test_other_ids_are_replaced(lines, given):
    client = TestClient(small_app(), base_url=BASE)
    answer = client.get("/read/a", headers={"X-Request-Id": given.encode("latin-1")})
    made = answer.headers["x-request-id"]
    assert re.fullmatch("[0-9a-f]{16}", made)
    assert lines()[0]["request_id"] == made


def test_errors_carry_the_id_too(lines):
    client = TestClient(small_app(), base_url=BASE)
    for path in ("/nothing", "/broken/x"):
        answer = client.get(path)
        assert answer.json()["request_id"] == answer.headers["x-request-id"]
        assert answer.headers["x-content-type-options"] == "nosniff"


def test_nothing_of_a_request_is_logged(lines, tmp_path):
    keys = Keys.open(tmp_path / "keys.json", create=True)
    secret = keys.create("page", ["read", "write"])
    app = small_app(keys=keys.path, body_bytes=1000)
    with TestClient(app, base_url=BASE) as client:
        allowed = {"X-API-Key": secret}
        for path in (f"/read/{MARK}", f"/{MARK}", f"/broken/{MARK}", "/half", f"/plain?{MARK}=1"):
            for headers in ({}, allowed, {"X-API-Key": MARK}, {"Authorization": f"Bearer {MARK}"}):
                client.get(f"{path}{'&' if '?' in path else '?'}q={MARK}", headers=headers)
        for body in (json.dumps({"query": MARK}), f"{{{MARK}", MARK, MARK * 1000, f'"{MARK}"'):
            client.post("/write", content=body, headers={"content-type": "application/json", **allowed})
        for name, value in {
            "X-Request-Id": f"{MARK} {MARK}",
            "Host": MARK,
            "Origin": f"http://{MARK}",
            "User-Agent": MARK,
            "Cookie": MARK,
            "Referer": MARK,
        }.items():
            client.get("/read/a", headers={**allowed, name: value})
        client.request(MARK.upper(), "/read/a", headers=allowed)
    found = lines()
    assert len(found) >= 30 and {line["status"] for line in found} >= {200, 401, 404, 413, 421, 422, 500, 403}
    text = json.dumps(found).lower()
    assert MARK not in text and secret not in text
    assert "testclient" not in text


def test_a_real_server_logs_nothing_more(lines):
    with serving(small_app()) as port:
        head = f"GET /broken/{MARK}?q={MARK} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"
        assert b"500 Internal" in talk(port, head.encode())
        talk(port, f"GET /half?{MARK} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
        talk(port, f"{MARK} / {MARK}\r\n{MARK}\r\n\r\n".encode())
        talk(port, f"GET /{MARK} HTTP/1.1\r\nHost: 127.0.0.1\r\n{MARK}\x01: a\r\n\r\n".encode())
    found = lines()
    assert MARK not in json.dumps(found).lower()
    broken = [line for line in found if line.get("error") == "ZeroDivisionError"]
    assert {line["status"] for line in broken} == {500, 200}
    assert any("small_app.py" in line["trace"][-1] for line in broken)
    assert all(line["level"] == "error" for line in broken)


def test_questions_only_when_switched_on(lines, tmp_path):
    asked = {
        f"{core.BASE}/retrieve": {"query": f"one {MARK}"},
        f"{core.BASE}/retrieve/batch": {"queries": [f"two {MARK}", f"three {MARK}"]},
        f"{core.BASE}/context": {"query": f"context {MARK}"},
        f"{core.BASE}/explore": {"query": f"four {MARK}", "layout": False, "sweep": False},
        "/rerank": {"query": f"five {MARK}", "texts": ["words", "more"]},
        "/v1/rerank": {"query": f"six {MARK}", "documents": ["words", "more"], "model": "m"},
        "/v2/rerank": {"query": f"seven {MARK}", "documents": ["words", "more"], "model": "m"},
    }
    for switched_on in (False, True):
        before = len(lines())
        with core.running(tmp_path, log_queries=switched_on) as client:
            for path, body in asked.items():
                assert client.post(path, json=body).status_code == 200, path
        found = [line for line in lines()[before:] if "route" in line]
        questions = [{name: line[name] for name in ("query", "queries") if name in line} for line in found]
        expected = [
            {name: body[name] for name in body if name in ("query", "queries")} for body in asked.values()
        ]
        assert questions == (expected if switched_on else [{}] * len(asked))


@pytest.mark.parametrize("path", ["retrieve", "ask"])
def test_further_questions_and_those_to_be_answered(lines, tmp_path, path):
    asked = {"query": f"one {MARK}", "also": [f"two {MARK}", f"three {MARK}"]}
    for switched_on in (False, True):
        with core.running(tmp_path, log_queries=switched_on) as client:
            client.post(f"{core.BASE}/{path}", json=asked)
        line = [line for line in lines() if "route" in line][-1]
        assert {name: line[name] for name in asked if name in line} == (asked if switched_on else {})


def test_switched_on_it_still_writes_no_addresses_keys_or_strangers_words(lines, tmp_path):
    keys = Keys.open(tmp_path / "keys.json", create=True)
    secret = keys.create("page", ["read"])
    headers = {"X-API-Key": secret}
    with core.running(tmp_path, keys=keys.path, log_queries=True) as client:
        path = f"{core.BASE}/retrieve"
        client.post(path, json={"query": f"my key is {secret}, help"}, headers=headers)
        client.post(f"{path}?ticket={MARK}", json={"query": "plain"}, headers=headers)
        client.get(f"{core.BASE}/reports/some/index.html?ticket={MARK}")
        client.post(path, json={"query": MARK})
        client.post(path, content=f"[{MARK}", headers={**headers, **core.JSON})
        client.post(path, json=[MARK], headers=headers)
        client.post(path, json={"query": 5, MARK: 1}, headers=headers)
        client.post(path, json={"query": "a" * 5000}, headers=headers)
    found = [line for line in lines() if "route" in line]
    assert [line["status"] for line in found][:2] == [200, 200] and len(found) == 8
    assert found[0]["query"] == "my key is dbk_…, help"
    assert len(found[-1]["query"]) == logs.LONGEST_QUESTION
    text = json.dumps(found)
    assert MARK not in text and secret not in text and secret[13:] not in text


def test_other_loggers_write_json_without_the_words_of_exceptions(lines):
    logger = logging.getLogger("dartboard.something")
    logger.info("loaded %d", 3)
    try:
        raise ValueError(MARK)
    except ValueError:
        logger.exception("failed")
    logging.getLogger("elsewhere").info("not shown")
    first, second = lines()
    assert (first["message"], first["level"]) == ("loaded 3", "info")
    assert second["error"] == "ValueError" and "test_logs.py" in second["trace"][0]
    assert MARK not in json.dumps(second)


HEAD = "POST {} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: {}\r\n"
LEFT = b"Content-Length: 50\r\n\r\n--b"


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/retrieve", "application/json"),
        ("/collections/notes/documents", "application/x-ndjson"),
        ("/collections/notes/files", "multipart/form-data; boundary=b"),
    ],
)
def test_clients_that_leave_are_no_error_of_the_service(lines, tmp_path, path, kind):
    with core.running(tmp_path, collection="notes") as client:
        settings = client.app.state.service.settings
    head = HEAD.format(core.BASE + path, kind).encode()
    with serving(create_app(settings)) as port:
        before = len(lines())
        talk(port, head + LEFT, pause=0.2, read=False)
        until(lambda: any("route" in line for line in lines()[before:]))
        counted = httpx.get(f"http://127.0.0.1:{port}/metrics").text
    [line] = [line for line in lines()[before:] if line.get("method") == "POST"]
    assert (line["status"], line["level"]) == (499, "info")
    assert "error" not in line and "trace" not in line
    assert 'status="499"' in counted and 'status="500"' not in counted
    assert not any(line["level"] == "error" for line in lines()[before:])


def test_what_a_stopping_service_cuts_off_is_told_so(lines):
    app, sent = small_app(), []

    async def cancelled(scope, receive, send):
        raise asyncio.CancelledError

    async def send(message):
        sent.append(message)

    scope = {"type": "http", "method": "GET", "path": "/", "headers": [(b"host", b"localhost")]}
    asyncio.run(Guard(cancelled, app.state.service)(scope, None, send))
    assert sent[0]["status"] == 503
    assert json.loads(sent[1]["body"])["code"] == "stopping"
    [line] = lines()
    assert line["status"] == 503 and "trace" not in line


def test_what_is_no_request_passes():
    seen = []

    async def app(scope, receive, send):
        seen.append(scope["type"])

    service = SimpleNamespace(settings=ServiceSettings(), metrics=Metrics())
    layered = Guard(BodyLimit(app, service.settings), service)
    asyncio.run(layered({"type": "lifespan"}, None, None))
    assert seen == ["lifespan"]
