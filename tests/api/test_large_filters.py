"""Filters of very many terms are refused; a slow one ends with its request, and with the service."""

import threading
import time
from contextlib import suppress
from types import SimpleNamespace

import pytest

from dartboard.stores.filters import Equal
from tests.api.core_app import BASE, ids, refused, retrieve, running
from tests.api.small_app import until

ODD = '`a "name" that only Python reads`'
SLOW = f"{ODD} exists or {ODD} = 1"


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    with running(tmp_path_factory.mktemp("filters")) as client:
        yield client


MANY = " or ".join(f"a={number}" for number in range(70_000))
LISTED = [f"value {number}" for number in range(30_001)]
IDS = [f"id {number}" for number in range(10_000)]


@pytest.mark.parametrize(
    ("where", "said"),
    [
        (MANY, "more than 256 comparisons, which is the most allowed"),
        ("x" * 5_000_000, "5,000,000 characters are more than the 1,000,000 allowed"),
        (f"a in {LISTED}", "more than 30,000 values in its lists"),
        ({"or": [{"field": "a", "op": "=", "value": 1}] * 100_000}, "more than 256 comparisons"),
        ({"and": [{"or": []}] * 100_000}, "more than 256 comparisons"),
        ({"field": "a", "op": "in", "value": LISTED}, "more than 30,000 values"),
        ({"ids": LISTED}, "more than 30,000 values"),
    ],
    ids=range(7),
)
def test_too_large_filters_are_refused(client, where, said):
    problem = refused(retrieve(client, filter=where), 422, said)
    assert [error["field"] for error in problem["errors"]] == ["where"]
    refused(client.post(f"{BASE}/explore", json={"query": "a", "filter": where}), 422, said)


def test_large_ones_are_answered(client):
    assert ids(retrieve(client, filter=" or ".join(f"theme = {number}" for number in range(256)))) == []
    others = f"not theme in {LISTED[:10_000]}"
    assert ids(retrieve(client, filter=others, corpus_ids=[*IDS[1:], "slow-01"])) == ["slow-01"]


def test_corpus_ids_count_as_well(client):
    refused(retrieve(client, filter=f"a in {LISTED[:10_001]}", corpus_ids=IDS), 422, "30,000 values")


class Seen(list):
    """A thread for each slow comparison, and what is done at each."""

    then = staticmethod(lambda: None)


@pytest.fixture
def slowly(monkeypatch):
    """Comparisons with an odd field take long; which records they have seen."""
    seen, quick = Seen(), Equal.matches

    def matches(self, metadata, id=None):
        if not self.field.startswith("a "):
            return quick(self, metadata, id)
        seen.append(threading.current_thread())
        seen.then()
        time.sleep(0.02)  # timing: slow, on every machine
        return False

    monkeypatch.setattr(Equal, "matches", matches)
    return seen


def test_a_slow_filter_ends_with_its_request(tmp_path, slowly, monkeypatch):
    skipped = [0.0]
    clock = SimpleNamespace(monotonic=lambda: time.monotonic() + skipped[0])
    monkeypatch.setattr("dartboard.deadline.time", clock)
    slowly.then = lambda: skipped.__setitem__(0, 3600.0)  # at the first comparison, time is up
    with running(tmp_path) as client:
        rows = client.app.state.service.engines.get("demo").collection.count()
        client.app.state.service.engines.get("demo").search("warm up")
        refused(retrieve(client, filter=SLOW), 504)
        workers = client.app.state.service.searches
        until(lambda: workers.running == 0)
        assert 0 < len(slowly) < rows
        assert ids(retrieve(client, filter='theme = "slow handlers"', top_k=1))


def test_a_slow_filter_does_not_keep_a_stopping_service_alive(tmp_path, slowly):
    with running(tmp_path, grace=0.05) as client:
        rows = client.app.state.service.engines.get("demo").collection.count()

        def ask():
            with suppress(RuntimeError):  # the test client stops together with the service
                retrieve(client, filter=SLOW)

        asked = threading.Thread(target=ask)
        asked.start()
        until(lambda: slowly)
    asked.join()
    slowly[0].join()
    assert 0 < len(slowly) < rows
