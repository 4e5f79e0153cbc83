"""The index of one vector field: loaded, updated after writes, or rebuilt."""

import logging
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from dartboard.errors import install_command
from dartboard.stores.ann import ApproximateIndex, Floats, faiss_is_there
from dartboard.stores.embedded.checksums import check_structure, damaged
from dartboard.stores.embedded.derived_index import (
    DamagedFileError,
    DerivedFiles,
    DerivedIndex,
    SavedIndex,
    Tuning,
    flush_to_disk,
)
from dartboard.stores.embedded.record_reader import RecordReader, Rows
from dartboard.stores.embedded.vector_search import (
    Checksums,
    PackedIds,
    VectorMatrix,
    VectorState,
    write_vectors,
)
from dartboard.stores.manifest import VectorField
from dartboard.utils import unit_rows

logger = logging.getLogger(__name__)

_MATRIX, _ROWS, _IDS, _INDEX = "vectors.f32", "rows.bin", "ids.bin", "index.faiss"


class VectorIndex(DerivedIndex[VectorState]):
    """Index of the embeddings (``field`` None) or of a further vector field."""

    def __init__(
        self,
        collection: int,
        files: DerivedFiles,
        tuning: Tuning,
        kind: str,
        field: str | None,
        described: VectorField,
    ) -> None:
        settings = {"dimension": described.dimension, "metric": described.metric}
        super().__init__(collection, files, tuning, kind, settings)
        self._field = field
        self._dimension = described.dimension
        self._metric = described.metric
        self._warned = False
        self._distrusted: set[Path | None] = set()

    def save(self, reader: RecordReader) -> None:
        """Save files, so that the next process starts quickly."""
        state = self.at(reader)
        if len(state.rows) + len(state.tail_rows) < self._tuning.files_from:
            return
        if state.folder is None or self._tuning.too_much(state.changes, len(state.rows)):
            rebuilt = self._build(reader, save=True)
            with self._lock:
                if self.state is state:
                    self.state = rebuilt

    def rebuilt(self, reader: RecordReader, harmed: VectorState, damage: DamagedFileError) -> VectorState:
        """The state at the reader's revision, after a file of the state ``harmed`` proved damaged."""
        with self._lock:
            self._distrust(harmed.folder, damage)
            if self.state is not None and self.state.folder == harmed.folder:
                self.state = None
        return self.at(reader)

    def _distrust(self, folder: Path | None, damage: DamagedFileError) -> None:
        """Mark these files as damaged, so that they are never read again."""
        logger.warning("%s is rebuilt: %s", folder or self.kind, damage)
        self._distrusted.add(folder)

    def _updated(self, reader: RecordReader, earlier: VectorState | None, *, save: bool) -> VectorState:
        """Update the state in memory or on disk; rebuild after too many changes."""
        for known in self._known(reader, earlier):
            try:
                state = self._advance(known, reader)
                if not self._tuning.too_much(state.changes, len(state.rows)):
                    return state
                if not self._is_approximate(state.size):
                    return state.folded()
            except DamagedFileError as damage:
                self._distrust(known.folder, damage)
        return self._build(reader, save=save)

    def _known(self, reader: RecordReader, earlier: VectorState | None) -> Iterator[VectorState]:
        if earlier is not None and earlier.revision >= reader.floor:
            yield earlier
        loaded = self._load(reader)
        if loaded is not None:
            yield loaded

    def _advance(self, state: VectorState, reader: RecordReader) -> VectorState:
        """Add new rows and mask deleted ones."""
        if state.revision == reader.revision:
            return state
        rows, vectors, longest = self._read(reader, after=state.last_row)
        state = state.followed_by(
            revision=reader.revision,
            last_row=reader.last_row,
            gone=reader.gone_since(state.revision),
            new_rows=rows,
            new=vectors,
            longest=longest,
        )
        if self._field is None and state.size != reader.records:
            raise DamagedFileError(f"{state.size} of {reader.records} records are known")
        return state

    def _load(self, reader: RecordReader) -> VectorState | None:
        """The saved state, if it is undamaged and recent enough."""
        saved = self._saved(reader.connection)
        if saved is None or saved.folder in self._distrusted:
            return None
        if not reader.floor <= saved.revision <= reader.revision:
            return None
        try:
            return self._from_files(saved)
        except DamagedFileError as damage:
            self._distrust(saved.folder, damage)
        except (KeyError, TypeError, ValueError) as error:
            self._distrust(saved.folder, DamagedFileError(f"its stamp cannot be read ({error!r})"))
        return None

    def _from_files(self, saved: SavedIndex) -> VectorState | None:
        count = int(saved.about["count"])
        index = None
        if self._is_approximate(count):
            if saved.about["recall"] != self._tuning.recall:
                return None
            try:
                index = ApproximateIndex.from_bytes(saved.read(_INDEX))
            except RuntimeError as error:  # from another version of FAISS
                raise DamagedFileError(f"{_INDEX}: {error}") from error
        data = saved.read(_ROWS)
        checksums: Checksums = np.frombuffer(data, "<u4", offset=8 * count)
        return VectorState(
            revision=saved.revision,
            last_row=saved.last_row,
            rows=np.frombuffer(data, "<i8", count),
            vectors=VectorMatrix.from_file(saved.folder / _MATRIX, (count, self._dimension), checksums),
            longest=float(saved.about["longest"]),
            index=index,
            tail_rows=np.zeros(0, np.int64),
            tail=np.zeros((0, self._dimension), np.float32),
            ids=PackedIds.from_bytes(saved.read(_IDS), count) if self._field is None else None,
            folder=saved.folder,
        )

    def _build(self, reader: RecordReader, *, save: bool) -> VectorState:
        """Build from the records: in files if that pays and they can be written, otherwise in memory."""
        check_structure(reader.connection)
        if save and reader.records >= self._tuning.files_from:
            with self._files.draft(self._collection, self.kind) as folder:
                if folder is not None:
                    try:
                        return self._build_files(reader, folder)
                    except OSError as error:
                        logger.warning("%s: an index stays in memory only: %s", folder.parent, error)
        rows, vectors, longest = self._read(reader)
        return self._new_state(reader, rows, VectorMatrix(vectors), longest)

    def _build_files(self, reader: RecordReader, folder: Path) -> VectorState:
        """Build block by block, so that the vectors are never all in memory."""
        numbers, lengths = [np.zeros(0, np.int64)], [0.0]

        def vectors() -> Iterator[Floats]:
            for rows, part, longest in self._stream(reader):
                numbers.append(rows)
                lengths.append(longest)
                yield part

        checksums = write_vectors(folder / _MATRIX, self._dimension, vectors())
        rows, longest = np.concatenate(numbers), max(lengths)
        on_disk = VectorMatrix.from_file(folder / _MATRIX, (rows.size, self._dimension), checksums)
        state = self._new_state(reader, rows, on_disk, longest)
        written = {_ROWS: rows.astype("<i8").tobytes() + checksums.astype("<u4").tobytes()}
        if self._field is None:
            ids = PackedIds.pack(reader.ids())
            state = replace(state, ids=ids)
            written[_IDS] = ids.to_bytes()
        if state.index is not None:
            written[_INDEX] = state.index.to_bytes()
        for name, data in written.items():
            (folder / name).write_bytes(data)
        flush_to_disk(folder)
        about = {
            "count": rows.size,
            "longest": longest,
            "recall": None if state.index is None else self._tuning.recall,
        }
        return replace(state, folder=self._keep(folder, reader, about=about, sealed=list(written)))

    def _new_state(
        self, reader: RecordReader, rows: Rows, vectors: VectorMatrix, longest: float
    ) -> VectorState:
        if self._field is None and rows.size != reader.records:
            raise damaged(f"a record ({rows.size} of {reader.records} can be read)")
        index = None
        if self._is_approximate(rows.size):
            index = ApproximateIndex.build(vectors, recall=self._tuning.recall)
        return VectorState(
            revision=reader.revision,
            last_row=reader.last_row,
            rows=rows,
            vectors=vectors,
            longest=longest,
            index=index,
            tail_rows=np.zeros(0, np.int64),
            tail=np.zeros((0, self._dimension), np.float32),
        )

    def _is_approximate(self, count: int) -> bool:
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

    def _read(self, reader: RecordReader, *, after: int = 0) -> tuple[Rows, Floats, float]:
        """All of :meth:`_stream` at once."""
        parts = list(self._stream(reader, after=after))
        if not parts:
            return np.zeros(0, np.int64), np.zeros((0, self._dimension), np.float32), 0.0
        rows, vectors, lengths = zip(*parts, strict=True)
        return np.concatenate(rows), np.concatenate(vectors), max(lengths)

    def _stream(self, reader: RecordReader, *, after: int = 0) -> Iterator[tuple[Rows, Floats, float]]:
        """Rows, their vectors in the form that searches compare, and the largest vector length."""
        for rows, vectors in reader.vectors(self._field, self._dimension, after=after):
            if self._metric == "cosine":
                yield rows, unit_rows(vectors), 1.0
            else:
                lengths = np.sqrt(np.einsum("ij,ij->i", vectors, vectors, dtype=np.float64))
                yield rows, vectors, float(lengths.max())
