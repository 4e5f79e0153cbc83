"""Token vectors in few bits: sizes, losses, and bytes that are not codes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dartboard.errors import ConfigError, StoreFormatError
from dartboard.retrievers.token_codes import Decoded, TokenCodec, rotation
from tests.examples import examples

LOSS = {8: 0.008, 4: 0.11, 2: 0.39}
"""Length of what is lost of a unit vector, at most on average; the theory says 0.098 and 0.365."""


def unit(count, dim, seed=0):
    rows = np.random.default_rng(seed).standard_normal((count, dim)).astype(np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


@pytest.mark.parametrize("bits", [8, 4, 2])
@pytest.mark.parametrize("dim", [16, 128, 384])
def test_sizes_and_losses(bits, dim):
    codec, tokens = TokenCodec(bits=bits), unit(50, dim)
    data = codec.encode(tokens)
    assert len(data) == 12 + 50 * codec.bytes_per_token(dim)
    assert codec.bytes_per_token(dim) == dim * bits // 8 + 2
    back = codec.vectors(data)
    assert np.linalg.norm(back - tokens, axis=1).mean() < LOSS[bits]


@pytest.mark.parametrize("bits", [8, 4, 2])
def test_products_with_codes_are_those_with_their_vectors(bits):
    codec, query = TokenCodec(bits=bits, seed=3), unit(7, 64, seed=1)
    data = codec.encode(unit(20, 64))
    found = codec.decode([data, data]).similarities(codec.asked(query))
    expected = query @ codec.vectors(data).T
    np.testing.assert_allclose(found, np.concatenate([expected, expected], axis=1), atol=1e-5)


def test_one_direction_alone_survives_few_bits():
    """Without the rotation all of a vector's length would be in one number."""
    tokens = np.eye(64, dtype=np.float32)[:5]
    back = TokenCodec(bits=4).vectors(TokenCodec(bits=4).encode(tokens))
    assert np.sum(back * tokens, axis=1).min() > 0.97


@pytest.mark.parametrize("bits", [4, 2])
def test_products_are_right_on_average(bits):
    """Whatever the angle between a token and the query's."""
    tokens = unit(400, 128)
    query = (tokens + 0.1 * unit(400, 128, seed=9)) * 1.0
    codec = TokenCodec(bits=bits)
    apart = np.sum((codec.vectors(codec.encode(tokens)) - tokens) * query, axis=1)
    assert abs(apart.mean()) < 0.002


def test_rotation_is_orthogonal_and_repeats():
    turn = rotation(48, 7)
    np.testing.assert_allclose(turn @ turn.T, np.eye(48), atol=1e-5)
    assert np.array_equal(turn, rotation(48, 7)) and not np.array_equal(turn, rotation(48, 8))


@examples(50)
@given(st.integers(1, 12), st.lists(st.integers(1, 9), min_size=1, max_size=6), st.integers(0, 1000))
def test_max_sim_is_the_naive_loop(asked, lengths, seed):
    query = unit(asked, 8, seed)
    passages = [unit(length, 8, seed + 1 + at) for at, length in enumerate(lengths)]
    scales = [np.linspace(0.5, 1.5, length).astype(np.float32) for length in lengths]
    found = Decoded(np.concatenate(passages), np.concatenate(scales), np.array(lengths)).max_sims(query)
    for passage, own, score in zip(passages, scales, found, strict=True):
        naive = 0.0
        for word in query:
            naive += max(
                sum(float(a) * float(b) for a, b in zip(word, token, strict=True)) * float(scale)
                for token, scale in zip(passage, own, strict=True)
            )
        assert score == pytest.approx(naive, abs=1e-5)


def test_what_is_no_code():
    codec, data = TokenCodec(bits=4), TokenCodec(bits=4).encode(unit(3, 16))
    for broken in (b"", b"dtok", data[:-1], data + b"x"):
        with pytest.raises(StoreFormatError, match="index the passage again"):
            codec.decode([data, broken])
    with pytest.raises(StoreFormatError, match="not token codes"):
        codec.decode([b"what" + data[4:]])
    with pytest.raises(StoreFormatError, match="have 4 bits where 8 are expected"):
        TokenCodec(bits=8).decode([data])
    with pytest.raises(StoreFormatError, match="several dimensions"):
        codec.decode([data, codec.encode(unit(3, 32))])
    with pytest.raises(ConfigError, match="8, 4 or 2"):
        TokenCodec(bits=3)
    with pytest.raises(ConfigError, match="fills bytes"):
        TokenCodec(bits=2).encode(unit(1, 6))
