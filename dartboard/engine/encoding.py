"""Who makes the vectors of passages that are indexed: the model in this process, or machines elsewhere.

An index run begins list after list and takes the vectors in the same order. ``room`` says how many lists may
be under way: one here, so that each is encoded when its vectors are wanted; more where others work.
"""

from dataclasses import dataclass
from typing import Protocol

from dartboard.embeddings.base import EmbeddingModel
from dartboard.embeddings.vectors import Vectors


class Encoding(Protocol):
    """A list of passages whose vectors are on their way."""

    def ready(self) -> bool:
        """Whether they are there without waiting."""

    def vectors(self) -> Vectors:
        """``(n, d)``, in the order of the texts; waits for them."""


class Encoder(Protocol):
    """Encodes lists of passages."""

    @property
    def room(self) -> int:
        """How many lists may be under way, at least one."""

    def begin(self, texts: list[str]) -> Encoding:
        """Take on a list."""


@dataclass(frozen=True, slots=True)
class Here:
    """The model in this process."""

    model: EmbeddingModel

    @property
    def room(self) -> int:
        """One list."""
        return 1

    def begin(self, texts: list[str]) -> Encoding:
        """The list is encoded when its vectors are wanted."""
        return _WhenWanted(self.model, texts)


@dataclass(frozen=True, slots=True)
class _WhenWanted:
    model: EmbeddingModel
    texts: list[str]

    def ready(self) -> bool:
        return False

    def vectors(self) -> Vectors:
        return self.model.encode_documents(self.texts)
