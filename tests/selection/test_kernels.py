"""The float32 kernel, whole, halved, and of some rows."""

import numpy as np
import pytest

from dartboard.selection import kernels, select
from tests.selection.pools import topical


@pytest.mark.parametrize("n", [40, 64, 150])
def test_a_kernel_in_strips_is_the_kernel(monkeypatch, n):
    _, vectors = topical(n, dim=24)
    cosines = vectors.astype(np.float64) @ vectors.T.astype(np.float64)
    want = np.exp(-((1 - cosines) ** 2) / (8 * 0.2**2))
    whole = kernels.fast_kernel(vectors, vectors, 0.2)
    monkeypatch.setattr(kernels, "_HALVED_FROM", 1)
    monkeypatch.setattr(kernels, "_STRIP", 32)
    strips = kernels.fast_kernel(vectors, vectors, 0.2)
    for kernel in (whole, strips, kernels.fast_kernel(vectors.copy(), vectors, 0.2)):
        assert kernel.dtype == np.float32
        np.testing.assert_allclose(kernel, want, atol=3e-6)
    np.testing.assert_array_equal(strips, strips.T)


def test_picks_by_a_kernel_in_strips(monkeypatch):
    query, vectors = topical(200, seed=4)
    want = select(vectors, query, 20, sigma=0.09)
    monkeypatch.setattr(kernels, "_HALVED_FROM", 1)
    monkeypatch.setattr(kernels, "_STRIP", 48)
    got = select(vectors, query, 20, sigma=0.09)
    assert got.indices.tolist() == want.indices.tolist()
    np.testing.assert_allclose(got.gains, want.gains, atol=1e-6)
