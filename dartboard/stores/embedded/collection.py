"""A collection in a store's file."""

import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from dartboard.stores.base import CollectionStats
from dartboard.stores.checks import check_deletion, check_k
from dartboard.stores.embedded.connections import Connections
from dartboard.stores.embedded.derived import DerivedFiles
from dartboard.stores.embedded.indexes import Indexes
from dartboard.stores.embedded.remembered import Remembered
from dartboard.stores.embedded.revisions import manifest_text, revision_of
from dartboard.stores.embedded.rows import (
    raise_revision,
    remove_rows,
    rows_of_ids,
    rows_that_match,
    write_records,
)
from dartboard.stores.embedded.snapshot import ReadSnapshot
from dartboard.stores.embedded.tuning import Tuning
from dartboard.stores.filters import Filter
from dartboard.stores.manifest import Manifest
from dartboard.stores.records import Record, SparseVector, check_metadata
from dartboard.types import FloatArray, Hit

_Made = TypeVar("_Made")


class EmbeddedCollection:
    """Records of one model in a file; made by :class:`EmbeddedStore`. Reading is done by
    :class:`ReadSnapshot`.
    """

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
        with self.read_snapshot() as view:
            return view.manifest

    @contextmanager
    def read_snapshot(self) -> Iterator[ReadSnapshot]:
        """The collection as it is now, to be read as often as you like, whoever writes meanwhile.

        Example:
            with collection.read_snapshot() as view:
                hits = view.search_text("tea", 10)
                records = view.get([hit.id for hit in hits])
        """
        states = self._indexes.states()  # first: what the transaction sees is not older than any of them
        with self._connections.reading() as connection:
            yield ReadSnapshot(
                self.key,
                self.name,
                connection,
                revision_of(connection, self.key, self.name),
                indexes=self._indexes,
                states=states,
                remembered=self._remembered,
                tuning=self._tuning,
            )

    def on_one_state(self, work: Callable[[ReadSnapshot], _Made]) -> _Made:
        """The former way to say :meth:`read_snapshot`."""
        with self.read_snapshot() as view:
            return work(view)

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
        self.manifest.check(listed)
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
        with self.read_snapshot() as view:
            return view.get(ids, blobs=blobs)

    def unit_vectors(self, ids: Sequence[str]) -> tuple[list[str], FloatArray]:
        """The ids that exist, in the order asked, and their embeddings scaled to length 1, ``(n, d)``."""
        with self.read_snapshot() as view:
            return view.unit_vectors(ids)

    def directions(self, ids: Sequence[str]) -> tuple[list[str], FloatArray]:
        """The former name of :meth:`unit_vectors`."""
        return self.unit_vectors(ids)

    def read_blobs(self, ids: Sequence[str], name: str) -> dict[str, bytes]:
        """The bytes of this name that the records have, by id; nothing else is read."""
        with self.read_snapshot() as view:
            return view.read_blobs(ids, name)

    def count(self, where: Filter | None = None) -> int:
        """How many records there are, or match."""
        with self.read_snapshot() as view:
            return view.count(where)

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
        with self.read_snapshot() as view:
            return view.search_vector(query, k, where=where, field=field, exact=exact)

    def search_sparse(
        self, query: SparseVector, k: int, *, field: str, where: Filter | None = None
    ) -> list[Hit]:
        """Best by dot product, through an inverted index."""
        with self.read_snapshot() as view:
            return view.search_sparse(query, k, field=field, where=where)

    def search_text(self, query: str, k: int, *, where: Filter | None = None) -> list[Hit]:
        """Best by BM25."""
        with self.read_snapshot() as view:
            return view.search_text(query, k, where=where)

    def explain_text(self, query: str, chunk_id: str) -> list[dict[str, Any]]:
        """What each term of the query adds to a record's BM25 score; empty for a record that is not there."""
        with self.read_snapshot() as view:
            return view.explain_text(query, chunk_id)

    def iterate(self, *, where: Filter | None = None, batch_size: int = 1000) -> Iterator[list[Record]]:
        """All records that match, whole, by rising id, as they were when the first was taken."""
        check_k(batch_size, "batch_size")
        with self.read_snapshot() as view:
            yield from view.iterate(where=where, batch_size=batch_size)

    def snapshot(self, path: str | Path) -> None:
        """Write the collection to one file."""
        with self.read_snapshot() as view:
            view.snapshot(path)

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
        with self.read_snapshot() as view:
            view.prepare()
        self.written = False


def bytes_of_records(connection: sqlite3.Connection, path: Path, records: int) -> int:
    """The collection's part of the file: by its number of records, since pages are shared."""
    (total,) = connection.execute("SELECT sum(records) FROM collections").fetchone()
    log = path.with_name(f"{path.name}-wal")
    size = path.stat().st_size + (log.stat().st_size if log.exists() else 0)
    return size * records // total if total else 0
