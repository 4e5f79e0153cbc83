"""Candidates are read when somebody asks: from a file one by one, from other stores at once."""

import numpy as np
import pytest

from dartboard.errors import StoreError
from dartboard.retrievers import BM25Retriever, Candidates, DenseRetriever, HybridRetriever, Ranked, Share
from dartboard.stores import Manifest, open_store
from dartboard.types import Hit
from tests.models import WordBag

from .corpus import TEXTS, collection_for, records_of

QUERY = "how are JWT tokens validated"


@pytest.fixture
def file(tmp_path):
    with open_store(str(tmp_path / "a.dartboard")) as store:
        collection = store.create("docs", Manifest(model=WordBag().fingerprint, dimension=32))
        collection.upsert(records_of(model=WordBag(32)))
        yield collection


def fetched(collection, ids):
    return Candidates.fetched(collection, Ranked.of([Hit(id, 0.0) for id in ids]))


class Counting:
    """A collection that counts the records that are read."""

    def __init__(self, collection):
        self._collection, self.read = collection, []

    def __getattr__(self, name):
        return getattr(self._collection, name)

    def get(self, ids, **more):
        self.read += ids
        return self._collection.get(ids, **more)


def test_a_file_hands_over_unit_vectors_and_reads_what_is_asked_for(file):
    counting = Counting(file)
    passages = fetched(counting, ["jwt", "nobody", "cache", "pool"])
    assert passages.ids == ["jwt", "cache", "pool"] and len(passages) == 3 and not counting.read
    np.testing.assert_allclose(np.linalg.norm(passages.vectors, axis=1), 1.0, atol=1e-6)
    assert [chunk.text for chunk in passages.chunks([2])] == [TEXTS["pool"]]
    assert [chunk.id for chunk in passages.chunks()] == passages.ids
    assert counting.read == ["pool", "jwt", "cache"]
    both = passages.take([1, 0]).followed_by(fetched(counting, ["deploy"]))
    assert both.ids == ["cache", "jwt", "deploy"] and both.vectors.shape[0] == 3
    assert [chunk.text for chunk in both.chunks()] == [TEXTS[id] for id in both.ids]
    assert counting.read == ["pool", "jwt", "cache", "deploy"]


def test_none_at_all(file):
    for collection in (file, collection_for()):
        none = fetched(collection, [])
        assert len(none) == 0 and none.chunks() == []
        some = fetched(collection, ["jwt"])
        assert none.followed_by(some).ids == some.followed_by(none).ids == ["jwt"]


def test_one_that_goes_meanwhile_is_an_error(file):
    passages = fetched(file, ["jwt", "cache"])
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


def ranked(*hits, **members):
    return Ranked.of([Hit(*hit) for hit in hits])._replace(members=members)


def with_shares(name, *rankings):
    ids = list(dict.fromkeys(id for each in rankings for id in each.ids))
    return Candidates(
        ids=ids, scores=np.zeros(len(ids)), vectors=np.eye(len(ids)), name=name, rankings=rankings
    )


def test_shares_of_members_and_of_theirs_even_of_the_same_name():
    words = ranked(("a", 3.0), ("b", 1.0))
    alone = with_shares("words", words)
    assert alone.shares("a") == {"words": Share(1, 3.0)} and alone.shares("c") == {}
    inner = ranked(("z", 0.2), ("a", 0.1))
    deep = ranked(("c", 0.5), ("a", 0.4), words=inner)
    both = with_shares("both", ranked(("a", 1.0), ("c", 0.7), ("b", 0.1), words=words, deep=deep))
    assert both.shares("a") == {
        "both": Share(1, 1.0),
        "words": Share(1, 3.0),
        "deep": Share(2, 0.4),
        "deep/words": Share(2, 0.1),
    }
    assert both.shares("c") == {"both": Share(2, 0.7), "deep": Share(1, 0.5)}
    assert both.shares("d") == {}


def test_shares_count_from_the_retrievers_list_and_its_best_question():
    found = with_shares("words", ranked(("a", 3.0), ("b", 1.0)), ranked(("c", 2.0), ("a", 0.5)))
    assert found.take([1]).shares("b") == {"words": Share(2, 1.0)}
    assert found.shares("a") == {"words": Share(1, 3.0)} and found.score("c") == 2.0
    assert found.score("d") is None
