"""What all derived indexes of a collection share: when they are built, and which revision they are of."""

import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any, Generic, Protocol, TypeVar

from dartboard.errors import ConfigError
from dartboard.stores.ann import RECALL
from dartboard.stores.embedded.derived_files import DerivedFiles, SavedIndex
from dartboard.stores.embedded.record_reader import RecordReader


@dataclass(frozen=True, slots=True, kw_only=True)
class Tuning:
    """Numbers of records. The defaults follow the table in ``docs/decisions.md``."""

    files_from: int = 1000
    """Smaller collections are read from the store itself: that is as quick."""
    approximate_from: int = 20_000
    """Smaller collections are compared whole."""
    recall: float = RECALL
    """Wanted of approximate search, of the 100 nearest."""
    tail_share: float = 0.1
    """How much of an index may be newer or deleted before it is built anew."""
    tail_least: int = 1000
    """Fewer than so many changes are never worth building anew."""
    compare_up_to: int = 2000
    """With a filter that leaves no more than so many, these are compared one by one."""
    words_up_to: int = 200_000
    """Up to so many, closing the store leaves a lexical index even if nobody searched for words."""

    def __post_init__(self) -> None:
        for name in ("files_from", "approximate_from", "tail_least", "compare_up_to", "words_up_to"):
            if getattr(self, name) < 0:
                raise ConfigError(f"{name} must be >= 0, got {getattr(self, name)}")
        if not 0.5 <= self.recall < 1:
            raise ConfigError(f"recall must be in [0.5, 1), got {self.recall}: search with exact=True for 1")
        if not 0 <= self.tail_share <= 1:
            raise ConfigError(f"tail_share must be in [0, 1], got {self.tail_share}")

    def too_much(self, changed: int, indexed: int) -> bool:
        """Whether so many changes to an index of so many records call for a new one."""
        return changed > max(self.tail_least, self.tail_share * indexed)


class IndexState(Protocol):
    """An index at one revision of its collection. It is never changed: a write leads to another state."""

    @property
    def revision(self) -> int:
        """Of the collection."""

    def describe(self) -> dict[str, Any]:
        """For statistics."""


State = TypeVar("State", bound=IndexState)


class DerivedIndex(ABC, Generic[State]):
    """An index of one kind, made when a search first needs it, and shared by all threads.

    Readers of an older revision keep the state that they began with.

    Args:
        collection: the key of the collection.
        kind: its name among the derived files.
        settings: what files must have been made with.
        files: where it is saved.
        tuning: when it is saved.
    """

    def __init__(
        self, collection: int, kind: str, settings: Mapping[str, Any], files: DerivedFiles, tuning: Tuning
    ) -> None:
        self.settings = settings
        self.state: State | None = None
        """The newest that anybody has asked for."""
        self._collection = collection
        self._kind = kind
        self._files = files
        self._tuning = tuning
        self._lock = Lock()

    def at(self, reader: RecordReader, earlier: State | None = None) -> State:
        """The state at the reader's revision.

        Args:
            reader: what it is built from.
            earlier: a state that was there before the reader's transaction began, so it is never newer.
                It serves where another thread has moved the index on to a newer revision since: then this
                reader gets a state of its own, which is not shared and leaves no files.
        """
        with self._lock:
            shared = self.state is None or self.state.revision <= reader.revision
            state = self.state if shared else earlier
            if state is None or state.revision != reader.revision:
                state = self._updated(reader, state, save=shared)
            if shared:
                self.state = state
            return state

    @abstractmethod
    def _updated(self, reader: RecordReader, earlier: State | None, *, save: bool) -> State:
        """A state at the reader's revision: from an earlier one, from files, or from the records."""

    def _saved(self, connection: sqlite3.Connection) -> SavedIndex | None:
        """The files that the store knows; they may be of another revision."""
        return self._files.find(connection, self._collection, self._kind, self.settings)

    def _keep(
        self, draft: Path, reader: RecordReader, *, about: Mapping[str, Any], sealed: list[str]
    ) -> Path | None:
        """Let the store vouch for the files in a draft; the folder's final name if it does."""
        return self._files.keep(
            draft,
            self._collection,
            self._kind,
            reader.revision,
            {"last_row": reader.last_row, "settings": self.settings, "about": about},
            sealed=sealed,
        )
