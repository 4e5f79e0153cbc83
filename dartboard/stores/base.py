"""The protocol of all stores: memory, one file, PostgreSQL and Milvus.

A :class:`Store` holds collections; a :class:`Collection` holds records that one model made. Stores never
embed: they take and return vectors. Every search returns hits best first and breaks ties by id. A write is
durable when the call returns.
"""

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Collection as Collection_
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, Protocol, Self, TypeVar, runtime_checkable

import numpy as np

from dartboard.stores.filters import And, Filter, In
from dartboard.stores.manifest import Manifest
from dartboard.stores.records import Record, SparseVector
from dartboard.types import FloatArray, Hit
from dartboard.utils import unit_rows

DEFAULT_COLLECTION = "default"


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectionStats:
    """Size and state of a collection.

    Args:
        name: The collection's name.
        records: How many records it holds.
        bytes: Their size on disk or in memory; ``details`` says where this is an estimate.
        details: Store-specific: the kind and state of the index.
    """

    name: str
    records: int
    bytes: int
    details: Mapping[str, Any] = field(default_factory=dict)


@runtime_checkable
class Collection(Protocol):
    """Records of one model. Ids are unique; an upsert replaces the whole record.

    Every method raises :class:`~dartboard.errors.StoreError` or a subclass when the store fails,
    and :class:`~dartboard.errors.InvalidInputError` or :class:`~dartboard.errors.ConfigError` for arguments
    that are not valid. ``where`` is a filter on metadata (:func:`~dartboard.stores.parse_filter`); None
    matches every record.
    """

    @property
    def name(self) -> str:
        """The collection's name."""

    @property
    def manifest(self) -> Manifest:
        """The collection's model, fields and settings."""

    def configure(self, changes: Mapping[str, Any]) -> None:
        """Change these settings of the manifest (JSON only) and keep the others; None removes one.

        The settings are read and written in one transaction, so that two processes that change different
        ones do not undo each other. A store may reject a change of the text index.
        """

    def upsert(self, records: Sequence[Record]) -> None:
        """Write the records, all or none. They survive a crash once this returns.

        The last of several records with one id wins. Milvus writes large batches in parts, and its errors say
        how many records were written.
        """

    def delete(self, ids: Sequence[str] | None = None, *, where: Filter | None = None) -> int:
        """Delete the records with these ids, or those that match ``where``. Give exactly one of the two.

        Returns:
            How many records were deleted; unknown ids are ignored.
        """

    def get(self, ids: Sequence[str], *, blobs: Sequence[str] = ()) -> list[Record]:
        """The records that exist, in the order of ``ids``.

        Args:
            ids: Ids to look up; unknown ids are skipped.
            blobs: Names of the blobs to read; others are not read.

        Returns:
            Records without further dense and sparse vectors; only :meth:`iterate` reads those.
        """

    def read_snapshot(self) -> AbstractContextManager["Collection"]:
        """A consistent view for several reads: ``with collection.read_snapshot() as view: …``.

        A search reads a collection several times (vectors, words, texts), and a write in between must not
        mix two states in one answer. The view has the reading methods of the collection. A store without
        snapshots gives the collection itself.
        """

    def unit_vectors(self, ids: Sequence[str]) -> tuple[list[str], FloatArray]:
        """The ids that exist, in the order of ``ids``, and their embeddings as unit vectors, ``(n, d)``."""

    def read_blobs(self, ids: Sequence[str], name: str) -> dict[str, bytes]:
        """The blobs of this name by id, of the records that have one."""

    def read_places(self, places: Collection_[tuple[str, int]], where: Filter | None = None) -> list[Record]:
        """The records whose metadata ``source`` and ``position`` are one of these, in any order.

        They come without further vectors and blobs.
        """

    def iterate_metadata(self, *, where: Filter | None = None) -> Iterator[Mapping[str, Any]]:
        """The metadata of all matching records, without texts and vectors if the store can."""

    def explain_text(self, query: str, chunk_id: str) -> Sequence[Mapping[str, Any]]:
        """What each term of the query adds to a record's score; empty if the store cannot tell."""

    def count(self, where: Filter | None = None) -> int:
        """How many records match; without a filter, all."""

    def search_vector(
        self,
        query: FloatArray,
        k: int,
        *,
        where: Filter | None = None,
        field: str | None = None,
        exact: bool = False,
    ) -> list[Hit]:
        """The nearest records, best first, ties by id.

        Args:
            query: ``(d,)`` numbers, finite and not all zero.
            k: Maximum number of hits.
            where: Only records that match.
            field: The name of a further vector of the manifest; None is the embedding.
            exact: Compare every matching record, even if there is an index.

        Returns:
            Hits with cosines, or dot products if the field's metric is ``"dot"``.
        """

    def search_sparse(
        self, query: SparseVector, k: int, *, field: str, where: Filter | None = None
    ) -> list[Hit]:
        """The best ``k`` by dot product of sparse vectors; records without a shared term are not found."""

    def search_text(self, query: str, k: int, *, where: Filter | None = None) -> list[Hit]:
        """The best ``k`` by BM25; records without a term of the query are not found."""

    def iterate(self, *, where: Filter | None = None, batch_size: int = 1000) -> Iterator[list[Record]]:
        """All matching records, complete, sorted by id, in lists of at most ``batch_size``."""

    def prepare(self) -> None:
        """Build the indexes now, and save them if the store saves any. Otherwise a search builds them."""

    def snapshot(self, path: str | Path) -> None:
        """Write the collection to one file that any store can restore."""

    def stats(self) -> CollectionStats:
        """Size and state."""


@runtime_checkable
class Store(Protocol):
    """Collections by name."""

    @property
    def url(self) -> str:
        """The URL of the store, without passwords."""

    def collections(self) -> list[str]:
        """The names of the collections, sorted."""

    def create(self, name: str, manifest: Manifest) -> Collection:
        """A new empty collection.

        Raises:
            CollectionError: the name is taken.
            ConfigError: the name or a setting of the manifest is not valid.
        """

    def open(self, name: str = DEFAULT_COLLECTION) -> Collection:
        """A collection that exists.

        Raises:
            CollectionError: no collection has this name; the message lists the existing ones.
        """

    def drop(self, name: str) -> None:
        """Delete a collection with all its records."""

    def restore(self, path: str | Path, name: str | None = None) -> Collection:
        """A new collection from a snapshot, under its own name or another.

        Raises:
            CollectionError: the name is taken.
            StoreFormatError: the file is damaged or not a snapshot.
        """

    def close(self) -> None:
        """Release files and connections; closing twice does nothing."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
        /,
    ) -> None: ...


class BaseCollection:
    """Reading methods made of others, to inherit from; a store overrides those that it can do better."""

    name: str

    def read_snapshot(self) -> AbstractContextManager[Any]:
        """The collection itself: reads beside a writer may see several states."""
        return nullcontext(self)

    def unit_vectors(self: Any, ids: Sequence[str]) -> tuple[list[str], FloatArray]:
        """From whole records."""
        found = self.get(ids)
        if not found:
            return [], np.zeros((0, self.manifest.dimension), np.float32)
        return [record.id for record in found], unit_rows(np.stack([record.embedding for record in found]))

    def read_blobs(self: Any, ids: Sequence[str], name: str) -> dict[str, bytes]:
        """From whole records."""
        return {
            record.id: record.blobs[name] for record in self.get(ids, blobs=[name]) if name in record.blobs
        }

    def read_places(
        self: Any, places: Collection_[tuple[str, int]], where: Filter | None = None
    ) -> list[Record]:
        """By a filter that finds more than the wanted ones."""
        if not places:
            return []
        near = [
            In("source", tuple(sorted({source for source, _ in places}))),
            In("position", tuple(sorted({position for _, position in places}))),
        ]
        return [
            record
            for batch in self.iterate(where=And((*near, *([] if where is None else [where]))))
            for record in batch
            if _place(record) in places
        ]

    def iterate_metadata(self: Any, *, where: Filter | None = None) -> Iterator[Mapping[str, Any]]:
        """From whole records."""
        for batch in self.iterate(where=where):
            for record in batch:
                yield record.metadata

    def explain_text(self, query: str, chunk_id: str) -> Sequence[Mapping[str, Any]]:
        """Nothing: a server does not say how it scores."""
        return []

    def prepare(self) -> None:
        """Nothing: a server keeps its own indexes."""


_Given = ParamSpec("_Given")
_Made = TypeVar("_Made")


def through_snapshot(
    read: Callable[Concatenate[Any, _Given], _Made],
) -> Callable[Concatenate[Any, _Given], _Made]:
    """A method of a view as a method of its collection: each call takes a snapshot of its own."""

    @functools.wraps(read)
    def method(self: Any, /, *args: _Given.args, **options: _Given.kwargs) -> _Made:
        with type(self).read_snapshot(self) as view:
            return read(view, *args, **options)

    return method


def _place(record: Record) -> tuple[Any, Any]:
    source, position = record.metadata.get("source"), record.metadata.get("position")
    return (source, position) if isinstance(source, str) and isinstance(position, int) else (None, None)
