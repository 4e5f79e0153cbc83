"""Passages that are read when somebody asks: from a file one by one, from other stores at once."""

import numpy as np
import pytest

from dartboard.errors import StoreError
from dartboard.retrievers import BM25Retriever, DenseRetriever, HybridRetriever
from dartboard.retrievers.passages import Passages
from dartboard.stores import Manifest, open_store
from tests.models import WordBag

from .corpus import TEXTS, collection_for, records_of

QUERY = "how are JWT tokens validated"


@pytest.fixture
def file(tmp_path):
    with open_store(str(tmp_path / "a.dartboard")) as store:
        collection = store.create("docs", Manifest(model=WordBag().fingerprint, dimension=32))
        collection.upsert(records_of(model=WordBag(32)))
        yield collection


class Counting:
    """A collection that counts the records that are read."""

    def __init__(self, collection):
        self._collection, self.read = collection, []

    def __getattr__(self, name):
        return getattr(self._collection, name)

    def get(self, ids, **more):
        self.read += ids
        return self._collection.get(ids, **more)


def test_a_file_hands_over_directions_and_reads_what_is_asked_for(file):
    counting = Counting(file)
    passages = Passages.find(counting, ["jwt", "nobody", "cache", "pool"])
    assert passages.ids == ["jwt", "cache", "pool"] and len(passages) == 3 and not counting.read
    np.testing.assert_allclose(np.linalg.norm(passages.vectors, axis=1), 1.0, atol=1e-6)
    assert [chunk.text for chunk in passages.chunks([2])] == [TEXTS["pool"]]
    assert [chunk.id for chunk in passages.chunks()] == passages.ids
    assert counting.read == ["pool", "jwt", "cache"]
    assert list(passages.known) == passages.ids
    both = passages.at([1, 0]).followed_by(Passages.find(counting, ["deploy"]))
    assert both.ids == ["cache", "jwt", "deploy"] and both.vectors.shape[0] == 3
    assert [chunk.text for chunk in both.chunks()] == [TEXTS[id] for id in both.ids]
    assert counting.read == ["pool", "jwt", "cache", "deploy"]


def test_other_stores_are_asked_once():
    counting = Counting(collection_for())
    passages = Passages.find(counting, ["jwt", "nobody", "cache"])
    assert [chunk.id for chunk in passages.chunks()] == ["jwt", "cache"]
    assert counting.read == ["jwt", "nobody", "cache"]


def test_none_at_all(file):
    for collection in (file, collection_for()):
        none = Passages.find(collection, [])
        assert len(none) == 0 and none.chunks() == []
        some = Passages.find(collection, ["jwt"])
        assert none.followed_by(some).ids == some.followed_by(none).ids == ["jwt"]


def test_one_that_goes_meanwhile_is_an_error(file):
    passages = Passages.find(file, ["jwt", "cache"])
    file.delete(["cache"])
    with pytest.raises(StoreError, match="search again"):
        passages.chunks()


@pytest.mark.parametrize("method", ["scores", "rrf"])
def test_candidates_come_from_one_state(file, method):
    class Writing(BM25Retriever):
        def rank(self, collection, question, k, *, where=None):
            found = super().rank(collection, question, k, where=where)
            file.delete(["jwt"])
            return found

    hybrid = HybridRetriever([DenseRetriever(WordBag(32)), Writing()], method=method)
    assert "jwt" in [each.chunk.id for each in hybrid.retrieve(file, QUERY, 5).found]
    assert "jwt" not in [each.chunk.id for each in hybrid.retrieve(file, QUERY, 5).found]
