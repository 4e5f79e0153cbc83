"""Where passages live: one protocol for memory, a file, PostgreSQL and Milvus.

A :class:`Store` holds collections; a :class:`Collection` holds records that one model made. Stores never
embed: vectors come in and go out. Every search returns hits best first, equal scores by id, and a write
that has returned is kept.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self, runtime_checkable

from dartboard.stores.filters import Filter
from dartboard.stores.manifest import Manifest
from dartboard.stores.records import Record, SparseVector
from dartboard.types import FloatArray, Hit

DEFAULT_COLLECTION = "default"


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectionStats:
    """What a collection holds and costs.

    Args:
        name: The collection's name.
        records: How many records it holds.
        bytes: What they take, on disk or in memory; an estimate where the store says so in its details.
        details: The store's own: the kind of its index, and its state.
    """

    name: str
    records: int
    bytes: int
    details: Mapping[str, Any] = field(default_factory=dict)


@runtime_checkable
class Collection(Protocol):
    """Records of one model. Ids are unique; an upsert replaces the whole record.

    Every method raises :class:`~dartboard.errors.StoreError` or one of its subclasses where the store fails,
    and :class:`~dartboard.errors.InvalidInputError` or :class:`~dartboard.errors.ConfigError` for arguments
    that cannot be used. ``where`` is a filter on metadata (:func:`~dartboard.stores.parse_filter`); None
    matches every record.
    """

    @property
    def name(self) -> str:
        """The collection's name."""

    @property
    def manifest(self) -> Manifest:
        """What the collection was made with."""

    def configure(self, settings: Mapping[str, Any]) -> None:
        """Replace the manifest's settings (JSON only). A store may refuse to change how texts are indexed."""

    def upsert(self, records: Sequence[Record]) -> None:
        """Keep the records, all or none; when this returns they survive a crash.

        Of equal ids the last is kept. Milvus keeps large batches in parts, and says how many it has kept.
        """

    def delete(self, ids: Sequence[str] | None = None, *, where: Filter | None = None) -> int:
        """Remove the records with these ids, or those that match; exactly one of the two is given.

        Returns:
            How many records were removed; ids that do not exist are ignored.
        """

    def get(self, ids: Sequence[str], *, blobs: Sequence[str] = ()) -> list[Record]:
        """The records that exist, in the order asked.

        Args:
            ids: Ids to look up; those that do not exist are left out.
            blobs: Names of the blobs to read; others are left out.

        Returns:
            Records without further vectors and sparse vectors, which only :meth:`iterate` reads.
        """

    def count(self, where: Filter | None = None) -> int:
        """How many records there are, or match."""

    def search_vector(
        self,
        query: FloatArray,
        k: int,
        *,
        where: Filter | None = None,
        field: str | None = None,
        exact: bool = False,
    ) -> list[Hit]:
        """The nearest records, best first, equal scores by id.

        Args:
            query: ``(d,)`` numbers, finite and not all zero.
            k: How many hits at most.
            where: Only records that match.
            field: A further vector of the manifest; None is the embedding.
            exact: Compare every record that matches, whatever index there is.

        Returns:
            Hits with cosines, or dot products where the field's metric says so.
        """

    def search_sparse(
        self, query: SparseVector, k: int, *, field: str, where: Filter | None = None
    ) -> list[Hit]:
        """The best ``k`` by the dot product of sparse vectors; records that share no term are not found."""

    def search_text(self, query: str, k: int, *, where: Filter | None = None) -> list[Hit]:
        """The best ``k`` by BM25; records that share no term with the query are not found."""

    def iterate(self, *, where: Filter | None = None, batch_size: int = 1000) -> Iterator[list[Record]]:
        """All records that match, whole, by rising id, in lists of at most ``batch_size``."""

    def prepare(self) -> None:
        """Build and keep now what makes the next search quick; searches do it themselves otherwise."""

    def snapshot(self, path: str | Path) -> None:
        """Write the collection to one file that any store can restore."""

    def stats(self) -> CollectionStats:
        """Size and state."""


@runtime_checkable
class Store(Protocol):
    """Collections by name."""

    @property
    def url(self) -> str:
        """How the store was opened, without passwords."""

    def collections(self) -> list[str]:
        """The names of the collections, sorted."""

    def create(self, name: str, manifest: Manifest) -> Collection:
        """A new empty collection.

        Raises:
            CollectionError: there is one of that name.
            ConfigError: the name, or a setting of the manifest, cannot be used.
        """

    def open(self, name: str = DEFAULT_COLLECTION) -> Collection:
        """A collection that exists.

        Raises:
            CollectionError: there is none of that name; the message names those there are.
        """

    def drop(self, name: str) -> None:
        """Remove a collection and all in it."""

    def restore(self, path: str | Path, name: str | None = None) -> Collection:
        """A new collection from a snapshot, under its own name or another.

        Raises:
            CollectionError: there is one of that name.
            StoreFormatError: the file is damaged, or no snapshot.
        """

    def close(self) -> None:
        """Give back what the store holds (files, connections); closing twice does nothing."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
        /,
    ) -> None: ...


def read_snapshot(collection: Collection) -> AbstractContextManager[Collection]:
    """One state of the collection for several reads: ``with read_snapshot(collection) as view: …``.

    A search asks a collection several things (vectors, words, texts), and a write in between must not mix
    two states into one answer. A store that can hold a state has a method ``read_snapshot``, whose context
    manager gives a view with the reading methods of the collection. Other stores are read as they are.
    A store that has its unit vectors at hand without the records also has ``unit_vectors(ids)``, and reads
    single blobs with ``read_blobs(ids, name)``.
    """
    begin = getattr(collection, "read_snapshot", None)
    made: AbstractContextManager[Collection] = nullcontext(collection) if begin is None else begin()
    return made


def iterate_metadata(collection: Collection, *, where: Filter | None = None) -> Iterator[Mapping[str, Any]]:
    """The metadata of all records that match, without their texts and vectors where the store can do that.

    Such a store has a method ``iterate_metadata``; of others, whole records are read.
    """
    own = getattr(collection, "iterate_metadata", None)
    if own is not None:
        yield from own(where=where)
        return
    for batch in collection.iterate(where=where):
        for record in batch:
            yield record.metadata
