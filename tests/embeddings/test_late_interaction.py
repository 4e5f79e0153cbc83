"""Late interaction against its formula, in blocks, from memory."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dartboard.embeddings.late_interaction as module
from dartboard.embeddings import LateInteraction
from dartboard.embeddings.cache import ArrayCache
from dartboard.errors import ConfigError, InvalidInputError


class WordVectors:
    """One random unit vector a word."""

    def __init__(self):
        self.encoded = []

    def token_vectors(self, texts, *, task=None, batch_size=32):
        texts = [texts] if isinstance(texts, str) else texts
        self.encoded += texts
        return [np.array([self.vector(word) for word in text.split()]) for text in texts]

    @staticmethod
    def vector(word):
        vector = np.random.default_rng([ord(letter) for letter in word]).normal(size=6).astype(np.float32)
        return vector / np.linalg.norm(vector)


def by_the_formula(query: np.ndarray, passage: np.ndarray) -> float:
    return float(np.mean([max(float(q @ p) for p in passage) for q in query]))


words = st.sampled_from(["a", "b", "c", "dd", "ee", "ff"])
texts = st.lists(st.lists(words, min_size=1).map(" ".join), max_size=6)


@given(texts, st.integers(1, 9))
def test_scores_equal_the_formula_whatever_the_blocks(passages, block):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_TOKENS_A_BLOCK", block)
        scorer = LateInteraction(WordVectors())
        scores, matrix = scorer.score("a dd", passages), scorer.score_matrix(passages)
    tokens = WordVectors().token_vectors(passages)
    query = WordVectors().token_vectors("a dd")[0]
    assert scores.shape == (len(passages),) and matrix.shape == (len(passages), len(passages))
    np.testing.assert_allclose(scores, [by_the_formula(query, p) for p in tokens], atol=1e-5)
    for i, left in enumerate(tokens):
        for j, right in enumerate(tokens):
            both = (by_the_formula(left, right) + by_the_formula(right, left)) / 2
            assert matrix[i, j] == pytest.approx(both, abs=1e-5)
    assert np.array_equal(matrix, matrix.T)


def test_one_product_a_block(monkeypatch):
    calls = []
    real = module._max_over
    monkeypatch.setattr(module, "_max_over", lambda *args: calls.append(1) or real(*args))
    LateInteraction(WordVectors()).score_matrix(["a b c"] * 50)
    assert len(calls) == 2


def test_passages_are_encoded_once():
    scorer = LateInteraction(WordVectors())
    scorer.score("a", ["b", "c", "b"])
    scorer.score_matrix(["c", "b", "dd"])
    assert scorer.model.encoded == ["a", "b", "c", "dd"]


def test_real_model_prefers_the_answer(model):
    scorer = LateInteraction(model)
    scores = scorer.score("capital of France", ["Paris is the capital of France.", "I like green tea."])
    assert scores[0] > scores[1] + 0.3
    low, high = scorer.bounds
    assert low <= scores.min() and scores.max() <= high
    matrix = scorer.score_matrix(["Paris is a city.", "Paris is a city.", "Green tea."])
    np.testing.assert_allclose(np.diag(matrix), 1, atol=1e-5)
    assert matrix[0, 1] == pytest.approx(1, abs=1e-5)


def test_empty_texts_are_refused(model):
    with pytest.raises(InvalidInputError, match="text 1 is empty"):
        LateInteraction(model).score("fine", ["fine", ""])
    with pytest.raises(InvalidInputError, match="text 0 is empty"):
        LateInteraction(model).score(" ", ["fine"])


def test_recent_arrays_stay_within_their_bytes():
    recent = ArrayCache(100)
    row = np.zeros(10, np.float32)
    for text in "abc":
        recent.put(text, row)
    assert recent.get("a") is None and recent.get("b") is row and (len(recent), recent.bytes) == (2, 80)
    recent.put("d", row)
    assert recent.get("c") is None and recent.get("b") is row
    recent.put("b", np.zeros(5, np.float32))
    assert recent.bytes == 60
    recent.put("large", np.zeros(26, np.float32))
    assert recent.get("large") is None and recent.bytes == 60
    with pytest.raises(ConfigError, match="cache_bytes"):
        ArrayCache(-1)
