"""Pair scorers by name, at every door: a tiny cross-encoder is made, saved, and loaded by the real code."""

import asyncio
import json

import pytest
from mcp import Client

from dartboard.api.settings import service_settings
from dartboard.cli.app import main
from dartboard.embeddings import CrossEncoder, LateInteraction, default_model
from dartboard.embeddings.by_name import pair_scorer_by_name
from dartboard.engine import load_settings
from dartboard.errors import ConfigError, ModelError
from dartboard.integrations.mcp import OpenIndex, create_server
from dartboard.search_options import SearchOptions
from dartboard.stores import open_store
from tests.api.core_app import BASE, QUESTION, ids, refused, retrieve, running
from tests.embeddings.tiny_models import save_tiny
from tests.models import WordBag
from tests.tea import QUERY, TEXTS, filled


@pytest.fixture(scope="module")
def weights(tmp_path_factory):
    pytest.importorskip("sentence_transformers")
    folder = tmp_path_factory.mktemp("cross-encoder")
    return save_tiny(folder, "BertForSequenceClassification", seed=3, num_labels=1)


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    path = tmp_path_factory.mktemp("index") / "tea.dartboard"
    with open_store(str(path)) as store:
        filled(store, model="default")
    return str(path)


def by_score(weights, query, texts):
    """Ids by falling score of the cross-encoder."""
    scores = CrossEncoder(str(weights)).score(query, list(texts.values()))
    return [id for _, id in sorted(zip(-scores, texts, strict=True))]


def search_ids(capsys, *arguments):
    assert main(["search", QUERY, "--json", "-k", "10", *arguments]) == 0, capsys.readouterr().err
    found = json.loads(capsys.readouterr().out)
    return [chunk["id"] for chunk in found["chunks"]], found["variant"]


def test_the_command_line_takes_a_cross_encoder(store, weights, capsys, monkeypatch):
    wanted = by_score(weights, QUERY, TEXTS)
    plain, variant = search_ids(capsys, "--store", store, "--method", "top_k", "--retriever", "dense")
    assert variant == "cosine" and plain != wanted
    named = ["--store", store, "--retriever", "dense", "--method", "top_k"]
    assert search_ids(capsys, *named, "--pair-scorer", f"cross-encoder:{weights}") == (wanted, "hybrid")
    monkeypatch.setenv("DARTBOARD_PAIR_SCORER", f"cross-encoder:{weights}")
    assert search_ids(capsys, *named) == (wanted, "hybrid")
    assert search_ids(capsys, *named, "--pair-scorer", "none") == (plain, "cosine")


def test_the_command_line_takes_late_interaction(store, capsys):
    found, variant = search_ids(
        capsys, "--store", store, "-r", "dense", "--method", "top_k", "--pair-scorer", "late-interaction"
    )
    scores = LateInteraction(default_model()).score(QUERY, list(TEXTS.values()))
    assert variant == "hybrid" and found == [id for _, id in sorted(zip(-scores, TEXTS, strict=True))]


@pytest.mark.parametrize("name", ["magic", "cross-encoder", "cross-encoder:", "late-interaction:x"])
def test_an_unknown_name_lists_those_there_are(store, capsys, name):
    assert main(["search", QUERY, "--store", store, "--pair-scorer", name]) == 2
    assert "cross-encoder:PATH" in capsys.readouterr().err


def test_a_folder_without_a_model_and_a_model_without_tokens(tmp_path):
    pytest.importorskip("sentence_transformers")
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(ModelError, match="could not be loaded"):
        pair_scorer_by_name(f"cross-encoder:{tmp_path}", WordBag())
    with pytest.raises(ConfigError, match="WordBag has no token vectors, which late-interaction needs"):
        pair_scorer_by_name("late-interaction", WordBag())


def test_an_engine_loads_it_once_and_only_when_asked(weights):
    engine = filled(pair_scorer=f"cross-encoder:{weights}")
    engine.search(QUERY)
    assert engine._pair_scorer == f"cross-encoder:{weights}"
    assert engine.search(QUERY, reranker="crossencoder").metadata["variant"] == "crossencoder"
    loaded = engine._pair_scorer
    engine.search(QUERY, reranker="hybrid")
    assert isinstance(loaded, CrossEncoder) and engine._pair_scorer is loaded


def test_the_service_takes_it_from_its_configuration_alone(weights, tmp_path):
    with running(tmp_path, pair_candidates=100, pair_scorer=f"cross-encoder:{weights}") as client:
        engine = client.app.state.service.engines.get("demo")
        texts = {each.chunk.id: each.chunk.text for each in engine.candidates(QUESTION, 100).found}
        wanted = by_score(weights, QUESTION, texts)[:5]
        for kind in ("hybrid", "crossencoder"):
            assert ids(retrieve(client, reranker_type=kind, method="top_k", triage_k=100)) == wanted
        assert ids(retrieve(client, method="top_k")) != wanted
        for field in ("reranker", "pair_scorer", "model"):
            refused(retrieve(client, **{field: f"cross-encoder:{weights}"}), 422)
        refused(retrieve(client, reranker_type=f"cross-encoder:{weights}"), 422)
        body = {
            "dataset_name": "synthetic_clustered",
            "config": {"reranker_type": f"cross-encoder:{weights}"},
        }
        refused(client.post(f"{BASE}/evaluate", json=body), 422)


def test_a_service_whose_cross_encoder_cannot_be_loaded_does_not_start(tmp_path):
    pytest.importorskip("sentence_transformers")
    (tmp_path / "config.json").write_text("{}")
    with (
        pytest.raises(ModelError, match="could not be loaded"),
        running(tmp_path, pair_scorer=f"cross-encoder:{tmp_path}"),
    ):
        pass


def test_settings_name_it(tmp_path):
    (tmp_path / "dartboard.toml").write_text('pair_scorer = "late-interaction"\n')
    found = load_settings(environment={}, folder=tmp_path)
    assert (found.pair_scorer, found.reranker_type) == ("late-interaction", "hybrid")
    none = load_settings({"pair_scorer": "none"}, environment={}, folder=tmp_path)
    assert (none.pair_scorer, none.reranker_type) == (None, "cosine")
    assert service_settings({}, environment={}, folder=tmp_path).pair_scorer == "late-interaction"
    variable = {"DARTBOARD_SERVE_PAIR_SCORER": "cross-encoder:x"}
    assert service_settings({}, environment=variable, folder=tmp_path).pair_scorer == "cross-encoder:x"
    assert service_settings({"pair_scorer": "a"}, environment=variable, folder=tmp_path).pair_scorer == "a"


def test_an_index_for_language_models_uses_it(store, weights):
    wanted = by_score(weights, QUERY, TEXTS)[:5]
    index = OpenIndex(store, retriever="dense", pair_scorer=f"cross-encoder:{weights}")

    async def found(options):
        async with Client(create_server(index, options)) as client:
            answer = await client.call_tool("search", {"query": QUERY, "method": "top_k"})
            return [one["id"] for one in answer.structured_content["passages"]]

    try:
        assert asyncio.run(found(SearchOptions(reranker="hybrid"))) == wanted
        assert asyncio.run(found(SearchOptions())) != wanted
    finally:
        index.close()
