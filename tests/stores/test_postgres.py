"""The contract of stores, on a real PostgreSQL: by exact search, and by an index."""

from dataclasses import replace

import pytest

from dartboard.stores import parse_filter
from dartboard.stores.postgres import PostgresStore
from dartboard.testing import PLAIN, StoreContract, sample_queries, sample_records
from tests.stores.postgres_server import fresh


class TestPostgresStore(StoreContract):
    lexical_is_bm25 = False

    @pytest.fixture
    def store(self):
        with PostgresStore(fresh()) as store:
            yield store


def test_recall_of_the_index():
    """On noise, which is harder than texts; with a filter it is never short of hits."""
    manifest = replace(PLAIN, settings={"hnsw": {"above": 1000}})
    records = sample_records(3000, fields=False)
    with PostgresStore(fresh()) as store:
        collection = store.create("large", manifest)
        collection.upsert(records)
        collection.prepare()
        assert collection.stats().details["index"] == "hnsw"
        for where in (None, parse_filter("lang = 'en'")):
            found = 0
            for query in sample_queries(20, seed=3):
                got = collection.search_vector(query, 100, where=where)
                wanted = collection.search_vector(query, 100, where=where, exact=True)
                assert len(got) == len(wanted) == 100
                found += len({hit.id for hit in got} & {hit.id for hit in wanted})
            assert found / 2000 >= 0.95, found
