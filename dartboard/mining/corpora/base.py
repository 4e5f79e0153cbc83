"""What contexts are made of: documents under fully qualified names, and a corpus that finds them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol


@dataclass(frozen=True, slots=True)
class Document:
    """A text under a name that is unique in its corpus: ``google.adk.agents.LlmAgent``, a path, an id."""

    fqn: str
    text: str
    metadata: Mapping[str, Any] = field(default_factory=dict)


class Corpus(Protocol):
    """Documents by name and by search; the same corpus gives the same documents in the same order."""

    @property
    def name(self) -> str:
        """What people call it."""

    @property
    def fingerprint(self) -> str:
        """Changes when any document does."""

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[Document]:
        """All documents, by rising name."""

    def get(self, fqn: str) -> Document | None:
        """The document of that name, also by a re-exported name where the corpus knows aliases."""

    def lexical(self, query: str, k: int) -> list[Document]:
        """The best by BM25."""

    def dense(self, query: str, k: int) -> list[Document]:
        """The nearest by the embedding model."""

    def dartboard(self, query: str, k: int) -> list[Document]:
        """The set that together says most."""
