"""Dartboard on top of a retriever's candidates."""

import numpy as np
import pytest

from dartboard.errors import ConfigError, InvalidInputError
from dartboard.retrievers import (
    BM25Retriever,
    Candidate,
    Candidates,
    DenseRetriever,
    pool_of,
    select_from,
)
from dartboard.selection import Limits, log_softmax, select
from dartboard.types import Chunk
from tests.models import WordBag

from .corpus import collection_for

QUERY = "the cache keeps answers in memory"


@pytest.fixture(scope="module")
def collection():
    return collection_for()


def made(scores, seed=0, dim=6):
    vectors = np.random.default_rng(seed).standard_normal((len(scores), dim)).astype(np.float32)
    found = [
        Candidate(chunk=Chunk(f"c{at}", "text", vector), score=score)
        for at, (vector, score) in enumerate(zip(vectors, scores, strict=True))
    ]
    return Candidates(query="q", found=found, query_vector=np.ones(dim, np.float32))


def test_dense_candidates_are_selected_as_ever(collection):
    """The retriever's order is that of the distances, so matching them changes nothing."""
    candidates = DenseRetriever(WordBag()).retrieve(collection, QUERY, 12)
    vectors = np.stack([candidate.chunk.embedding for candidate in candidates.found])
    texts = [candidate.chunk.text for candidate in candidates.found]
    expected = select(vectors, candidates.query_vector, 5, sigma=0.1, texts=texts)
    for relevance in ("rank", "distance"):
        picked = select_from(candidates, Limits(k=5), relevance=relevance, sigma=0.1)
        assert picked.indices.tolist() == expected.indices.tolist()
        assert picked.gains == pytest.approx(expected.gains, abs=1e-6)


def test_ranks_take_the_pools_distances():
    candidates = made([9.0, 7.0, 7.0, 3.0, 1.0, 0.5, 0.2, 0.1, 0.0])
    pool = pool_of(candidates, sigma=0.2)
    vectors = np.stack([c.chunk.embedding for c in candidates.found]).astype(float)
    cosines = vectors @ np.ones(6) / np.linalg.norm(vectors, axis=1) / np.sqrt(6)
    expected = -(np.sort((1 - cosines) / 2) ** 2) / (2 * 0.2**2)
    expected[1:3] = expected[1:3].mean()  # equal scores share
    np.testing.assert_allclose(pool.relevance, expected, atol=1e-5)
    first = select_from(candidates, Limits(k=3), sigma=0.2)
    assert first.indices[0] == 0


def test_the_retrievers_first_is_picked_first(collection):
    candidates = BM25Retriever(WordBag()).retrieve(collection, QUERY, 12)
    assert select_from(candidates, Limits(k=2)).indices[0] == 0
    assert select_from(candidates, Limits(k=2), method="top_k").indices.tolist() == [0, 1]


def test_scores_by_their_own_scale():
    candidates = made([3.0, 2.0, 1.0])
    pool = pool_of(candidates, relevance="score", sigma=0.2)
    np.testing.assert_allclose(pool.relevance, log_softmax([3.0, 2.0, 1.0]))


def test_copies_add_nothing(collection):
    candidates = BM25Retriever(WordBag()).retrieve(collection, QUERY, 12)
    ids = [candidates.found[at].chunk.id for at in select_from(candidates, Limits(k=3)).indices]
    assert len({"cache", "copy"} & set(ids)) == 1


def test_what_cannot_be_selected_from(collection):
    with pytest.raises(InvalidInputError, match="give their retriever the embedding model"):
        pool_of(BM25Retriever().retrieve(collection, QUERY, 3))
    with pytest.raises(InvalidInputError, match="no candidates"):
        pool_of(Candidates(query="q", found=[]))
    with pytest.raises(ConfigError, match="rank, distance, score"):
        pool_of(made([1.0]), relevance="best")
