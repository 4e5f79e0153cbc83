import dataclasses

import pytest

from dartboard import DartboardConfig
from dartboard.errors import ConfigError


def test_defaults_are_the_specifications_but_for_sigma():
    config = DartboardConfig()
    assert config.sigma == "auto"
    assert (config.top_k, config.triage_k, config.reranker_type) == (5, 100, "hybrid")
    assert (config.token_vocab_size, config.log_eps, config.sigma_min) == (5000, 1e-10, 1e-5)


def test_positional_order_is_the_specifications():
    assert [field.name for field in dataclasses.fields(DartboardConfig)][:7] == [
        "sigma", "top_k", "triage_k", "reranker_type", "token_vocab_size", "log_eps", "sigma_min",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"sigma": 0}, r"sigma must be in \[1e-05, 10\] or be 'auto', got 0"),
        ({"sigma": 11}, r"sigma must be in \[1e-05, 10\]"),
        ({"sigma": float("nan")}, "sigma must be in"),
        ({"sigma": "wide"}, "sigma must be in"),
        ({"sigma": True}, "sigma must be in"),
        ({"top_k": 0}, r"top_k must be a whole number in \[1, 20\], got 0"),
        ({"top_k": 21}, r"top_k must be a whole number in \[1, 20\]"),
        ({"top_k": 2.0}, "top_k must be a whole number"),
        ({"triage_k": 4}, r"triage_k must be a whole number in \[5, 1000\]"),
        ({"triage_k": 1001}, r"in \[5, 1000\]"),
        ({"token_vocab_size": 999}, r"token_vocab_size must be a whole number in \[1000, 50000\]"),
        ({"reranker_type": "bert"}, "reranker_type must be one of cosine, crossencoder, hybrid"),
        ({"distance": "l1"}, "distance must be one of scaled_cosine, euclidean"),
        ({"score_scaling": "z"}, "score_scaling must be one of bounds, minmax, sigmoid"),
        ({"sigma_min": 0}, "sigma_min must be in"),
        ({"log_eps": -1}, "log_eps must be in"),
    ],
)
def test_out_of_range_names_the_range(change, says):
    with pytest.raises(ValueError, match=says) as caught:
        DartboardConfig(**change)
    assert isinstance(caught.value, ConfigError)
