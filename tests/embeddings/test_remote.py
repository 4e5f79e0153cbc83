"""Remote models against a real server on this machine, which behaves badly in every way we know."""

import base64
import itertools
import json
import logging
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import numpy as np
import pytest

from dartboard.embeddings import GeminiModel, ModelDescription, OpenAIModel, Patience, TaskType
from dartboard.errors import ConfigError, EndpointError, InvalidInputError, ModelError
from dartboard.http_client import Endpoint
from tests.embeddings.local_server import LocalServer

KEY = "sk-secret-0123456789"
QUICK = Patience(timeout=60, attempts=3, first_wait=0.001, longest_wait=0.01)


def vector_of(text: str, dim: int = 4) -> list[float]:
    return [float(len(text)), *map(float, range(1, dim))]


def openai_answer(request, dim=4):
    """Floats, last text first: the order is in ``index``."""
    texts = request.json["input"]
    rows = [{"index": at, "embedding": vector_of(text, dim)} for at, text in enumerate(texts)]
    return 200, json.dumps({"data": rows[::-1]}).encode(), {}


def gemini_answer(request):
    texts = [one["content"]["parts"][0]["text"] for one in request.json["requests"]]
    return 200, json.dumps({"embeddings": [{"values": vector_of(text)} for text in texts]}).encode(), {}


def unit(texts: list[str]) -> np.ndarray:
    rows = np.array([vector_of(text) for text in texts], np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


@pytest.fixture
def openai(serve):
    """``openai(answer, …)``: a server and a model that asks it."""
    models: list[OpenAIModel] = []

    def make(answer, **options):
        server = serve(answer)
        options = {"model": "some-model", "api_key": KEY, "patience": QUICK} | options
        models.append(OpenAIModel(f"{server.url}/v1/", **options))
        return server, models[-1]

    yield make
    for model in models:
        model.close()


def sequence(*answers):
    """Each answer once, the last one for ever."""
    left = list(answers)
    return lambda request: (left.pop(0) if len(left) > 1 else left[0])(request)


def status(code, body=b"no", **headers):
    return lambda request: (code, body, {name.replace("_", "-"): value for name, value in headers.items()})


def test_openai_order_batches_and_headers(openai):
    server, model = openai(openai_answer, dimensions=4)
    texts = ["a", "bb", "ccc", "dddd", "eeeee"]
    seen: list[int] = []
    np.testing.assert_allclose(model.encode(texts, 2, progress=seen.append), unit(texts), atol=1e-6)
    assert seen == [2, 4, 5]
    first = server.requests[0]
    assert first.path == "/v1/embeddings"
    assert first.json == {
        "model": "some-model",
        "input": ["eeeee", "dddd"],
        "encoding_format": "float",
        "dimensions": 4,
    }
    assert {k.lower(): v for k, v in first.headers.items()}["authorization"] == f"Bearer {KEY}"


def test_openai_base64(openai):
    def answer(request):
        assert request.json["encoding_format"] == "base64"
        coded = [
            base64.b64encode(np.array(vector_of(text), "<f4")).decode() for text in request.json["input"]
        ]
        return 200, json.dumps({"data": [{"embedding": one} for one in coded]}).encode(), {}

    _, model = openai(answer, encoding_format="base64")
    np.testing.assert_allclose(model.encode(["a", "bb"]), unit(["a", "bb"]), atol=1e-6)


def test_dimension_is_known_given_or_learnt(openai):
    server, model = openai(openai_answer)
    assert model.embedding_dim == 4 and server.requests[0].json["input"] == ["dimension"]
    server, known = openai(openai_answer, model="text-embedding-3-small")
    assert known.embedding_dim == 1536 and not server.requests
    with pytest.raises(ModelError, match=r"shape \(1, 4\) instead of \(1, 1536\)"):
        known.encode("text")


def test_prefixes_and_normalisation_by_description(openai):
    stated = ModelDescription(name="x", dim=4, query_prefix="q: ", document_prefix="d: ", normalize=False)
    server, model = openai(openai_answer, description=stated)
    assert model.encode_query("a")[0] == 4
    model.encode_documents(["a"])
    assert [request.json["input"] for request in server.requests] == [["q: a"], ["d: a"]]


def test_largest_request_is_respected(openai, monkeypatch):
    monkeypatch.setattr(OpenAIModel, "max_batch", 3)
    server, model = openai(openai_answer, dimensions=4)
    assert model.encode(["a"] * 7, 100).shape == (7, 4)
    assert [len(request.json["input"]) for request in server.requests] == [3, 3, 1]


def test_bad_texts_never_leave(openai):
    server, model = openai(openai_answer, dimensions=4)
    with pytest.raises(InvalidInputError, match="text 1 is empty"):
        model.encode(["a", ""])
    assert model.encode([]).shape == (0, 4) and not server.requests


def drop(request):
    return None


def slow(request):
    time.sleep(5)  # timing: longer than anybody waits


def truncated(request):
    return 200, b'{"data": [', {"content-length": "1000"}


def false_gzip(request):
    return 200, b"not gzip at all", {"content-encoding": "gzip"}


def dripping(request):
    """Each byte comes in time, the answer does not."""
    drops = (b" " for _ in range(100) if time.sleep(0.1) is None)  # timing: slow, on every machine
    return 200, drops, {"content-length": "100"}


@pytest.mark.parametrize(
    "trouble",
    [status(408), status(429), status(500), status(503), drop, truncated, false_gzip],
)
def test_passing_trouble_is_outlived(openai, trouble):
    server, model = openai(sequence(trouble, trouble, openai_answer), dimensions=4)
    np.testing.assert_allclose(model.encode("a"), unit(["a"]), atol=1e-6)
    assert len(server.requests) == 3


@pytest.mark.parametrize("trouble", [slow, dripping])
def test_passing_slowness_is_outlived(openai, trouble):
    patience = replace(QUICK, timeout=2)  # timing: a slow machine may need another attempt
    server, model = openai(sequence(trouble, openai_answer), dimensions=4, patience=patience)
    np.testing.assert_allclose(model.encode("a"), unit(["a"]), atol=1e-6)
    assert len(server.requests) in (2, 3)


@pytest.mark.parametrize(
    ("trouble", "message"),
    [
        (status(500, b"kaputt"), "failed 3 times, at last with: HTTP 500 kaputt"),
        (status(429), "failed 3 times, at last with: HTTP 429"),
        (drop, "failed 3 times, at last with: RemoteProtocolError"),
        (truncated, "failed 3 times, at last with: RemoteProtocolError"),
        (false_gzip, "failed 3 times, at last with: DecodingError"),
    ],
)
def test_lasting_trouble_is_told(openai, trouble, message):
    server, model = openai(trouble, dimensions=4)
    with pytest.raises(EndpointError, match=message):
        model.encode("a")
    assert len(server.requests) == 3


@pytest.mark.parametrize(
    ("trouble", "message"), [(slow, "nothing of the answer"), (dripping, "nothing of the answer")]
)
def test_lasting_slowness_is_told(openai, trouble, message):
    patience = replace(QUICK, timeout=0.3)  # timing: has to run out
    server, model = openai(trouble, dimensions=4, patience=patience)
    with pytest.raises(EndpointError, match=f"failed 3 times, at last with: {message}"):
        model.encode("a")
    assert len(server.requests) == 3


def data(*rows):
    return status(200, json.dumps({"data": list(rows)}).encode())


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (status(400, b"bad model"), "refused: HTTP 400 bad model"),
        (status(401, f"wrong key {KEY}".encode()), r"wrong key \*\*\*"),
        (status(301, b"", location="http://127.0.0.1:9/"), "refused: HTTP 301"),
        (status(200, b"<html>"), "not JSON: '<html>'"),
        (status(200, b"[]"), "not JSON"),
        (data({"index": 0, "embedding": [1, 2, 3, 4]}), "returned 1 vectors for 2 texts"),
        (
            data({"index": 0, "embedding": [1, 2, 3, 4]}, {"index": 0, "embedding": [1, 2, 3, 4]}),
            "valid index",
        ),
        (data({"index": 0}, {"index": 1}), "valid index"),
        (data(7, 8), "valid index"),
        (status(200, b"[" * 100_000), "not JSON"),
        (data({"embedding": [10**400, 1, 2, 3]}, {"embedding": [1, 2, 3, 4]}), "lists of numbers"),
        (data({"embedding": [True] * 4}, {"embedding": [False] * 4}), "lists of numbers"),
        (data({"embedding": ["1"] * 4}, {"embedding": ["2"] * 4}), "lists of numbers"),
        (data({"embedding": "%%%"}, {"embedding": "%%%"}), "valid index"),
        (data({"embedding": [1, 2, 3, 4]}, {"embedding": [1, 2]}), "of one length"),
        (data({"embedding": ["x"] * 4}, {"embedding": ["x"] * 4}), "lists of numbers"),
        (data({"embedding": 3}, {"embedding": 4}), "instead of rows"),
        (data({"embedding": [1, 2, 3]}, {"embedding": [1, 2, 3]}), r"shape \(2, 3\) instead of \(2, 4\)"),
        (data({"embedding": [1, 2, 3, float("nan")]}, {"embedding": [1, 2, 3, 4]}), "NaN or infinity"),
        (data({"embedding": [1, 2, 3, 1e300]}, {"embedding": [1, 2, 3, 4]}), "NaN or infinity"),
        (data({"embedding": [0, 0, 0, 0]}, {"embedding": [1, 2, 3, 4]}), "all zeros"),
    ],
)
def test_refusals_and_nonsense_are_not_asked_again(openai, answer, message):
    server, model = openai(answer, dimensions=4)
    with pytest.raises(ModelError, match=message) as caught:
        model.encode(["a", "b"])
    assert len(server.requests) == (3 if "JSON" in message else 1)
    assert KEY not in str(caught.value)


def test_retry_after_is_honoured(openai):
    waits: list[float] = []
    soon = format_datetime(datetime.now(UTC) + timedelta(seconds=30))
    past = format_datetime(datetime.now(UTC) - timedelta(seconds=30)).replace("+0000", "-0000")
    answers = [status(429, retry_after=value) for value in ("2", "300", soon, past, "nonsense")]
    patience = Patience(attempts=6, first_wait=0.5, longest_wait=60)
    _, model = openai(sequence(*answers, openai_answer), dimensions=4, patience=patience, sleep=waits.append)
    model.encode("a")
    assert waits[:2] == [2, 300] and 20 < waits[2] <= 30 and waits[3] == 0
    assert 4 <= waits[4] <= 8


@pytest.mark.parametrize("asked", ["86400", "9" * 400])
def test_a_wait_that_is_too_long_says_when_to_come_back(openai, asked):
    server, model = openai(status(429, retry_after=asked), dimensions=4, patience=Patience(longest_asked=900))
    message = r"asks to wait .* longer than the 900 s that are allowed"
    with pytest.raises(EndpointError, match=message) as caught:
        model.encode("a")
    assert len(server.requests) == 1 and server.url in str(caught.value)
    assert KEY not in str(caught.value)


def test_waits_grow_and_the_log_has_no_key(openai, caplog):
    waits: list[float] = []
    patience = Patience(attempts=5, first_wait=1, longest_wait=3)
    _, model = openai(status(500, KEY.encode()), dimensions=4, patience=patience, sleep=waits.append)
    with caplog.at_level(logging.INFO), pytest.raises(EndpointError):
        model.encode("a")
    for wait, most in zip(waits, [1, 2, 3, 3], strict=True):
        assert most / 2 <= wait <= most
    assert "asking again" in caplog.text and KEY not in caplog.text


def test_the_key_stays_hidden(openai, monkeypatch):
    server, model = openai(openai_answer, dimensions=4)
    assert KEY not in repr(model) and "some-model" in repr(model)
    assert KEY not in str(vars(model))
    monkeypatch.setenv("OPENAI_API_KEY", "from-env")
    with OpenAIModel(server.url, "m", dimensions=4) as other:
        other.encode("a")
    assert {k.lower(): v for k, v in server.requests[-1].headers.items()}[
        "authorization"
    ] == "Bearer from-env"
    monkeypatch.delenv("OPENAI_API_KEY")
    with OpenAIModel(server.url, "m", dimensions=4) as keyless:
        keyless.encode("a")
    assert "authorization" not in {name.lower() for name in server.requests[-1].headers}


def test_fingerprints(openai):
    server, model = openai(openai_answer, dimensions=4)
    assert model.fingerprint.startswith("some-model:")
    with OpenAIModel(f"{server.url}/v1", "some-model", dimensions=4) as same:
        assert same.fingerprint == model.fingerprint
    with OpenAIModel(f"{server.url}/v1", "some-model", dimensions=3) as other:
        assert other.fingerprint != model.fingerprint


def test_a_missing_key_is_said_at_once(monkeypatch):
    for name, make in (("OPENAI_API_KEY", OpenAIModel), ("GEMINI_API_KEY", GeminiModel)):
        monkeypatch.delenv(name, raising=False)
        with pytest.raises(ConfigError, match=name):
            make()
    assert OpenAIModel("http://localhost:11434/v1", "nomic") is not None  # local servers need none


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"base_url": "ftp://host"}, "http:// or https://"),
        ({"base_url": "localhost:8000"}, "http:// or https://"),
        ({"base_url": "http://"}, "http:// or https://"),
        ({"base_url": "http://host:port"}, "not a URL"),
        ({"base_url": "http://me:secret@host"}, "must not hold a password"),
        ({"model": "", "api_key": "k"}, "model must be the endpoint.s name"),
        ({"dimensions": 0, "api_key": "k"}, "dimensions must be"),
        ({"api_key": "two\nlines"}, "no key has"),
    ],
)
def test_settings_are_checked(options, message):
    with pytest.raises(ConfigError, match=message) as caught:
        OpenAIModel(**options)
    assert "secret" not in str(caught.value) and "lines" not in str(caught.value)


def test_patience_is_checked():
    with pytest.raises(ConfigError, match="timeout > 0"):
        Patience(timeout=0)


def test_gemini(serve, monkeypatch):
    server = serve(gemini_answer)
    monkeypatch.setenv("GEMINI_API_KEY", KEY)
    with GeminiModel("embedder", dimensions=4, base_url=server.url, patience=QUICK) as model:
        np.testing.assert_allclose(model.encode(["a", "bb"]), unit(["a", "bb"]), atol=1e-6)
        model.encode_query("q", task=TaskType.CODE_RETRIEVAL_QUERY)
        assert KEY not in repr(model)
    first, second = server.requests
    assert first.path == "/models/embedder:batchEmbedContents"
    assert {k.lower(): v for k, v in first.headers.items()}["x-goog-api-key"] == KEY
    assert first.json["requests"][1] == {
        "model": "models/embedder",
        "taskType": "RETRIEVAL_DOCUMENT",
        "outputDimensionality": 4,
        "content": {"parts": [{"text": "a"}]},
    }
    assert second.json["requests"][0]["taskType"] == "CODE_RETRIEVAL_QUERY"


def test_gemini_trouble(serve, monkeypatch):
    monkeypatch.delenv("GEMINI_API_KEY", raising=False)
    with pytest.raises(ConfigError, match="GEMINI_API_KEY"):
        GeminiModel()
    server = serve(status(200, b'{"embeddings": [{}]}'))
    with (
        GeminiModel(api_key=KEY, base_url=server.url, patience=QUICK) as model,
        pytest.raises(EndpointError, match="without values"),
    ):
        assert model.embedding_dim == 768
        model.encode("a")


def test_an_answer_without_end_is_not_read_to_its_end(monkeypatch):
    monkeypatch.setattr(Endpoint, "longest", 3_000_000)
    sent = itertools.count()
    server = LocalServer(
        lambda _: (200, (b"[" * 65_536 for _ in iter(lambda: next(sent) < 100_000, False)), {})
    )
    try:
        with pytest.raises(EndpointError, match="more than 3 MB"):
            OpenAIModel(server.url, "m", api_key="sk-secret").encode_query("What?")
    finally:
        server.stop()
    assert len(server.requests) == 1 and next(sent) < 10_000
