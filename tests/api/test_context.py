"""``/context``: a text within its budget, numbered passages, citations that lead to chunks."""

import json
from xml.etree import ElementTree

import pytest

from tests.api.core_app import BASE, LEAVE, PAY, QUESTION, REMOTE, ids, refused, retrieve, running, upsert


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    with running(tmp_path_factory.mktemp("context"), token_budget=1500) as client:
        yield client


def context(client, query=QUESTION, **options):
    return client.post(f"{BASE}/context", json={"query": query, **options})


def test_same_as_the_engine(client):
    engine = client.app.state.service.engines.get("demo")
    expected = engine.context(QUESTION, token_budget=400)
    found = context(client, token_budget=400).json()
    assert (found["text"], found["tokens"]) == (expected.text, expected.tokens) and 0 < found["tokens"] <= 400
    assert found["query"] == QUESTION and found["token_budget"] == found["config"]["token_budget"] == 400
    assert (found["order"], found["format"]) == ("gain", "markdown")
    assert [one["chunk_ids"] for one in found["passages"]] == [
        list(one.chunk_ids) for one in expected.passages
    ]
    assert [one["number"] for one in found["passages"]] == list(range(1, len(expected.passages) + 1))
    assert found["coverage"] == pytest.approx(sum(one["gain"] for one in found["passages"]))
    assert found["relevance"]["verdict"] == "relevant" and found["execution_time_ms"] > 0
    assert found["config"]["sigma_source"] == "candidates" and found["config"]["top_k"] is None


def test_the_default_budget_is_within_the_limit(client):
    assert context(client).json()["token_budget"] == 1500
    assert len(context(client, top_k=1).json()["passages"]) == 1
    problem = refused(context(client, token_budget=1501), 422, "token_budget is limited to 1500")
    assert problem["errors"][0]["field"] == "token_budget"


def test_formats_and_orders(client):
    tagged = context(client, format="xml", token_budget=500).json()
    parts = ElementTree.fromstring(f"<all>{tagged['text']}</all>")
    assert [part.get("source") for part in parts] == [one["source"] for one in tagged["passages"]]
    listed = context(client, format="json", order="ends", token_budget=500).json()
    assert [one["text"] for one in json.loads(listed["text"])] == [one["text"] for one in listed["passages"]]
    assert context(client, order="source", expand=False, token_budget=500).json()["order"] == "source"


def test_neighbours_merge_unless_told_otherwise(client):
    text = " ".join(f"Rule {number} of leave: {LEAVE}" for number in range(1, 60))
    assert client.put(f"{BASE}/collections/leave").status_code == 201
    upsert(client, "leave", {"text": text, "metadata": {"source": "leave.md"}}, {"text": PAY})
    whole = context(client, "Rule 30 of leave", collection="leave").json()
    assert max(len(one["chunk_ids"]) for one in whole["passages"]) > 1
    assert whole["text"].count("Rule 30 of leave") == 1
    picked = context(client, "Rule 30 of leave", collection="leave", top_k=1, expand=False).json()
    assert len(picked["passages"]) == 1


def test_options_of_a_search_hold(client):
    one = context(client, corpus_ids=["slow-01"]).json()
    assert [passage["chunk_ids"] for passage in one["passages"]] == [["slow-01"]]
    known = ids(retrieve(client, top_k=2))
    more = context(client, seen=known, also=["How do I add consumers?"], token_budget=300).json()
    assert not set(known) & {id for passage in more["passages"] for id in passage["chunk_ids"]}
    assert more["covered_before"] > 0 and [one["weight"] for one in more["questions"]] == [0.5, 0.5]
    nothing = context(client, filter='kind = "none"').json()
    assert (nothing["text"], nothing["tokens"], nothing["passages"]) == ("", 0, [])
    assert nothing["relevance"]["verdict"] == "nothing_relevant" and nothing["coverage"] == 0


@pytest.mark.parametrize(
    ("wrong", "field", "message"),
    [
        ({"token_budget": 0}, "token_budget", "greater than or equal to 1"),
        ({"offset": 5}, "offset", "no such field"),
        ({"order": "best"}, "order", "'gain', 'source' or 'ends'"),
        ({"format": "html"}, "format", "'markdown', 'xml' or 'json'"),
        ({"tokenizer": "gpt-4o"}, "tokenizer", "no such field"),
        ({"query": "tea " * 600}, "query", "limited to 512 tokens"),
        ({"query": " "}, "query", "is empty"),
    ],
)
def test_what_is_refused(client, wrong, field, message):
    problem = refused(context(client, **wrong), 422, message)
    assert field in [error["field"] for error in problem["errors"]]


def test_it_is_counted_as_a_search(client):
    def picks():
        lines = client.get("/metrics").text.splitlines()
        return sum(float(line.split()[-1]) for line in lines if line.startswith("dartboard_picks_count"))

    before = picks()
    upsert(client, "demo", {"id": "remote", "text": REMOTE})
    assert context(client, "How long may I work from anywhere?", corpus_ids=["remote"]).status_code == 200
    assert picks() == before + 1
