"""Models by name."""

import json

import pytest

from dartboard.embeddings import default_model
from dartboard.embeddings.by_name import GEMINI_URL, OPENAI_URL, EndpointName, endpoint_name, model_by_name
from dartboard.errors import ConfigError, DartboardError, MissingExtraError


def test_the_default():
    assert model_by_name("default").fingerprint == default_model().fingerprint


@pytest.mark.parametrize(
    "name",
    ["", "onnx:", "bert", "default:x", "hub:thing", "gemini:", "gemini:m@", "gemini:@http://x", "openai:m@"],
)
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


def test_gemini_at_another_url(serve, monkeypatch):
    """The model's name ends at the ``@``, and the URL is the one that is asked."""

    def answer(request):
        rows = [{"values": [3.0, 4.0]} for _ in request.json["requests"]]
        return 200, json.dumps({"embeddings": rows}).encode(), {}

    server = serve(answer)
    monkeypatch.setenv("GEMINI_API_KEY", "key")
    model = model_by_name(f" gemini:embedder@{server.url} ")
    assert model.name == "models/embedder"
    assert model.encode_documents(["a"])[0].tolist() == pytest.approx([0.6, 0.8])
    assert {one.path for one in server.requests} == {"/models/embedder:batchEmbedContents"}
    with pytest.raises(ConfigError, match="must start with http"):
        model_by_name("gemini:embedder@localhost:80")


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("openai:m", EndpointName("openai", "m")),
        ("openai:a:8b@http://h:1/v1", EndpointName("openai", "a:8b", "http://h:1/v1")),
        (" gemini:models/g@https://h/v1beta ", EndpointName("gemini", "models/g", "https://h/v1beta")),
        ("gemini", None),
        ("gemini:", None),
        ("gemini:@http://h", None),
        ("openai:m@", None),
        ("onnx:m@http://h", None),
    ],
)
def test_names_of_models_at_endpoints(name, parts):
    assert endpoint_name(name) == parts


def test_without_a_url_the_provider_is_asked():
    assert EndpointName("openai", "m").base_url == OPENAI_URL
    assert EndpointName("gemini", "m").base_url == GEMINI_URL
    assert EndpointName("gemini", "m", "http://h").base_url == "http://h"
