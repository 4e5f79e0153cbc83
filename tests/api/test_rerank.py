"""The rerank doors over HTTP, each in its peer's own words."""

import math
from functools import partial

import httpx
import pytest

from dartboard.api.app import create_app
from dartboard.api.endpoints.rerank_scores import beginning
from dartboard.api.settings import ServiceSettings
from dartboard.embeddings.by_name import default_model
from dartboard.embeddings.texts import count_tokens
from dartboard.ingest import estimate_tokens
from dartboard.selection import select
from tests.api.core_app import running
from tests.api.small_app import serving

QUERY = "Why do consumers fall behind, and what helps?"
TEXTS = [
    "Consumers fall behind when each message takes long to handle.",
    "Consumers fall behind when every message takes long to handle.",
    "More partitions let more consumers share the work, so that they catch up.",
    "Bread rises because yeast makes gas.",
    "What helps consumers that fall behind is to batch their writes to the database.",
    "Consumers fall behind when each message takes long to handle.",
]
COPIES = {0, 1, 5}


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    folder = tmp_path_factory.mktemp("rerank")
    settings = ServiceSettings(
        store=str(folder / "none.db"), home=folder, vectors=300, query_tokens=64, timeout=120
    )
    with serving(create_app(settings)) as port:
        yield f"http://127.0.0.1:{port}"


def post(url, path, **body):
    return httpx.post(url + path, json=body, timeout=120)


def good(url, path, **body):
    answer = post(url, path, **body)
    assert answer.status_code == 200, answer.text
    return answer.json()


def order_of(results, key="relevance_score"):
    scores = [one[key] for one in results]
    assert scores == sorted(scores, reverse=True)
    assert len(set(scores)) == len(scores)
    return [one["index"] for one in results]


def own_order(texts, k, method="dartboard"):
    model = default_model()
    return select(
        model.encode_documents(texts), model.encode_query(QUERY), k, method=method, sigma=0.09
    ).indices.tolist()


def test_text_embeddings_inference(url):
    results = good(url, "/rerank", query=QUERY, texts=TEXTS, sigma=0.09)
    assert isinstance(results, list)
    assert set(results[0]) == {"index", "score", "dartboard"}
    assert order_of(results, "score") == own_order(TEXTS, 6)
    assert all(0 < one["score"] < 1 for one in results)
    first = results[0]
    assert first["index"] in COPIES
    assert first["index"] in first["dartboard"]["stands_for"]
    assert first["score"] == pytest.approx(first["dartboard"]["similarity"], abs=2e-3)
    assert len({one["index"] for one in results[:3]} & COPIES) == 1, "copies do not take each other's places"
    assert results[-1]["dartboard"]["gain"] == 0
    some = good(url, "/v2/rerank", query=QUERY, documents=TEXTS, top_n=2)["results"]
    assert set(some[0]["dartboard"]["stands_for"]) >= COPIES, "a pick stands for its copies"
    assert sum(one["dartboard"]["gain"] for one in results) == pytest.approx(1)


def test_raw_scores_are_logits_and_texts_come_back(url):
    plain = good(url, "/rerank", query=QUERY, texts=TEXTS)
    raw = good(url, "/rerank", query=QUERY, texts=TEXTS, raw_scores=True, return_text=True, truncate=True)
    assert order_of(raw, "score") == order_of(plain, "score")
    for one, other in zip(plain, raw, strict=True):
        assert other["text"] == TEXTS[one["index"]]
        assert 1 / (1 + math.exp(-other["score"])) == pytest.approx(one["score"])


def test_jina(url):
    answer = good(
        url, "/v1/rerank", model="jina-reranker-v2", query=QUERY, documents=TEXTS, top_n=3, sigma=0.09
    )
    assert set(answer) == {"model", "usage", "id", "meta", "results", "dartboard"}
    assert answer["model"] == answer["dartboard"]["model"] == default_model().name
    assert answer["usage"]["total_tokens"] == sum(default_model().count_tokens([QUERY, *TEXTS]))
    assert answer["dartboard"] == {
        "model": "all-MiniLM-L6-v2",
        "method": "dartboard",
        "sigma": 0.09,
        "truncated": 0,
    }
    assert order_of(answer["results"]) == own_order(TEXTS, 3)
    for one in answer["results"]:
        assert one["document"] == {"text": TEXTS[one["index"]]}
    bare = good(url, "/v1/rerank", query=QUERY, documents=TEXTS, return_documents=False)
    assert set(bare["results"][0]) == {"index", "relevance_score", "dartboard"}
    objects = [{"text": text, "page": page} for page, text in enumerate(TEXTS)]
    mixed = good(url, "/v1/rerank", query=QUERY, documents=[*objects[:3], *TEXTS[3:]], top_n=6)
    assert order_of(mixed["results"]) == order_of(bare["results"])
    assert mixed["results"][0]["document"] == objects[mixed["results"][0]["index"]]


def test_cohere_second_version(url):
    answer = good(url, "/v2/rerank", model="rerank-v3.5", query=QUERY, documents=TEXTS, top_n=2)
    assert set(answer) == {"id", "results", "meta", "dartboard"}
    assert len(answer["results"]) == 2
    assert "document" not in answer["results"][0]
    assert answer["meta"]["api_version"] == {"version": "2"}
    again = good(
        url,
        "/v2/rerank",
        query=QUERY,
        documents=TEXTS,
        top_n=2,
        return_documents=True,
        priority=1,
        max_tokens_per_doc=None,
    )
    assert again["id"] != answer["id"]
    assert again["results"][0]["document"] == {"text": TEXTS[again["results"][0]["index"]]}


def test_cohere_first_version_is_known_by_its_body(url):
    documents = [{"title": text, "text": "the same for all", "year": year} for year, text in enumerate(TEXTS)]
    answer = good(
        url,
        "/v1/rerank",
        model="rerank-english-v2.0",
        query=QUERY,
        documents=documents,
        rank_fields=["title"],
        return_documents=True,
    )
    assert answer["meta"]["api_version"] == {"version": "1"}
    assert order_of(answer["results"]) == order_of(
        good(url, "/v1/rerank", query=QUERY, documents=TEXTS)["results"]
    )
    assert answer["results"][0]["document"] == documents[answer["results"][0]["index"]]
    odd = good(
        url, "/v1/rerank", query=QUERY, documents=[{"year": 1}, {}, "word"], rank_fields=["year", "none"]
    )
    assert order_of(odd["results"])[-1] == 1, "an object without the fields has nothing to say"


def test_bodies_matter_more_than_paths(url):
    assert good(url, "/v1/rerank", query=QUERY, texts=TEXTS) == good(url, "/rerank", query=QUERY, texts=TEXTS)
    assert "usage" in good(url, "/rerank", query=QUERY, documents=TEXTS)
    assert "meta" in good(url, "/rerank", query=QUERY, documents=TEXTS, max_chunks_per_doc=1)


@pytest.mark.parametrize("method", ["dartboard", "mmr", "top_k", "near_duplicate_filter", "random"])
def test_methods_can_be_compared(url, method):
    answer = good(url, "/v1/rerank", query=QUERY, documents=TEXTS, method=method, sigma=0.09)
    order = order_of(answer["results"])
    assert sorted(order) == list(range(6))
    assert answer["dartboard"]["method"] == method
    if method == "top_k":
        assert order == own_order(TEXTS, 6, "top_k")


def test_fewer_are_the_first_of_more(url):
    everything = order_of(good(url, "/v2/rerank", query=QUERY, documents=TEXTS)["results"])
    for top_n in (1, 3, 6, 50):
        some = good(url, "/v2/rerank", query=QUERY, documents=TEXTS, top_n=top_n)["results"]
        assert order_of(some) == everything[:top_n]


def test_texts_without_words_come_last(url):
    documents = ["", TEXTS[3], "  \n", TEXTS[0]]
    answer = good(url, "/v1/rerank", query=QUERY, documents=documents)
    assert order_of(answer["results"]) == [3, 1, 0, 2]
    last = answer["results"][-1]
    assert last["dartboard"] == {"gain": 0, "coverage": pytest.approx(1), "similarity": 0, "stands_for": []}
    assert last["relevance_score"] < 0.001
    nothing = good(url, "/rerank", query=QUERY, texts=["", " "])
    assert order_of(nothing, "score") == [0, 1]


def test_one_text_and_equal_texts(url):
    assert order_of(good(url, "/rerank", query=QUERY, texts=["alone"]), "score") == [0]
    same = good(url, "/rerank", query=QUERY, texts=["the same"] * 20)
    assert sorted(order_of(same, "score")) == list(range(20))
    assert same[0]["dartboard"]["gain"] == pytest.approx(1)
    assert same[1]["score"] < 0.001


def test_hundreds_of_texts(url):
    texts = [f"note {number} on topic {number % 7}" for number in range(300)]
    assert sorted(order_of(good(url, "/rerank", query=QUERY, texts=texts), "score")) == list(range(300))
    refused = post(url, "/rerank", query=QUERY, texts=[*texts, "one more"])
    assert refused.status_code == 422
    assert "limited to 300 texts" in refused.json()["detail"]


def test_no_more_texts_than_can_be_encoded_in_time(tmp_path):
    with running(tmp_path, demo=False, vectors=2000) as client:
        for path, field in (("/rerank", "texts"), ("/v1/rerank", "documents"), ("/v2/rerank", "documents")):
            named = {} if field == "texts" else {"model": "m"}
            answer = client.post(path, json={**named, "query": QUERY, field: ["a"] * 501})
            assert answer.status_code == 422
            assert answer.json()["errors"][0]["field"] == field


def test_long_texts_are_cut_counted_or_refused(url):
    long = "words and " * 400
    kept = good(url, "/v2/rerank", query=QUERY, documents=[*TEXTS, long])
    assert kept["dartboard"]["truncated"] == 1
    assert "1 of the documents" in kept["meta"]["warnings"][0]
    assert good(url, "/rerank", query=QUERY, texts=[*TEXTS, long])
    refused = post(url, "/rerank", query=QUERY, texts=[*TEXTS, long], truncate=False)
    assert refused.status_code == 413
    assert "truncate: true" in refused.json()["message"]
    assert "words and" not in refused.text
    assert good(url, "/rerank", query=QUERY, texts=TEXTS, truncate=False)


def test_only_the_beginning_counts_where_asked(url):
    hidden = ["bread and yeast and flour " + TEXTS[0], TEXTS[3]]
    open_ = good(url, "/v2/rerank", query=QUERY, documents=hidden)
    cut = good(url, "/v2/rerank", query=QUERY, documents=hidden, max_tokens_per_doc=5)
    shown = good(url, "/v2/rerank", query=QUERY, documents=["bread and yeast", "Bread rises because"])
    assert [one["relevance_score"] for one in cut["results"]] == pytest.approx(
        [one["relevance_score"] for one in shown["results"]], abs=1e-6
    )
    assert cut["results"][0]["relevance_score"] < open_["results"][0]["relevance_score"]
    assert cut["meta"]["tokens"]["input_tokens"] < open_["meta"]["tokens"]["input_tokens"]


def test_beginnings_fit():
    count = partial(count_tokens, default_model())
    text = " ".join(TEXTS)
    for most in (3, 5, 12, 50):
        cut = beginning(text, most, count)
        assert text.startswith(cut)
        assert count([cut])[0] <= most
        assert count([text[: len(cut) + 30]])[0] > most
    assert beginning("unbelievableness", 3, count) == "unbelievableness"
    assert count_tokens(object(), ["some words here"]) == [estimate_tokens("some words here")]


@pytest.mark.parametrize(
    ("path", "body", "said"),
    [
        ("/rerank", {"query": QUERY, "texts": []}, "texts"),
        ("/rerank", {"query": QUERY}, "body"),
        ("/rerank", {"query": " ", "texts": ["a"]}, "query"),
        ("/rerank", {"texts": ["a"]}, "query"),
        ("/rerank", {"query": QUERY, "texts": [1]}, "texts.0"),
        ("/rerank", {"query": QUERY, "texts": ["a"], "documents": ["a"]}, "body"),
        ("/rerank", {"query": "many words " * 100, "texts": ["a"]}, "query"),
        ("/v1/rerank", {"query": QUERY, "documents": [{"body": "a"}]}, "documents.0.text"),
        ("/v1/rerank", {"query": QUERY, "documents": ["a", {"text": 5}]}, "documents.1.text"),
        ("/v1/rerank", {"query": QUERY, "documents": ["a"], "top_n": 0}, "top_n"),
        ("/v1/rerank", {"query": QUERY, "documents": ["a"], "top_n": "3"}, "top_n"),
        ("/v1/rerank", {"query": QUERY, "documents": ["a"], "method": "magic"}, "method"),
        ("/v1/rerank", {"query": QUERY, "documents": ["a"], "sigma": -1}, "sigma"),
        ("/v2/rerank", {"query": QUERY, "documents": "a"}, "documents"),
        ("/v2/rerank", {"query": QUERY, "documents": ["a"], "max_tokens_per_doc": 0}, "max_tokens_per_doc"),
    ],
)
def test_what_cannot_be_used_is_named(url, path, body, said):
    answer = post(url, path, **body)
    assert answer.status_code == 422, answer.text
    assert said in [error["field"] for error in answer.json()["errors"]], answer.text
    assert "(" not in answer.json()["errors"][0]["field"]


def test_fields_of_other_clients_are_ignored(url):
    tei = {"model": "m", "top_n": 1, "truncation_direction": "Left", "raw_scores": False}
    assert good(url, "/rerank", query=QUERY, texts=TEXTS, **tei) == good(
        url, "/rerank", query=QUERY, texts=TEXTS
    )
    cohere = {"priority": 3, "max_chunks_per_doc": 2, "future": {"a": 1}}
    assert len(good(url, "/v2/rerank", query=QUERY, documents=TEXTS, top_n=2, **cohere)["results"]) == 2


def test_voyage(url):
    asked = {"query": QUERY, "documents": TEXTS, "model": "rerank-2", "top_k": 2, "truncation": True}
    answer = good(url, "/v1/rerank", **asked, return_documents=True)
    assert answer["object"] == "list" and answer["usage"]["total_tokens"] > 0
    assert len(order_of(answer["data"])) == 2
    assert answer["data"][0]["document"] == TEXTS[answer["data"][0]["index"]]


def test_a_body_that_is_no_object(url):
    for body in (b"[]", b"null", b'"texts"', b"{"):
        answer = httpx.post(url + "/rerank", content=body, headers={"content-type": "application/json"})
        assert answer.status_code == 422, answer.text


def test_the_model_of_a_request_is_never_loaded(url):
    answer = good(url, "/v2/rerank", model="/etc/passwd", query=QUERY, documents=["a"])
    assert answer["dartboard"]["model"] == "all-MiniLM-L6-v2"
