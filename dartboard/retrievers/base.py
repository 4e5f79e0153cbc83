"""The protocol of retrievers: a query in, candidates with scores out. Dartboard selects from any of them.

A retriever reads with :meth:`Retriever.retrieve`. For writing, :meth:`Retriever.fields` names the fields that
a collection must have for it, and :meth:`Retriever.index` fills them in records that already have their
embedding. Retrievers that need only the embedding and the text fill nothing.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from dartboard.retrievers.candidates import Candidates
from dartboard.stores import Collection, Filter, Record, VectorField


@dataclass(frozen=True, slots=True, kw_only=True)
class Fields:
    """Fields of a collection besides embedding and text."""

    vectors: Mapping[str, VectorField] = field(default_factory=dict)
    sparse: tuple[str, ...] = ()
    blobs: tuple[str, ...] = ()


@runtime_checkable
class Retriever(Protocol):
    """Finds candidates in a collection."""

    @property
    def name(self) -> str:
        """Short and stable: ``dense``, ``bm25``, ``colbert`` …; the key of its shares in a fusion."""

    def fields(self) -> Fields:
        """The fields that records must have for this retriever."""

    def index_settings(self) -> Mapping[str, Mapping[str, Any]]:
        """Settings that those fields depend on, by retriever name: ``manifest.settings["retrievers"]``."""

    def index(self, records: Sequence[Record]) -> list[Record]:
        """The records with those fields filled in."""

    def retrieve(
        self, collection: Collection, query: str, k: int, *, where: Filter | None = None
    ) -> Candidates:
        """The ``k`` best candidates of a collection for a query, with vectors."""

    def explain(self, collection: Collection, query: str, chunk_id: str) -> Mapping[str, Any]:
        """Why a chunk gets its score for a query: JSON, specific to the retriever."""
