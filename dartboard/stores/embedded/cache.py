"""Data that searches of a collection share: derived indexes, rows of filters, ids and blobs of rows."""

import json
from collections import OrderedDict
from collections.abc import Callable
from threading import Lock
from typing import Any

from dartboard.lexical.bm25 import BM25Index
from dartboard.lexical.inverted import InvertedIndex
from dartboard.stores.embedded.checksums import damaged, is_small
from dartboard.stores.embedded.derived_index import DerivedFiles, DerivedIndex, Tuning
from dartboard.stores.embedded.lexical_index import LexicalIndex
from dartboard.stores.embedded.record_reader import RecordReader, Rows
from dartboard.stores.embedded.vector_index import VectorIndex
from dartboard.stores.embedded.vector_search import VectorState
from dartboard.stores.filters import Filter, filter_to_json
from dartboard.stores.manifest import Manifest, VectorField, build_bm25, lexical_settings

_TERMS_VERSION = 1
"""Increase it when the text analysis changes, so that older lexical indexes are rebuilt."""
_FILTERS_KEPT = 32
_IDS_KEPT = 200_000
_BLOB_BYTES_KEPT = 1 << 25


class CollectionCache:
    """Shared by all threads that read the collection; each index is built when a search first needs it."""

    def __init__(self, collection: int, files: DerivedFiles, tuning: Tuning) -> None:
        self.tuning = tuning
        self._source = collection, files, tuning
        self._indexes: dict[str, Any] = {}
        """By kind."""
        self._filters: OrderedDict[tuple[int, str], Rows] = OrderedDict()
        self._ids: dict[int, str] = {}
        self._blobs: dict[tuple[str, int], bytes] = {}
        self._blob_bytes = 0
        self._checked_row = 0
        self._lock = Lock()

    def vectors(self, manifest: Manifest, field: str | None) -> VectorIndex:
        """The index of the embeddings, or of a further field of vectors."""
        kind = "vectors" if field is None else f"vectors:{field}"
        with self._lock:
            index: VectorIndex | None = self._indexes.get(kind)
            if index is None:
                own = VectorField(dimension=manifest.dimension)
                described = own if field is None else manifest.vectors[field]
                index = self._indexes[kind] = VectorIndex(*self._source, kind, field, described)
            return index

    def sparse(self, field: str) -> LexicalIndex[InvertedIndex]:
        """The index of a field of sparse vectors."""
        kind = f"sparse:{field}"
        with self._lock:
            index: LexicalIndex[InvertedIndex] | None = self._indexes.get(kind)
            if index is None:
                index = self._indexes[kind] = LexicalIndex(
                    *self._source,
                    kind,
                    {},
                    read=lambda reader: reader.sparse_vectors(field),
                    build=InvertedIndex.build,
                    load=lambda folder: InvertedIndex.load(folder),
                )
            return index

    def text(self, manifest: Manifest) -> LexicalIndex[BM25Index]:
        """The index of the texts; rebuilt when the manifest's settings change."""
        settings = {"version": _TERMS_VERSION, **lexical_settings(manifest)}
        with self._lock:
            index: LexicalIndex[BM25Index] | None = self._indexes.get("text")
            if index is None or index.settings != settings:
                index = self._indexes["text"] = LexicalIndex(
                    *self._source,
                    "text",
                    settings,
                    read=RecordReader.texts,
                    build=lambda texts: build_bm25(texts, manifest),
                    load=lambda folder: BM25Index.load(folder),
                )
            return index

    def states(self) -> dict[DerivedIndex[Any], Any]:
        """The states in memory, by index."""
        return {index: index.state for index in list(self._indexes.values()) if index.state is not None}

    def matching(self, reader: RecordReader, where: Filter) -> Rows:
        """The matching rows; results of the last few filters are cached until the next write."""
        key = (reader.revision, json.dumps(filter_to_json(where)))
        with self._lock:
            if key in self._filters:
                self._filters.move_to_end(key)
                return self._filters[key]
        self.check_metadata(reader)
        rows = reader.matching(where)
        with self._lock:
            for old in [old for old in self._filters if old[0] < reader.revision]:
                del self._filters[old]
            self._filters[key] = rows
            while len(self._filters) > _FILTERS_KEPT:
                self._filters.popitem(last=False)
        return rows

    def check_metadata(self, reader: RecordReader) -> None:
        """Verify the metadata that a filter reads; each row is checked once.

        In a large file that takes too long, so only returned records are checked there.
        """
        if is_small(reader.connection):
            self._checked_row = reader.check_texts(self._checked_row)

    def ids(self, rows: list[int], reader: RecordReader, state: VectorState | None) -> list[str]:
        """The ids of rows, in order. A row never changes its id, so each is looked up once.

        A saved index stores the ids beside its vectors, which saves a query of the tables.
        """
        known = self._ids
        if unknown := [row for row in rows if row not in known]:
            if len(known) > _IDS_KEPT:
                known, unknown = {}, rows
                self._ids = known
            if state is not None:
                known.update(state.ids_of(unknown))
                unknown = [row for row in unknown if row not in known]
            if unknown:
                known.update(reader.ids_of(unknown))
        try:
            return [known[row] for row in rows]
        except KeyError as error:
            raise damaged(f"the record in row {error}, which an index knows,") from error

    def blobs(
        self, rows: list[int], name: str, read_rows: Callable[[list[int], str], dict[int, bytes]]
    ) -> dict[int, bytes]:
        """The blobs of this name by row, without the rows that have none. A row never changes its blobs.

        Fingerprints are read for all candidates of every search, and from the tables only the first time.
        """
        known = self._blobs
        found = {row: known[name, row] for row in rows if (name, row) in known}
        if unknown := [row for row in rows if row not in found]:
            read = read_rows(unknown, name)
            with self._lock:
                if self._blob_bytes > _BLOB_BYTES_KEPT:
                    self._blobs, self._blob_bytes = {}, 0
                self._blobs.update(((name, row), data) for row, data in read.items())
                self._blob_bytes += sum(map(len, read.values()))
            found |= read
        return found

    def save(self, reader: RecordReader) -> None:
        """Save the indexes of all vectors and of the texts if the collection is large enough."""
        manifest = reader.manifest
        if reader.records < self.tuning.files_from:
            return
        for field in (None, *manifest.vectors):
            self.vectors(manifest, field).save(reader)
        if reader.records <= self.tuning.words_up_to or "text" in self._indexes:
            self.text(manifest).at(reader)
        for sparse in manifest.sparse:
            self.sparse(sparse).at(reader)

    def describe(self) -> dict[str, Any]:
        """The indexes in memory by field name, for statistics."""
        return {
            "embedding" if index.kind == "vectors" else index.kind.split(":", 1)[-1]: state.describe()
            for index, state in self.states().items()
        }
