"""Milvus keeps what every store promises: over gRPC from a real server."""

from collections.abc import Iterator

import pytest

from dartboard.stores import Store
from dartboard.stores.milvus import MilvusStore
from dartboard.testing import StoreContract
from tests.stores.milvus_server import milvus_server, milvus_url

__all__ = ["milvus_server", "milvus_url"]


class TestMilvusServer(StoreContract):
    @pytest.fixture
    def store(self, milvus_url: str) -> Iterator[Store]:
        with MilvusStore(milvus_url) as store:
            yield store
