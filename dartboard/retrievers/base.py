"""What a retriever is: query in, candidates with scores out; any retriever can stand in front of Dartboard.

A retriever has two sides. Reading: :meth:`Retriever.retrieve`. Writing: :meth:`Retriever.fields` says what
a collection must carry for it, and :meth:`Retriever.index` fills that into records whose embedding is there
already. Retrievers that need nothing beside the embedding and the text have nothing to fill.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from dartboard.retrievers.candidates import Candidates
from dartboard.stores import Collection, Filter, Record, VectorField


@dataclass(frozen=True, slots=True, kw_only=True)
class Fields:
    """What a collection must carry beside embedding and text."""

    vectors: Mapping[str, VectorField] = field(default_factory=dict)
    sparse: tuple[str, ...] = ()
    blobs: tuple[str, ...] = ()


@runtime_checkable
class Retriever(Protocol):
    """One way to find candidates in a collection."""

    @property
    def name(self) -> str:
        """Short and stable: ``dense``, ``bm25``, ``colbert`` …; it labels shares."""

    def fields(self) -> Fields:
        """What records must carry for this retriever."""

    def index_settings(self) -> Mapping[str, Mapping[str, Any]]:
        """What those fields depend on, by retriever's name: kept in ``manifest.settings["retrievers"]``."""

    def index(self, records: Sequence[Record]) -> list[Record]:
        """The records with those fields filled in."""

    def retrieve(
        self, collection: Collection, query: str, k: int, *, where: Filter | None = None
    ) -> Candidates:
        """The ``k`` best candidates of a collection for a query, with vectors."""

    def explain(self, collection: Collection, query: str, chunk_id: str) -> Mapping[str, Any]:
        """Why a chunk scores as it does for a query: JSON, in the retriever's own terms."""
