"""A token budget in the tokens of the model that reads the passages."""

import sys
from pathlib import Path

import numpy as np
import pytest

from dartboard.embeddings.reader_tokenizer import reader_tokenizer, tiktoken_tokenizer
from dartboard.errors import ConfigError


@pytest.fixture
def tiktoken_files(monkeypatch):
    """The file of cl100k_base, which llama-index carries: nothing is fetched."""
    import llama_index.core

    files = Path(llama_index.core.__file__).parent / "_static" / "tiktoken_cache"
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(files))
    tiktoken_tokenizer.cache_clear()


def test_tiktoken_by_encoding_and_by_model(tiktoken_files):
    assert reader_tokenizer("cl100k_base").count_tokens(["hello world", "<|endoftext|>"]) == [2, 7]
    assert reader_tokenizer("gpt-4").count_tokens(["hello world"]) == [2]


def test_a_tokenizer_file_counts_without_special_tokens(tmp_path):
    from tokenizers import Tokenizer, models, pre_tokenizers

    made = Tokenizer(models.WordLevel({"[UNK]": 0, "hello": 1}, unk_token="[UNK]"))
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    made.enable_truncation(2)
    made.enable_padding(length=9)
    made.save(str(tmp_path / "tokenizer.json"))
    assert reader_tokenizer(str(tmp_path / "tokenizer.json")).count_tokens(["hello you there"]) == [3]


def test_a_function_returns_a_count_or_tokens():
    assert reader_tokenizer(len).count_tokens(["four"]) == [4]
    assert reader_tokenizer(str.split).count_tokens(["three little words"]) == [3]
    assert reader_tokenizer(lambda text: np.int64(2)).count_tokens(["a"]) == [2]
    assert reader_tokenizer(lambda text: {"input_ids": [1, 2, 3], "mask": [1]}).count_tokens(["a"]) == [3]
    for wrong in (None, "tokens", {"tokens": [1]}, -1, 1.5, True):
        with pytest.raises(ConfigError, match="must return a count"):
            reader_tokenizer(lambda text, wrong=wrong: wrong).count_tokens(["a"])


@pytest.mark.parametrize(
    ("tokenizer", "says"),
    [
        ("nonsense_base", "unknown tokenizer 'nonsense_base': give one of"),
        ("nowhere/tokenizer.json", "there is no tokenizer file"),
        ("", "a name, a file or a function"),
        (7, "a name, a file or a function"),
    ],
)
def test_what_is_no_tokenizer_is_refused(tokenizer, says):
    with pytest.raises(ConfigError, match=says):
        reader_tokenizer(tokenizer)


def test_a_broken_file_is_refused(tmp_path):
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(ConfigError, match="is not a file of the tokenizers library"):
        reader_tokenizer(str(tmp_path / "tokenizer.json"))


def test_without_tiktoken_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "tiktoken", None)
    tiktoken_tokenizer.cache_clear()
    with pytest.raises(ConfigError, match=r"pip install .*\[tiktoken\]"):
        reader_tokenizer("cl100k_base")
