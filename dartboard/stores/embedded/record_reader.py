"""Read one collection from the tables in a read transaction.

Everything is verified against its checksum; damage raises an error.
"""

import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from dartboard.errors import CollectionError
from dartboard.stores.embedded.checksums import (
    bytes_match,
    check_collection,
    check_structure,
    check_text,
    damaged,
)
from dartboard.stores.embedded.filter_sql import ending_in_time, filter_sql
from dartboard.stores.embedded.tables import LISTED, checksum_columns, rows_of_ids
from dartboard.stores.filters import Filter
from dartboard.stores.manifest import Manifest, manifest_from_json
from dartboard.stores.records import Record, SparseVector
from dartboard.types import FloatArray

Rows = npt.NDArray[np.int64]
"""Row numbers, sorted."""
_BATCH = 1000
_JOINED = "FROM records LEFT JOIN contents USING (row)"
"""LEFT JOIN: a record without contents must raise an error instead of being skipped."""


class RecordReader:
    """A collection as a connection's transaction sees it.

    Attributes:
        revision: Increased by every write to the collection.
        floor: Deletions are recorded since this revision; older indexes must be rebuilt.
        records: The number of records.
        last_row: The highest row number in use.

    Raises:
        CollectionError: the collection was dropped.
        StoreFormatError: the collection's entry in the file is damaged.
    """

    def __init__(self, connection: sqlite3.Connection, collection: int, name: str) -> None:
        self.connection = connection
        self.collection = collection
        self._summed, collections_summed = checksum_columns(connection)
        found = connection.execute(
            f"SELECT name, manifest, records, revision, floor, {'sum' if collections_summed else 'NULL'}, "  # noqa: S608
            "next_row - 1 FROM collections, counters WHERE key = ?",
            (collection,),
        ).fetchone()
        if found is None:
            raise CollectionError(f"collection {name!r} was dropped in the meantime")
        *columns, checksum, self.last_row = found
        check_collection(collection, checksum, *columns)
        if not isinstance(self.last_row, int):
            raise damaged("the count of rows")
        _, self._manifest_text, self.records, self.revision, self.floor = columns

    @cached_property
    def manifest(self) -> Manifest:
        """The collection's manifest; shared by all readers, so do not change it."""
        return _manifest(self._manifest_text)

    def get(self, ids: Sequence[str], blobs: Sequence[str]) -> dict[str, Record]:
        """The records that exist, with the named blobs and without further vectors."""
        found = self._read(f"id IN {LISTED}", {"listed": json.dumps(ids)})
        if blobs:
            data = self._fields("blobs", list(found), blobs)
            for row, record in found.items():
                record.blobs = dict(data.get(row, ()))
        return {record.id: record for record in found.values()}

    def blobs(self, rows: Sequence[int], name: str) -> dict[int, bytes]:
        """The blobs of this name, by row."""
        return {row: data for row, [(_, data)] in self._fields("blobs", rows, [name]).items()}

    def batches(self, where: Filter | None, size: int) -> Iterator[list[Record]]:
        """Whole records sorted by id, in batches; without a filter, a missing record is an error."""
        if where is None:
            check_structure(self.connection)
        condition, parameters = ("1", {}) if where is None else filter_sql(where)
        condition = f"id > :after AND {condition} ORDER BY id LIMIT :size"
        after, count = "", 0
        while True:
            with ending_in_time(self.connection):
                found = self._read(condition, {"after": after, "size": size, **parameters})
            if not found:
                break
            records = list(found.values())
            self._add_fields(found)
            yield records
            if records[-1].id <= after:
                raise damaged("the order of ids")
            after, count = records[-1].id, count + len(records)
        if where is None and count != self.records:
            raise damaged(f"the collection ({count} of {self.records} records can be read)")

    def metadata(self, where: Filter | None, size: int = 5000) -> Iterator[dict[str, Any]]:
        """The metadata of the matching records, sorted by id.

        Checksums cover metadata and text together, so they cannot be checked here.
        """
        condition, parameters = ("1", {}) if where is None else filter_sql(where)
        query = (
            "SELECT id, metadata FROM records WHERE collection = :collection "  # noqa: S608 - our names
            f"AND id > :after AND {condition} ORDER BY id LIMIT :size"
        )
        parameters = {"collection": self.collection, "after": "", "size": size, **parameters}
        while True:
            with ending_in_time(self.connection):
                found = self.connection.execute(query, parameters).fetchall()
            for id, metadata in found:
                try:
                    yield json.loads(metadata)
                except (TypeError, ValueError) as error:
                    raise damaged(f"what is known of chunk {id!r}") from error
            if len(found) < size or found[-1][0] <= parameters["after"]:
                return
            parameters["after"] = found[-1][0]

    def rows_of(self, ids: Sequence[str]) -> dict[str, int]:
        """The row of each id that exists."""
        return rows_of_ids(self.connection, self.collection, ids)

    def ids_of(self, rows: Sequence[int]) -> dict[int, str]:
        """The id of each row that exists."""
        return dict(
            self.connection.execute(
                f"SELECT row, id FROM records WHERE row IN {LISTED}",  # noqa: S608 - our names
                {"listed": json.dumps(rows)},
            )
        )

    def matching(self, where: Filter) -> Rows:
        """The rows whose metadata match."""
        condition, parameters = filter_sql(where)
        with ending_in_time(self.connection):
            found = self.connection.execute(
                f"SELECT row FROM records WHERE collection = :collection AND {condition} ORDER BY row",  # noqa: S608
                {"collection": self.collection, **parameters},
            )
            return np.fromiter((row for (row,) in found), dtype=np.int64)

    def gone_since(self, revision: int) -> Rows:
        """The rows that were deleted or replaced after a revision."""
        found = self.connection.execute(
            "SELECT row FROM gone WHERE collection = ? AND revision > ? ORDER BY row",
            (self.collection, revision),
        )
        return np.fromiter((row for (row,) in found), dtype=np.int64)

    def vectors(
        self, field: str | None, dimension: int, *, after: int = 0, block: int = 4096
    ) -> Iterator[tuple[Rows, FloatArray]]:
        """Sorted rows after ``after`` and their vectors, ``(m, d)`` float32, block by block."""
        name = () if field is None else (field.encode(),)
        if field is None:
            column, table, checksum = "embedding", "LEFT JOIN contents", "vector_sum"
        else:
            column, table, checksum = "data", "JOIN vectors", "sum"
        cursor = self.connection.execute(
            f"SELECT row, {column}, {checksum if self._summed else 'NULL'} "  # noqa: S608 - our names
            f"FROM records {table} USING (row) WHERE collection = :collection AND row > :after "
            f"{'' if field is None else 'AND field = :field '}ORDER BY row",
            {"collection": self.collection, "after": after, "field": field},
        )
        while found := cursor.fetchmany(block):
            for row, data, stored in found:
                whole = isinstance(data, bytes) and len(data) == 4 * dimension
                if not whole or not bytes_match(stored, row, *name, data):
                    raise damaged(f"a vector in row {row}")
            joined = b"".join(data for _, data, _ in found)
            matrix = np.frombuffer(joined, "<f4").reshape(len(found), dimension)
            yield np.array([row for row, *_ in found], dtype=np.int64), matrix

    def ids(self) -> list[str]:
        """The ids, sorted by row."""
        query = "SELECT id FROM records WHERE collection = ? ORDER BY row"
        return [id for (id,) in self.connection.execute(query, (self.collection,))]

    def texts(self) -> Iterator[tuple[int, str]]:
        """Rows and texts, sorted by id."""
        return self._texts("ORDER BY id")

    def check_texts(self, after: int) -> int:
        """Check ids, metadata and texts of the rows after ``after``; returns the last row checked."""
        for row, _ in self._texts("AND row > :after ORDER BY row", after=after):
            after = row
        return after

    def sparse_vectors(
        self, field: str
    ) -> Iterator[tuple[int, tuple[npt.NDArray[np.int32], npt.NDArray[np.float32]]]]:
        """Rows, and terms with weights, sorted by id."""
        found = self.connection.execute(
            f"SELECT row, terms, weights, {'sum' if self._summed else 'NULL'} "  # noqa: S608 - our names
            "FROM records JOIN sparse USING (row) WHERE collection = ? AND field = ? ORDER BY id",
            (self.collection, field),
        )
        for row, terms, weights, stored in found:
            if not bytes_match(stored, row, field.encode(), terms, weights):
                raise damaged(f"field {field!r} in row {row}")
            yield row, (np.frombuffer(terms, "<i4"), np.frombuffer(weights, "<f4"))

    def _texts(self, rest: str, **parameters: int) -> Iterator[tuple[int, str]]:
        found = self.connection.execute(
            f"SELECT row, id, metadata, text, {'sum' if self._summed else 'NULL'} {_JOINED} "
            f"WHERE collection = :collection {rest}",
            {"collection": self.collection, **parameters},
        )
        for row, id, metadata, text, stored in found:
            check_text(row, id, metadata, text, stored)
            yield row, text

    def _read(self, condition: str, parameters: Mapping[str, Any]) -> dict[int, Record]:
        """Records by row, without their further fields."""
        checksums = "sum, vector_sum" if self._summed else "NULL, NULL"
        query = (
            f"SELECT row, id, metadata, text, embedding, {checksums} "
            f"{_JOINED} WHERE collection = :collection AND {condition}"
        )
        found = self.connection.execute(query, {"collection": self.collection, **parameters}).fetchall()
        for row, id, metadata, text, embedding, checksum, vector_checksum in found:
            check_text(row, id, metadata, text, checksum)
            if not bytes_match(vector_checksum, row, embedding):
                raise damaged(f"the embedding of chunk {id!r} in row {row}")
        embeddings = _matrix([embedding for _, _, _, _, embedding, _, _ in found])
        return {
            row: _record(id, text, vector, metadata)
            for (row, id, metadata, text, *_), vector in zip(found, embeddings, strict=True)
        }

    def _add_fields(self, records: Mapping[int, Record]) -> None:
        rows = list(records)
        vectors, sparse, blobs = (self._fields(table, rows) for table in ("vectors", "sparse", "blobs"))
        for row, record in records.items():
            record.vectors = {name: _floats(data) for name, data in vectors.get(row, ())}
            record.sparse = {
                name: SparseVector(np.frombuffer(terms, "<i4"), _floats(weights))
                for name, terms, weights in sparse.get(row, ())
            }
            record.blobs = dict(blobs.get(row, ()))

    def _fields(
        self, table: str, rows: Sequence[int], names: Sequence[str] | None = None
    ) -> dict[int, list[Any]]:
        """The entries of a table of named fields, by row and name."""
        condition, parameters = "", {"listed": json.dumps(rows)}
        if names is not None:
            condition = "AND name IN (SELECT value FROM json_each(:names))"
            parameters["names"] = json.dumps(list(names))
        query = f"SELECT * FROM {table} WHERE row IN {LISTED} {condition}"  # noqa: S608 - our names
        found: dict[int, list[Any]] = {}
        for row, name, *parts in self.connection.execute(query, parameters):
            if self._summed and not bytes_match(parts.pop(), row, str(name).encode(), *parts):
                raise damaged(f"field {name!r} in row {row}")
            found.setdefault(row, []).append((name, *parts))
        return found


class Checked(NamedTuple):
    """How many records were verified, and how many of them have no checksum."""

    records: int
    unchecked: int


def check_file(connection: sqlite3.Connection) -> Checked:
    """Read everything; damage raises an error that names the damaged part."""
    check_structure(connection)
    total = 0
    for key, name in connection.execute("SELECT key, name FROM collections ORDER BY key").fetchall():
        reader = RecordReader(connection, key, name)
        _ = reader.manifest  # parsed, so that damage is found
        query = "SELECT count(*) FROM records JOIN contents USING (row) WHERE collection = ?"
        (counted,) = connection.execute(query, (key,)).fetchone()
        if counted != reader.records:
            raise damaged(f"collection {name!r} ({counted} of {reader.records} records can be read)")
        total += sum(len(batch) for batch in reader.batches(None, _BATCH))
    without = "WHERE sum IS NULL" if checksum_columns(connection)[0] else ""
    (unchecked,) = connection.execute(f"SELECT count(*) FROM contents {without}").fetchone()  # noqa: S608
    return Checked(total, int(unchecked))


@lru_cache(maxsize=64)
def _manifest(text: str) -> Manifest:
    try:
        return manifest_from_json(json.loads(text))
    except (TypeError, ValueError) as error:
        raise damaged(f"the collection's manifest ({error})") from error


def _matrix(packed: list[bytes]) -> FloatArray:
    """Stack vectors; raises for a damaged file."""
    if not packed:
        return np.zeros((0, 0), np.float32)
    lengths = {len(data) if isinstance(data, bytes) else -1 for data in packed}
    if len(lengths) == 1 and lengths.pop() % 4 == 0:
        joined = np.frombuffer(b"".join(packed), "<f4").astype(np.float32)
        if np.isfinite(joined).all():
            return joined.reshape(len(packed), -1)
    raise damaged("a stored vector")


def _record(id: str, text: str, embedding: FloatArray, metadata: str) -> Record:
    """A record without validation: it was validated when written, and checks would dominate reading."""
    record = Record.__new__(Record)
    record.id, record.text, record.embedding = id, text, embedding
    record.vectors, record.sparse, record.blobs = {}, {}, {}
    try:
        record.metadata = json.loads(metadata)
    except ValueError as error:  # records without checksums are not verified before
        raise damaged(f"what is known of chunk {id!r}") from error
    return record


def _floats(data: bytes) -> FloatArray:
    return np.frombuffer(data, "<f4").astype(np.float32)
