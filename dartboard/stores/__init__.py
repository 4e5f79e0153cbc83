"""Where passages live: memory, one file, PostgreSQL, Milvus, behind one protocol."""

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
