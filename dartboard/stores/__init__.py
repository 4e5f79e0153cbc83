"""Where passages live: memory, one file, PostgreSQL, Milvus, behind one protocol."""

from dartboard.stores.base import DEFAULT_COLLECTION, Collection, CollectionStats, Store
from dartboard.stores.filter_text import parse_filter
from dartboard.stores.filters import Filter, filter_from_json, filter_to_json
from dartboard.stores.opening import open_store
from dartboard.stores.records import Manifest, Record, SparseVector, VectorField

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
