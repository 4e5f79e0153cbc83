"""Sparse encoders, through the real loader, on a tiny masked language model made on the spot."""

import sys

import numpy as np
import pytest

from dartboard.embeddings.torch_models import SpladeModel
from dartboard.errors import ConfigError, InvalidInputError, MissingExtraError, ModelError

TEXTS = ["How are tokens validated?", "a short one", "The database connection is configured in one file"]


@pytest.fixture(scope="module")
def folder(tiny_bert):
    pytest.importorskip("sentence_transformers")
    return tiny_bert("BertForMaskedLM", 4)


@pytest.fixture(scope="module")
def splade(folder):
    return SpladeModel(folder)


def test_weights_are_the_formulas(splade, folder):
    import torch
    import transformers

    raw = transformers.BertForMaskedLM.from_pretrained(folder).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    made = splade.encode_documents(TEXTS, batch_size=2)
    assert len(made) == 3
    for text, weights in zip(TEXTS, made, strict=True):
        with torch.no_grad():
            logits = raw(**tokenizer(text, return_tensors="pt")).logits[0]
        expected = torch.log1p(torch.relu(logits)).amax(dim=0).numpy()
        dense = np.zeros(len(expected))
        dense[weights.terms] = weights.weights
        np.testing.assert_allclose(dense, expected, atol=1e-5)
        assert (np.diff(weights.terms) > 0).all() and (weights.weights > 0).all()
        assert weights.terms.dtype == np.int32 and weights.weights.dtype == np.float32
    asked = splade.encode_query(TEXTS[0])
    np.testing.assert_allclose(asked.weights, made[0].weights, atol=1e-5)


def test_terms_are_spelled_and_limited(splade, folder):
    assert splade.term(101) == "[CLS]" and splade.name == folder.name
    few = SpladeModel(folder, max_terms=10)
    full, cut = splade.encode_query(TEXTS[0]), few.encode_query(TEXTS[0])
    assert len(cut.terms) == 10 and set(cut.terms) <= set(full.terms)
    assert cut.weights.min() >= np.sort(full.weights)[-10]
    assert few.fingerprint != splade.fingerprint == SpladeModel(folder).fingerprint


def test_a_saved_sparse_encoder_loads_too(splade, tmp_path):
    splade.model.save(str(tmp_path / "saved"))
    again = SpladeModel(tmp_path / "saved")
    np.testing.assert_allclose(
        again.encode_query(TEXTS[1]).weights, splade.encode_query(TEXTS[1]).weights, atol=1e-6
    )


def test_what_cannot_be(splade, folder, tmp_path, monkeypatch):
    with pytest.raises(InvalidInputError, match="text 1 is empty"):
        splade.encode_documents(["fine", " "])
    with pytest.raises(ConfigError, match="max_terms"):
        SpladeModel(folder, max_terms=0)
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(ModelError, match="could not be loaded"):
        SpladeModel(tmp_path)
    monkeypatch.setattr(splade.model, "encode_query", lambda texts, **_: _nan(splade))
    with pytest.raises(ModelError, match="not finite"):
        splade.encode_query("q")
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(MissingExtraError, match=r"pip install .*\[torch\]'"):
        SpladeModel(folder)


def _nan(splade):
    import torch

    return torch.full((1, 8), float("nan"))
