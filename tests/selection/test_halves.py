"""Half of a symmetric product is that half, whoever works it out."""

import numpy as np
import pytest

from dartboard.selection import halves


@pytest.mark.parametrize("found", [True, False])
@pytest.mark.parametrize(("n", "dim", "wide"), [(1, 1, 1), (7, 3, 7), (100, 384, 100), (130, 33, 150)])
def test_the_lower_half_is_the_product(monkeypatch, found, n, dim, wide):
    if not found:
        monkeypatch.setattr(halves, "_syrk", lambda: None)
    vectors = np.random.default_rng(n).standard_normal((n, dim)).astype(np.float32)
    out = np.full((n, wide), np.nan, np.float32)[:, :n]
    halves.lower_product(vectors, out)
    want = vectors.astype(np.float64) @ vectors.T.astype(np.float64)
    np.testing.assert_allclose(np.tril(out), np.tril(want), rtol=1e-4, atol=1e-4)


def test_rows_that_are_not_in_one_piece():
    vectors = np.random.default_rng(0).standard_normal((9, 40)).astype(np.float32)[:, ::2]
    out = np.empty((9, 9), np.float32)
    halves.lower_product(vectors, out)
    np.testing.assert_allclose(np.tril(out), np.tril(vectors @ vectors.T), rtol=1e-5, atol=1e-5)


def test_another_blas_is_left_alone(monkeypatch):
    class Library:
        dynlib = object()

    monkeypatch.setattr(halves, "libraries", lambda: [Library()])
    assert halves._syrk.__wrapped__() is None


def test_more_rows_than_places_can_be_counted_go_through_numpy(monkeypatch):
    monkeypatch.setattr(halves, "_MOST_ROWS", 8)
    monkeypatch.setattr(halves, "_syrk", lambda: pytest.fail("called"))
    vectors, out = np.eye(9, dtype=np.float32), np.empty((9, 9), np.float32)
    halves.lower_product(vectors, out)
    assert np.array_equal(out, np.eye(9))
