"""``/retrieve``: the specification's fields, every option, every limit; nothing odd gets through."""

import json

import pytest

from tests.api.core_app import BASE, JSON, QUESTION, ids, refused, retrieve, running
from tests.models import Favourite

SECRET = "zebra-4711"


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    with running(
        tmp_path_factory.mktemp("retrieve"), k=20, triage_k=200, token_budget=2000, batch=3
    ) as client:
        yield client


def post(client, body: bytes, **headers):
    return client.post(f"{BASE}/retrieve", content=body, headers=JSON | headers)


def test_answers_with_the_fields_of_the_specification(client):
    found = retrieve(client, top_k=3, sigma=0.09, reranker_type="hybrid").json()
    assert set(found) == {"query", "results", "relevance", "execution_time_ms", "config"}
    assert found["query"] == QUESTION
    assert found["execution_time_ms"] > 0
    assert {"sigma": 0.09, "top_k": 3, "reranker_type": "hybrid"}.items() <= found["config"].items()
    assert [result["rank"] for result in found["results"]] == [1, 2, 3]
    for result in found["results"]:
        assert set(result) == {"chunk_id", "text", "score", "rank", "metadata"}
        assert isinstance(result["score"], float)
        assert result["metadata"]["source"]


def test_says_whether_anything_relevant_was_found(client):
    assert retrieve(client).json()["relevance"]["verdict"] == "relevant"
    found = retrieve(client, "How do I bake sourdough bread?", top_k=3).json()
    said = found["relevance"]
    assert said["verdict"] == "nothing_relevant" and said["best_similarity"] < said["threshold"]
    assert said["message"].startswith("Nothing relevant found") and len(found["results"]) == 3
    nothing = retrieve(client, filter='kind = "none"').json()
    assert nothing["relevance"]["verdict"] == "nothing_relevant" and nothing["results"] == []


def test_same_as_the_engine(client):
    engine = client.app.state.service.engines.get("demo")
    expected = engine.search(QUESTION, k=5)
    found = retrieve(client).json()
    assert [result["chunk_id"] for result in found["results"]] == [chunk.id for chunk in expected.chunks]
    assert [result["score"] for result in found["results"]] == pytest.approx(expected.scores)
    assert found["config"]["sigma"] == pytest.approx(expected.metadata["sigma"])
    assert found["config"]["sigma_source"] == "candidates" and found["config"]["warnings"] == []
    (warning,) = retrieve(client, sigma=1.0).json()["config"]["warnings"]
    assert f"{found['config']['sigma']:.3g}" in warning


@pytest.mark.parametrize("reranker", ["crossencoder", "hybrid"])
def test_a_pair_scorers_order_counts_whatever_the_retrievers_is(client, monkeypatch, reranker):
    engine = client.app.state.service.engines.get("demo")
    assert engine.retriever.name == "hybrid"
    last = engine.candidates(QUESTION, 24).found[-1].chunk
    monkeypatch.setattr(engine, "_pair_scorer", Favourite(last.text))
    found = ids(retrieve(client, reranker_type=reranker))
    assert len(found) == 5 and found[0] == last.id


def test_a_filter_on_a_field_that_no_passage_has_names_those_there_are(client):
    for where in ('themee = "slow handlers"', {"field": "themee", "op": "!=", "value": SECRET}):
        refused(retrieve(client, filter=where), 422, "themee", "theme", "source")
    assert ids(retrieve(client, filter='theme = "none of them"')) == []


@pytest.mark.parametrize("path", ["retrieve", "context", "explore", "ask", "select", "evaluate"])
def test_both_names_of_an_option_are_taken_and_whole_numbers_as_fractions(client, path):
    """Where the rest of the request is wrong, only that is named."""
    for own in ({"k": 3.0}, {"top_k": 3}):
        body = (
            {"config": own, "dataset_name": 5} if path == "evaluate" else {**own, "collection": 5, "query": 5}
        )
        problem = refused(client.post(f"{BASE}/{path}", json=body), 422)
        assert not {"k", "top_k", "config.k", "config.top_k"} & {one["field"] for one in problem["errors"]}
    assert ids(retrieve(client, k=2)) == ids(retrieve(client, top_k=2.0))
    assert ids(retrieve(client, where='kind = "original"')) == ids(
        retrieve(client, filter='kind = "original"')
    )
    assert retrieve(client, reranker="cosine").json()["config"]["reranker_type"] == "cosine"


def test_few_candidates_are_read_by_a_pair_scorer(client):
    found = retrieve(client, reranker="hybrid", triage_k=200, top_k=3).json()
    assert found["config"]["triage_k"] == 24 and len(found["results"]) == 3


def test_a_field_that_does_not_exist_is_told_the_right_one(client):
    for path in ("retrieve", "retrieve/batch", "explore", "context"):
        problem = refused(client.post(f"{BASE}/{path}", json={"query": QUESTION, "trage_k": 3}), 422)
        said = {error["field"]: error["message"] for error in problem["errors"]}
        assert "triage_k" in said["trage_k"]


def test_explains_itself_where_asked(client):
    found = retrieve(client, explain=True, return_scores=False).json()
    assert 0 < found["bound"] <= 1
    assert found["candidates"] == 100
    assert found["seconds"]["total"] > 0
    first = found["results"][0]
    assert "score" not in first
    assert first["gain"] == first["coverage"] > 0
    assert first["chunk_id"] in first["stands_for"]
    assert set(first["shares"]) == {"hybrid", "dense", "bm25"}


def test_explains_that_nothing_was_found(client):
    response = retrieve(client, explain=True, filter='source = "nowhere.md"')
    assert response.status_code == 200
    found = response.json()
    assert found["results"] == [] and found["candidates"] == found["near_copies"] == 0


def test_narrows_to_chunks_and_documents(client):
    everything = client.app.state.service.engines.get("demo").collection
    source = everything.get(["slow-01"])[0].metadata["source"]
    of_source = {
        record.id for batch in everything.iterate() for record in batch if record.metadata["source"] == source
    }
    assert set(ids(retrieve(client, corpus_ids=[source, "skew-02"], top_k=20))) == of_source | {"skew-02"}
    assert ids(retrieve(client, corpus_ids=["skew-02"])) == ["skew-02"]
    assert ids(retrieve(client, corpus_ids=["nothing"])) == []
    assert ids(retrieve(client, corpus_ids=[])) == []
    both = retrieve(client, corpus_ids=["skew-02", "slow-01"], filter='theme = "slow handlers"')
    assert ids(both) == ["slow-01"]


@pytest.mark.parametrize(
    "where", ['theme = "slow handlers"', {"field": "theme", "op": "=", "value": "slow handlers"}]
)
def test_filters_as_text_and_as_json(client, where):
    found = retrieve(client, filter=where, top_k=20).json()["results"]
    assert found
    assert {result["metadata"]["theme"] for result in found} == {"slow handlers"}


def test_required_and_excluded_chunks(client):
    plain = ids(retrieve(client))
    found = ids(retrieve(client, must_include=["skew-02"], exclude=[plain[0]]))
    assert found[0] == "skew-02"
    assert plain[0] not in found
    assert len(set(found)) == 5


def test_limits_on_what_is_picked(client):
    budget = retrieve(client, token_budget=150).json()
    assert budget["config"]["top_k"] is None
    assert budget["config"]["token_budget"] == 150
    assert 1 <= len(budget["results"]) <= 3
    sources = [
        result["metadata"]["source"]
        for result in retrieve(client, max_per_source=1, top_k=20).json()["results"]
    ]
    assert len(set(sources)) == len(sources)
    assert len(ids(retrieve(client, min_gain_share=0.9))) < 5
    assert ids(retrieve(client, min_similarity=0.999)) == []


@pytest.mark.parametrize("method", ["dartboard", "mmr", "top_k", "near_duplicate_filter", "random"])
def test_every_method(client, method):
    found = retrieve(client, method=method).json()
    assert found["config"]["method"] == method
    assert len(found["results"]) == 5


def test_many_questions_at_once(client):
    queries = [QUESTION, "How do I replay messages?"]
    found = client.post(f"{BASE}/retrieve/batch", json={"queries": queries, "top_k": 2}).json()
    assert [one["query"] for one in found["results"]] == queries
    for one, query in zip(found["results"], queries, strict=True):
        assert [result["chunk_id"] for result in one["results"]] == ids(retrieve(client, query, top_k=2))


ADDING = "How do I add consumers?"


def test_several_questions_are_answered_together(client):
    found = retrieve(client, also=[ADDING], weights=[1, 3], top_k=4, explain=True).json()
    assert [one["text"] for one in found["questions"]] == [QUESTION, ADDING]
    assert [one["weight"] for one in found["questions"]] == pytest.approx([0.25, 0.75])
    assert {one["serves"] for one in found["results"]} == {0, 1}
    assert all(0 < one["coverage"] <= 1 for one in found["questions"])
    engine = client.app.state.service.engines.get("demo")
    expected = engine.search(QUESTION, also=[ADDING], weights=[1, 3], k=4)
    assert [one["chunk_id"] for one in found["results"]] == [chunk.id for chunk in expected.chunks]
    plain = retrieve(client).json()
    assert "questions" not in plain and "serves" not in plain["results"][0]


def test_the_same_further_questions_for_each_of_a_batch(client):
    queries = [QUESTION, "How do I replay messages?"]
    body = {"queries": queries, "also": [ADDING], "top_k": 3}
    found = client.post(f"{BASE}/retrieve/batch", json=body).json()["results"]
    for one, query in zip(found, queries, strict=True):
        alone = retrieve(client, query, also=[ADDING], top_k=3)
        assert [result["chunk_id"] for result in one["results"]] == ids(alone)
        assert [asked["text"] for asked in one["questions"]] == [query, ADDING]
    body = {"queries": queries, "also": ["word " * 600]}
    problem = refused(client.post(f"{BASE}/retrieve/batch", json=body), 422, "512")
    assert [error["field"] for error in problem["errors"]] == ["also"]


def test_what_was_seen_is_not_repeated(client):
    first = ids(retrieve(client))
    more = retrieve(client, seen=first).json()
    assert 0 < more["covered_before"] < 1
    assert len(more["results"]) == 5 and not {one["chunk_id"] for one in more["results"]} & set(first)


def test_pages_do_not_overlap(client):
    pages = [ids(retrieve(client, top_k=5, offset=at)) for at in (0, 5, 10)]
    assert [*pages[0], *pages[1], *pages[2]] == ids(retrieve(client, top_k=15))
    assert len(ids(retrieve(client, offset=110))) == 5, "candidates are twice as many as are shown"


def test_caps_and_the_preferred_copy(client):
    found = retrieve(client, max_per={"theme": 1}, top_k=4).json()["results"]
    themes = [one["metadata"]["theme"] for one in found if "theme" in one["metadata"]]
    assert len(themes) == len(set(themes))
    for one in retrieve(client, prefer="source").json()["results"]:
        assert all(set(copy) <= {"id", "source", "differs"} for copy in one["copies"])
    assert "copies" not in retrieve(client).json()["results"][0]


def test_one_bad_question_does_not_spoil_the_others(client):
    body = {"queries": [QUESTION, "other"], "must_include": [SECRET]}
    found = client.post(f"{BASE}/retrieve/batch", json=body).json()
    assert [set(one) for one in found["results"]] == [{"error"}, {"error"}]


@pytest.mark.parametrize(
    ("options", "field", "limit"),
    [
        ({"top_k": 21}, "k", "20"),
        ({"triage_k": 201}, "triage_k", "200"),
        ({"token_budget": 2001}, "token_budget", "2000"),
        ({"query": "word " * 600}, "query", "512"),
        ({"query": "x" * 9000}, "query", "512"),
        ({"also": ["short", "word " * 600]}, "also", "512"),
    ],
)
def test_limits_are_named(client, options, field, limit):
    body = {"query": QUESTION} | options
    problem = refused(client.post(f"{BASE}/retrieve", json=body), 422, limit)
    assert [error["field"] for error in problem["errors"]] == [field]


def test_options_of_a_batch_that_cannot_be_read_are_the_fault_of_the_whole_request(client):
    body = {"queries": [QUESTION, "other"], "filter": f"year >= ({SECRET}"}
    problem = refused(client.post(f"{BASE}/retrieve/batch", json=body), 422)
    assert [error["field"] for error in problem["errors"]] == ["where"]


def test_limits_of_batches(client):
    refused(client.post(f"{BASE}/retrieve/batch", json={"queries": ["a"] * 4}), 422, "queries", "3")


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        ("", "is empty"),
        (" \n", "is empty"),
        (f"{SECRET}\x00", "U+0000"),
        ("word " * 600, "512 tokens"),
        ("x" * 9000, "512 tokens"),
    ],
)
def test_a_question_that_cannot_be_asked_is_an_error_in_its_place(client, bad, said):
    body = {"queries": [QUESTION, bad, "How do I replay messages?"], "top_k": 2}
    response = client.post(f"{BASE}/retrieve/batch", json=body)
    assert response.status_code == 200
    first, second, third = response.json()["results"]
    assert set(second) == {"error"} and said in second["error"]
    for found, query in ((first, body["queries"][0]), (third, body["queries"][2])):
        assert [one["chunk_id"] for one in found["results"]] == ids(retrieve(client, query, top_k=2))


def test_a_batch_of_nothing_but_bad_questions_is_answered(client):
    found = client.post(f"{BASE}/retrieve/batch", json={"queries": ["", " "]}).json()
    assert [set(one) for one in found["results"]] == [{"error"}, {"error"}]
    refused(client.post(f"{BASE}/retrieve/batch", json={"queries": ["a", 5]}), 422, "queries.1")


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"query": ""}, "query"),
        ({"query": "  \n"}, "query"),
        ({"query": 5}, "query"),
        ({"query": None}, "query"),
        ({"query": f"{SECRET}\x00"}, "query"),
        ({"top_k": 0}, "k"),
        ({"top_k": "5"}, "k"),
        ({"top_k": True}, "k"),
        ({"top_k": 5.5}, "k"),
        ({"top_k": 10**30}, "k"),
        ({"sigma": SECRET}, "sigma"),
        ({"sigma": 0}, "sigma"),
        ({"sigma": True}, "sigma"),
        ({"reranker_type": SECRET}, "reranker"),
        ({"method": "exhaustive"}, "method"),
        ({"corpus_ids": SECRET}, "corpus_ids"),
        ({"corpus_ids": [""]}, "corpus_ids.0"),
        ({"corpus_ids": [f"{SECRET}\x00"]}, "corpus_ids.0"),
        ({"filter": f"{SECRET} ="}, "where"),
        ({"filter": {SECRET: 1}}, "where"),
        ({"filter": {"field": "year", "op": "<", "value": [SECRET]}}, "where"),
        ({"filter": []}, "where"),
        ({"min_gain_share": 1.1}, "min_gain_share"),
        ({"max_per_source": 0}, "max_per_source"),
        ({"collection": "\n"}, "collection"),
        ({"collection": ".."}, "collection"),
        ({"explain": "yes"}, "explain"),
        ({"unknown": SECRET}, "unknown"),
        ({"top_k": 5, "triage_k": 4}, "triage_k"),
        ({"must_include": [SECRET], "exclude": [SECRET]}, "exclude"),
        ({"also": SECRET}, "also"),
        ({"also": [" "]}, "also.0"),
        ({"also": ["a", f"{SECRET}\x00"]}, "also.1"),
        ({"also": ["a"] * 16}, "also"),
        ({"weights": [1.0]}, "weights"),
        ({"also": ["a"], "weights": [1.0]}, "weights"),
        ({"also": ["a"], "weights": [1.0, 0]}, "weights.1"),
        ({"also": ["a"], "weights": [1.0, SECRET]}, "weights.1"),
        ({"seen": [SECRET]}, "seen"),
        ({"seen": SECRET}, "seen"),
        ({"seen": ["a"] * 1001}, "seen"),
        ({"seen": ["slow-01"], "must_include": ["slow-01"]}, "seen"),
        ({"offset": -1}, "offset"),
        ({"offset": "2"}, "offset"),
        ({"offset": 10**30}, "offset"),
        ({"offset": 2, "token_budget": 90}, "offset"),
        ({"prefer": SECRET}, "prefer"),
        ({"prefer": ""}, "prefer"),
        ({"max_per": {SECRET: 1}}, "max_per"),
        ({"max_per": {"theme": 0}}, "max_per.theme"),
        ({"max_per": 2}, "max_per"),
        ({"max_per": {f"field{one}": 1 for one in range(11)}}, "max_per"),
        ({"tokenizer": SECRET}, "tokenizer"),
    ],
)
def test_refuses_what_cannot_be_used(client, changes, field):
    response = client.post(f"{BASE}/retrieve", json={"query": QUESTION} | changes)
    problem = refused(response, 422)
    assert [error["field"] for error in problem["errors"]] in ([field], [])


def test_refuses_unknown_chunks_and_collections(client):
    refused(retrieve(client, must_include=[SECRET]), 422, "must_include", SECRET)
    assert refused(retrieve(client, collection=SECRET), 404, SECRET)["code"] == "collection"


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b'{"query": NaN}', "column 11"),
        (b'{"query": "a", "sigma": Infinity}', "not JSON"),
        (b'{"query": "a", "sigma": 1e999}', "JSON"),
        (b'{"query": "\\ud800"}', "surrogate"),
        (b'{"query": "\xff"}', "UTF-8"),
        (b"[" * 100_000, "JSON"),
        (b'{"a":' * 900 + b"1" + b"}" * 900, "query"),
        (b'{"query": "a"', "not JSON"),
        (b"", "body"),
        (b"[]", "body"),
        (b"null", "body"),
        (b'"text"', "body"),
    ],
)
def test_refuses_bodies_that_are_no_json_of_ours(client, body, said):
    refused(post(client, body), 422, said)


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "", "application/xml"])
def test_reads_json_only(client, kind):
    refused(post(client, b'{"query": "a"}', **{"content-type": kind}), 415, "application/json")


def test_takes_json_with_a_charset(client):
    assert (
        post(client, b'{"query": "a"}', **{"content-type": "Application/JSON; charset=utf-8"}).status_code
        == 200
    )


def test_deep_filters_are_refused(client):
    where: dict = {"field": "a", "op": "exists"}
    for _ in range(500):
        where = {"not": where}
    refused(post(client, json.dumps({"query": "a", "filter": where}).encode()), 422, "nested")


def test_counts_what_it_finds(client):
    retrieve(client)
    shown = client.get("/metrics").text
    assert 'dartboard_stage_seconds_count{stage="select"}' in shown
    assert "dartboard_picks_count" in shown
    assert 'route="/api/dartboard/retrieve"' in shown


def test_the_field_that_a_cap_counts(client):
    found = retrieve(client, top_k=4, max_per_source=1, source_field="theme")
    themes = [result["metadata"]["theme"] for result in found.json()["results"]]
    assert len(set(themes)) == len(themes) > 1
