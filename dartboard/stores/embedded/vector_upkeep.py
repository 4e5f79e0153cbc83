"""Keep the vectors of one field ready for searching: load them, bring them up to date, build them anew."""

import logging
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from dartboard.errors import install_command
from dartboard.stores.ann import ApproximateIndex, Floats, faiss_is_there, unit_rows
from dartboard.stores.embedded.derived import (
    Artefact,
    Damaged,
    DerivedFiles,
    DerivedIndex,
    Stamp,
    flush_to_disk,
)
from dartboard.stores.embedded.reading import stream_ids, stream_vectors
from dartboard.stores.embedded.revisions import Revision
from dartboard.stores.embedded.rows import Rows, gone_since
from dartboard.stores.embedded.structure import check_structure
from dartboard.stores.embedded.sums import damaged
from dartboard.stores.embedded.tuning import Tuning
from dartboard.stores.embedded.vector_file import Checksums, FileRows, MemoryRows, PackedIds, RowWriter
from dartboard.stores.embedded.vectors import VectorState
from dartboard.stores.manifest import Metric
from dartboard.types import FloatArray

logger = logging.getLogger(__name__)

_MATRIX, _ROWS, _IDS, _INDEX = "vectors.f32", "rows.bin", "ids.bin", "index.faiss"


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldOfVectors:
    """Which vectors: the embedding (``field`` None) or a further field of a collection."""

    collection: int
    field: str | None
    dimension: int
    metric: Metric

    @property
    def kind(self) -> str:
        """The name of its derived files."""
        return "vectors" if self.field is None else f"vectors:{self.field}"

    @property
    def settings(self) -> dict[str, Any]:
        """What derived files must agree with."""
        return {"dimension": self.dimension, "metric": self.metric}


class VectorUpkeep(DerivedIndex[VectorState]):
    """The latest state of one field, made when a search first needs it."""

    def __init__(self, vectors: FieldOfVectors, derived: DerivedFiles, tuning: Tuning) -> None:
        super().__init__()
        self._field = vectors
        self._derived = derived
        self._tuning = tuning
        self._warned = False
        self._distrusted: set[Path | None] = set()

    def rebuilt(
        self, connection: sqlite3.Connection, revision: Revision, harmed: VectorState, damage: Damaged
    ) -> VectorState:
        """The state at the revision, after a file under the one in use proved damaged."""
        with self._lock:
            self._distrust(harmed.folder, damage)
            if self.state is not None and self.state.folder == harmed.folder:
                self.state = None
        return self.at(connection, revision)

    def _distrust(self, folder: Path | None, damage: Damaged) -> None:
        """Never read these files again."""
        logger.warning("%s will be built again: %s", folder or self._field.kind, damage)
        self._distrusted.add(folder)

    def _updated(
        self, connection: sqlite3.Connection, revision: Revision, earlier: VectorState | None, *, save: bool
    ) -> VectorState:
        """What is in memory, or else on disk, brought to the revision; anew where changes are too many."""
        for known in self._known(connection, revision, earlier):
            try:
                state = self._advance(known, connection, revision)
                if not self._tuning.too_much(state.changes, len(state.rows)):
                    return state
                if not self._approximate(state.size):
                    return state.folded()
            except Damaged as damage:
                self._distrust(known.folder, damage)
        return self._build(connection, revision, save=save)

    def _known(
        self, connection: sqlite3.Connection, revision: Revision, earlier: VectorState | None
    ) -> Iterator[VectorState]:
        if earlier is not None and earlier.revision >= revision.floor:
            yield earlier
        loaded = self._load(connection, revision)
        if loaded is not None:
            yield loaded

    def save(self, connection: sqlite3.Connection, revision: Revision) -> None:
        """Leave files behind from which the next process can start quickly."""
        state = self.at(connection, revision)
        if len(state.rows) + len(state.tail_rows) < self._tuning.files_from:
            return
        if state.folder is None or self._tuning.too_much(state.changes, len(state.rows)):
            rebuilt = self._build(connection, revision, save=True)
            with self._lock:
                if self.state is state:
                    self.state = rebuilt

    def describe(self) -> dict[str, Any]:
        """The state in memory, if there is one."""
        return {} if self.state is None else self.state.describe()

    def _advance(self, state: VectorState, connection: sqlite3.Connection, revision: Revision) -> VectorState:
        """Add what was written since, mask what was deleted."""
        if state.revision == revision.number:
            return state
        gone = gone_since(connection, self._field.collection, state.revision)
        parts = list(self._stream(connection, after=state.last_row))
        rows, vectors, longest = _joined(parts, self._field.dimension)
        state = state.followed_by(
            revision=revision.number,
            last_row=revision.last_row,
            gone=gone,
            new_rows=rows,
            new=vectors,
            longest=longest,
        )
        if self._field.field is None and state.size != revision.records:
            raise Damaged(f"{state.size} of {revision.records} records are known")
        return state

    def _load(self, connection: sqlite3.Connection, revision: Revision) -> VectorState | None:
        """The state as it lies on disk, if it is whole and not too old."""
        found = self._derived.find(connection, self._field.collection, self._field.kind, self._field.settings)
        if found is None or not revision.floor <= found.revision <= revision.number:
            return None
        if found.folder in self._distrusted:
            return None
        try:
            return self._read(found)
        except Damaged as damage:
            self._distrust(found.folder, damage)
        except (KeyError, TypeError, ValueError) as error:
            self._distrust(found.folder, Damaged(f"its stamp cannot be read ({error!r})"))
        return None

    def _read(self, found: Artefact) -> VectorState | None:
        count = int(found.about["count"])
        approximate = self._approximate(count)
        if approximate and found.about["recall"] != self._tuning.recall:
            return None
        data = found.read(_ROWS)
        rows = np.frombuffer(data, "<i8", count)
        checksums: Checksums = np.frombuffer(data, "<u4", offset=8 * count)
        vectors = FileRows(found.folder / _MATRIX, (count, self._field.dimension), checksums)
        index = None
        if approximate:
            try:
                index = ApproximateIndex.from_bytes(found.read(_INDEX))
            except RuntimeError as error:  # of another version of FAISS
                raise Damaged(f"{_INDEX}: {error}") from error
        return VectorState(
            revision=found.revision,
            last_row=found.last_row,
            rows=rows,
            vectors=vectors,
            longest=float(found.about["longest"]),
            ids=PackedIds.from_bytes(found.read(_IDS), count) if self._field.field is None else None,
            folder=found.folder,
            index=index,
            tail_rows=np.zeros(0, np.int64),
            tail=np.zeros((0, self._field.dimension), np.float32),
        )

    def _build(self, connection: sqlite3.Connection, revision: Revision, *, save: bool) -> VectorState:
        """From the store itself: into files where they pay and can be written, else in memory."""
        if save and revision.records >= self._tuning.files_from:
            with self._derived.draft(self._field.collection, self._field.kind) as folder:
                if folder is not None:
                    try:
                        return self._build_files(connection, revision, folder)
                    except OSError as error:
                        logger.warning("%s: an index is kept in memory only: %s", folder.parent, error)
        check_structure(connection)
        parts = list(self._stream(connection))
        rows, vectors, longest = _joined(parts, self._field.dimension)
        del parts
        return self._finished(revision, rows, MemoryRows(vectors), longest)

    def _build_files(self, connection: sqlite3.Connection, revision: Revision, folder: Path) -> VectorState:
        check_structure(connection)
        writer = RowWriter(folder / _MATRIX, self._field.dimension)
        numbers, longest = [np.zeros(0, np.int64)], 0.0
        try:
            for rows, vectors, length in self._stream(connection):
                writer.add(vectors)
                numbers.append(rows)
                longest = max(longest, length)
            on_disk = writer.finish()
        finally:
            writer.abandon()
        rows = np.concatenate(numbers)
        state = self._finished(revision, rows, on_disk, longest)
        sealed = [_ROWS]
        if self._field.field is None:
            state = replace(state, ids=PackedIds.pack(stream_ids(connection, self._field.collection)))
            (folder / _IDS).write_bytes(state.ids.to_bytes() if state.ids else b"")
            sealed.append(_IDS)
        (folder / _ROWS).write_bytes(rows.astype("<i8").tobytes() + writer.checksums.astype("<u4").tobytes())
        if state.index is not None:
            (folder / _INDEX).write_bytes(state.index.to_bytes())
            sealed.append(_INDEX)
        flush_to_disk(folder)
        final = self._derived.keep(
            self._field.collection,
            folder,
            Stamp(
                kind=self._field.kind,
                revision=revision.number,
                last_row=revision.last_row,
                settings=self._field.settings,
                about={
                    "count": rows.size,
                    "longest": longest,
                    "recall": None if state.index is None else self._tuning.recall,
                },
                sealed=sealed,
            ),
        )
        return replace(state, folder=final)

    def _finished(
        self, revision: Revision, rows: Rows, vectors: MemoryRows | FileRows, longest: float
    ) -> VectorState:
        if self._field.field is None and rows.size != revision.records:
            raise damaged(f"a record ({rows.size} of {revision.records} can be read)")
        return VectorState(
            revision=revision.number,
            last_row=revision.last_row,
            rows=rows,
            vectors=vectors,
            longest=longest,
            index=self._index(vectors) if self._approximate(rows.size) else None,
            tail_rows=np.zeros(0, np.int64),
            tail=np.zeros((0, self._field.dimension), np.float32),
        )

    def _index(self, vectors: MemoryRows | FileRows) -> ApproximateIndex:
        return ApproximateIndex.build(vectors, recall=self._tuning.recall)

    def _approximate(self, count: int) -> bool:
        if not count or count < self._tuning.approximate_from:
            return False
        if faiss_is_there():
            return True
        if not self._warned:
            self._warned = True
            logger.warning(
                "%d vectors are compared one by one; faster with FAISS: %s", count, install_command("search")
            )
        return False

    def _stream(
        self, connection: sqlite3.Connection, *, after: int = 0
    ) -> Iterator[tuple[Rows, Floats, float]]:
        """Rows, vectors as they are compared, and the largest length among them."""
        field = self._field
        for rows, vectors in stream_vectors(
            connection, field.collection, field.field, field.dimension, after=after
        ):
            if field.metric == "cosine":
                yield rows, unit_rows(vectors), 1.0
            else:
                yield rows, vectors, _longest(vectors)


def _longest(vectors: FloatArray) -> float:
    return float(np.sqrt(np.einsum("ij,ij->i", vectors, vectors, dtype=np.float64)).max())


def _joined(parts: list[tuple[Rows, Floats, float]], dimension: int) -> tuple[Rows, Floats, float]:
    if not parts:
        return np.zeros(0, np.int64), np.zeros((0, dimension), np.float32), 0.0
    rows, vectors, lengths = zip(*parts, strict=True)
    return np.concatenate(rows), np.concatenate(vectors), max(lengths)
