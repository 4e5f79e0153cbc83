"""``/explore``: what the playground draws, within limits, and the picks of ``/retrieve``."""

import json

import pytest

from dartboard.api.keys import Keys
from tests.api.core_app import BASE, JSON, QUESTION, ids, refused, retrieve, running, upsert

SECRET = "zebra-4711"
HOSTILE = [
    "Tea <script>alert('x')</script> grows on hills & \"slopes\".",
    "Tea <script>alert('x')</script> grows on hills & \"slopes\"!",
    "Tea on hills \u05e9\u05dc\u05d5\u05dd",
    "Tea \U0001f375 " + "longword" * 200,
    "javascript:alert(1) tea ${x} {{y}} \\u003cscript\\u003e",
]


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    with running(
        tmp_path_factory.mktemp("explore"), collection="hostile", k=20, triage_k=200, token_budget=2000
    ) as client:
        documents = [{"id": f"d{at}", "text": text} for at, text in enumerate(HOSTILE)]
        assert upsert(client, "hostile", *documents).json()["failed"] == 0
        yield client


def explore(client, query=QUESTION, **options):
    return client.post(f"{BASE}/explore", json={"query": query, "collection": "demo", **options})


def found_by(response):
    assert response.status_code == 200, response.text
    found = response.json()
    assert "NaN" not in response.text and "Infinity" not in response.text
    return found


def test_everything_at_once(client):
    found = found_by(explore(client))
    assert found["query"] == QUESTION and found["collection"] == "demo" and found["k"] == 5
    assert len(found["candidates"]) == 100 and len(found["steps"]) == 5
    assert found["layout"]["kind"] == "radial MDS" and len(found["sweep"]["sigmas"]) == 25
    assert sum(each["probability"] for each in found["candidates"]) == pytest.approx(1.0)
    assert [each["retriever_rank"] for each in found["candidates"]] == list(range(1, 101))
    assert set(found["candidates"][0]["shares"]) == {"dense", "bm25"}


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"k": 3, "sigma": 0.05},
        {"k": 9, "triage_k": 40, "sigma": 0.3},
        {"token_budget": 500},
        {"filter": 'kind = "original"'},
        {"filter": {"field": "kind", "op": "=", "value": "original"}},
        {"reranker_type": "hybrid", "triage_k": 20},
        {"also": ["How do I add consumers?", "What is a rebalance?"]},
        {"also": ["How do I add consumers?"], "weights": [1, 9], "token_budget": 400},
        {"seen": ["slow-01", "slow-02", "skew-01"]},
        {"also": ["How do I add consumers?"], "seen": ["slow-01"], "reranker_type": "hybrid", "triage_k": 20},
        {"k": 4, "offset": 3, "also": ["What is a rebalance?"], "seen": ["slow-01"]},
        {"max_per": {"theme": 1}},
        {"prefer": "source"},
    ],
)
def test_picks_are_those_of_retrieve(client, options):
    found = found_by(explore(client, layout=False, sweep=False, **options))
    assert found["layout"] is None and found["sweep"] is None and found["candidates"][0]["x"] is None
    asked = {("top_k" if name == "k" else name): value for name, value in options.items()}
    for method, facts in found["methods"].items():
        expected = ids(retrieve(client, collection="demo", method=method, **asked))
        assert [found["candidates"][pick]["id"] for pick in facts["picks"]] == expected


def test_the_weight_of_mmr(client):
    found = found_by(explore(client, mmr_relevance=1.0, layout=False, sweep=False))
    assert found["retriever"] == "hybrid"
    by_score = found["methods"]["top_k"]["picks"]
    similarity = [each["similarity"] for each in found["candidates"]]
    assert by_score != sorted(range(100), key=lambda at: -similarity[at])[:5]  # cosine alone says otherwise
    assert found["methods"]["mmr"]["picks"] == by_score
    assert found["methods"]["mmr"]["parameters"] == {"relevance_weight": 1.0}


def test_hostile_text_comes_back_as_it_went_in(client):
    found = found_by(explore(client, "how does <b>tea</b> grow?", collection="hostile"))
    assert {each["text"] for each in found["candidates"]} == set(HOSTILE)
    assert found["query"] == "how does <b>tea</b> grow?"


def test_nothing_found_and_nothing_there(client):
    found = found_by(explore(client, filter='kind = "no such kind"'))
    assert found["candidates"] == [] and found["methods"]["mmr"]["picks"] == [] and found["bound"] == 0.0
    refused(explore(client, collection="nowhere"), 404)


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"k": 21}, "k"),
        ({"k": 301}, "k"),
        ({"k": 0}, "k"),
        ({"k": True}, "k"),
        ({"k": "5"}, "k"),
        ({"triage_k": 201}, "triage_k"),
        ({"triage_k": 301}, "triage_k"),
        ({"k": 6, "triage_k": 5}, "triage_k"),
        ({"token_budget": 2001}, "token_budget"),
        ({"sigma": 0}, "sigma"),
        ({"sigma": 11}, "sigma"),
        ({"sigma": SECRET}, "sigma"),
        ({"mmr_relevance": 1.01}, "mmr_relevance"),
        ({"reranker_type": SECRET}, "reranker_type"),
        ({"filter": f"{SECRET} ==="}, "filter"),
        ({"layout": 1}, "layout"),
        ({SECRET: 1}, ""),
        ({"query": "  "}, "query"),
        ({"query": f"{SECRET} " * 600}, "query"),
        ({"also": [" "]}, "also"),
        ({"also": ["x"] * 16}, "also"),
        ({"also": [f"{SECRET} " * 600]}, "also"),
        ({"also": ["x"] * 7, "triage_k": 200}, "triage_k"),
        ({"weights": [1.0, 0.0], "also": ["x"]}, "weights"),
        ({"weights": [1.0]}, ""),
        ({"seen": [f"d{at}" for at in range(1001)]}, "seen"),
        ({"seen": ["slow-01"] * 1000, "triage_k": 200, "also": ["x"]}, "triage_k"),
        ({"seen": ["nobody"]}, ""),
        ({"prefer": "no such field"}, ""),
        ({"max_per": {"theme": 0}}, "max_per"),
        ({"offset": -1}, "offset"),
        ({"offset": 5, "token_budget": 100}, ""),
    ],
)
def test_what_is_too_much_or_wrong_is_named_and_not_repeated(client, options, field):
    response = explore(client, **options)
    problem = refused(response, 422)
    if field not in ("", "body"):
        names = {"top_k": "k", "reranker_type": "reranker", "filter": "where"}
        assert any(one["field"].startswith(names.get(field, field)) for one in problem["errors"]), problem


@pytest.mark.parametrize("body", [b"{", b'{"query": NaN}', b'{"query": "x", "sigma": 1e999}', b"[]", b""])
def test_bodies_that_are_no_request(client, body):
    refused(client.post(f"{BASE}/explore", content=body, headers=JSON), 422)


def test_a_default_that_the_limits_allow(tmp_path):
    with running(tmp_path, k=3, triage_k=30) as small:
        found = found_by(explore(small))
        assert found["k"] == 3 and len(found["candidates"]) == 30


def test_it_takes_a_key_that_may_read(tmp_path):
    keys = Keys.open(tmp_path / "keys.json", create=True)
    secret = keys.create("page", ["read"])
    with running(tmp_path, keys=tmp_path / "keys.json") as guarded:
        refused(explore(guarded), 401)
        answered = guarded.post(
            f"{BASE}/explore",
            content=json.dumps({"query": QUESTION, "layout": False, "sweep": False}),
            headers=JSON | {"authorization": f"Bearer {secret}"},
        )
        found_by(answered)


def test_it_ends_with_its_time(tmp_path):
    with running(tmp_path, timeout=0.05) as hurried:  # timing: has to run out
        refused(explore(hurried, reranker_type="crossencoder"), 504)


def test_searches_are_counted(client):
    found_by(explore(client))
    shown = client.get("/metrics").text
    assert 'stage="layout"' in shown and 'stage="trace"' in shown


def test_says_whether_anything_relevant_was_found(client):
    assert found_by(explore(client))["relevance"]["verdict"] == "relevant"
    found = found_by(explore(client, "How do I bake sourdough bread?"))
    assert found["relevance"]["verdict"] == "nothing_relevant" and found["steps"]
    same = retrieve(client, "How do I bake sourdough bread?", collection="demo").json()
    assert found["relevance"] == pytest.approx(same["relevance"])


def test_picks_say_which_question_they_serve(client):
    also = ["How do I add consumers?", "What is a rebalance?"]
    found = found_by(explore(client, also=also, weights=[2, 1, 1], k=6))
    assert [one["text"] for one in found["questions"]] == [QUESTION, *also]
    assert [one["weight"] for one in found["questions"]] == [0.5, 0.25, 0.25]
    for method, facts in found["methods"].items():
        same = retrieve(
            client, collection="demo", method=method, also=also, weights=[2, 1, 1], top_k=6
        ).json()
        assert facts["serves"] == [hit["serves"] for hit in same["results"]]
        assert facts["question_coverage"] == pytest.approx([one["coverage"] for one in same["questions"]])
    assert len(set(found["methods"]["dartboard"]["serves"])) == 3
    ranks = [each["retriever_rank"] for each in found["candidates"]]
    assert max(ranks) <= 100 and ranks.count(1) > 1, "each question has a first"
    alone = found_by(explore(client))
    assert alone["questions"] is None and alone["methods"]["mmr"]["serves"] is None


def test_what_was_seen_counts_as_covered(client):
    first = found_by(explore(client))
    shown = [first["candidates"][pick]["id"] for pick in first["methods"]["dartboard"]["picks"]]
    assert first["seen"] == [] and set(first["seen_cover"]) == {0.0}
    found = found_by(explore(client, seen=shown))
    assert sorted(found["candidates"][at]["id"] for at in found["seen"]) == sorted(shown)
    assert {found["seen_cover"][at] for at in found["seen"]} == {1.0}
    same = retrieve(client, collection="demo", seen=shown).json()
    chosen = found["methods"]["dartboard"]
    assert (
        chosen["covered_before"] == pytest.approx(same["covered_before"]) and chosen["covered_before"] > 0.3
    )
    mass = sum(
        one["probability"] * cover
        for one, cover in zip(found["candidates"], found["seen_cover"], strict=True)
    )
    assert mass == pytest.approx(chosen["covered_before"], abs=1e-3), "what the map shows in grey"
    assert not set(chosen["picks"]) & set(found["seen"])
    step = found["steps"][0]
    assert step["criterion"] == "gain" and all(step["gains"][at] is None for at in found["seen"])
    assert step["coverage"] == pytest.approx(chosen["covered_before"] + step["gain"])


def test_a_page_begins_where_the_last_one_ended(client):
    pages = [found_by(explore(client, k=3, offset=offset, triage_k=60)) for offset in (0, 3)]
    whole = found_by(explore(client, k=6, triage_k=60))
    picks = [pick for page in pages for pick in page["methods"]["dartboard"]["picks"]]
    assert picks == whole["methods"]["dartboard"]["picks"]
    assert pages[1]["steps"] == whole["steps"][3:]
    ends, begins = pages[0]["methods"]["dartboard"], pages[1]["methods"]["dartboard"]
    assert begins["covered_before"] == pytest.approx(ends["coverage"])
    assert pages[1]["seen_cover"] == pytest.approx(pages[0]["cover"])
    at_auto = pages[1]["sweep"]["sigmas"].index(pages[1]["sigma"]["auto"])
    assert pages[1]["sweep"]["picks"][at_auto] == begins["picks"]


def test_many_questions_get_fewer_candidates_each(client):
    found = found_by(
        explore(client, also=[f"How about {at}?" for at in range(15)], layout=False, sweep=False)
    )
    assert len(found["questions"]) == 16 and len(found["candidates"]) <= 1200


def test_required_and_excluded_chunks_and_caps(client):
    ids = [each["id"] for each in found_by(explore(client, layout=False, sweep=False))["candidates"]]
    options = {"must_include": [ids[5]], "exclude": [ids[0]], "max_per_source": 1, "min_similarity": 0.1}
    found = found_by(explore(client, layout=False, sweep=False, **options))
    picked = [found["candidates"][step["pick"]]["id"] for step in found["steps"]]
    assert picked[0] == ids[5] and ids[0] not in picked
    refused(explore(client, k=1, must_include=ids[:2]), 422, "more than k = 1")
