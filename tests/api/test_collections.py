"""Collections over HTTP, and what other processes do to them meanwhile."""

from dataclasses import replace

import pytest

from dartboard.engine import Engine
from dartboard.errors import ConfigError
from dartboard.stores import Manifest, Record, open_store
from dartboard.stores.memory import MemoryStore
from tests.api.core_app import BASE, LEAVE, PAY, REMOTE, ids, refused, retrieve, running, upsert


@pytest.fixture
def client(tmp_path):
    with running(tmp_path) as client:
        yield client


def test_the_demo_answers_until_there_is_a_collection(client, tmp_path):
    (only,) = client.get(f"{BASE}/collections").json()["collections"]
    assert (only["name"], only["default"], only["writable"]) == ("demo", True, False)
    assert only["passages"] > 100
    assert not (tmp_path / "index.dartboard").exists()
    assert client.put(f"{BASE}/collections/default").status_code == 201
    upsert(client, "default", {"id": "a", "text": LEAVE})
    assert [one["name"] for one in client.get(f"{BASE}/collections").json()["collections"]] == [
        "default",
        "demo",
    ]
    assert ids(retrieve(client, "leave"))[0].startswith("a#")
    assert client.get(f"{BASE}/health").json()["collection"] == "default"


def test_making_describing_and_dropping(client):
    place = f"{BASE}/collections/team notes"
    made = client.put(place, json={"chunking": {"size": 64, "overlap": 8}})
    assert made.status_code == 201
    assert made.json()["chunking"] == {"method": "auto", "size": 64, "overlap": 8, "smallest": 32}
    assert made.json()["embedding_model"] == "all-MiniLM-L6-v2"
    assert client.get(place).json() == made.json()
    assert client.put(place).status_code == 200
    assert client.put(place, json={"chunking": {"size": 64, "overlap": 8}}).status_code == 200
    refused(client.put(place, json={"chunking": {"size": 128}}), 409, "another way")
    report = upsert(client, "team notes", {"text": "word " * 200}).json()
    assert report["chunks"] >= 3
    assert client.delete(place).json() == {"deleted": report["chunks"]}
    refused(client.get(place), 404)
    refused(client.delete(place), 404)
    assert client.put(place).json()["passages"] == 0


def test_what_is_refused(client):
    refused(client.put(f"{BASE}/collections/demo"), 409, "demo")
    refused(client.delete(f"{BASE}/collections/demo"), 409, "demo")
    refused(client.put(f"{BASE}/collections/%0A"), 422)
    refused(client.put(f"{BASE}/collections/{'x' * 201}"), 422)
    refused(client.put(f"{BASE}/collections/a", json={"model": "openai:x@http://evil"}), 422, "model")
    refused(
        client.put(f"{BASE}/collections/a", json={"chunking": {"size": 20, "overlap": 20}}), 422, "overlap"
    )
    refused(client.put(f"{BASE}/collections/a", json={"chunking": {"size": 10**9}}), 422, "size")
    assert client.get(f"{BASE}/collections").json()["collections"][0]["name"] == "demo"


@pytest.mark.parametrize("name", [".", ".."])
def test_names_that_no_address_can_hold_are_refused(client, name):
    """Over HTTP and by the store itself: what is made can be looked at and dropped."""
    hidden = name.replace(".", "%2E")
    refused(client.put(f"{BASE}/collections/{hidden}"), 422, "neither . nor ..")
    refused(retrieve(client, collection=name), 422, "neither . nor ..")
    with pytest.raises(ConfigError, match=r"neither \. nor"):
        MemoryStore().create(name, Manifest(model="m", dimension=2))
    assert client.put(f"{BASE}/collections/...").status_code == 201


def test_no_demo_where_it_is_switched_off(tmp_path):
    with running(tmp_path, demo=False) as client:
        assert client.get(f"{BASE}/collections").json() == {"collections": []}
        assert client.get(f"{BASE}/health").json()["corpus_size"] == 0
        refused(retrieve(client), 404)
        assert client.get("/readyz").status_code == 200


def test_a_store_in_memory(tmp_path):
    with running(tmp_path, store="memory://", collection="notes") as client:
        upsert(client, "notes", {"id": "a", "text": LEAVE}, {"id": "b", "text": PAY})
        assert len(ids(retrieve(client, "leave", collection="notes"))) == 2


def test_sees_what_another_process_wrote_and_takes_turns_with_it(client, tmp_path):
    client.put(f"{BASE}/collections/notes")
    upsert(client, "notes", {"id": "a", "text": PAY})
    with Engine.open(str(tmp_path / "index.dartboard"), collection="notes") as other:
        vector = other.model.encode_documents([LEAVE])[0]
        other.collection.upsert([Record("x", LEAVE, vector, {"source": "elsewhere"})])
        assert ids(retrieve(client, "days of leave", collection="notes", top_k=1)) == ["x"]
        assert upsert(client, "notes", {"id": "b", "text": REMOTE}).json()["accepted"] == 1
        assert other.collection.count() == 3
        other.collection.delete(["x"])
    assert len(ids(retrieve(client, "leave", collection="notes"))) == 2
    assert client.delete(f"{BASE}/collections/notes").json() == {"deleted": 2}


def test_a_collection_that_others_made_anew_is_opened_anew(tmp_path):
    url = str(tmp_path / "index.dartboard")
    with running(tmp_path, demo=False) as client:
        refused(retrieve(client), 404)
        with Engine.open(url, retriever="dense") as other:
            other.create()
        assert retrieve(client).json()["config"]["retriever"] == "dense"
        with open_store(url) as store:
            store.drop("default")
        refused(retrieve(client), 404)
        with Engine.open(url, retriever="bm25") as other:
            other.create()
        assert retrieve(client).json()["config"]["retriever"] == "bm25"


@pytest.mark.parametrize(
    "settings", [{"retriever": "splad:/x"}, {"retrievers": "x"}, {"model": "no such model"}]
)
def test_a_collection_that_cannot_be_opened_hides_no_other(client, tmp_path, settings, caplog):
    client.put(f"{BASE}/collections/sound")
    with open_store(str(tmp_path / "index.dartboard")) as store:
        sound = store.open("sound").manifest
        store.create("broken", replace(sound, settings={**sound.settings, **settings}))
    listed = client.get(f"{BASE}/collections")
    assert listed.status_code == 200
    assert [one["name"] for one in listed.json()["collections"]] == ["demo", "sound"]
    assert "collection 'broken' left out: " in caplog.text
    assert client.get(f"{BASE}/collections/broken").status_code >= 400
