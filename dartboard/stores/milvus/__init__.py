"""Records in Milvus: Lite in this process, a server, or a cluster, through the same client."""

from dartboard.stores.milvus.store import MilvusStore

__all__ = ["MilvusStore"]
