"""Evaluations over HTTP: the specification's fields, jobs for what takes long, nothing but known names."""

import pytest

from dartboard.datasets import load_dataset
from dartboard.evaluation import EvaluationConfig, evaluate_dataset
from tests.api.core_app import BASE, refused, running
from tests.api.small_app import until


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    with running(tmp_path_factory.mktemp("evaluate"), k=20, triage_k=200) as client:
        yield client


def ask(client, name="synthetic_clustered", **options):
    return client.post(f"{BASE}/evaluate", json={"dataset_name": name, **options})


def test_answers_with_the_fields_and_the_numbers_of_the_library(client):
    found = ask(
        client, config={"top_k": 5}, metrics=["ndcg", "precision", "diversity"], systems=["cosine"]
    ).json()
    assert {"dataset", "metrics", "num_queries", "execution_time_ms"} <= set(found)
    assert found["dataset"] == "synthetic_clustered"
    assert found["num_queries"] == 20
    config = EvaluationConfig(
        datasets=["synthetic_clustered"], retrievers=["dartboard", "cosine"], k_values=[5],
        metrics=["ndcg", "precision", "diversity"], sigma_sweep=False, copies=[0], resamples=100,
    )  # fmt: skip
    expected = evaluate_dataset(load_dataset("synthetic_clustered"), config).record["systems"]
    for system, measured in (("dartboard", found["metrics"]), ("cosine", found["systems"]["cosine"])):
        assert set(measured) == {"ndcg@5", "precision@5", "diversity"}
        for name, value in measured.items():
            known = expected[system][name if "@" in name else f"{name}@5"]["mean"]
            assert value == pytest.approx(known, abs=1e-6)


def test_measures_at_depths_of_their_own(client):
    found = ask(client, metrics=["recall@3", "recall", "diversity@2"], config={"top_k": 4}).json()
    assert set(found["metrics"]) == {"recall@3", "recall@4", "diversity@2"}


def test_every_variant(client):
    for kind in ("hybrid", "crossencoder"):
        found = ask(
            client,
            "synthetic_adversarial",
            config={"reranker_type": kind, "top_k": 3, "triage_k": 10, "sigma": 0.5},
        ).json()
        assert found["config"]["reranker_type"] == kind
        assert 0 < found["metrics"]["ndcg@3"] <= 1


def test_in_the_background(client):
    response = ask(client, background=True)
    assert response.status_code == 202
    place = response.json()["status_url"]
    until(lambda: client.get(place).json()["state"] == "done")
    job = client.get(place).json()
    assert job["kind"] == "evaluate"
    assert job["done"] == job["total"] == 20
    assert job["result"]["metrics"]["ndcg@5"] > 0.5
    assert job["created"] <= job["started"] <= job["finished"]
    assert place.rpartition("/")[2] in [one["id"] for one in client.get(f"{BASE}/jobs").json()["jobs"]]


def test_a_job_takes_over_where_a_request_may_not_take_so_long(tmp_path):
    with running(tmp_path, timeout=2.01) as client:  # timing: both outcomes are right
        response = ask(client, "synthetic_adversarial", systems=["dartboard-crossencoder"])
        assert response.status_code in (200, 202)
        if response.status_code == 202:
            stopped = client.delete(response.json()["status_url"]).json()
            assert stopped["state"] in ("queued", "running", "cancelled", "done")
            until(lambda: client.get(response.json()["status_url"]).json()["finished"] is not None)


@pytest.mark.parametrize(
    ("options", "status", "said"),
    [
        ({"name": "nothing"}, 404, "no such data set"),
        ({"name": "../../etc/passwd"}, 404, "no such data set"),
        ({"name": ""}, 422, "dataset_name"),
        ({"metrics": ["nothing"]}, 422, "unknown measure"),
        ({"metrics": ["ndcg@0"]}, 422, "ndcg@0"),
        ({"metrics": ["ndcg@300"]}, 422, "triage_k"),
        ({"metrics": []}, 422, "metrics"),
        ({"metrics": ["answer"]}, 422, "dartboard eval --answers MODEL"),
        ({"metrics": ["distinct_share"]}, 422, "cannot answer distinct_share"),
        ({"systems": ["run:/etc/passwd"]}, 422, "systems"),
        ({"systems": ["mmr-."]}, 422, "systems"),
        ({"config": {"top_k": 21}}, 422, "20"),
        ({"config": {"top_k": 20, "triage_k": 10}}, 422, "triage_k"),
        ({"config": {"sigma": -1}}, 422, "sigma"),
        ({"config": {"model": "x"}}, 422, "model"),
        ({"path": "/etc"}, 422, "path"),
    ],
)
def test_refuses_what_it_does_not_know(client, options, status, said):
    problem = refused(ask(client, **options), status, said)
    assert "passwd" not in str(problem)


def test_data_sets_of_the_server_alone(tmp_path, monkeypatch):
    data = tmp_path / "data" / "tiny"
    (data / "qrels").mkdir(parents=True)
    (data / "corpus.jsonl").write_text(
        '{"_id": "1", "text": "leave is earned"}\n{"_id": "2", "text": "pay is monthly"}\n'
    )
    (data / "queries.jsonl").write_text('{"_id": "q", "text": "when is pay?"}\n')
    (data / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq\t2\t1\n")
    broken = tmp_path / "data" / "retrieval_dataset.yaml"
    broken.write_text("nothing: [")
    monkeypatch.setenv("DARTBOARD_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("DARTBOARD_CACHE", str(tmp_path / "cache"))
    with running(tmp_path, demo=False) as client:
        listed = {one["name"]: one for one in client.get(f"{BASE}/datasets").json()["datasets"]}
        assert {"synthetic_clustered", "tiny", "retrieval_dataset"} <= set(listed)
        assert (listed["tiny"]["num_chunks"], listed["tiny"]["num_queries"], listed["tiny"]["type"]) == (
            2,
            1,
            "real",
        )
        assert not listed["retrieval_dataset"]["usable"]
        assert str(tmp_path) not in str(listed)
        found = ask(client, "tiny", metrics=["recall"], config={"top_k": 1, "triage_k": 2}).json()
        assert found["metrics"] == {"recall@1": 1.0}
        assert str(tmp_path) not in refused(ask(client, "retrieval_dataset"), 422, "cannot be read")["detail"]


def test_questions_of_the_demo(client):
    found = client.get(f"{BASE}/questions").json()["questions"]
    assert len(found) >= 3
    assert all(set(one) == {"text", "wants"} for one in found)


def test_the_headline_is_that_of_the_report(client):
    """By the judgements of the set: facets that several passages cover, and required passages."""
    for name, measure in (
        ("synthetic_clustered", "subtopic_recall@4"),
        ("synthetic_query_focused", "set_recall@4"),
    ):
        found = ask(client, name, config={"top_k": 4}, metrics=["headline"], systems=["cosine"]).json()
        assert found["headline"] == measure and set(found["metrics"]) == {measure}
        config = EvaluationConfig(
            datasets=[name], retrievers=["dartboard"], k_values=[4], sigma_sweep=False, copies=[],
            resamples=100,
        )  # fmt: skip
        assert evaluate_dataset(load_dataset(name), config).record["headline"]["quality"] == measure
    assert "subtopic_recall@5" in ask(client).json()["metrics"], "it is among the measures of default"


def test_precision_counts_every_copy_and_comes_with_the_one_that_does_not(client):
    dataset = load_dataset("synthetic_query_focused")
    found = ask(client, dataset.name, metrics=["precision", "mrr"], systems=["cosine"]).json()
    assert set(found["metrics"]) == {"precision@5", "distinct_precision@5", "mrr@5"}
    assert found["systems"]["cosine"]["precision@5"] == 1.0  # copies, every one of them relevant
    assert found["systems"]["cosine"]["distinct_precision@5"] < 1.0


def test_retrievers_by_name_search_the_whole_corpus(client):
    names = ["dense", "bm25", "colbert", "hybrid", "rrf"]
    found = ask(client, "synthetic_adversarial", metrics=["set_recall"], systems=["cosine", *names]).json()
    assert set(found["systems"]) == {"cosine", *names} and not found["skipped"]
    assert found["systems"]["dense"] == found["systems"]["cosine"]
    made_up = ask(client, systems=["bm25"]).json()
    assert "texts of this data set are made up" in made_up["skipped"]["bm25"]
    for wrong in ("colbert:/etc", "splade:/etc", "hybrid:dense=1,bm25=1"):
        refused(ask(client, systems=[wrong]), 422, "systems")
