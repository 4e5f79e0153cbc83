"""The contract of stores, on a real PostgreSQL: by exact search, and by an index."""

import pytest

from dartboard.stores.manifest import Manifest
from dartboard.stores.postgres import PostgresStore
from dartboard.testing import StoreContract
from dartboard.testing.samples import PLAIN
from tests.stores.postgres_server import fresh


class TestPostgresStore(StoreContract):
    lexical_is_bm25 = False

    @pytest.fixture
    def store(self):
        with PostgresStore(fresh()) as store:
            yield store


def test_recall_of_the_index():
    """The contract's own test of approximate search, where an index answers."""

    class Indexed:
        def __init__(self, store):
            self.store = store

        def create(self, name, manifest):
            self.made = self.store.create(name, with_index(manifest))
            return self.made

    with PostgresStore(fresh()) as store:
        indexed = Indexed(store)
        TestPostgresStore().test_recall_of_approximate_search(indexed)
        assert indexed.made.stats().details["index"] == "hnsw"


def with_index(manifest=PLAIN):
    return Manifest(model=manifest.model, dimension=manifest.dimension, settings={"hnsw": {"above": 1000}})
