"""The embedded store keeps the contract: with its usual settings, and with files and FAISS from the start."""

import pytest

from dartboard.stores.embedded import EmbeddedStore, Tuning
from dartboard.testing.stores import StoreContract

EAGER = Tuning(files_from=0, approximate_from=1000, tail_least=10, compare_up_to=50, recall=0.9995)
"""Everything that large collections do, for small ones; asked for more, since these queries are noise."""


class TestEmbeddedStore(StoreContract):
    @pytest.fixture
    def store(self, tmp_path):
        with EmbeddedStore(tmp_path / "a store.dartboard") as store:
            yield store


class TestEagerStore(StoreContract):
    @pytest.fixture
    def store(self, tmp_path):
        with EmbeddedStore(tmp_path / "eager.dartboard", tuning=EAGER) as store:
            yield store
