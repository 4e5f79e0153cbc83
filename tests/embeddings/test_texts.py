"""Tokens are counted in one way: the model's own count or an estimate, never below the floor."""

import pytest

from dartboard.embeddings import CachedModel, count_tokens, default_model
from dartboard.embeddings.texts import batches_by_length
from dartboard.errors import ConfigError
from dartboard.ingest import estimate_tokens


def test_a_model_counts_with_its_own_tokenizer(tmp_path):
    texts = ["hello", "hello world"]
    assert count_tokens(default_model(), texts) == default_model().count_tokens(texts) == [3, 4]
    with CachedModel(default_model(), tmp_path / "vectors.sqlite") as cached:
        assert count_tokens(cached, texts) == [3, 4]


@pytest.mark.parametrize("model", [None, object()])
def test_others_leave_it_to_the_estimate(model):
    text = "Hello, world! 東京都"
    assert count_tokens(model, [text]) == [estimate_tokens(text)] == [7]
    assert count_tokens(model, []) == []


@pytest.mark.parametrize("model", [None, default_model()])
def test_a_long_word_is_not_one_token(model):
    """A tokenizer takes it for one unknown token."""
    assert count_tokens(model, ["a" * 16_000])[0] >= 1000
    assert count_tokens(None, [" "]) == [1]


def test_what_is_above_the_limit_is_not_tokenized():
    class Counting:
        def count_tokens(self, texts):
            self.seen = texts
            return [7] * len(texts)

    model = Counting()
    assert count_tokens(model, ["x" * 1000, "short"], most=10) == [62, 7]
    assert model.seen == ["short"]
    assert count_tokens(model, ["x" * 1000], most=62) == [62]


def test_a_batch_holds_a_text_at_least():
    with pytest.raises(ConfigError, match="batch_size"):
        list(batches_by_length(["a"], 0))
