"""The Milvus store: Milvus Lite in this process, a server or a cluster, through the same client.

| file | what is in it |
|---|---|
| ``connection.py`` | the URL, calls with a time limit, translation of Milvus's errors |
| ``lite.py`` | Milvus Lite's server in this process |
| ``schema.py`` | names, fields, indexes and properties of a collection |
| ``rows.py`` | records to rows and back, texts to words for BM25 |
| ``filter_expressions.py`` | filters as expressions, and the terms that they match |
| ``queries.py`` | ids and rows in pages, the best k of a search |
| ``collection.py``, ``store.py`` | the two protocols |
"""

from dartboard.errors import MissingExtraError

try:
    import grpc  # noqa: F401
    import pymilvus  # noqa: F401
except ImportError as error:
    raise MissingExtraError("pymilvus", "milvus", "a Milvus store") from error

from dartboard.stores.milvus.store import MilvusStore

__all__ = ["MilvusStore"]
