"""Sums over a kernel that nobody keeps are those of the kernel."""

import numpy as np
import pytest

from dartboard.deadline import deadline
from dartboard.errors import DeadlineError
from dartboard.selection import sums
from dartboard.selection.kernels import fast_kernel
from tests.selection.pools import topical

pytestmark = pytest.mark.usefixtures("engine")


@pytest.mark.parametrize("panel", [50, 97, 200, 1000])
@pytest.mark.parametrize("keep", [0, 5, 96, 130, 400])
@pytest.mark.parametrize("sigma", [0.05, 0.3])
def test_sums_and_first_rows(monkeypatch, panel, keep, sigma):
    monkeypatch.setattr(sums, "PANEL", panel)
    query, vectors = topical(321, dim=24)
    weights = np.exp(4 * (vectors @ query)).astype(np.float32)
    found, kept = sums.kernel_sums(vectors, weights, sigma, keep)
    cosines = vectors.astype(np.float64) @ vectors.T.astype(np.float64)
    want = np.exp(-((1 - cosines) ** 2) / (8 * sigma**2))
    np.testing.assert_allclose(found, want @ weights, rtol=2e-6 + 1e-7 / sigma**2)
    assert len(kept) == min(keep, 321 // -(-321 // panel))
    np.testing.assert_allclose(kept, want[: len(kept)], atol=1e-5)


@pytest.mark.parametrize("n", [699, 700, 768, 1000])
def test_a_large_kernel_made_by_halves_is_symmetric(n):
    _, vectors = topical(n, dim=16)
    kernel = fast_kernel(vectors, vectors, 0.09)
    np.testing.assert_array_equal(kernel, kernel.T)
    np.testing.assert_allclose(kernel, fast_kernel(vectors.copy(), vectors, 0.09), atol=1e-5)


def test_sums_end_when_time_is_up():
    _, vectors = topical(300, dim=8)
    with pytest.raises(DeadlineError), deadline(1e-9):
        sums.kernel_sums(vectors, np.ones(300, np.float32), 0.09, 10)
