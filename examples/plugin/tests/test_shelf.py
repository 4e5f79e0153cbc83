"""The shelf keeps the contract that every store of dartboard keeps, and what it holds outlives it."""

import pytest

from dartboard.errors import StoreError
from dartboard.stores import open_store
from dartboard.testing import PLAIN, StoreContract, sample_records


class TestShelf(StoreContract):
    @pytest.fixture
    def store(self, tmp_path):
        with open_store(f"shelf://{tmp_path}/shelf") as store:
            yield store


def test_what_was_written_is_there_again(tmp_path):
    url = f"shelf://{tmp_path}/shelf"
    with open_store(url) as store:
        store.create("docs", PLAIN).upsert(sample_records(20, fields=False))
    with open_store(url, read_only=True) as store:
        assert store.open("docs").count() == 20
        with pytest.raises(StoreError, match="read_only"):
            store.open("docs").delete([])
