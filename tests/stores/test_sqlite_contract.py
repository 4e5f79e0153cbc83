"""The store in a file keeps the contract: as it comes, and with saved arrays and FAISS from the start."""

import pytest

from dartboard.stores import arrays, derived
from dartboard.stores.sqlite import SqliteStore
from dartboard.testing import StoreContract


class TestSqliteStore(StoreContract):
    @pytest.fixture
    def store(self, tmp_path):
        with SqliteStore(tmp_path / "a store.dartboard") as store:
            yield store


class TestAsForLargeCollections(StoreContract):
    """FAISS codes, saved arrays, and parts that are joined after few changes."""

    @pytest.fixture
    def store(self, tmp_path, monkeypatch):
        monkeypatch.setattr(arrays, "EXACT_UP_TO", 1000)
        monkeypatch.setattr(arrays, "CODES_FROM", 1)
        monkeypatch.setattr(arrays, "_LEAST_CHANGES", 10)
        monkeypatch.setattr(derived, "SAVED_FROM", 1)
        with SqliteStore(tmp_path / "large.dartboard") as store:
            yield store
