"""Contract tests that third-party stores can inherit; needs pytest.

::

    from dartboard.testing import StoreContract

    class TestMyStore(StoreContract):
        @pytest.fixture
        def store(self, tmp_path):
            with MyStore(tmp_path) as store:
                yield store
"""

from dartboard.testing.stores import StoreContract

__all__ = ["StoreContract"]
