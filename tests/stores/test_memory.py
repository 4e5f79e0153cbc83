"""The store in memory keeps the contract of all stores."""

import pytest

from dartboard.stores import open_store
from dartboard.testing import StoreContract


class TestMemoryStore(StoreContract):
    @pytest.fixture
    def store(self):
        with open_store("memory://") as store:
            yield store
