"""Dot products of sparse vectors, against a dense matrix."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dartboard.errors import InvalidInputError
from dartboard.lexical import InvertedIndex
from tests.examples import examples

VECTORS = st.dictionaries(
    st.integers(0, 2**31 - 1) | st.integers(0, 9), st.floats(2**-7, 5, width=32), max_size=6
)


def pair(vector):
    return np.array(list(vector), np.int32), np.array(list(vector.values()), np.float32)


@examples(150)
@given(st.lists(VECTORS, max_size=12), VECTORS, st.integers(1, 6), st.booleans())
def test_dot_products(vectors, query, k, masked):
    index = InvertedIndex.build(map(pair, vectors))
    mask = np.arange(len(vectors)) % 2 == 0 if masked else None
    exact = np.array([sum(v[t] * w for t, w in query.items() if t in v) for v in vectors])
    if masked:
        exact[~mask] = 0
    scores = index.scores(*pair(query), mask)
    np.testing.assert_allclose(scores, exact, rtol=1e-6)
    rows, found = index.top(*pair(query), k, mask)
    order = [row for row in np.lexsort((np.arange(len(vectors)), -scores)) if scores[row] > 0][:k]
    assert rows.tolist() == order
    assert found.tolist() == scores[order].tolist()


def random_index(n=5000, seed=0):
    rng = np.random.default_rng(seed)
    weights = 1 / np.arange(1, 1001)
    weights /= weights.sum()
    vectors = []
    for _ in range(n):
        terms = np.unique(rng.choice(1000, 40, p=weights))
        vectors.append((terms, rng.random(terms.size, dtype=np.float32) + 0.01))
    return InvertedIndex.build(vectors), vectors


def test_shortcut_changes_nothing_and_threads_do_not_meet():
    index, vectors = random_index()
    wanted = []
    for terms, weights in vectors[:80]:
        scores = index.scores(terms, weights)
        wanted.append(np.lexsort((np.arange(len(vectors)), -scores))[:20].tolist())
    with ThreadPoolExecutor(6) as pool:
        found = list(pool.map(lambda query: index.top(*query, 20)[0].tolist(), vectors[:80] * 3))
    assert found == wanted * 3


def test_edges():
    empty = InvertedIndex.build([])
    assert len(empty) == 0
    assert empty.top([1], [1.0], 5)[0].size == 0
    index = InvertedIndex.build([([], []), ([7], [0.5])])
    assert index.top([], [], 5)[0].size == 0
    assert index.top([3], [1.0], 5)[0].size == 0
    assert index.top([7, 3], [2.0, 1.0], 5)[0].tolist() == [1]
    # A product too small for float32 is no hit; one that is merely tiny is.
    tiny = InvertedIndex.build([([1], [1e-30]), ([1, 2], [1e-30, 1.0])])
    assert tiny.top([1, 2], [1e-30, 1.0], 5)[0].tolist() == [1]
    assert tiny.top([1], [1.0], 5)[0].tolist() == [0, 1]


@pytest.mark.parametrize(
    "terms, weights, what",
    [
        ([1, 2], [1.0], "need one each"),
        ([1.5], [1.0], "must be integers"),
        ([-1], [1.0], "must be >= 0"),
        ([2**31], [1.0], "must be >= 0"),
        ([1], [0.0], "finite and > 0"),
        ([1], [np.nan], "finite and > 0"),
        ([1, 1], [1.0, 2.0], "occurs twice"),
    ],
)
def test_unusable_vectors(terms, weights, what):
    with pytest.raises(InvalidInputError, match=f"vector 1: .*{what}"):
        InvertedIndex.build([([1], [1.0]), (terms, weights)])
    with pytest.raises(InvalidInputError, match=f"query: .*{what}"):
        random_index(10)[0].top(terms, weights, 1)
