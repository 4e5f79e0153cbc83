"""``/select``: the same picks as the library's, from everything that can be brought along."""

import numpy as np
import pytest

from dartboard.selection import Limits, from_distances, from_embeddings, from_log_probs, select
from dartboard.selection.greedy import Dartboard
from tests.api.core_app import BASE, refused, running

RNG = np.random.default_rng(7)
VECTORS = RNG.standard_normal((30, 8)).round(6)
QUERY = RNG.standard_normal(8).round(6)
SCORES = RNG.standard_normal(30).round(6)


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    with running(tmp_path_factory.mktemp("select"), k=10, vectors=100, token_budget=500) as client:
        yield client


def ask(client, **body):
    return client.post(f"{BASE}/select", json=body)


def vectors(**more):
    return {"embeddings": VECTORS.tolist(), "query": QUERY.tolist()} | more


@pytest.mark.parametrize("method", ["dartboard", "mmr", "top_k", "near_duplicate_filter", "random"])
def test_vectors(client, method):
    expected = select(VECTORS, QUERY, k=4, method=method)
    found = ask(client, **vectors(k=4, method=method)).json()
    assert found["indices"] == expected.indices.tolist()
    assert found["gains"] == pytest.approx(expected.gains.tolist())
    assert found["coverage"] == pytest.approx(expected.coverage.tolist())
    assert found["similarity"] == pytest.approx(expected.similarity.tolist())
    assert found["stands_for"] == [stands.tolist() for stands in expected.stands_for]
    assert found["bound"] == pytest.approx(expected.bound)
    assert found["sigma"] == pytest.approx(expected.sigma.value)
    assert found["method"] == method


def test_scores_of_a_retriever(client):
    expected = select(VECTORS, QUERY, k=5, scores=SCORES, temperature=0.5)
    found = ask(client, **vectors(scores=SCORES.tolist(), temperature=0.5)).json()
    assert found["indices"] == expected.indices.tolist()
    alone = ask(client, embeddings=VECTORS.tolist(), scores=SCORES.tolist(), temperature=0.5).json()
    assert alone["indices"] == found["indices"]
    assert alone["similarity"] is None


SUBJECTS = ("brick bridge", "copper mine", "canal lock", "corn mill", "slate quarry", "rope ferry")


def versions(change):
    """Five versions each of six passages: the vectors are alike, ``change`` makes the texts."""
    rows = np.repeat(RNG.standard_normal((len(SUBJECTS), 8)), 5, axis=0)
    rows = (rows + 0.01 * RNG.standard_normal(rows.shape)).round(6)
    passage = "The old {} was closed for repairs and opened again in the spring of {}".format
    return rows, [change(passage, subject, version) for subject in SUBJECTS for version in range(5)]


def test_near_duplicates_are_removed_by_their_texts(client):
    """The same words with other markup are copies; the same words with another year are not."""
    rows, copies = versions(lambda passage, subject, n: passage(subject, 1927) + "!" * n)
    _, years = versions(lambda passage, subject, n: passage(subject, 1927 + n))
    for texts, removed in ((None, 0), (copies, 24), (years, 0)):
        found = ask(client, embeddings=rows.tolist(), query=QUERY.tolist(), k=5, texts=texts).json()
        assert found["near_copies"] == removed
        if texts is copies:
            assert len({pick // 5 for pick in found["indices"]}) == 5
            assert all(len(stands) % 5 == 0 and len(stands) for stands in found["stands_for"])
    refused(ask(client, **vectors(texts=["one"])), 422, "texts must be as many as embeddings")
    refused(
        ask(client, pairwise_distances=[[0.0]], query_distances=[0.1], texts=["one"]),
        422,
        "texts goes with embeddings",
    )


def test_distances_and_log_probabilities(client):
    points = RNG.random((12, 2))
    pairwise = np.abs(points[:, None] - points[None]).mean(axis=2).round(6)
    to_query = points.mean(axis=1).round(6)
    expected = Dartboard().select(from_distances(to_query, pairwise, sigma=0.1), Limits(k=3))
    found = ask(
        client, query_distances=to_query.tolist(), pairwise_distances=pairwise.tolist(), k=3, sigma=0.1
    )
    assert found.json()["indices"] == expected.indices.tolist()
    logs = (-10 * pairwise).round(6)
    expected = Dartboard().select(from_log_probs(-to_query, logs), Limits(k=3))
    found = ask(client, query_log_probs=(-to_query).tolist(), pairwise_log_probs=logs.tolist(), k=3).json()
    assert found["indices"] == expected.indices.tolist()
    assert found["sigma"] is None


def test_limits_of_a_selection(client):
    costs = RNG.integers(10, 60, 30).tolist()
    sources = [f"s{i % 4}" for i in range(30)]
    expected = Dartboard().select(
        from_embeddings(QUERY, VECTORS),
        Limits(
            token_budget=120, costs=costs, max_per_source=1, sources=sources, must_include=[3], exclude=[0]
        ),
    )
    found = ask(
        client,
        **vectors(
            token_budget=120, costs=costs, max_per_source=1, sources=sources, must_include=[3], exclude=[0]
        ),
    ).json()
    assert found["indices"] == expected.indices.tolist()
    assert found["indices"][0] == 3


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"k": 3}, "embeddings"),
        ({"embeddings": VECTORS.tolist()}, "query"),
        ({"query": [1.0]}, "embeddings"),
        ({"query_distances": [1.0]}, "pairwise_distances"),
        (vectors(query_distances=[0.1], pairwise_distances=[[0.0]]), "one of"),
        (vectors(k=11), "10"),
        (vectors(token_budget=501, costs=[1] * 30), "500"),
        (vectors(token_budget=10), "costs"),
        (vectors(costs=[1] * 30), "token_budget"),
        (vectors(embeddings=[[1.0]] * 101), "100"),
        (vectors(embeddings=[[1.0, 2.0], [1.0]]), "one length"),
        (vectors(embeddings=[[1.0, "2"]]), "embeddings.0.1"),
        (vectors(embeddings=[[1.0, True]]), "embeddings.0.1"),
        (vectors(embeddings=[[1.0, None]]), "embeddings.0.1"),
        (vectors(embeddings="text"), "embeddings"),
        (vectors(embeddings=[]), "at least one row"),
        (vectors(embeddings=[[]]), "at least one row"),
        (vectors(embeddings=[[0.0] * 8]), "zeros"),
        (vectors(query=[1.0, 2.0]), "dimensions"),
        (vectors(query=[]), "query"),
        (vectors(scores=[1.0]), "as many"),
        (vectors(scores=[1.0] * 30, method="mmr"), "mmr"),
        (vectors(scores=["a"] * 30), "scores.0"),
        (vectors(must_include=[30]), "no candidate"),
        (vectors(must_include=[-1]), "must_include"),
        (vectors(must_include=[1], exclude=[1]), "both"),
        (vectors(max_per_source=1), "sources"),
        (vectors(max_per_source=1, sources=["a"]), "one each"),
        (vectors(method="exhaustive"), "method"),
        (vectors(sigma=1e-9), "sigma"),
        (vectors(distance="cosine"), "distance"),
        ({"query_distances": [-1.0], "pairwise_distances": [[0.0]]}, "finite numbers"),
        ({"query_distances": [1.0, 2.0], "pairwise_distances": [[0.0]]}, "query_distances"),
        ({"query_log_probs": [0.0], "pairwise_log_probs": [[0.0, 0.0]]}, "pairwise_log_probs"),
    ],
)
def test_says_what_is_wrong(client, body, said):
    refused(ask(client, **body), 422, said)


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"must_include": [30]}, "must_include"),
        ({"exclude": [30]}, "exclude"),
        ({"must_include": [1, 1]}, "must_include"),
        ({"must_include": [1], "exclude": [1]}, "must_include"),
        ({"must_include": [0, 1], "k": 1}, "must_include"),
        ({"embeddings": []}, "embeddings"),
        ({"embeddings": [[0.0] * 8]}, "embeddings"),
        ({"query": [0.0] * 8}, "query"),
        ({"query": [1.0, 2.0]}, "query"),
        ({"token_budget": 10}, "token_budget"),
        ({"token_budget": 10, "costs": [1]}, "costs"),
        ({"token_budget": 10, "costs": [-1] * 30}, "costs"),
        ({"max_per_source": 1}, "max_per_source"),
        ({"max_per_source": 1, "sources": ["a"]}, "sources"),
    ],
)
def test_what_cannot_be_used_is_named(client, options, field):
    problem = refused(ask(client, **vectors(**options)), 422)
    assert [error["field"] for error in problem["errors"]] in ([field], []) and field in problem["detail"]
