"""DPR pairs in the hub's layout, made on the spot with random weights and loaded through transformers."""

import sys

import numpy as np
import pytest

from dartboard.embeddings import CachedModel, TaskType
from dartboard.embeddings.torch_models import DprEncoder, TwoTowers
from dartboard.errors import ConfigError, MissingExtraError, ModelError
from dartboard.retrievers import DenseRetriever
from tests.embeddings.tiny_models import save_tiny
from tests.models import WordBag
from tests.retrievers.corpus import TEXTS, collection_for


@pytest.fixture(scope="module")
def towers(tmp_path_factory):
    """``towers(kind, seed, projection)``: a folder with a tiny DPR encoder."""
    pytest.importorskip("torch")
    pytest.importorskip("transformers")

    def make(kind, seed=0, projection=0):
        folder = tmp_path_factory.mktemp(kind)
        return save_tiny(folder, kind, seed=seed, config="DPRConfig", projection_dim=projection)

    return make


@pytest.fixture(scope="module")
def pair(towers):
    return towers("DPRQuestionEncoder", 1), towers("DPRContextEncoder", 2)


def test_each_text_by_its_own_tower(pair):
    import torch
    import transformers

    model = TwoTowers.from_folders(*pair)
    assert model.embedding_dim == 16 and "+" in model.name
    kinds = (transformers.DPRQuestionEncoder, transformers.DPRContextEncoder)
    texts = ["how are tokens validated", "a longer text about validating tokens with a key, and more"]
    made = (model.encode_queries(texts), model.encode_documents(texts))
    for folder, kind, vectors in zip(pair, kinds, made, strict=True):
        raw = kind.from_pretrained(folder).eval()
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
        for text, vector in zip(texts, vectors, strict=True):
            with torch.no_grad():
                expected = raw(**tokenizer(text, return_tensors="pt")).pooler_output[0].numpy()
            np.testing.assert_allclose(vector, expected, atol=1e-5)
    code = model.encode_query(texts[0], task=TaskType.CODE_RETRIEVAL_QUERY)
    np.testing.assert_allclose(code, made[0][0], atol=1e-5)


def test_long_texts_are_cut_and_projections_known(towers):
    projected = DprEncoder(towers("DPRContextEncoder", 3, projection=8))
    assert projected.embedding_dim == 8 and projected.encode(["word " * 500]).shape == (1, 8)


def test_retrieval_with_a_pair(pair):
    """As one model of two towers, or as two models: the same answers."""
    model = TwoTowers.from_folders(*pair)
    collection = collection_for(model=_Documents(model))
    one = DenseRetriever(model).retrieve(collection, "how are tokens validated", 12)
    two = DenseRetriever(model.context, query_model=model.question).retrieve(
        collection, "how are tokens validated", 12
    )
    assert [c.chunk.id for c in one.found] == [c.chunk.id for c in two.found]
    assert len(one) == len(TEXTS)
    np.testing.assert_allclose(one.query_vector, model.encode_query("how are tokens validated"), atol=1e-6)


class _Documents:
    """The passage side of a model, as the helper asks for it."""

    def __init__(self, model):
        self.encode, self.embedding_dim = model.encode_documents, model.embedding_dim
        self.fingerprint = model.fingerprint


def test_fingerprints_and_the_cache(pair, towers, tmp_path):
    model = TwoTowers.from_folders(*pair)
    again = TwoTowers.from_folders(*pair)
    other = TwoTowers.from_folders(towers("DPRQuestionEncoder", 9), pair[1])
    assert model.fingerprint == again.fingerprint != other.fingerprint
    with CachedModel(model, tmp_path / "vectors.sqlite") as cached:
        for _ in range(2):
            np.testing.assert_array_equal(cached.encode_query("a word"), model.encode_query("a word"))
            np.testing.assert_array_equal(
                cached.encode_documents(["a word"]), model.encode_documents(["a word"])
            )


def test_pairs_that_do_not_fit(pair, towers, tiny_bert, tmp_path, monkeypatch):
    with pytest.raises(ConfigError, match="32 dimensions and 'WordBag' 16"):
        TwoTowers(WordBag(32), WordBag(16))
    with pytest.raises(ModelError, match="holds a DPRContextEncoder"):
        TwoTowers.from_folders(pair[1], pair[1])
    with pytest.raises(ModelError, match="holds a BertModel"):
        DprEncoder(tiny_bert("BertModel"))
    with pytest.raises(ModelError, match="could not be loaded"):
        DprEncoder(tmp_path)
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(MissingExtraError, match=r"pip install .*\[torch\]'"):
        DprEncoder(pair[0])
