"""Lexical and sparse indexes of a collection: loaded if they match its revision, otherwise rebuilt.

BM25 weights every term by all passages, so one new passage changes all scores; that is why there is no tail
of new records here. Rows are sorted by id, so ties are too.
"""

import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

import numpy as np

from dartboard.errors import StoreFormatError
from dartboard.stores.ann import Mask
from dartboard.stores.embedded.checksums import check_structure
from dartboard.stores.embedded.derived_index import (
    DamagedFileError,
    DerivedFiles,
    DerivedIndex,
    SavedIndex,
    Tuning,
    flush_to_disk,
)
from dartboard.stores.embedded.record_reader import RecordReader, Rows

logger = logging.getLogger(__name__)

_ROWS, _FOLDER, _MANIFEST = "rows.bin", "lists", "index.json"


class PostingLists(Protocol):
    """Common protocol of BM25 and inverted indexes."""

    def __len__(self) -> int: ...

    def save(self, folder: str | Path) -> None:
        """Write to a folder."""


Lists = TypeVar("Lists", bound=PostingLists)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LexicalState(Generic[Lists]):
    """An index at one revision, and the row of each of its positions."""

    revision: int
    rows: Rows
    index: Lists

    def mask(self, allowed: Rows) -> Mask:
        """Which positions are allowed."""
        return np.isin(self.rows, allowed)

    def describe(self) -> dict[str, Any]:
        """For statistics."""
        return {"indexed": len(self.index)}


class LexicalIndex(DerivedIndex[LexicalState[Lists]], Generic[Lists]):
    """Posting lists over texts or sparse vectors.

    ``read`` yields rows and their content, sorted by id. ``build`` makes the index from that, and ``load``
    reads it from its folder.
    """

    def __init__(
        self,
        collection: int,
        files: DerivedFiles,
        tuning: Tuning,
        kind: str,
        settings: Mapping[str, Any],
        *,
        read: Callable[[RecordReader], Iterator[tuple[int, Any]]],
        build: Callable[[Iterator[Any]], Lists],
        load: Callable[[Path], Lists],
    ) -> None:
        super().__init__(collection, files, tuning, kind, settings)
        self._read = read
        self._build = build
        self._load = load

    def _updated(
        self, reader: RecordReader, earlier: LexicalState[Lists] | None, *, save: bool
    ) -> LexicalState[Lists]:
        saved = self._saved(reader.connection)
        if saved is not None and saved.revision == reader.revision:
            try:
                return self._from_files(saved)
            except (StoreFormatError, OSError, ValueError) as damage:
                logger.warning("%s is rebuilt: %s", saved.folder, damage)
        check_structure(reader.connection)
        rows: list[int] = []

        def indexed() -> Iterator[Any]:
            for row, content in self._read(reader):
                rows.append(row)
                yield content

        index = self._build(indexed())
        state = LexicalState(revision=reader.revision, rows=np.array(rows, dtype=np.int64), index=index)
        if save and reader.records >= self._tuning.files_from:
            self._save(state, reader)
        return state

    def _from_files(self, saved: SavedIndex) -> LexicalState[Lists]:
        saved.read(f"{_FOLDER}/{_MANIFEST}")  # verifies it; it holds the checksums of the other files
        rows = np.frombuffer(saved.read(_ROWS), "<i8")
        index = self._load(saved.folder / _FOLDER)
        if len(index) != rows.size:
            raise DamagedFileError(f"{len(index)} rows in the index, {rows.size} beside it")
        return LexicalState(revision=saved.revision, rows=rows, index=index)

    def _save(self, state: LexicalState[Lists], reader: RecordReader) -> None:
        with self._files.draft(self._collection, self.kind) as folder:
            if folder is None:
                return
            try:
                state.index.save(folder / _FOLDER)
                (folder / _ROWS).write_bytes(state.rows.astype("<i8").tobytes())
                flush_to_disk(folder)
            except OSError as error:
                logger.warning("%s: an index stays in memory only: %s", folder.parent, error)
                return
            self._keep(folder, reader, about={}, sealed=[_ROWS, f"{_FOLDER}/{_MANIFEST}"])
