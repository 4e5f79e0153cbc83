"""Stores for passages with one protocol: memory, one file, PostgreSQL and Milvus.

| name | what it is |
|---|---|
| :func:`open_store` | the store at a URL or path |
| :class:`Store`, :class:`Collection` | the two protocols that every store implements |
| :data:`DEFAULT_COLLECTION` | the name of the collection that is opened by default |
| :class:`CollectionStats` | size and state of a collection |
| :class:`Manifest`, :class:`VectorField` | a collection's model, fields and settings |
| :class:`Record`, :class:`SparseVector` | a passage with its vectors |
| :data:`Filter`, :func:`parse_filter` | a condition on metadata, and its text form |
| :func:`filter_from_json`, :func:`filter_to_json` | its JSON form |

Example:
    >>> with open_store("memory://") as store:
    ...     collection = store.create("teas", Manifest(model="my-model", dimension=2))
    ...     collection.upsert([Record("a", "green tea", [0.6, 0.8], {"year": 2020})])
    ...     collection.search_vector([1.0, 0.0], 1, where=parse_filter("year >= 2020"))
    [Hit(id='a', score=0.6000000238418579)]
"""

from dartboard.stores.base import DEFAULT_COLLECTION, Collection, CollectionStats, Store
from dartboard.stores.filter_parser import parse_filter
from dartboard.stores.filters import Filter, filter_from_json, filter_to_json
from dartboard.stores.manifest import Manifest, VectorField
from dartboard.stores.records import Record, SparseVector
from dartboard.stores.urls import open_store

__all__ = [
    "DEFAULT_COLLECTION",
    "Collection",
    "CollectionStats",
    "Filter",
    "Manifest",
    "Record",
    "SparseVector",
    "Store",
    "VectorField",
    "filter_from_json",
    "filter_to_json",
    "open_store",
    "parse_filter",
]
