"""Models by name."""

import pytest

from dartboard.embeddings import default_model
from dartboard.embeddings.by_name import model_by_name
from dartboard.errors import ConfigError, DartboardError, MissingExtraError


def test_the_default():
    assert model_by_name("default").fingerprint == default_model().fingerprint


@pytest.mark.parametrize("name", ["", "onnx:", "bert", "default:x", "hub:thing"])
def test_unknown_names_say_what_there_is(name):
    with pytest.raises(ConfigError, match=r"unknown model .* onnx:PATH"):
        model_by_name(name)


def test_each_kind_reaches_its_loader(tmp_path, monkeypatch):
    for name in (f"onnx:{tmp_path}", f"sentence-transformers:{tmp_path}"):
        with pytest.raises((DartboardError, MissingExtraError)):
            model_by_name(name)
    monkeypatch.delenv("GEMINI_API_KEY", raising=False)
    with pytest.raises(ConfigError, match="GEMINI_API_KEY"):
        model_by_name("gemini:embedding-001")
    local = model_by_name("openai:nomic-embed-text@http://127.0.0.1:9/v1")
    assert "nomic-embed-text" in local._model
