"""Exact search finds the best whatever rounding does; approximate search finds nearly all of them."""

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dartboard.errors import MissingExtraError
from dartboard.stores import ann
from dartboard.stores.ann import ApproximateIndex, near_the_best, precise_scores, rounding_slack, unit_rows
from dartboard.stores.embedded.vector_search import VectorMatrix
from tests.examples import examples


def clustered(count, dimension, *, seed=0, centres=40):
    chance = np.random.default_rng(seed)
    middle = np.random.default_rng(99).standard_normal((centres, dimension))
    return unit_rows(
        middle[chance.integers(centres, size=count)] + 0.6 * chance.standard_normal((count, dimension))
    )


def best(matrix, query, k):
    scores = matrix.astype(np.float64) @ query.astype(np.float64)
    return set(np.argsort(-scores, kind="stable")[:k].tolist())


def found_by(index, matrix, query, k, allowed=None, **options):
    positions = index.search(query, k, allowed, **options)
    scores = matrix[positions] @ query
    return set(positions[np.argsort(-scores)[:k]].tolist())


@examples(60)
@given(
    seed=st.integers(0, 10_000),
    count=st.integers(1, 300),
    k=st.integers(1, 40),
    scale=st.sampled_from([1, 1e-18, 1e15]),
)
def test_the_best_are_always_among_the_candidates(seed, count, k, scale):
    chance = np.random.default_rng(seed)
    # A few directions, hardly apart: float32 cannot order them.
    base = unit_rows(chance.standard_normal((1, 64)))
    matrix = (scale * (base + 1e-6 * chance.standard_normal((count, 64)))).astype(np.float32)
    query = base[0]
    longest = float(np.linalg.norm(matrix.astype(np.float64), axis=1).max())
    candidates = near_the_best(matrix @ query, k, rounding_slack(64, query, longest))
    assert best(matrix, query, min(k, count)) <= set(candidates.tolist())


def test_equal_rows_have_equal_scores_wherever_they_stand():
    chance = np.random.default_rng(0)
    row, query = unit_rows(chance.standard_normal((2, 383)))
    for count in (1, 2, 3, 7, 8, 17, 64):
        scores = precise_scores(np.tile(row, (count, 1)), query)
        assert len(set(scores.tolist())) == 1


def test_unit_rows_at_the_edges_of_float32():
    rows = unit_rows(np.array([[3e38, 3e38], [1e-40, 0], [3, 4]], np.float32))
    assert np.allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-6) and rows.dtype == np.float32


@pytest.mark.parametrize("dimension", [24, 33])
@pytest.mark.parametrize("sizes", [{}, {"groups_from": 100}, {"large_from": 100}], ids=str)
def test_recall(dimension, sizes):
    matrix = clustered(6000, dimension)
    index = ApproximateIndex.build(VectorMatrix(matrix), **sizes)
    assert len(index) == 6000 and index.recall >= 0.99
    queries = unit_rows(clustered(40, dimension, seed=1) + 0.5 * clustered(40, dimension, seed=2))
    shares = [len(found_by(index, matrix, q, 100) & best(matrix, q, 100)) / 100 for q in queries]
    assert np.mean(shares) >= 0.99


def test_uniformly_random_vectors_are_no_worse():
    chance = np.random.default_rng(0)
    matrix = unit_rows(chance.standard_normal((5000, 48)))
    index = ApproximateIndex.build(VectorMatrix(matrix))
    queries = unit_rows(chance.standard_normal((40, 48)))
    shares = [len(found_by(index, matrix, q, 100) & best(matrix, q, 100)) / 100 for q in queries]
    assert np.mean(shares) >= 0.99


def test_only_what_is_allowed_is_found():
    matrix = clustered(3000, 24)
    index = ApproximateIndex.build(VectorMatrix(matrix), groups_from=100)
    allowed = np.random.default_rng(3).random(3000) < 0.3
    for query in clustered(10, 24, seed=4):
        positions = index.search(query, 50, allowed, wider=index.index.nlist)
        assert allowed[positions].all() and positions.size >= 50
        wanted = set(np.flatnonzero(allowed)[list(best(matrix[allowed], query, 50))].tolist())
        assert len(wanted & set(positions.tolist())) >= 0.96 * 50


def test_bytes_and_back():
    matrix = clustered(1000, 24)
    index = ApproximateIndex.build(VectorMatrix(matrix))
    again = ApproximateIndex.from_bytes(index.to_bytes())
    assert again.describe() == index.describe() and again.describe()["kind"] == "pq4 fast scan"
    query = clustered(1, 24, seed=5)[0]
    assert again.search(query, 20).tolist() == index.search(query, 20).tolist()


def test_building_repeats_exactly():
    matrix = clustered(1500, 24)
    first, second = (ApproximateIndex.build(VectorMatrix(matrix)) for _ in range(2))
    assert first.to_bytes() == second.to_bytes()


def test_fewer_vectors_than_points_of_the_codes():
    matrix = clustered(5, 24)
    index = ApproximateIndex.build(VectorMatrix(matrix))
    assert found_by(index, matrix, matrix[2], 5) == set(range(5))


def test_without_faiss(monkeypatch):
    monkeypatch.setitem(sys.modules, "faiss", None)
    assert not ann.faiss_is_there()
    with pytest.raises(MissingExtraError, match=r"pip install .*\[search\]'"):
        ApproximateIndex.build(VectorMatrix(clustered(10, 4)))


def test_importing_loads_no_faiss():
    code = "import sys, dartboard.stores.embedded, dartboard.stores.ann; print('faiss' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
