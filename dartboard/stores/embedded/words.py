"""Lexical and sparse indexes of a collection: loaded if they are of its very revision, else built anew.

BM25 weighs every term by all passages, so one new passage changes all scores: there is no tail here.
Rows stand in the order of their ids, and so do equal scores.
"""

import logging
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, Protocol, Self, TypeVar

import numpy as np

from dartboard.errors import StoreFormatError
from dartboard.stores.ann import Mask
from dartboard.stores.embedded.derived import (
    Artefact,
    Damaged,
    DerivedFiles,
    DerivedIndex,
    Stamp,
    flush_to_disk,
)
from dartboard.stores.embedded.revisions import Revision
from dartboard.stores.embedded.rows import Rows
from dartboard.stores.embedded.structure import check_structure
from dartboard.stores.embedded.tuning import Tuning

logger = logging.getLogger(__name__)

_ROWS, _FOLDER, _MANIFEST = "rows.bin", "lists", "index.json"


class SavedIndex(Protocol):
    """What BM25 and inverted indexes share."""

    def __len__(self) -> int: ...

    def save(self, folder: str | Path) -> None:
        """Write to a folder."""

    @classmethod
    def load(cls, folder: str | Path) -> Self:
        """Read from a folder."""


_Index = TypeVar("_Index", bound=SavedIndex)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class WordState(Generic[_Index]):
    """An index at one revision, and the row of each of its positions."""

    revision: int
    rows: Rows
    index: _Index

    def mask(self, allowed: Rows | None) -> Mask | None:
        """Which positions may be found; None where all may."""
        return None if allowed is None else np.isin(self.rows, allowed)


@dataclass(frozen=True, slots=True, kw_only=True)
class WordSource(Generic[_Index]):
    """How an index comes from the store: its kind, its settings, its rows, and what builds it of them."""

    collection: int
    kind: str
    settings: Mapping[str, Any]
    rows: Callable[[sqlite3.Connection], Iterator[tuple[Any, ...]]]
    build: Callable[[Iterator[Any]], _Index]
    load: Callable[[Path], _Index]


class WordUpkeep(DerivedIndex[WordState[_Index]], Generic[_Index]):
    """The latest index of one kind, made when a search first needs it."""

    def __init__(self, source: WordSource[_Index], derived: DerivedFiles, tuning: Tuning) -> None:
        super().__init__()
        self._source = source
        self._derived = derived
        self._tuning = tuning

    def describe(self) -> dict[str, Any]:
        """The state in memory, if there is one."""
        return {} if self.state is None else {"indexed": len(self.state.index)}

    def _updated(
        self,
        connection: sqlite3.Connection,
        revision: Revision,
        earlier: WordState[_Index] | None,
        *,
        save: bool,
    ) -> WordState[_Index]:
        return self._load(connection, revision) or self._build(connection, revision, save=save)

    def _load(self, connection: sqlite3.Connection, revision: Revision) -> WordState[_Index] | None:
        source = self._source
        found = self._derived.find(connection, source.collection, source.kind, source.settings)
        if found is None or found.revision != revision.number:
            return None
        try:
            return self._read(found)
        except (Damaged, StoreFormatError, OSError, ValueError) as damage:
            logger.warning("%s will be built again: %s", found.folder, damage)
            return None

    def _read(self, found: Artefact) -> WordState[_Index]:
        found.read(f"{_FOLDER}/{_MANIFEST}")
        rows = np.frombuffer(found.read(_ROWS), "<i8")
        index = self._source.load(found.folder / _FOLDER)
        if len(index) != rows.size:
            raise Damaged(f"{len(index)} rows in the index, {rows.size} beside it")
        return WordState(revision=found.revision, rows=rows, index=index)

    def _build(self, connection: sqlite3.Connection, revision: Revision, *, save: bool) -> WordState[_Index]:
        numbers: list[int] = []

        def parts() -> Iterator[Any]:
            for row, *rest in self._source.rows(connection):
                numbers.append(row)
                yield rest[0] if len(rest) == 1 else tuple(rest)

        check_structure(connection)
        index = self._source.build(parts())
        state = WordState(revision=revision.number, rows=np.array(numbers, dtype=np.int64), index=index)
        if save and revision.records >= self._tuning.files_from:
            self._save(state, revision)
        return state

    def _save(self, state: WordState[_Index], revision: Revision) -> None:
        source = self._source
        with self._derived.draft(source.collection, source.kind) as folder:
            if folder is None:
                return
            try:
                state.index.save(folder / _FOLDER)
                (folder / _ROWS).write_bytes(state.rows.astype("<i8").tobytes())
                flush_to_disk(folder)
            except OSError as error:
                logger.warning("%s: an index is kept in memory only: %s", folder.parent, error)
                return
            self._derived.keep(
                source.collection,
                folder,
                Stamp(
                    kind=source.kind,
                    revision=revision.number,
                    last_row=revision.last_row,
                    settings=source.settings,
                    about={},
                    sealed=[_ROWS, f"{_FOLDER}/{_MANIFEST}"],
                ),
            )
