"""The store in memory keeps the contract of all stores."""

import pytest

from dartboard.errors import StoreError
from dartboard.stores import Manifest, Record, open_store
from dartboard.testing import StoreContract


class TestMemoryStore(StoreContract):
    @pytest.fixture
    def store(self):
        with open_store("memory://") as store:
            yield store


def test_a_read_snapshot_keeps_what_was_there_and_takes_no_writes():
    with open_store("memory://") as store:
        collection = store.create("docs", Manifest(model="m", dimension=2))
        collection.upsert([Record("a", "green tea", [1.0, 0.0]), Record("b", "black tea", [0.0, 2.0])])
        with collection.read_snapshot() as view:
            collection.delete(["a"])
            collection.upsert([Record("c", "white tea", [1.0, 1.0])])
            assert [record.id for record in view.get(["a", "b", "c"])] == ["a", "b"]
            assert [hit.id for hit in view.search_text("green tea", 2)] == ["a", "b"]
            there, vectors = view.unit_vectors(["b", "c", "a"])
            assert there == ["b", "a"] and vectors.tolist() == [[0.0, 1.0], [1.0, 0.0]]
            for write in (lambda: view.upsert([]), lambda: view.delete(["b"]), lambda: view.configure({})):
                with pytest.raises(StoreError, match="read snapshot"):
                    write()
        assert collection.count() == 2
