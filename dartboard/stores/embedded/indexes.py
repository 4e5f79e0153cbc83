"""All derived indexes of a collection, each made when first needed."""

import sqlite3
from pathlib import Path
from threading import Lock
from typing import Any

from dartboard.lexical.bm25 import BM25Index
from dartboard.lexical.inverted import InvertedIndex
from dartboard.stores.embedded.derived import DerivedFiles, DerivedIndex
from dartboard.stores.embedded.reading import stream_sparse, stream_texts
from dartboard.stores.embedded.revisions import Revision
from dartboard.stores.embedded.tuning import Tuning
from dartboard.stores.embedded.vector_upkeep import FieldOfVectors, VectorUpkeep
from dartboard.stores.embedded.words import WordSource, WordUpkeep
from dartboard.stores.manifest import Manifest, build_bm25, lexical_settings

_TEXT = "text"
_WORDS_VERSION = 1
"""Raise it when texts become terms in another way, so that older lexical indexes are built again."""


class Indexes:
    """By field; a lexical index of other settings replaces the one before."""

    def __init__(self, collection: int, derived: DerivedFiles, tuning: Tuning) -> None:
        self._collection = collection
        self._derived = derived
        self._tuning = tuning
        self._vectors: dict[str | None, VectorUpkeep] = {}
        self._sparse: dict[str, WordUpkeep[InvertedIndex]] = {}
        self._text: tuple[dict[str, Any], WordUpkeep[BM25Index]] | None = None
        self._lock = Lock()

    def vectors(self, manifest: Manifest, field: str | None) -> VectorUpkeep:
        """The embeddings, or a further field of vectors."""
        with self._lock:
            if field not in self._vectors:
                further = None if field is None else manifest.vectors[field]
                described = FieldOfVectors(
                    collection=self._collection,
                    field=field,
                    dimension=manifest.dimension if further is None else further.dimension,
                    metric="cosine" if further is None else further.metric,
                )
                self._vectors[field] = VectorUpkeep(described, self._derived, self._tuning)
            return self._vectors[field]

    def sparse(self, field: str) -> WordUpkeep[InvertedIndex]:
        """A field of sparse vectors."""
        with self._lock:
            if field not in self._sparse:
                source: WordSource[InvertedIndex] = WordSource(
                    collection=self._collection,
                    kind=f"sparse:{field}",
                    settings={},
                    rows=lambda connection: stream_sparse(connection, self._collection, field),
                    build=InvertedIndex.build,
                    load=lambda folder: InvertedIndex.load(folder),
                )
                self._sparse[field] = WordUpkeep(source, self._derived, self._tuning)
            return self._sparse[field]

    def text(self, manifest: Manifest) -> WordUpkeep[BM25Index]:
        """The texts, as the manifest's settings want them analysed."""
        settings = {"version": _WORDS_VERSION, **lexical_settings(manifest)}
        with self._lock:
            if self._text is None or self._text[0] != settings:
                source: WordSource[BM25Index] = WordSource(
                    collection=self._collection,
                    kind=_TEXT,
                    settings=settings,
                    rows=lambda connection: stream_texts(connection, self._collection),
                    build=lambda texts: build_bm25(texts, manifest),
                    load=_load_bm25,
                )
                self._text = settings, WordUpkeep(source, self._derived, self._tuning)
            return self._text[1]

    def states(self) -> dict[DerivedIndex[Any], Any]:
        """What is in memory now, by index."""
        with self._lock:
            indexes: list[DerivedIndex[Any]] = [*self._vectors.values(), *self._sparse.values()]
            if self._text is not None:
                indexes.append(self._text[1])
        return {index: index.state for index in indexes if index.state is not None}

    def save(self, connection: sqlite3.Connection, revision: Revision, manifest: Manifest) -> None:
        """Leave files of all vectors, and of the lexical index, where the collection is worth it."""
        if revision.records < self._tuning.files_from:
            return
        for field in (None, *manifest.vectors):
            self.vectors(manifest, field).save(connection, revision)
        if revision.records <= self._tuning.words_up_to or self._text is not None:
            self.text(manifest).at(connection, revision)
        for sparse in manifest.sparse:
            self.sparse(sparse).at(connection, revision)

    def describe(self) -> dict[str, Any]:
        """The indexes in memory by name, for statistics."""
        with self._lock:
            named: dict[str, Any] = {
                "embedding" if field is None else field: upkeep.describe()
                for field, upkeep in self._vectors.items()
            }
            named |= {field: upkeep.describe() for field, upkeep in self._sparse.items()}
            if self._text is not None:
                named[_TEXT] = self._text[1].describe()
        return {name: state for name, state in named.items() if state}


def _load_bm25(folder: Path) -> BM25Index:
    return BM25Index.load(folder)
