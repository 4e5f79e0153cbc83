"""All derived indexes of a collection, each made when a search first needs it."""

from threading import Lock
from typing import Any

from dartboard.lexical.bm25 import BM25Index
from dartboard.lexical.inverted import InvertedIndex
from dartboard.stores.embedded.derived_files import DerivedFiles
from dartboard.stores.embedded.derived_index import DerivedIndex, Tuning
from dartboard.stores.embedded.lexical_index import LexicalIndex
from dartboard.stores.embedded.record_reader import RecordReader
from dartboard.stores.embedded.vector_index import VectorIndex
from dartboard.stores.manifest import Manifest, build_bm25, lexical_settings

_TERMS_VERSION = 1
"""Raise it when texts become terms in another way, so that older lexical indexes are built again."""


class Indexes:
    """Shared by all threads that read the collection."""

    def __init__(self, collection: int, files: DerivedFiles, tuning: Tuning) -> None:
        self.tuning = tuning
        self._collection = collection
        self._files = files
        self._vectors: dict[str | None, VectorIndex] = {}
        self._sparse: dict[str, LexicalIndex[InvertedIndex]] = {}
        self._text: LexicalIndex[BM25Index] | None = None
        self._lock = Lock()

    def vectors(self, manifest: Manifest, field: str | None) -> VectorIndex:
        """Of the embeddings, or of a further field of vectors."""
        with self._lock:
            if field not in self._vectors:
                further = None if field is None else manifest.vectors[field]
                self._vectors[field] = VectorIndex(
                    self._collection,
                    field,
                    manifest.dimension if further is None else further.dimension,
                    "cosine" if further is None else further.metric,
                    self._files,
                    self.tuning,
                )
            return self._vectors[field]

    def sparse(self, field: str) -> LexicalIndex[InvertedIndex]:
        """Of a field of sparse vectors."""
        with self._lock:
            if field not in self._sparse:
                self._sparse[field] = LexicalIndex(
                    self._collection,
                    f"sparse:{field}",
                    {},
                    self._files,
                    self.tuning,
                    read=lambda reader: reader.sparse_vectors(field),
                    build=InvertedIndex.build,
                    load=lambda folder: InvertedIndex.load(folder),
                )
            return self._sparse[field]

    def text(self, manifest: Manifest) -> LexicalIndex[BM25Index]:
        """Of the texts, as the manifest's settings want them analysed; other settings replace the index."""
        settings = {"version": _TERMS_VERSION, **lexical_settings(manifest)}
        with self._lock:
            if self._text is None or self._text.settings != settings:
                self._text = LexicalIndex(
                    self._collection,
                    "text",
                    settings,
                    self._files,
                    self.tuning,
                    read=RecordReader.texts,
                    build=lambda texts: build_bm25(texts, manifest),
                    load=lambda folder: BM25Index.load(folder),
                )
            return self._text

    def save(self, reader: RecordReader) -> None:
        """Leave files of all vectors, and of the lexical index, where the collection is worth it."""
        manifest = reader.manifest
        if reader.records < self.tuning.files_from:
            return
        for field in (None, *manifest.vectors):
            self.vectors(manifest, field).save(reader)
        if reader.records <= self.tuning.words_up_to or self._text is not None:
            self.text(manifest).at(reader)
        for sparse in manifest.sparse:
            self.sparse(sparse).at(reader)

    def states(self) -> dict[DerivedIndex[Any], Any]:
        """What is in memory now, by index."""
        return {index: index.state for index in self._named().values() if index.state is not None}

    def describe(self) -> dict[str, Any]:
        """The indexes in memory by name, for statistics."""
        return {name: index.state.describe() for name, index in self._named().items() if index.state}

    def _named(self) -> dict[str, DerivedIndex[Any]]:
        with self._lock:
            named: dict[str, DerivedIndex[Any]] = {}
            named |= {field or "embedding": index for field, index in self._vectors.items()}
            named |= self._sparse
            if self._text is not None:
                named["text"] = self._text
            return named
