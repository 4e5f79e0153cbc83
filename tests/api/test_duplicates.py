"""``POST /collections/{name}/duplicates``: the report of the library, also by a job."""

import pytest

from tests.api.core_app import BASE, refused, running, upsert
from tests.api.pages_app import finished

LEAVE = "You earn two days of leave a month, and unused leave of the year is paid out in March, with the pay."

OTHERS = ("kitchen", "library", "garage", "garden", "lift")


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    with running(tmp_path_factory.mktemp("service"), collection="notes") as client:
        documents = [{"id": name, "text": LEAVE} for name in ("one", "two")]
        others = [{"id": word, "text": f"Our {word} is cleaned on Friday."} for word in OTHERS]
        upsert(client, "notes", *documents, *others)
        yield client


def ask(client, name="notes", **options):
    return client.post(f"{BASE}/collections/{name}/duplicates", json=options)


def test_the_report_is_that_of_the_engine(client):
    found = ask(client).json()
    assert (found["collection"], found["chunks"], found["exact"], found["near"]) == ("notes", 7, 1, 0)
    assert found["repeats"]["top_k"] > found["repeats"]["dartboard"] == 0
    assert found["groups"][0]["kind"] == "exact" and found["groups"][0]["size"] == 2
    engine = client.app.state.service.engines.get("notes")
    assert {name: found[name] for name in ("answer", "causes", "sigma")} == {
        name: engine.duplicates().to_json()[name] for name in ("answer", "causes", "sigma")
    }


def test_in_the_background_and_by_texts_alone(client):
    started = ask(client, background=True, vectors=False)
    assert started.status_code == 202
    job = finished(client, started.json())
    assert job["state"] == "done" and job["kind"] == "duplicates" and job["result"]["similar"] is None


def test_what_cannot_be_done_is_refused(client):
    refused(ask(client, "nothing"), 404)
    refused(ask(client, similarity=2), 422)
    refused(ask(client, queries=[" "]), 422)
    refused(ask(client, fields=["colour"]), 422, "no chunk has the metadata field", "source")
    assert client.put(f"{BASE}/collections/empty").status_code == 201
    refused(ask(client, "empty"), 422, "no chunks")
