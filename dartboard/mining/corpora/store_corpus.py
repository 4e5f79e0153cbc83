"""A collection of any store as documents: the store's own searches, its records' ids as names.

Ids and texts are read once, when all of them are first asked for, and kept in memory.
"""

from collections.abc import Iterator
from functools import cached_property
from pathlib import Path

import numpy as np

from dartboard.embeddings import EmbeddingModel
from dartboard.engine import Engine
from dartboard.errors import CollectionError, StoreError
from dartboard.mining.corpora.base import Document
from dartboard.mining.corpora.memory_corpus import TRIAGE, check_search, fingerprint_of, select_together
from dartboard.stores import DEFAULT_COLLECTION
from dartboard.stores.records import Record
from dartboard.stores.urls import without_password


class StoreCorpus:
    """The records of one collection, which is opened for reading; :meth:`close` lets go of the store.

    A record is known by its id. What ``dartboard index`` made can also be named by its source, where that is
    one piece, else by source and number from 1: ``docs/guide.md#2``.
    """

    def __init__(
        self, url: str, collection: str | None = None, *, model: EmbeddingModel | None = None
    ) -> None:
        if "://" not in url and not Path(url).exists():
            raise StoreError(
                f"there is no store {url!r}: make one with dartboard index PATH --store {url}", field="corpus"
            )
        name = collection or DEFAULT_COLLECTION
        self._engine = Engine.open(url, read_only=True, collection=name, model=model)
        if self._engine.collection.count() == 0:
            raise CollectionError(
                f"collection {name!r} of {without_password(url)} is empty: index something first",
                field="corpus",
            )
        self._name = f"{without_password(url)}#{name}"

    @property
    def name(self) -> str:
        """URL and collection, without passwords."""
        return self._name

    @cached_property
    def fingerprint(self) -> str:
        """Changes when a record's id or text does."""
        return fingerprint_of(self._documents)

    def __len__(self) -> int:
        return self._engine.collection.count()

    def __iter__(self) -> Iterator[Document]:
        return iter(self._documents)

    def get(self, fqn: str) -> Document | None:
        """The record of that id, or the piece of that source and number."""
        found = self._engine.collection.get([fqn])
        return _document(found[0]) if found else self._pieces.get(fqn)

    @property
    def other_names(self) -> list[str]:
        """Names beside the ids, for advice."""
        return sorted(self._pieces)

    def lexical(self, query: str, k: int) -> list[Document]:
        """The best by the store's lexical search."""
        check_search(query, k)
        return self._fetch([hit.id for hit in self._engine.collection.search_text(query, k)])

    def dense(self, query: str, k: int) -> list[Document]:
        """The nearest, compared one by one, by the model that the collection was made with."""
        check_search(query, k)
        asked = self._engine.model.encode_query(query)
        hits = self._engine.collection.search_vector(asked, k, exact=True)
        return self._fetch([hit.id for hit in hits])

    def dartboard(self, query: str, k: int) -> list[Document]:
        """What Dartboard selects from the nearest, in the order of selection."""
        check_search(query, k)
        model = self._engine.model
        asked = model.encode_query(query)
        hits = self._engine.collection.search_vector(asked, max(TRIAGE, k), exact=True)
        records = self._engine.collection.get([hit.id for hit in hits])
        vectors = np.stack([record.embedding for record in records])
        return [_document(records[pick]) for pick in select_together(asked, vectors, k, model.sigma)]

    def close(self) -> None:
        """Give back what the store holds."""
        self._engine.store.close()

    @cached_property
    def _documents(self) -> list[Document]:
        found = [_document(record) for batch in self._engine.collection.iterate() for record in batch]
        return sorted(found, key=lambda document: document.fqn)

    @cached_property
    def _pieces(self) -> dict[str, Document]:
        """Records by source and number, where the record says both."""
        sources: dict[str, list[tuple[int, Document]]] = {}
        for document in self._documents:
            source, position = document.metadata.get("source"), document.metadata.get("position")
            if isinstance(source, str) and isinstance(position, int):
                sources.setdefault(source, []).append((position, document))
        pieces: dict[str, Document] = {}
        for source, found in sources.items():
            if len({position for position, _ in found}) < len(found):
                continue  # rows of a table, each a document of its own
            for number, (_, document) in enumerate(sorted(found, key=lambda one: one[0]), start=1):
                pieces[source if len(found) == 1 else f"{source}#{number}"] = document
        return pieces

    def _fetch(self, ids: list[str]) -> list[Document]:
        return [_document(record) for record in self._engine.collection.get(ids)]


def _document(record: Record) -> Document:
    return Document(record.id, record.text, record.metadata)
