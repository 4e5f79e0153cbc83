"""The sentence-transformers models, through the real loaders, on real and on tiny random weights."""

import re
import sys

import numpy as np
import pytest

from dartboard.embeddings import CrossEncoder, SentenceTransformerModel, TaskType
from dartboard.errors import ConfigError, InvalidInputError, MissingExtraError, ModelError, install_command


@pytest.fixture(scope="module")
def prompted(tiny_bert, tmp_path_factory):
    """A tiny sentence-transformers folder with prompts and without normalisation."""
    st = pytest.importorskip("sentence_transformers")
    folder = tmp_path_factory.mktemp("prompted")
    body = st.models.Transformer(str(tiny_bert("BertModel")))
    pooling = st.models.Pooling(body.get_embedding_dimension(), "mean")
    prompts = {"query": "query: ", "document": "passage: "}
    st.SentenceTransformer(modules=[body, pooling], prompts=prompts, device="cpu").save(str(folder))
    return folder


def test_real_weights(float_folder, model):
    pytest.importorskip("sentence_transformers")
    loaded = SentenceTransformerModel(str(float_folder))
    assert loaded.embedding_dim == 384 and loaded.description.normalize
    texts = ["What is the capital of France?", "Paris is the capital of France."]
    vectors = loaded.encode(texts)
    assert vectors.dtype == np.float32 and vectors.shape == (2, 384)
    assert np.sum(vectors * model.encode(texts), axis=1).min() > 0.999
    assert loaded.encode("one text").shape == (1, 384)


def test_tasks_become_the_models_own_prompts(prompted):
    loaded = SentenceTransformerModel(str(prompted))
    assert loaded.description.query_prefix == "query: " and not loaded.description.normalize
    raw = loaded.model.encode(["query: a word", "passage: a word"])
    np.testing.assert_allclose(loaded.encode_query("a word"), raw[0], atol=1e-6)
    np.testing.assert_allclose(loaded.encode_documents(["a word"])[0], raw[1], atol=1e-6)
    code = loaded.encode_query("a word", task=TaskType.CODE_RETRIEVAL_QUERY)
    np.testing.assert_allclose(code, raw[0], atol=1e-6)
    with pytest.raises(InvalidInputError, match="text 0 is empty"):
        loaded.encode([""])


def test_known_prefixes_where_the_model_has_no_prompts(prompted, tmp_path):
    loaded = SentenceTransformerModel(str(prompted))
    loaded.model.prompts = {"query": "", "document": ""}
    loaded.model.save(str(tmp_path / "e5-small-v2"))
    description = SentenceTransformerModel(str(tmp_path / "e5-small-v2")).description
    assert (description.query_prefix, description.document_prefix) == ("query: ", "passage: ")


def test_fingerprint_follows_weights_and_prompts(prompted):
    first, second = SentenceTransformerModel(str(prompted)), SentenceTransformerModel(str(prompted))
    assert first.fingerprint == second.fingerprint
    third = SentenceTransformerModel(str(prompted))
    next(iter(third.model.parameters())).data[0, 0] += 1
    assert third.fingerprint != first.fingerprint
    fourth = SentenceTransformerModel(str(prompted))
    fourth.model.prompts["query"] = "other: "
    assert fourth.fingerprint != first.fingerprint


def test_tokens_are_those_of_the_model(prompted):
    loaded = SentenceTransformerModel(str(prompted))
    assert loaded.count_tokens(["a word", "word " * 100]) == [4, 102]
    assert loaded.max_tokens == 64


PASSAGES = ["one passage", "another one", "a third, longer passage", "the last"]


@pytest.fixture(scope="module")
def cross(tiny_bert) -> CrossEncoder:
    return CrossEncoder(str(tiny_bert("BertForSequenceClassification")), batch_size=4)


def test_cross_encoder_gives_logits(cross):
    import torch

    scores = cross.score("a question", PASSAGES)
    assert scores.shape == (4,) and scores.dtype == np.float64
    features = cross.model.tokenizer(["a question"] * 4, PASSAGES, padding=True, return_tensors="pt")
    with torch.no_grad():
        logits = cross.model.model(**features).logits[:, 0].numpy()
    np.testing.assert_allclose(scores, logits, atol=1e-6)
    assert cross.bounds == (-11.6, 11.4)


def test_matrix_is_symmetric_batched_and_half_computed(cross, monkeypatch):
    calls, batches = [], []
    predict, forward = cross.model.predict, cross.model.forward

    def counted_predict(pairs, **kwargs):
        calls.append(len(pairs))
        return predict(pairs, **kwargs)

    def counted_forward(features, **kwargs):
        batches.append(1)
        return forward(features, **kwargs)

    monkeypatch.setattr(cross.model, "predict", counted_predict)
    monkeypatch.setattr(cross.model, "forward", counted_forward)
    matrix = cross.score_matrix(PASSAGES)
    assert calls == [10] and len(batches) == 3
    assert np.array_equal(matrix, matrix.T)
    for index, passage in enumerate(PASSAGES):
        expected = cross.score(passage, PASSAGES[index:])
        np.testing.assert_allclose(matrix[index, index:], expected, atol=1e-6)


def test_cross_encoder_edges(cross, tiny_bert, monkeypatch):
    assert cross.score("q", []).shape == (0,) and cross.score_matrix([]).shape == (0, 0)
    with pytest.raises(InvalidInputError, match="text 0 is empty"):
        cross.score(" ", PASSAGES)
    with pytest.raises(InvalidInputError, match="text 1 is empty"):
        cross.score_matrix(["fine", ""])
    with pytest.raises(ConfigError, match="batch_size"):
        CrossEncoder("any", batch_size=0)
    with pytest.raises(ModelError, match="3 labels"):
        CrossEncoder(str(tiny_bert("BertForSequenceClassification", 0, 3)))
    monkeypatch.setattr(cross.model, "predict", lambda pairs, **_: np.full(len(pairs), np.nan))
    with pytest.raises(ModelError, match="not finite"):
        cross.score("q", PASSAGES)


@pytest.mark.parametrize("kind", [SentenceTransformerModel, CrossEncoder])
def test_what_cannot_be_loaded(kind, tmp_path, monkeypatch):
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(ModelError, match="could not be loaded"):
        kind(str(tmp_path))
    with pytest.raises(ModelError, match="folder"):  # no network here: one short try
        kind("nobody/has-this-model")
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(MissingExtraError, match=re.escape(install_command("torch"))):
        kind(str(tmp_path))
