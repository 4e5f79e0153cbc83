"""The demo corpus with its real model: what is explored is what a search returns."""

import json

import numpy as np
import pytest

from dartboard.api.engines import demo_engine
from dartboard.datasets import demo
from dartboard.embeddings import default_model
from dartboard.embeddings.late_interaction import LateInteraction
from dartboard.engine import Engine
from dartboard.explain.exploration import explore
from dartboard.stores import Record, open_store

QUESTIONS = [question.text for question in demo.questions()]
MORE = [row["text"][:60] for row in demo.passages()[::30]]


@pytest.fixture(scope="module")
def model():
    return default_model()


@pytest.fixture(scope="module", params=["hybrid", "dense"])
def engine(request, model):
    return demo_engine(model, request.param)


def picked(found, method):
    return [found["candidates"][pick]["id"] for pick in found["methods"][method]["picks"]]


@pytest.mark.parametrize("sigma", ["auto", 0.01, 0.09, 0.5])
def test_picks_equal_those_of_a_search(engine, sigma):
    for number, query in enumerate(QUESTIONS + MORE):
        options = {"k": 3 + number % 6, "sigma": sigma, "triage_k": 40 + 10 * (number % 8)}
        found = explore(engine, query, layout=False, sweep=False, **options).to_json()
        for method in found["methods"]:
            result = engine.search(query, method=method, **options)
            assert picked(found, method) == [chunk.id for chunk in result.chunks]
        assert found["sigma"]["value"] == pytest.approx(result.metadata["sigma"], rel=1e-4)


def test_picks_under_a_budget_equal_those_of_a_search(engine):
    for query in QUESTIONS:
        found = explore(engine, query, token_budget=400, layout=False, sweep=False).to_json()
        assert found["k"] is None and found["token_budget"] == 400
        for method, facts in found["methods"].items():
            result = engine.search(query, method=method, token_budget=400)
            assert picked(found, method) == [chunk.id for chunk in result.chunks]
            assert facts["tokens"] == sum(found["candidates"][pick]["tokens"] for pick in facts["picks"])
            assert facts["tokens"] <= 400


def test_picks_of_the_hybrid_reranker_equal_those_of_a_search(engine, model):
    own = Engine(
        engine.store,
        collection=engine.name,
        model=model,
        retriever=engine.retriever,
        pair_scorer=LateInteraction(model),
    )
    for query in QUESTIONS[:2]:
        for sigma in ("auto", 0.5):
            options = {"reranker": "hybrid", "sigma": sigma, "triage_k": 30}
            found = explore(own, query, layout=False, **options).to_json()
            result = own.search(query, **options)
            assert picked(found, "dartboard") == [chunk.id for chunk in result.chunks]
            assert found["sigma"]["source"] == result.metadata["sigma_source"]
            middle = found["sweep"]["sigmas"].index(found["sigma"]["auto"])
            if sigma == "auto":
                assert found["sweep"]["picks"][middle] == found["methods"]["dartboard"]["picks"]


def test_the_probabilities_are_the_weights_of_the_selection(engine):
    found = explore(engine, QUESTIONS[0], k=5).to_json()
    weights = np.array([each["probability"] for each in found["candidates"]])
    assert weights.sum() == pytest.approx(1.0)
    meant = weights > 0  # the others are copies, and stand for nothing
    assert 0 < np.count_nonzero(~meant) < len(meant)
    if engine.retriever.name == "hybrid":  # dealt out in the retriever's order
        assert (np.diff(weights[meant]) <= 1e-12).all()
    sigma = found["sigma"]["value"]
    vectors = np.stack(
        [record.embedding for record in engine.collection.get([c["id"] for c in found["candidates"]])]
    ).astype(np.float64)
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    kernel = np.exp(-(((1 - unit @ unit.T) / 2) ** 2) / (2 * sigma**2))
    covered = np.zeros(len(weights))
    for step in found["steps"]:
        for at, gain in enumerate(step["gains"]):
            if gain is not None and meant[at]:
                true = float(weights @ np.maximum(0.0, kernel[at] - covered))
                assert gain == pytest.approx(true, rel=1e-5, abs=1e-9)
        covered = np.maximum(covered, kernel[step["pick"]])
        assert step["coverage"] == pytest.approx(float(weights @ covered), rel=1e-6)
        assert step["uncovered"] == pytest.approx(1.0 - step["coverage"])
    assert np.array(found["cover"])[meant] == pytest.approx(covered[meant].tolist(), abs=1e-6)


def test_everything_that_the_page_draws(engine):
    found = explore(engine, QUESTIONS[1]).to_json()
    json.dumps(found, allow_nan=False)
    count = len(found["candidates"])
    assert count == 100 and len(found["covered_by"]) == len(found["cover"]) == count
    for each in found["candidates"]:
        length = np.hypot(each["x"], each["y"])
        assert length == pytest.approx(each["distance"] * found["layout"]["radius_of_one"], abs=1e-9)
        assert each["similarity"] == pytest.approx(1 - 2 * each["distance"])
        assert each["source"] == each["metadata"]["source"] and each["title"] is None
        assert set(each["shares"]) <= {"dense", "bm25"} and each["shares"]
    assert 0.0 < found["layout"]["stress"] < 0.5
    assert set(found["overlap"]) == {"top_k|mmr", "top_k|dartboard", "mmr|dartboard"}
    assert found["pick_distances"] == found["methods"]["dartboard"]["matrix"]
    assert len(found["sweep"]["sigmas"]) == len(found["sweep"]["picks"]) == 25
    assert {"gather", "pool", "select", "trace", "layout", "sweep", "total"} <= set(found["seconds"])
    assert 0.0 < found["bound"] <= 1.0
    assert found["sigma"]["low"] < found["sigma"]["auto"] < found["sigma"]["high"]
    plain = explore(engine, QUESTIONS[1], layout=False, sweep=False).to_json()
    assert plain["layout"] is None and plain["sweep"] is None and plain["candidates"][0]["x"] is None
    assert plain["methods"] == found["methods"] and plain["steps"] == found["steps"]


def test_a_filter_and_a_sigma_out_of_range(engine):
    found = explore(engine, QUESTIONS[0], where='kind = "original"', sigma=5.0).to_json()
    assert all(each["metadata"]["kind"] == "original" for each in found["candidates"])
    assert found["sigma"]["value"] == found["sigma"]["high"] == 5.0 and found["sigma"]["source"] == "given"
    assert found["sigma"]["auto"] < 1.0


def test_a_collection_in_a_file(model, tmp_path):
    with open_store(str(tmp_path / "kept.dartboard")) as store:
        engine = Engine(store, collection="kept", model=model)
        rows = demo.passages()[:40]
        vectors = model.encode_documents([row["text"] for row in rows])
        records = [
            Record(row["id"], row["text"], 3.0 * vector, {"source": row["source"]})
            for row, vector in zip(rows, vectors, strict=True)
        ]
        engine.create().upsert(engine.retriever.index(records))
        for query in QUESTIONS:
            found = explore(engine, query, layout=False, sweep=False).to_json()
            for method in found["methods"]:
                result = engine.search(query, method=method)
                assert picked(found, method) == [chunk.id for chunk in result.chunks]
