"""A collection in a file, and one state of it."""

# ruff: noqa: S608 - statements are made of our own words; values are parameters

import json
import sqlite3
from collections.abc import Collection as Collection_
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from dartboard.errors import CollectionError, StoreError, StoreFormatError
from dartboard.stores.array_view import ArrayCache, ArrayView
from dartboard.stores.arrays import Rows
from dartboard.stores.base import BaseCollection, CollectionStats, through_snapshot
from dartboard.stores.checks import check_deletion, check_k
from dartboard.stores.filters import Filter
from dartboard.stores.manifest import Manifest, manifest_from_json, manifest_to_json, with_changes
from dartboard.stores.records import Record, SparseVector
from dartboard.stores.sqlite.connection import RESTORE
from dartboard.stores.sqlite.filter_sql import ending_in_time, filter_sql
from dartboard.types import FloatArray

if TYPE_CHECKING:
    from dartboard.stores.sqlite.store import SqliteStore

_LISTED = "(SELECT value FROM json_each(:listed))"
_RECORDS = "SELECT row, id, metadata, text, embedding FROM records JOIN contents USING (row)"


class SqliteView(ArrayView):
    """A collection as one transaction sees it; belongs to one thread, and ends with its transaction."""

    def __init__(
        self,
        collection: "SqliteCollection",
        connection: sqlite3.Connection,
        known: dict[Hashable, tuple[int, Any]],
    ) -> None:
        found = connection.execute(
            "SELECT manifest, revision, derived FROM collections WHERE key = ?", (collection.key,)
        ).fetchone()
        if found is None:
            raise CollectionError(f"collection {collection.name!r} was dropped in the meantime")
        manifest, revision, self.derived = found
        super().__init__(collection.name, _parsed(manifest), revision, collection.cache, known)
        self._key = collection.key
        self._derived = collection.store.derived
        self._open: sqlite3.Connection | None = connection

    def read_snapshot(self) -> AbstractContextManager["SqliteView"]:
        """This view."""
        return nullcontext(self)

    def end(self) -> None:
        """Reject later calls: the transaction is over."""
        self._open = None

    def get(self, ids: Sequence[str], *, blobs: Sequence[str] = ()) -> list[Record]:
        """The records that exist, in the order of ``ids``."""
        found = self._records(f"id IN {_LISTED}", listed=json.dumps(list(ids)))
        if blobs:
            self._add_fields(found, [("blob", name) for name in blobs])
        by_id = {record.id: record for record in found.values()}
        return [by_id[id] for id in ids if id in by_id]

    def read_blobs(self, ids: Sequence[str], name: str) -> dict[str, bytes]:
        """The blobs of this name, by id."""
        rows = self._rows_of(ids)
        found = self._all(
            f"SELECT row, data FROM fields WHERE row IN {_LISTED} AND kind = 'blob' AND name = :name",
            listed=json.dumps(list(rows.values())),
            name=name,
        )
        data = dict(found)
        return {id: data[row] for id, row in rows.items() if row in data}

    def read_places(self, places: Collection_[tuple[str, int]], where: Filter | None = None) -> list[Record]:
        """By the index on sources."""
        condition, given = filter_sql(where)
        found: dict[int, Record] = {}
        for source in sorted({source for source, _ in places}):
            positions = [position for other, position in places if other == source]
            found |= self._records(
                "json_extract(metadata, '$.source') = :source AND json_extract(metadata, '$.position') IN "
                f"{_LISTED} AND {condition}",
                source=source,
                listed=json.dumps(positions),
                **given,
            )
        return list(found.values())

    def iterate(self, *, where: Filter | None = None, batch_size: int = 1000) -> Iterator[list[Record]]:
        """All matching records, complete, sorted by id."""
        check_k(batch_size, "batch_size")
        condition, given = filter_sql(where)
        condition = f"id > :after AND {condition} ORDER BY id LIMIT :size"
        after = ""
        while found := self._records(condition, after=after, size=batch_size, **given):
            self._add_fields(found, None)
            yield list(found.values())
            after = next(reversed(found.values())).id

    def iterate_metadata(self, *, where: Filter | None = None) -> Iterator[Mapping[str, Any]]:
        """The metadata of the matching records, sorted by id; neither texts nor vectors are read."""
        condition, given = filter_sql(where)
        statement = f"SELECT metadata FROM records WHERE collection = :key AND {condition} ORDER BY id"
        with ending_in_time(self._connection):
            for (metadata,) in self._connection.execute(statement, {"key": self._key, **given}):
                yield json.loads(metadata)

    def size(self) -> int:
        """How many records there are."""
        return int(self._all("SELECT count(*) FROM records WHERE collection = :key")[0][0])

    def rows_after(self, row: int) -> Rows:
        """The rows above this one."""
        return _as_rows(
            self._all("SELECT row FROM records WHERE +collection = :key AND row > :row ORDER BY row", row=row)
        )

    def rows_matching(self, where: Filter) -> Rows:
        """The rows whose records match."""
        condition, given = filter_sql(where)
        return _as_rows(
            self._all(
                f"SELECT row FROM records WHERE collection = :key AND {condition} ORDER BY row", **given
            )
        )

    def rows_of(self, ids: Sequence[str]) -> dict[str, int]:
        """The row of each id that exists."""
        return dict(
            self._all(
                f"SELECT id, row FROM records WHERE collection = :key AND id IN {_LISTED}",
                listed=json.dumps(list(ids)),
            )
        )

    def ids_of(self, rows: Sequence[int]) -> dict[int, str]:
        """The id of each row."""
        return dict(
            self._all(f"SELECT row, id FROM records WHERE row IN {_LISTED}", listed=json.dumps(list(rows)))
        )

    # "+collection" below keeps SQLite from reading an index of all rows instead of the last few.

    def vectors_after(self, row: int, field: str | None) -> tuple[Rows, FloatArray]:
        """The rows above this one that have the vector, and their vectors, read one by one into a matrix."""
        if field is None:
            joined, data, condition = "contents", "embedding", ""
        else:
            joined, data, condition = "fields", "data", "AND kind = 'vector' AND name = :field "
        found = (
            f"FROM records JOIN {joined} USING (row) WHERE +collection = :key AND row > :row {condition}"
            "ORDER BY row"
        )
        given = {"key": self._key, "row": row, "field": field}
        dimension = self.manifest.vector_field(field).dimension
        with ending_in_time(self._connection):
            rows = _as_rows(self._connection.execute(f"SELECT row {found}", given).fetchall())
            matrix = np.empty((len(rows), dimension), np.float32)
            vectors = self._connection.execute(f"SELECT {data} {found}", given)
            for number, (vector,) in enumerate(vectors):
                if not isinstance(vector, bytes) or len(vector) != 4 * dimension:
                    raise _damaged(f"a vector of collection {self.name!r}")
                matrix[number] = np.frombuffer(vector, "<f4")
        return rows, matrix

    def texts_after(self, row: int) -> tuple[Rows, Iterable[str]]:
        """The rows above this one, and their texts, which are read one by one."""
        found = "FROM records JOIN contents USING (row) WHERE +collection = :key AND row > :row ORDER BY row"
        given = {"key": self._key, "row": row}
        with ending_in_time(self._connection):
            rows = _as_rows(self._connection.execute(f"SELECT row {found}", given).fetchall())

        def texts() -> Iterator[str]:
            with ending_in_time(self._connection):
                for (text,) in self._connection.execute(f"SELECT text {found}", given):
                    yield text

        return rows, texts()

    def sparse_after(self, row: int, field: str) -> tuple[Rows, list[tuple[Any, Any]]]:
        """The rows above this one that have the sparse vector, and its terms and weights."""
        found = self._all(
            "SELECT row, data FROM records JOIN fields USING (row) WHERE +collection = :key AND row > :row "
            "AND kind = 'sparse' AND name = :field ORDER BY row",
            row=row,
            field=field,
        )
        return _as_rows(found), [_terms_and_weights(data) for _, data in found]

    def saved(self, key: Hashable) -> Any:
        """An array beside the file."""
        return self._derived.load(self.derived, key, self.manifest)

    @property
    def _connection(self) -> sqlite3.Connection:
        if self._open is None:
            raise StoreError(
                f"the read snapshot of collection {self.name!r} has ended: read inside its block"
            )
        return self._open

    def _all(self, statement: str, **given: Any) -> list[Any]:
        with ending_in_time(self._connection):
            return self._connection.execute(statement, {"key": self._key, **given}).fetchall()

    def _records(self, condition: str, **given: Any) -> dict[int, Record]:
        """Records by row, without their further fields."""
        found = self._all(f"{_RECORDS} WHERE collection = :key AND {condition}", **given)
        return {row: self._record(*columns) for row, *columns in found}

    def _record(self, id: str, metadata: str, text: str, embedding: bytes) -> Record:
        """A record without validation: it was validated when written, and checks would dominate reading."""
        record = Record.__new__(Record)
        record.id, record.text, record.metadata = id, text, json.loads(metadata)
        record.embedding = _floats(embedding)
        if record.embedding.size != self.manifest.dimension:
            raise _damaged(f"the embedding of chunk {id!r}")
        record.vectors, record.sparse, record.blobs = {}, {}, {}
        return record

    def _add_fields(self, records: Mapping[int, Record], wanted: Collection_[tuple[str, str]] | None) -> None:
        """Add further vectors, sparse vectors and blobs; None for all."""
        fields = self._all(
            f"SELECT row, kind, name, data FROM fields WHERE row IN {_LISTED}",
            listed=json.dumps(list(records)),
        )
        for row, kind, name, data in fields:
            record = records[row]
            if wanted is not None and (kind, name) not in wanted:
                continue
            if kind == "vector":
                record.vectors = {**record.vectors, name: _floats(data)}
            elif kind == "sparse":
                record.sparse = {**record.sparse, name: SparseVector(*_terms_and_weights(data))}
            else:
                record.blobs = {**record.blobs, name: data}


class SqliteCollection(BaseCollection):
    """Records of one model in a file; made by :class:`SqliteStore`.

    Each reading method uses the newest state. For several reads of one state, use :meth:`read_snapshot`.
    """

    def __init__(self, store: "SqliteStore", key: int, name: str) -> None:
        self.store = store
        self.key = key
        self.name = name
        self.cache = ArrayCache()

    @contextmanager
    def read_snapshot(self) -> Iterator[SqliteView]:
        """A consistent view of the collection as it is now; later writes do not change it.

        Example:
            with collection.read_snapshot() as view:
                hits = view.search_text("tea", 10)
                records = view.get([hit.id for hit in hits])
        """
        known = dict(self.cache.arrays)  # before the transaction begins, so that none is newer
        with self.store.reading() as connection:
            view = SqliteView(self, connection, known)
            try:
                yield view
            finally:
                view.end()

    get = through_snapshot(SqliteView.get)
    unit_vectors = through_snapshot(SqliteView.unit_vectors)
    read_blobs = through_snapshot(SqliteView.read_blobs)
    read_places = through_snapshot(SqliteView.read_places)
    count = through_snapshot(SqliteView.count)
    search_vector = through_snapshot(SqliteView.search_vector)
    search_sparse = through_snapshot(SqliteView.search_sparse)
    search_text = through_snapshot(SqliteView.search_text)
    explain_text = through_snapshot(SqliteView.explain_text)
    snapshot = through_snapshot(SqliteView.snapshot)

    @property
    def manifest(self) -> Manifest:
        """The collection's manifest, as currently stored."""
        with self.read_snapshot() as view:
            return view.manifest

    def iterate(self, *, where: Filter | None = None, batch_size: int = 1000) -> Iterator[list[Record]]:
        """All matching records, complete, sorted by id, as they were when the first was read."""
        with self.read_snapshot() as view:
            yield from view.iterate(where=where, batch_size=batch_size)

    def iterate_metadata(self, *, where: Filter | None = None) -> Iterator[Mapping[str, Any]]:
        """The metadata of the matching records, sorted by id; neither texts nor vectors are read."""
        with self.read_snapshot() as view:
            yield from view.iterate_metadata(where=where)

    def configure(self, changes: Mapping[str, Any]) -> None:
        """Change these settings and keep the others; None removes one."""
        with self.store.writing() as connection:
            manifest = with_changes(SqliteView(self, connection, {}).manifest, changes, self.name)
            connection.execute(
                "UPDATE collections SET manifest = ? WHERE key = ?", (manifest_text(manifest), self.key)
            )

    def upsert(self, records: Sequence[Record]) -> None:
        """Write the records, all or none; they are on disk when this returns."""
        last = list({record.id: record for record in records}.values())
        if not last:
            return
        with self.store.writing() as connection:
            SqliteView(self, connection, {}).manifest.check(last)
            revision, gone = write_records(connection, self.key, last)
        self.cache.note_gone(revision, gone)

    def delete(self, ids: Sequence[str] | None = None, *, where: Filter | None = None) -> int:
        """Delete by ids or by filter."""
        check_deletion(ids, where)
        condition, given = filter_sql(where)
        if where is None:
            condition, given = f"id IN {_LISTED}", {"listed": json.dumps(list(ids or ()))}
        with self.store.writing() as connection, ending_in_time(connection):
            SqliteView(self, connection, {})  # raises if the collection was dropped
            gone = _delete(connection, condition, {"key": self.key, **given})
            revision = _raise_revision(connection, self.key)
        self.cache.note_gone(revision, gone)
        return len(gone)

    def prepare(self) -> None:
        """Build the arrays, and save those of a large collection for the next process."""
        with self.read_snapshot() as view:
            view.vector_array(None).prepare()
            view.text_array()
            name = None if self.store.read_only else self.store.derived.save(view)
        if name is not None:
            with self.store.writing() as connection:
                connection.execute("UPDATE collections SET derived = ? WHERE key = ?", (name, self.key))
                self.store.derived.sweep(connection)

    def stats(self) -> CollectionStats:
        """Records, their share of the file, and the arrays in memory."""
        with self.read_snapshot() as view:
            records, derived = view.count(), self.store.derived.size(view.derived)
            (total,) = view._all("SELECT count(*) FROM records")[0]
        log = self.store.path.with_name(f"{self.store.path.name}-wal")
        on_disk = self.store.path.stat().st_size + (log.stat().st_size if log.exists() else 0)
        own = on_disk * records // total if total else 0
        details = {"records_bytes": own, "derived_bytes": derived, "indexes": self.cache.describe()}
        return CollectionStats(name=self.name, records=records, bytes=own + derived, details=details)

    def renew(self) -> None:
        """After a fork: another thread may have held the lock."""
        self.cache = ArrayCache()


def write_records(
    connection: sqlite3.Connection, key: int, records: Sequence[Record]
) -> tuple[int, list[int]]:
    """Add or replace records with distinct ids, within a write transaction.

    Returns:
        The new revision, and the rows that were replaced.
    """
    ids = json.dumps([record.id for record in records])
    gone = _delete(connection, f"id IN {_LISTED}", {"key": key, "listed": ids})
    used = connection.execute("SELECT seq FROM sqlite_sequence WHERE name = 'records'").fetchone()
    rows = list(enumerate(records, start=1 + (used[0] if used else 0)))
    connection.executemany(
        "INSERT INTO records VALUES (?, ?, ?, ?)",
        ((row, key, each.id, json.dumps(each.metadata, ensure_ascii=False)) for row, each in rows),
    )
    connection.executemany(
        "INSERT INTO contents VALUES (?, ?, ?)",
        ((row, each.text, _packed(each.embedding)) for row, each in rows),
    )
    connection.executemany("INSERT INTO fields VALUES (?, ?, ?, ?)", _fields(rows))
    return _raise_revision(connection, key), gone


def manifest_text(manifest: Manifest) -> str:
    """A manifest as stored JSON text."""
    return json.dumps(manifest_to_json(manifest), ensure_ascii=False)


def _fields(rows: Sequence[tuple[int, Record]]) -> Iterator[tuple[int, str, str, bytes]]:
    for row, record in rows:
        for name, vector in record.vectors.items():
            yield row, "vector", name, _packed(vector)
        for name, sparse in record.sparse.items():
            yield row, "sparse", name, sparse.terms.astype("<i4").tobytes() + _packed(sparse.weights)
        for name, data in record.blobs.items():
            yield row, "blob", name, bytes(data)


def _delete(connection: sqlite3.Connection, condition: str, given: dict[str, Any]) -> list[int]:
    """Delete matching records; returns their rows."""
    statement = f"DELETE FROM records WHERE collection = :key AND {condition} RETURNING row"
    return [row for (row,) in connection.execute(statement, given).fetchall()]


def _raise_revision(connection: sqlite3.Connection, key: int) -> int:
    statement = "UPDATE collections SET revision = revision + 1 WHERE key = ? RETURNING revision"
    ((revision,),) = connection.execute(statement, (key,)).fetchall()
    return int(revision)


@lru_cache(maxsize=64)
def _parsed(text: str) -> Manifest:
    """Shared by all readers, so do not change it."""
    try:
        return manifest_from_json(json.loads(text))
    except (TypeError, ValueError) as error:
        raise _damaged(f"the collection's manifest ({error})") from error


def _damaged(what: str) -> StoreFormatError:
    return StoreFormatError(f"{what} is damaged in the file: {RESTORE}")


def _as_rows(found: list[Any]) -> Rows:
    return np.fromiter((row for row, *_ in found), np.int64, len(found))


def _packed(values: FloatArray) -> bytes:
    return np.ascontiguousarray(values, "<f4").tobytes()


def _floats(data: bytes) -> FloatArray:
    return np.frombuffer(data, "<f4").astype(np.float32)


def _terms_and_weights(data: bytes) -> tuple[Any, Any]:
    """What :func:`_fields` joined; the first half are the terms."""
    half = len(data) // 2
    return np.frombuffer(data[:half], "<i4").astype(np.int32), _floats(data[half:])
