"""Vectors of any magnitude: the same picks, finite gains, no warnings; what no number holds is an error."""

import warnings

import numpy as np
import pytest

from dartboard import select
from dartboard.errors import InvalidInputError
from dartboard.selection import select_many

RNG = np.random.default_rng(3)
ROWS, QUERY = RNG.standard_normal((120, 12)), RNG.standard_normal(12)
MIXED = 10.0 ** RNG.integers(-60, 60, (120, 1))
SCALES = {
    "a query of 1e60": (1.0, 1e60),
    "candidates of 1e60": (1e60, 1.0),
    "both of 1e60": (1e60, 1e60),
    "a query of 1e-60": (1.0, 1e-60),
    "candidates of 1e-60": (1e-60, 1.0),
    "large and small": (1e60, 1e-60),
    "rows of mixed magnitude": (MIXED, 1.0),
    "mixed, and a query of 1e60": (MIXED, 1e60),
    "the edge of a double": (1e-300, 1e300),
}


@pytest.mark.parametrize("sigma", ["auto", 0.1, 0.01])
@pytest.mark.parametrize("name", SCALES)
def test_the_magnitude_of_vectors_changes_nothing(name, sigma):
    rows, query = SCALES[name]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        want = select(ROWS, QUERY, 6, sigma=sigma)
        found = select(ROWS * rows, QUERY * query, 6, sigma=sigma)
        many = select_many([ROWS * rows], QUERY[None] * query, 6, sigma=sigma)
    assert found.indices.tolist() == want.indices.tolist() == many[0].indices.tolist()
    assert len(set(found.indices.tolist())) == 6
    np.testing.assert_allclose(found.gains, want.gains, rtol=1e-9)
    np.testing.assert_allclose(found.similarity, want.similarity, rtol=1e-12)


@pytest.mark.parametrize("method", ["dartboard", "mmr", "top_k", "near_duplicate_filter"])
@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64])
def test_a_large_query_beside_candidates_of_any_kind(kind, method):
    rows = ROWS.astype(kind)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        want = select(rows.astype(np.float64), QUERY, 6, method=method)
        found = select(rows, QUERY * 1e60, 6, method=method)
    assert found.indices.tolist() == want.indices.tolist()
    assert np.isfinite(found.gains).all()


def test_float16_on_both_sides():
    rows, query = ROWS.astype(np.float16), QUERY.astype(np.float16)
    found, want = select(rows, query, 6), select(rows.astype(np.float64), query.astype(np.float64), 6)
    assert found.indices.tolist() == want.indices.tolist()
    np.testing.assert_allclose(found.gains, want.gains, rtol=1e-4)


@pytest.mark.parametrize("scale", [1e60, 1e-60])
def test_euclidean_distances_scale_with_sigma(scale):
    """Sigma is limited, so an automatic one is compared: it scales with the vectors or falls back."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = select(ROWS * scale, QUERY * scale, 6, distance="euclidean")
    assert np.isfinite(found.gains).all() and len(set(found.indices.tolist())) == 6
    if scale > 1:
        want = select(ROWS, QUERY, 6, distance="euclidean")
        assert found.indices.tolist() == want.indices.tolist()


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    "query",
    [
        [10**400] * 12,
        [float("inf")] * 12,
        [float("nan")] * 12,
        np.full(12, np.finfo(np.longdouble).max),
        np.zeros(12),
    ],
    ids=["a whole number beyond a double", "infinity", "nan", "a long double", "zero"],
)
def test_what_no_double_holds_is_an_error(query):
    with pytest.raises(InvalidInputError, match="query"):
        select(ROWS, query, 6)
