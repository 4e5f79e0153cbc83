"""Token vocabularies, built offline from the real word list, tokenizer and k-means."""

import re

import numpy as np
import pytest

from dartboard import default_model
from dartboard.errors import ConfigError, MissingExtraError, install_command
from dartboard.vocab import TokenDistances, build_from_clusters, build_from_words, build_token_vocabulary
from tests.models import WordBag


def test_words_are_the_most_common_first(tmp_path):
    model = WordBag()
    vocabulary = build_token_vocabulary(model, 300, "words", cache_dir=tmp_path)
    assert vocabulary.shape == (300, 32) and vocabulary.dtype == np.float32
    np.testing.assert_array_equal(vocabulary[0], model.encode("the")[0])
    assert len(np.unique(vocabulary, axis=0)) == 300


def test_subwords_come_from_the_tokenizer(tmp_path):
    model = default_model()
    vocabulary = build_token_vocabulary(model, 120, "subwords", cache_dir=tmp_path)
    assert vocabulary.shape == (120, 384)
    np.testing.assert_allclose(np.linalg.norm(vocabulary, axis=1), 1, rtol=1e-5)
    with pytest.raises(ConfigError, match="has no word pieces"):
        build_token_vocabulary(WordBag(), 10, "subwords", cache_dir=tmp_path)
    with pytest.raises(ConfigError, match="usable pieces, fewer than vocab_size"):
        build_token_vocabulary(model, 100_000, "subwords", cache_dir=tmp_path)


def test_clusters_are_centroids_of_words(tmp_path):
    model = WordBag(8)
    vocabulary = build_token_vocabulary(model, 20, "clusters", cache_dir=tmp_path, sample_size=400)
    words = build_from_words(model, 400)
    unit = words / np.linalg.norm(words, axis=1, keepdims=True)
    assert vocabulary.shape == (20, 8)
    closeness = (unit @ vocabulary.T).max(axis=1)
    assert closeness.mean() > (unit @ unit[:20].T).max(axis=1).mean(), (
        "centroids cover words better than words do"
    )
    np.testing.assert_array_equal(vocabulary, build_from_clusters(model, 20, 400))
    np.testing.assert_array_equal(build_from_clusters(model, 50, 50), build_from_words(model, 50))
    with pytest.raises(ConfigError, match="must be at least vocab_size"):
        build_from_clusters(model, 20, 10)


def test_a_vocabulary_is_kept_and_a_damaged_one_is_built_again(tmp_path, caplog):
    model = WordBag()
    seen = []
    first = build_token_vocabulary(model, 50, cache_dir=tmp_path, progress=seen.append)
    assert seen[-1] == 50
    seen.clear()
    np.testing.assert_array_equal(
        build_token_vocabulary(model, 50, cache_dir=tmp_path, progress=seen.append), first
    )
    assert seen == [], "the second time nothing is encoded"
    (path,) = tmp_path.iterdir()
    for damage in (path.read_bytes()[:100], b"", b"not an array"):
        path.write_bytes(damage)
        np.testing.assert_array_equal(build_token_vocabulary(model, 50, cache_dir=tmp_path), first)
    np.save(path, np.ones((3, 3), np.float32))
    np.testing.assert_array_equal(build_token_vocabulary(model, 50, cache_dir=tmp_path), first)
    assert "is rebuilt" in caplog.text
    assert [p.name for p in tmp_path.iterdir()] == [path.name]


def test_the_size_that_the_specification_states(tmp_path):
    build_token_vocabulary(WordBag(384), 5000, cache_dir=tmp_path)
    (path,) = tmp_path.iterdir()
    assert 7.6e6 < path.stat().st_size < 8e6


def test_another_model_or_size_is_another_vocabulary(tmp_path):
    build_token_vocabulary(WordBag(8), 10, cache_dir=tmp_path)
    build_token_vocabulary(WordBag(9), 10, cache_dir=tmp_path)
    build_token_vocabulary(WordBag(8), 11, cache_dir=tmp_path)
    assert len(list(tmp_path.iterdir())) == 3


def test_default_place_is_beside_the_embedding_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("DARTBOARD_CACHE", str(tmp_path))
    build_token_vocabulary(WordBag(8), 10)
    assert len(list((tmp_path / "vocab").iterdir())) == 1


def test_unknown_method_and_size():
    with pytest.raises(ConfigError, match="choose one of words, subwords, clusters"):
        build_token_vocabulary(WordBag(), 10, "letters")
    with pytest.raises(ConfigError, match="vocab_size must be a whole number"):
        build_token_vocabulary(WordBag(), 0)
    with pytest.raises(ConfigError, match="the word list has"):
        _ = build_from_clusters(WordBag(), 10, 5_000_000)


@pytest.mark.parametrize(("module", "method"), [("wordfreq", "words"), ("faiss", "clusters")])
def test_a_missing_extra_names_the_command(module, method, tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, module, None)
    with pytest.raises(MissingExtraError, match=re.escape(install_command("vocab"))):
        build_token_vocabulary(WordBag(), 10, method, cache_dir=tmp_path)


def test_token_distances_forget_what_does_not_fit():
    model = WordBag(8)
    few = TokenDistances(model.encode(["tea", "milk"]), "scaled_cosine", cache_bytes=40)
    many = TokenDistances(model.encode(["tea", "milk"]), "scaled_cosine")
    vectors = model.encode(["tea milk", "tea", "milk jug"])
    np.testing.assert_array_equal(few.of(vectors), many.of(vectors))
    assert len(few._recent) == 2 and len(many._recent) == 3
