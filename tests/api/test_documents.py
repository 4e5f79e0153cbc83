"""Documents over HTTP: a stream in, one out, some away; a bad line spoils nothing."""

import asyncio
import json
import threading

import pytest

from dartboard.api.app import create_app
from dartboard.api.errors import Stopping
from dartboard.api.upsert import Line, lines_of
from tests.api.core_app import BASE, JSON, LEAVE, NDJSON, PAY, REMOTE, ids, refused, retrieve, running, upsert
from tests.api.small_app import serving, talk, until


@pytest.fixture
def client(tmp_path):
    with running(tmp_path, collection="notes", line_bytes=5000, documents=50) as client:
        yield client


def passages(client, id: str, collection: str = "notes"):
    return client.get(f"{BASE}/collections/{collection}/documents/{id}")


def test_documents_are_kept_split_and_found(client):
    long = " ".join(f"Sentence number {i} says something about topic {i % 7}." for i in range(90))
    report = upsert(
        client,
        "notes",
        {"id": "handbook/leave.md", "text": LEAVE, "metadata": {"year": 2024, "title": "Leave"}},
        {"text": PAY},
        {"id": "long", "text": long},
    ).json()
    assert (report["accepted"], report["failed"], report["errors"]) == (3, 0, [])
    assert report["chunks"] == sum(one["chunks"] for one in report["documents"]) > 3
    assert [one["line"] for one in report["documents"]] == [1, 2, 3]
    assert report["documents"][1]["id"].startswith("doc-")
    kept = passages(client, "handbook/leave.md").json()
    assert [one["text"] for one in kept["passages"]] == [LEAVE]
    assert {"year": 2024, "title": "Leave", "source": "handbook/leave.md"}.items() <= kept["passages"][0][
        "metadata"
    ].items()
    pieces = passages(client, "long").json()
    assert [one["metadata"]["position"] for one in pieces["passages"]] == list(range(len(pieces["passages"])))
    assert not pieces["truncated"]
    found = retrieve(client, "how many days of leave?", collection="notes", top_k=1)
    assert ids(found) == [kept["passages"][0]["chunk_id"]]
    assert ids(retrieve(client, "leave", collection="notes", corpus_ids=["long"], top_k=1))[0].startswith(
        "long#"
    )


def test_a_bad_line_is_named_and_spoils_nothing(client):
    body = b"\n".join(
        [
            json.dumps({"id": "a", "text": LEAVE}).encode(),
            b"",
            b"not json",
            b'{"text": NaN}',
            b'{"id": "b"}',
            b'{"text": "  "}',
            b'{"text": 5}',
            b'{"text": "a", "more": 1}',
            b'{"text": "a\\u0000b"}',
            b'{"text": "a", "metadata": {"n": 123456789012345678901}}',
            b'{"text": "a", "metadata": {"n": 12345678901234567}}',
            b'{"text": "a", "metadata": {"": 1}}',
            b'{"text": "a", "metadata": ' + b'{"a":' * 20 + b"1" + b"}" * 21,
            b'{"text": "' + b"x" * 6000 + b'"}',
            b'{"text": "\xff"}',
            b"[]",
            json.dumps({"id": "z", "text": PAY}).encode(),
        ]
    )
    report = client.post(f"{BASE}/collections/notes/documents", content=body, headers=NDJSON).json()
    assert report["accepted"] == 2
    assert [one["id"] for one in report["documents"]] == ["a", "z"]
    assert [one["line"] for one in report["errors"]] == list(range(3, 17))
    said = {one["line"]: one["message"] for one in report["errors"]}
    assert "column 1" in said[3]
    assert said[5] == "text: Field required"
    assert "more: there is no such field" in said[8]
    assert "longer than 5000 bytes" in said[14]
    assert said[6] == "text: is empty, or nothing but space"
    assert "not JSON" in said[15]
    assert "dictionary" in said[16]
    assert report["failed"] == len(report["errors"])


def test_answers_line_by_line_where_asked(client):
    response = upsert(
        client, "notes", {"id": "a", "text": LEAVE}, {"id": "b"}, headers={"accept": "application/x-ndjson"}
    )
    assert response.headers["content-type"] == "application/x-ndjson"
    first, second, summary = map(json.loads, response.text.splitlines())
    assert first == {"line": 1, "id": "a", "chunks": 1}
    assert second == {"line": 2, "message": "text: Field required"}
    assert summary == {"accepted": 1, "chunks": 1, "failed": 1}


def test_the_same_id_replaces(client):
    long = " ".join(f"Old sentence {i} is here to stay for a while." for i in range(90))
    upsert(client, "notes", {"id": "a", "text": long}, {"id": "b", "text": PAY})
    assert len(passages(client, "a").json()["passages"]) > 1
    upsert(client, "notes", {"id": "a", "text": LEAVE, "metadata": {"v": 1}})
    assert [one["text"] for one in passages(client, "a").json()["passages"]] == [LEAVE]
    upsert(client, "notes", {"id": "a", "text": LEAVE, "metadata": {"v": 2}})
    assert [one["metadata"]["v"] for one in passages(client, "a").json()["passages"]] == [2]
    assert [one["text"] for one in passages(client, "b").json()["passages"]] == [PAY]
    report = upsert(client, "notes", {"id": "c", "text": PAY}, {"id": "c", "text": REMOTE}).json()
    assert report["accepted"] == 2
    assert [one["text"] for one in passages(client, "c").json()["passages"]] == [REMOTE]


def test_metadata_of_our_own_names_is_kept_beside(client):
    upsert(client, "notes", {"id": "a", "text": LEAVE, "metadata": {"source": "x", "position": 9, "page": 3}})
    metadata = passages(client, "a").json()["passages"][0]["metadata"]
    assert {
        "source": "a",
        "source_": "x",
        "position": 0,
        "position_": 9,
        "page": 3,
    }.items() <= metadata.items()


def test_deleting(client):
    upsert(
        client,
        "notes",
        {"id": "a", "text": LEAVE, "metadata": {"year": 2019}},
        {"id": "b/c", "text": PAY, "metadata": {"year": 2021}},
        {"id": "d", "text": REMOTE, "metadata": {"year": 2023}},
    )
    place = f"{BASE}/collections/notes/documents"
    assert client.delete(f"{place}/b/c").json() == {"deleted": 1}
    refused(client.delete(f"{place}/b/c"), 404)
    refused(passages(client, "b/c"), 404)
    chunk = passages(client, "d").json()["passages"][0]["chunk_id"]
    assert passages(client, chunk.replace("#", "%23")).json()["passages"][0]["chunk_id"] == chunk
    assert client.post(f"{place}/delete", json={"filter": "year < 2020"}).json() == {"deleted": 1}
    assert client.post(f"{place}/delete", json={"ids": [chunk, "nothing"]}).json() == {"deleted": 1}
    assert ids(retrieve(client, "leave", collection="notes")) == []
    refused(client.post(f"{place}/delete", json={}), 422, "one of the two")
    refused(client.post(f"{place}/delete", json={"ids": ["a"], "filter": "a = 1"}), 422, "one of the two")
    refused(client.post(f"{place}/delete", json={"filter": "a ="}), 422)


def test_what_cannot_be_written_to(client):
    refused(upsert(client, "demo", {"text": "a"}), 409, "demo")
    refused(client.delete(f"{BASE}/collections/demo/documents/slow-01"), 409, "demo")
    refused(upsert(client, "nowhere", {"text": "a"}), 404)
    xml = {"content-type": "application/xml"}
    refused(client.post(f"{BASE}/collections/notes/documents", content=b"<a/>", headers=xml), 415)


def test_no_more_lines_than_allowed(client):
    lines = [{"id": f"d{i}", "text": f"text {i}"} for i in range(60)]
    refused(upsert(client, "notes", *lines), 413, "50 lines", "50 kept")
    assert passages(client, "d49").status_code == 200
    refused(passages(client, "d50"), 404)


def test_lines_arrive_in_any_pieces():
    data = b'{"a": 1}\n\n  \r\n{"b": 2}\r\n' + b"x" * 30 + b'\n{"c": 3}'
    for size in (1, 2, 3, 7, 1000):

        async def parts(size=size):
            for start in range(0, len(data), size):
                yield data[start : start + size]

        async def gathered(parts=parts):
            return [line async for line in lines_of(parts(), 20)]

        assert asyncio.run(gathered()) == [
            Line(1, b'{"a": 1}'),
            Line(4, b'{"b": 2}\r'),
            Line(5, None),
            Line(6, b'{"c": 3}'),
        ]


def test_a_client_that_leaves_keeps_what_was_taken(tmp_path):
    with running(tmp_path, collection="notes") as client:
        app = client.app
    app = create_app(app.state.service.settings)
    with serving(app) as port:
        head = (
            f"POST {BASE}/collections/notes/documents HTTP/1.1\r\nHost: 127.0.0.1\r\n"
            "Content-Type: application/x-ndjson\r\nTransfer-Encoding: chunked\r\n\r\n"
        ).encode()
        lines = b"".join(
            json.dumps({"id": f"d{i}", "text": f"text {i}"}).encode() + b"\n" for i in range(130)
        )
        collection = app.state.service.engines.get("notes").collection
        talk(
            port,
            head,
            b"%x\r\n%s\r\n" % (len(lines), lines),
            read=False,
            before_leaving=lambda: collection.count() >= 64,
        )
        until(lambda: app.state.service.writes.running == 0)
        assert collection.count() in (64, 128)


def test_two_uploads_at_once(client):
    def send(name):
        reports.append(
            upsert(client, "notes", *({"id": f"{name}{i}", "text": f"{name} {i}"} for i in range(40)))
        )

    reports: list = []
    threads = [threading.Thread(target=send, args=(name,)) for name in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [report.json()["accepted"] for report in reports] == [40, 40]
    assert client.get(f"{BASE}/collections/notes").json()["passages"] == 80


def test_a_busy_moment_does_not_break_an_upload(tmp_path):
    with running(tmp_path, collection="notes", workers=1, queue=0) as client:
        service, go = client.app.state.service, threading.Event()
        busy = client.portal.start_task_soon(service.searches.run, go.wait, 60)
        until(lambda: service.searches.running == 1)
        try:
            refused(retrieve(client), 429)
            assert upsert(client, "notes", {"id": "a", "text": LEAVE}).json()["accepted"] == 1
        finally:
            go.set()
            assert busy.result() is True


def test_an_upload_that_shutdown_cuts_off_is_told_what_is_kept(tmp_path, caplog):
    with running(tmp_path, collection="notes") as client:
        settings = client.app.state.service.settings
    app = create_app(settings)
    service = app.state.service
    lines = b"".join(json.dumps({"id": f"d{i}", "text": f"text {i}"}).encode() + b"\n" for i in range(130))
    head = (
        f"POST {BASE}/collections/notes/documents HTTP/1.1\r\nHost: 127.0.0.1\r\n"
        "Content-Type: application/x-ndjson\r\nTransfer-Encoding: chunked\r\n\r\n"
    ).encode()
    answers = []
    with serving(app, grace=1) as port:
        body = b"%x\r\n%s\r\n" % (len(lines), lines)
        sender = threading.Thread(target=lambda: answers.append(talk(port, head, body)))
        sender.start()
        collection = service.engines.get("notes").collection
        until(lambda: collection.count() >= 128 and service.writes.running == 0)
    sender.join(30)
    first, _, body = answers[0].partition(b"\r\n\r\n")
    assert first.startswith(b"HTTP/1.1 503 ") and b"retry-after" in first.lower()
    problem = json.loads(body)
    assert problem["code"] == "stopping" and "at least 128 documents of it are kept" in problem["detail"]
    assert not any(record.exc_info for record in caplog.records)
    with running(tmp_path) as client:
        kept = client.get(f"{BASE}/collections/notes").json()["passages"]
    assert kept >= 128


def test_an_upload_that_finds_the_workers_stopping_is_told_what_is_kept(tmp_path, monkeypatch):
    async def stopping(*_):
        raise Stopping

    with running(tmp_path, collection="notes") as client:
        monkeypatch.setattr("dartboard.api.endpoints.documents._take_all", stopping)
        refused(upsert(client, "notes", {"text": LEAVE}), 503, "at least 0 documents", "send all of it again")


def test_documents_are_listed_by_pages(tmp_path):
    with running(tmp_path, collection="notes") as client:
        place = f"{BASE}/collections/notes/documents"
        assert client.get(place).json() == {"documents": [], "total": 0}
        upsert(client, "notes", {"id": "pay.md", "text": PAY}, {"id": "leave.md", "text": "word. " * 900})
        listed = client.get(place).json()
        assert [one["id"] for one in listed["documents"]] == ["leave.md", "pay.md"]
        assert listed["total"] == 2 and listed["documents"][0]["passages"] > 1
        second = client.get(place, params={"offset": 1, "limit": 1}).json()
        assert [one["id"] for one in second["documents"]] == ["pay.md"]
        refused(client.get(place, params={"limit": 0}), 422, "limit")
        refused(client.get(f"{BASE}/collections/none/documents"), 404)


def test_plain_json_is_taken(tmp_path):
    with running(tmp_path, collection="notes", body_bytes=1000) as client:
        place = f"{BASE}/collections/notes/documents"
        assert client.post(place, json={"id": "a", "text": PAY}).json()["accepted"] == 1
        several = client.post(place, json=[{"id": "b", "text": LEAVE}, {"id": "c"}, 5]).json()
        assert (several["accepted"], [one["line"] for one in several["errors"]]) == (1, [2, 3])
        refused(client.post(place, json="text"), 422, "object")
        refused(client.post(place, content=b"{", headers=JSON), 422, "JSON")
        refused(client.post(place, json={"text": "a" * 2000}), 413)
        assert client.get(place).json()["total"] == 2
