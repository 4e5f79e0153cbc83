"""Fixed-dimensional encodings: what they are by hand, and that they find what MaxSim would."""

import numpy as np
import pytest

from dartboard.errors import ConfigError
from dartboard.retrievers.fixed_dimensional import FixedDimensional, _drawn

from .test_token_codes import unit


def by_hand(settings, tokens, asked):
    """Cell by cell, token by token."""
    dim = tokens.shape[1]
    draws = _drawn(settings, dim)
    blocks = []
    for repetition in range(settings.repetitions):
        planes = draws.planes[repetition * settings.planes : (repetition + 1) * settings.planes]
        cell_of = [sum((p @ t > 0) << bit for bit, p in enumerate(planes)) for t in tokens]
        for cell in range(2**settings.planes):
            own = [t for t, c in zip(tokens, cell_of, strict=True) if c == cell]
            if own:
                blocks.append(np.sum(own, axis=0) if asked else np.mean(own, axis=0))
            elif asked:
                blocks.append(np.zeros(dim))
            else:
                blocks.append(tokens[int(np.argmin([bin(c ^ cell).count("1") for c in cell_of]))])
    flat = np.concatenate(blocks) * draws.signs
    folded = np.zeros(settings.dimension)
    np.add.at(folded, draws.places, flat)
    return folded / np.sqrt(settings.repetitions)


@pytest.mark.parametrize("planes", [1, 3])
def test_the_definition(planes):
    settings = FixedDimensional(dimension=96, repetitions=3, planes=planes, seed=5)
    tokens = unit(6, 8)
    np.testing.assert_allclose(settings.query(tokens), by_hand(settings, tokens, True), atol=1e-5)
    np.testing.assert_allclose(settings.passage(tokens), by_hand(settings, tokens, False), atol=1e-5)
    assert settings.query(tokens).dtype == np.float32


def test_seeds_repeat_and_differ():
    tokens = unit(5, 16)
    first = FixedDimensional(dimension=64).passage(tokens)
    assert np.array_equal(first, FixedDimensional(dimension=64).passage(tokens))
    assert not np.array_equal(first, FixedDimensional(dimension=64, seed=1).passage(tokens))


def test_products_follow_max_sim():
    """Passages that hold noisy copies of the query's tokens come before the others."""
    source = np.random.default_rng(0)
    settings = FixedDimensional(dimension=2048, repetitions=8, planes=3)
    query = unit(8, 64, seed=1)
    passages = [unit(30, 64, seed=10 + at) for at in range(60)]
    for at in range(5):
        near = query + 0.05 * source.standard_normal(query.shape).astype(np.float32)
        passages[at] = np.concatenate([near / np.linalg.norm(near, axis=1, keepdims=True), passages[at][:10]])
    products = np.array([settings.passage(passage) for passage in passages]) @ settings.query(query)
    assert set(np.argsort(-products)[:5]) == set(range(5))


@pytest.mark.parametrize("name", ["dimension", "repetitions", "planes"])
def test_settings_that_cannot_be(name):
    with pytest.raises(ConfigError, match=f"{name} must be in"):
        FixedDimensional(**{name: 0})
