"""A collection in Milvus: records of one model."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dartboard.errors import StoreError
from dartboard.stores.base import BaseCollection, CollectionStats
from dartboard.stores.checks import check_deletion, check_k, check_query_vector, check_sparse_field
from dartboard.stores.filters import Filter
from dartboard.stores.manifest import Manifest, with_changes
from dartboard.stores.milvus.connection import Connection
from dartboard.stores.milvus.filter_expressions import Expression, compile_filter, contains, vector_term
from dartboard.stores.milvus.queries import MOST_HITS, Reader, batched, best_hits, exact_hits
from dartboard.stores.milvus.rows import Lexemes, output_fields, record_from_row, row_from_record
from dartboard.stores.milvus.schema import (
    CollectionLayout,
    collection_name,
    field_name,
    manifest_property,
    read_properties,
)
from dartboard.stores.records import Record, SparseVector
from dartboard.stores.snapshot_file import write_snapshot_file
from dartboard.types import FloatArray, Hit

_UNFLUSHED_ROWS = 200
_SMALLEST_EF = 400


class MilvusCollection(BaseCollection):
    """Records of one model in one collection of Milvus."""

    def __init__(
        self, connection: Connection, manifest: Manifest, layout: CollectionLayout, *, fresh: bool = False
    ) -> None:
        self.name = layout.name
        self.manifest = manifest
        self._connection = connection
        self._layout = layout
        self._lexemes = Lexemes.of(manifest)
        self._stored_name = collection_name(layout.name)
        self._reader = Reader(connection, self._stored_name)
        self._unflushed = 0 if fresh else _UNFLUSHED_ROWS

    def configure(self, changes: Mapping[str, Any]) -> None:
        """Change these settings and keep the others; the text analysis is fixed at creation.

        Milvus has no transactions: the settings are read anew before they are written.
        """
        self._connection.check_writable()
        described = self._call("describe_collection")
        stored, _ = read_properties(dict(described.get("properties") or {}), f"collection {self.name!r}")
        changed = with_changes(stored, changes, self.name)
        if Lexemes.of(changed) != self._lexemes:
            raise StoreError(
                f"settings['lexical'] of collection {self.name!r} cannot change: Milvus analyses texts "
                "when they are written. Create another collection with the new settings and index into it"
            )
        with self._connection.writing:
            self._call("alter_collection_properties", properties=manifest_property(changed))
            self.manifest = changed

    def upsert(self, records: Sequence[Record]) -> None:
        """Write the records: all are checked first, then sent in batches that are each atomic."""
        self._connection.check_writable()
        latest = {record.id: record for record in records}
        self.manifest.check(list(latest.values()))
        rows = [
            row_from_record(record, self.manifest, self._layout, self._lexemes) for record in latest.values()
        ]
        with self._connection.writing:
            sent = 0
            for request in batched(rows):
                try:
                    self._call("upsert", data=list(request))
                except StoreError as error:
                    if not sent:
                        raise
                    written = f"{sent:,} of {len(latest):,} records were written"
                    raise type(error)(f"{error} ({written})") from error
                sent += len(request)
                self._unflushed += len(request)

    def delete(self, ids: Sequence[str] | None = None, *, where: Filter | None = None) -> int:
        """Delete by ids or by filter."""
        check_deletion(ids, where)
        self._connection.check_writable()
        with self._connection.writing:
            if ids is None:
                ids = [id for page in self._reader.id_pages(self._compiled(where)) for id in page]
            removed = self._reader.delete(ids)
            self._unflushed += removed
        return removed

    def get(self, ids: Sequence[str], *, blobs: Sequence[str] = ()) -> list[Record]:
        """The records that exist, in the order of ``ids``."""
        fields = output_fields(self.manifest, whole=False, blobs=bool(blobs))
        rows = self._reader.rows(ids, fields)
        return [
            record_from_row(rows[id], self.manifest, whole=False, blobs=blobs) for id in ids if id in rows
        ]

    def count(self, where: Filter | None = None) -> int:
        """How many records match; without a filter, all."""
        self._settle()
        return self._reader.count(self._compiled(where))

    def search_vector(
        self,
        query: FloatArray,
        k: int,
        *,
        where: Filter | None = None,
        field: str | None = None,
        exact: bool = False,
    ) -> list[Hit]:
        """Search the collection's index; ``exact`` on an HNSW index reads every matching record."""
        asked, metric = check_query_vector(self.manifest, query, field)
        check_k(k)
        expression = self._compiled(where)
        if field is not None:
            expression = expression & contains(self._layout.terms, [vector_term(field)])
        stored = "embedding" if field is None else field_name("vector", field)
        if k > MOST_HITS or (exact and self._layout.index != "FLAT"):
            self._settle()
            id_pages = self._reader.id_pages(expression)
        elif not exact:
            return self._search(asked, k, stored, expression)[:k]
        else:  # Milvus rounds scores: candidates for the k best are compared again
            slack = 1e-5 * max(1.0, float(np.linalg.norm(asked)))
            id_pages = iter([[hit.id for hit in self._search(asked, k, stored, expression, slack=slack)]])
        rows = (page for ids in id_pages for page in self._reader.row_pages(ids, ["id", stored]))
        return exact_hits(asked, k, rows, stored, cosine=metric == "cosine")

    def search_sparse(
        self, query: SparseVector, k: int, *, field: str, where: Filter | None = None
    ) -> list[Hit]:
        """Best by dot product, through Milvus's inverted index."""
        check_k(k)
        check_sparse_field(self.manifest, field, self.name)
        weights = dict(zip(query.terms.tolist(), query.weights.tolist(), strict=True))
        hits = self._search(weights, k, field_name("sparse", field), self._compiled(where))
        return [hit for hit in hits[:k] if hit.score > 0]

    def search_text(self, query: str, k: int, *, where: Filter | None = None) -> list[Hit]:
        """Best by Milvus's BM25; Milvus Lite computes the idf per segment."""
        check_k(k)
        hits = self._search(self._lexemes.of_query(query), k, "bm25", self._compiled(where))
        return [hit for hit in hits[:k] if hit.score > 0]

    def iterate(self, *, where: Filter | None = None, batch_size: int = 1000) -> Iterator[list[Record]]:
        """All matching records, complete, sorted by id."""
        check_k(batch_size, "batch_size")
        self._settle()
        fields = output_fields(self.manifest, whole=True, blobs=True)
        for ids in self._reader.id_pages(self._compiled(where), batch_size):
            rows = self._reader.rows(ids, fields)
            batch = [record_from_row(rows[id], self.manifest, whole=True) for id in ids if id in rows]
            if batch:
                yield batch

    def prepare(self) -> None:
        """Flush rows that Milvus Lite would scan one by one; a server does this itself."""
        self._settle()

    def snapshot(self, path: str | Path) -> None:
        """Write the collection to one file."""
        write_snapshot_file(path, self.name, self.manifest, self.iterate())

    def stats(self) -> CollectionStats:
        """The number of records, and the bytes of their vectors: Milvus does not tell its own size."""
        records = self.count()
        numbers = self.manifest.dimension + sum(each.dimension for each in self.manifest.vectors.values())
        details = {
            "index": self._layout.index,
            "server": self._connection.version,
            "stored_name": self._stored_name,
            "bytes": "vectors only",
        }
        return CollectionStats(name=self.name, records=records, bytes=4 * numbers * records, details=details)

    def _search(
        self, query: Any, k: int, field: str, expression: Expression, *, slack: float = 0.0
    ) -> list[Hit]:
        """The best hits including ties with the k-th; none if the query is empty or nothing can match."""
        if expression.text is None or len(query) == 0:
            return []
        self._settle()
        is_graph = self._layout.index == "HNSW" and (field == "embedding" or field.startswith("vector_"))

        def ask(limit: int) -> list[Hit]:
            params = {"ef": max(_SMALLEST_EF, 4 * limit)} if is_graph else {}
            (found,) = self._call(
                "search",
                data=[query],
                anns_field=field,
                limit=limit,
                filter=expression.text,
                search_params={"params": params},
            )
            # Milvus Lite returns BM25 scores negated; a server does not.
            sign = abs if field == "bm25" else float
            return [Hit(hit["id"], sign(float(hit["distance"]))) for hit in found]

        return best_hits(ask, min(k, MOST_HITS), slack=slack)

    def _settle(self) -> None:
        """Milvus Lite scans unflushed rows one by one: from a few rows on, flushing is faster."""
        if not self._connection.is_lite or self._connection.read_only or self._unflushed < _UNFLUSHED_ROWS:
            return
        with self._connection.writing:
            if self._unflushed >= _UNFLUSHED_ROWS:
                self._call("flush")
                self._unflushed = 0

    def _compiled(self, where: Filter | None) -> Expression:
        return compile_filter(where, self._layout.terms)

    def _call(self, method: str, **given: Any) -> Any:
        return self._connection.call(method, self._stored_name, **given)
