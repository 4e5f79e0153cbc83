"""Importing the package stays light, and what it offers exists."""

import subprocess
import sys

import pytest

import dartboard.embeddings as embeddings

HEAVY = ("onnxruntime", "tokenizers", "torch", "httpx", "sentence_transformers", "platformdirs")


def test_import_is_light():
    code = f"import sys, dartboard.embeddings; print([m for m in {HEAVY} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("name", embeddings.__all__)
def test_every_name_loads(name):
    assert getattr(embeddings, name).__name__ == name
    assert name in dir(embeddings)


def test_names_are_sorted_and_have_a_home():
    assert embeddings.__all__ == sorted(embeddings._HOMES, key=lambda n: (n[0].islower(), n))


def test_unknown_name():
    with pytest.raises(AttributeError, match="no attribute 'Nonsense'"):
        _ = embeddings.Nonsense
