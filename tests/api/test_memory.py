"""Requests that would take far more memory than they have bytes: bounded, refused, and given back."""

import gc
import json
import threading
import weakref

import pytest

from dartboard.api.guards import body_limit
from tests.api.core_app import BASE, LEAVE, NDJSON, PAY, running, upsert
from tests.api.small_app import until

WORDS = " ".join(f"Sentence {at} is about leave and pay." for at in range(200))


@pytest.fixture
def client(tmp_path):
    with running(tmp_path, collection="notes", answer_bytes=20_000) as client:
        yield client


def test_metadata_that_every_passage_would_carry(client):
    """A line of 4 MB could become gigabytes: its passages have a copy each."""
    report = upsert(
        client,
        "notes",
        {"id": "a", "text": LEAVE, "metadata": {"more": "x" * 60_000}},
        {"id": "b", "text": PAY, "metadata": {"more": "x" * 70_000}},
    ).json()
    assert (report["accepted"], report["failed"]) == (1, 1)
    assert report["errors"][0]["line"] == 2
    for word in ("bytes of metadata", "at most 65,536", "shorten"):
        assert word in report["errors"][0]["message"]


def test_a_batch_answers_with_no_more_than_its_bytes(client):
    upsert(client, "notes", {"id": "long", "text": WORDS, "metadata": {"more": "x" * 500}})
    body = {"queries": [f"leave {at}" for at in range(10)], "top_k": 5, "collection": "notes"}
    response = client.post(f"{BASE}/retrieve/batch", json=body)
    assert response.status_code == 200
    results = response.json()["results"]
    assert len(results) == 10
    assert "results" in results[0]
    assert "at most 20000 bytes" in results[-1]["error"] and "fewer questions" in results[-1]["error"]
    assert len(response.content) < 25_000


def test_a_document_shows_no_more_than_its_bytes(client):
    upsert(client, "notes", {"id": "long", "text": WORDS, "metadata": {"more": "x" * 3000}})
    found = client.get(f"{BASE}/collections/notes/documents/long")
    shown = found.json()
    assert shown["truncated"] and 1 <= len(shown["passages"]) < 12
    assert [one["metadata"]["position"] for one in shown["passages"]] == list(range(len(shown["passages"])))
    assert len(found.content) <= 21_000


def test_empty_lines_are_read_over(client):
    """Thousands of lines of nothing, in parts of their own, still count as lines."""
    document = json.dumps({"id": "a", "text": LEAVE}).encode()
    parts = iter([b"\n" * 5000, b" \n \n", document[:20], document[20:], b"\n", b"no json"])
    response = client.post(f"{BASE}/collections/notes/documents", content=parts, headers=NDJSON)
    assert response.json()["documents"][0]["line"] == 5003
    assert response.json()["errors"][0]["line"] == 5004


def test_memory_is_given_back_after_a_large_request(client, monkeypatch):
    given: list[None] = []
    monkeypatch.setattr(body_limit, "_DELAY", 0.0)
    monkeypatch.setattr(body_limit, "release_memory", lambda: given.append(None))
    client.post(f"{BASE}/retrieve", json={"query": "leave"})
    client.get("/healthz")
    assert given == []
    client.post(f"{BASE}/retrieve", json={"query": "leave " * 200_000})
    until(lambda: given)
    assert len(given) == 1
    monkeypatch.setattr(body_limit, "LARGE", 1000)
    assert len(client.get("/openapi.json").content) > 1000
    until(lambda: len(given) > 1)


def test_the_service_answers_while_memory_is_given_back(client, monkeypatch):
    """And does it once at a time, however many large requests come."""
    began, go = threading.Event(), threading.Event()
    at_work, most, ended = [], [], []

    def slow():
        at_work.append(None)
        most.append(len(at_work))
        began.set()
        ended.append(go.wait(30))
        at_work.pop()

    monkeypatch.setattr(body_limit, "_DELAY", 0.01)
    monkeypatch.setattr(body_limit, "release_memory", slow)
    large = {"query": "leave " * 200_000}
    client.post(f"{BASE}/retrieve", json=large)
    assert began.wait(30)
    for _ in range(3):
        client.post(f"{BASE}/retrieve", json=large)
        assert client.get("/healthz").status_code == 200
    assert ended == []
    go.set()
    until(lambda: len(ended) > 1)
    assert all(ended) and max(most) == 1


def test_releasing_memory_collects_cycles():
    class Node:
        pass

    node = Node()
    node.itself = node
    seen = weakref.ref(node)
    gc.disable()
    try:
        del node
        assert seen() is not None
        body_limit.release_memory()
        assert seen() is None
    finally:
        gc.enable()
