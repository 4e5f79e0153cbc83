"""A collection in PostgreSQL."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from psycopg import errors

from dartboard.errors import CollectionError, StoreError
from dartboard.stores.base import BaseCollection, CollectionStats
from dartboard.stores.checks import check_deletion, check_k, check_query_vector, check_sparse_field
from dartboard.stores.filters import Filter
from dartboard.stores.manifest import Manifest, manifest_from_json, manifest_to_json, with_changes
from dartboard.stores.postgres import rows
from dartboard.stores.postgres.connection import Connections
from dartboard.stores.postgres.filter_sql import condition, to_json
from dartboard.stores.postgres.schema import Table
from dartboard.stores.postgres.text_search import TextSearch, configuration
from dartboard.stores.postgres.vector_search import (
    HnswOptions,
    build_index,
    index_options,
    search_dense,
    search_sparse,
)
from dartboard.stores.records import Record, SparseVector
from dartboard.stores.snapshot_file import write_snapshot_file
from dartboard.types import FloatArray, Hit

_PAGE = 1000


class PostgresCollection(BaseCollection):
    """Records of one model, shared with every process that opens them."""

    def __init__(self, connections: Connections, name: str, table: Table) -> None:
        self.name = name
        self._connections = connections
        self._use(table)

    @property
    def manifest(self) -> Manifest:
        """The collection's manifest, as this process opened or configured it."""
        return self._table.manifest

    def configure(self, changes: Mapping[str, Any]) -> None:
        """Change these settings and keep the others; another language analyses all texts again."""
        with self._connections.writing() as connection:
            found = connection.execute(
                "SELECT manifest, configuration FROM collections WHERE number = %s FOR UPDATE",
                (self._table.number,),
            ).fetchone()
            if found is None:
                raise CollectionError(f"the collection {self.name!r} was dropped")
            manifest = with_changes(manifest_from_json(found[0]), changes, self.name)
            HnswOptions.of(manifest)
            table, before = replace(self._table, manifest=manifest), found[1]
            wanted = configuration(connection, table.schema, manifest)
            connection.execute(
                "UPDATE collections SET manifest = %s, configuration = %s WHERE number = %s",
                (to_json(manifest_to_json(manifest)), wanted, table.number),
            )
            if wanted != before:
                table.change_configuration(connection, wanted)
        self._use(table)

    def upsert(self, records: Sequence[Record]) -> None:
        """Write the records, all or none."""
        listed = list(records)
        self.manifest.check(listed)
        if listed:
            with self._connections.writing() as connection:
                rows.put(connection, self._table, listed)
        self._text_search.forget()

    def delete(self, ids: Sequence[str] | None = None, *, where: Filter | None = None) -> int:
        """Delete by ids or by filter."""
        check_deletion(ids, where)
        matching, parameters = condition(where)
        if ids is not None:
            matching, parameters = "id = ANY(%(ids)s::text[])", {"ids": list(ids)}
        self._text_search.forget()
        with self._connections.writing() as connection:
            return rows.delete(connection, self._table, matching, parameters)

    def get(self, ids: Sequence[str], *, blobs: Sequence[str] = ()) -> list[Record]:
        """The records that exist, in the order of ``ids``."""
        with self._connections.reading(stable=bool(blobs)) as connection:
            return rows.read(connection, self._table, ids, blobs)

    def read_blobs(self, ids: Sequence[str], name: str) -> dict[str, bytes]:
        """The blobs of this name by id."""
        with self._connections.reading() as connection:
            found = rows.read_blobs(connection, self._table, ids, [name])
        return {id: blobs[name] for id, blobs in found.items()}

    def count(self, where: Filter | None = None) -> int:
        """How many records match; without a filter, all."""
        matching, parameters = condition(where)
        query = self._table.statement("SELECT count(*) FROM {records} WHERE {matching}", matching=matching)
        with self._connections.reading() as connection:
            return int(connection.execute(query, parameters).fetchone()[0])

    def search_vector(
        self,
        query: FloatArray,
        k: int,
        *,
        where: Filter | None = None,
        field: str | None = None,
        exact: bool = False,
    ) -> list[Hit]:
        """The nearest records, through the index if there is one."""
        asked, _ = check_query_vector(self.manifest, query, field)
        wanted = check_k(k)
        with self._connections.reading() as connection:
            return search_dense(connection, self._table, asked, wanted, field=field, where=where, exact=exact)

    def search_sparse(
        self, query: SparseVector, k: int, *, field: str, where: Filter | None = None
    ) -> list[Hit]:
        """Best by dot product; every record is compared."""
        check_k(k)
        check_sparse_field(self.manifest, field, self.name)
        if not query.terms.size:
            return []
        with self._connections.reading() as connection:
            return search_sparse(connection, self._table, query, k, field, where)

    def search_text(self, query: str, k: int, *, where: Filter | None = None) -> list[Hit]:
        """Best by BM25 over PostgreSQL's own terms."""
        check_k(k)
        with self._connections.reading() as connection:
            return self._text_search.search(connection, query.replace("\x00", " "), k, where)

    def explain_text(self, query: str, chunk_id: str) -> Sequence[Mapping[str, Any]]:
        """The contribution of each query term to a record's BM25 score."""
        with self._connections.reading() as connection:
            return self._text_search.explain(connection, query.replace("\x00", " "), chunk_id)

    def iterate(self, *, where: Filter | None = None, batch_size: int = _PAGE) -> Iterator[list[Record]]:
        """All matching records, complete, sorted by id. Holds no connection between batches."""
        check_k(batch_size, "batch_size")
        after = ""
        while True:
            with self._connections.reading(stable=True) as connection:
                page = rows.read_page(connection, self._table, where, after, batch_size)
            if page:
                yield page
            if len(page) < batch_size:
                return
            after = page[-1].id

    def iterate_metadata(self, *, where: Filter | None = None) -> Iterator[Mapping[str, Any]]:
        """The metadata of the matching records, sorted by id; neither texts nor vectors are read."""
        matching, parameters = condition(where)
        query = self._table.statement(
            "SELECT id, metadata FROM {records} WHERE id > %(after)s AND {matching} ORDER BY id LIMIT {page}",
            matching=matching,
            page=_PAGE,
        )
        after = ""
        while True:
            with self._connections.reading() as connection:
                page = connection.execute(query, {**parameters, "after": after}).fetchall()
            for _, metadata in page:
                yield metadata
            if len(page) < _PAGE:
                return
            after = page[-1][0]

    def snapshot(self, path: str | Path) -> None:
        """Write a consistent state of the collection to one file."""
        with self._connections.reading(stable=True) as connection:
            write_snapshot_file(path, self.name, self.manifest, rows.read_all(connection, self._table, _PAGE))

    def prepare(self) -> None:
        """Build the indexes of a large collection and update statistics; a reader changes nothing."""
        self._prepare(always=False)

    def build_index(self) -> None:
        """Build the approximate indexes at any size."""
        self._prepare(always=True)

    def stats(self) -> CollectionStats:
        """Records, bytes on the server's disk, and the indexes."""
        query = self._table.statement(
            "SELECT (SELECT count(*) FROM {records}), "
            "pg_total_relation_size(%(records)s) + pg_total_relation_size(%(blobs)s), "
            "pg_indexes_size(%(records)s), current_setting('server_version'), "
            "(SELECT extversion FROM pg_extension WHERE extname = 'vector')"
        )
        names = {ending: self._table.named(ending) for ending in ("records", "blobs")}
        with self._connections.reading() as connection:
            records, size, index_size, version, vector = connection.execute(query, names).fetchone()
            built = [
                "embedding" if field is None else field
                for field in (None, *self.manifest.vectors)
                if index_options(connection, self._table, field) is not None
            ]
        details = {
            "index": "hnsw" if "embedding" in built else "exact",
            "indexes": built,
            "index_bytes": index_size,
            "table": self._table.plain("records"),
            "server": f"PostgreSQL {version}, pgvector {vector}",
        }
        return CollectionStats(name=self.name, records=records, bytes=size, details=details)

    def _use(self, table: Table) -> None:
        self._table = table
        self._text_search = TextSearch(table)

    def _prepare(self, *, always: bool) -> None:
        if self._connections.read_only:
            return
        try:
            with self._connections.writing() as connection:
                for field in (None, *self.manifest.vectors):
                    build_index(connection, self._table, field, always=always)
                for ending in ("terms", "metadata"):  # merge pending entries of the inverted indexes
                    connection.execute(
                        "SELECT gin_clean_pending_list(%s::regclass)", (self._table.named(ending),)
                    )
                connection.execute(self._table.statement("ANALYZE {records}"))
        except StoreError as error:
            if not isinstance(error.__cause__, errors.InsufficientPrivilege):
                raise  # another role owns the tables; the server's autovacuum does the rest later
