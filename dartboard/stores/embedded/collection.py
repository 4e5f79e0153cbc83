"""A collection in a store's file."""

import json
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from dartboard.stores.base import CollectionStats
from dartboard.stores.checks import check_deletion, check_k
from dartboard.stores.embedded.connections import Connections
from dartboard.stores.embedded.derived import Damaged, DerivedFiles
from dartboard.stores.embedded.filter_sql import ending_in_time, filter_sql
from dartboard.stores.embedded.indexes import Indexes
from dartboard.stores.embedded.moment import Moment
from dartboard.stores.embedded.remembered import Remembered
from dartboard.stores.embedded.revisions import Outdated, manifest_text, revision_of
from dartboard.stores.embedded.rows import (
    raise_revision,
    remove_rows,
    rows_of_ids,
    rows_that_match,
    write_records,
)
from dartboard.stores.embedded.sums import damaged
from dartboard.stores.embedded.tuning import Tuning
from dartboard.stores.filters import Filter
from dartboard.stores.records import Manifest, Record, SparseVector, check_metadata
from dartboard.types import FloatArray, Hit

_ATTEMPTS = 5
_METADATA_PAGE = 5000

_Made = TypeVar("_Made")


class EmbeddedCollection:
    """Records of one model in a file; made by :class:`EmbeddedStore`. Reading is done by :class:`Moment`."""

    def __init__(
        self, key: int, name: str, connections: Connections, derived: DerivedFiles, tuning: Tuning
    ) -> None:
        self.name = name
        self.key = key
        self.written = False
        self._connections = connections
        self._derived = derived
        self._tuning = tuning
        self._indexes = Indexes(key, derived, tuning)
        self._remembered = Remembered()

    @property
    def manifest(self) -> Manifest:
        """What the collection was made with, as the file says now."""
        return self.on_one_state(lambda now: now.manifest)

    def on_one_state(self, work: Callable[[Moment], _Made]) -> _Made:
        """Hand the collection to ``work`` as it is now, to be read as often as it likes, whoever writes.

        Where another thread has moved the indexes on to a newer state meanwhile, or a derived file proves
        damaged, the work is begun anew, so it must change nothing outside.
        """
        outdated = 0
        for attempt in range(_ATTEMPTS):
            with self._connections.reading() as connection:
                # The last time with indexes of its own, which nobody moves.
                own = outdated and attempt + 1 == _ATTEMPTS
                indexes = Indexes(self.key, self._derived, self._tuning) if own else self._indexes
                try:
                    return work(self._moment(connection, indexes))
                except Outdated:
                    outdated += 1
                except Damaged:
                    if attempt + 1 == _ATTEMPTS:
                        raise
        raise AssertionError("the last attempt returns or raises")

    def configure(self, settings: Mapping[str, Any]) -> None:
        """Replace the manifest's settings."""
        check_metadata(dict(settings), f"settings of {self.name}")
        with self._connections.writing() as connection:
            manifest = revision_of(connection, self.key, self.name).manifest
            manifest = replace(manifest, settings=dict(settings))
            connection.execute(
                "UPDATE collections SET manifest = ? WHERE key = ?", (manifest_text(manifest), self.key)
            )

    def upsert(self, records: Sequence[Record]) -> None:
        """Keep the records, all or none; when this returns they are on disk."""
        listed = list(records)
        self.on_one_state(lambda now: now.manifest.check(listed))
        if not listed:
            return
        with self._connections.writing() as connection:
            revision_of(connection, self.key, self.name)
            write_records(connection, self.key, listed)
            self.written = True

    def delete(self, ids: Sequence[str] | None = None, *, where: Filter | None = None) -> int:
        """Remove by ids or by filter."""
        check_deletion(ids, where)
        with self._connections.writing() as connection:
            revision_of(connection, self.key, self.name)
            if where is not None:
                self._remembered.check_metadata(connection, self.key)
                rows = rows_that_match(connection, self.key, where).tolist()
            else:
                rows = list(rows_of_ids(connection, self.key, list(ids or ())).values())
            if rows:
                revision = raise_revision(connection, self.key, -len(rows))
                remove_rows(connection, self.key, revision, rows)
                self.written = True
            return len(rows)

    def get(self, ids: Sequence[str], *, blobs: Sequence[str] = ()) -> list[Record]:
        """The records that exist, in the order asked."""
        return self.on_one_state(lambda now: now.get(ids, blobs=blobs))

    def directions(self, ids: Sequence[str]) -> tuple[list[str], FloatArray]:
        """The ids that exist, in the order asked, and their embeddings scaled to length 1, ``(n, d)``."""
        return self.on_one_state(lambda now: now.directions(ids))

    def read_blobs(self, ids: Sequence[str], name: str) -> dict[str, bytes]:
        """The bytes of this name that the records have, by id; nothing else is read."""
        return self.on_one_state(lambda now: now.read_blobs(ids, name))

    def count(self, where: Filter | None = None) -> int:
        """How many records there are, or match."""
        return self.on_one_state(lambda now: now.count(where))

    def search_vector(
        self,
        query: FloatArray,
        k: int,
        *,
        where: Filter | None = None,
        field: str | None = None,
        exact: bool = False,
    ) -> list[Hit]:
        """Nearest by cosine or dot product."""
        return self.on_one_state(
            lambda now: now.search_vector(query, k, where=where, field=field, exact=exact)
        )

    def search_sparse(
        self, query: SparseVector, k: int, *, field: str, where: Filter | None = None
    ) -> list[Hit]:
        """Best by dot product, through an inverted index."""
        return self.on_one_state(lambda now: now.search_sparse(query, k, field=field, where=where))

    def search_text(self, query: str, k: int, *, where: Filter | None = None) -> list[Hit]:
        """Best by BM25."""
        return self.on_one_state(lambda now: now.search_text(query, k, where=where))

    def explain_text(self, query: str, chunk_id: str) -> list[dict[str, Any]]:
        """What each term of the query adds to a record's BM25 score; empty for a record that is not there."""
        return self.on_one_state(lambda now: now.explain_text(query, chunk_id))

    def iterate(self, *, where: Filter | None = None, batch_size: int = 1000) -> Iterator[list[Record]]:
        """All records that match, whole, by rising id, as they were when the first was taken."""
        check_k(batch_size, "batch_size")
        with self._connections.reading() as connection:
            yield from self._moment(connection, self._indexes).iterate(where=where, batch_size=batch_size)

    def iterate_metadata(self, *, where: Filter | None = None) -> Iterator[Mapping[str, Any]]:
        """The metadata of the records that match, by rising id; neither texts nor vectors are read.

        Checksums cover metadata and text together, so they are not checked here.
        """
        condition, parameters = ("1", {}) if where is None else filter_sql(where)
        query = (
            "SELECT id, metadata FROM records "  # noqa: S608
            f"WHERE collection = :key AND id > :after AND {condition} ORDER BY id LIMIT {_METADATA_PAGE}"
        )
        last = ""
        with self._connections.reading() as connection:
            while True:
                with ending_in_time(connection):
                    found = connection.execute(
                        query, {"key": self.key, "after": last, **parameters}
                    ).fetchall()
                for id, metadata in found:
                    try:
                        yield json.loads(metadata)
                    except (TypeError, ValueError) as error:
                        raise damaged(f"what is known of chunk {id!r}") from error
                if len(found) < _METADATA_PAGE or found[-1][0] <= last:
                    return
                last = found[-1][0]

    def snapshot(self, path: str | Path) -> None:
        """Write the collection to one file."""
        self.on_one_state(lambda now: now.snapshot(path))

    def stats(self) -> CollectionStats:
        """Records, bytes on disk with what is derived, and the state of the indexes."""
        with self._connections.reading() as connection:
            revision = revision_of(connection, self.key, self.name)
            own = bytes_of_records(connection, self._connections.path, revision.records)
            derived = self._derived.bytes_of(connection, self.key)
            files = {
                kind: "fresh" if stored == revision.number else f"{revision.number - stored} writes behind"
                for kind, stored in connection.execute(
                    "SELECT kind, revision FROM derived WHERE collection = ? ORDER BY kind", (self.key,)
                )
            }
        details = {
            "records_bytes": own,
            "derived_bytes": derived,
            "revision": revision.number,
            "files": files,
            "indexes": self._indexes.describe(),
        }
        return CollectionStats(name=self.name, records=revision.records, bytes=own + derived, details=details)

    def prepare(self) -> None:
        """Bring the indexes up to date and leave files of them, so that the next search need not."""
        self.on_one_state(lambda now: now.prepare())
        self.written = False

    def _moment(self, connection: sqlite3.Connection, indexes: Indexes) -> Moment:
        return Moment(
            self.key,
            self.name,
            connection,
            revision_of(connection, self.key, self.name),
            indexes=indexes,
            remembered=self._remembered,
            tuning=self._tuning,
        )


def bytes_of_records(connection: sqlite3.Connection, path: Path, records: int) -> int:
    """The collection's part of the file: by its number of records, since pages are shared."""
    (total,) = connection.execute("SELECT sum(records) FROM collections").fetchone()
    log = path.with_name(f"{path.name}-wal")
    size = path.stat().st_size + (log.stat().st_size if log.exists() else 0)
    return size * records // total if total else 0
