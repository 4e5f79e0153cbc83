"""Search over one vector field: an immutable main part, a tail of new rows, and a mask of deleted rows.

The main part is indexed once, in memory or in a file. Later records go to a tail that is compared exactly,
and rows that were deleted or replaced are masked. So results always match the store's revision, and a rebuild
can wait until a large share of the records has changed.

The file holds float32 numbers, little endian, row by row, and is memory-mapped. A CRC-32 of each block of
rows is kept in a sealed file; a search that reads a few rows reads and checks only their blocks.

Vectors are not searched inside SQLite. Its vector extensions need a Python that can load extensions, which
many builds cannot; NumPy and FAISS are available anyway.
"""

import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from dartboard.stores.ann import (
    ApproximateIndex,
    Floats,
    Mask,
    near_the_best,
    precise_scores,
    rounding_slack,
)
from dartboard.stores.embedded.checksums import damaged
from dartboard.stores.embedded.derived_index import DamagedFileError, Tuning, flush_to_disk
from dartboard.stores.embedded.record_reader import Rows
from dartboard.types import FloatArray, IntArray

_BLOCK_ROWS = 16
_FILTERS_KEPT = 8

Checksums = npt.NDArray[np.uint32]


class VectorMatrix:
    """Vectors, ``(n, d)`` float32; with ``checksums``, each block is verified on first use."""

    def __init__(self, matrix: Floats, checksums: Checksums | None = None) -> None:
        self._matrix = matrix
        self._checksums = np.zeros(0, np.uint32) if checksums is None else checksums
        self._sound = np.zeros(self._checksums.size, dtype=bool)
        self._all_sound = checksums is None

    @classmethod
    def from_file(cls, path: Path, shape: tuple[int, int], checksums: Checksums) -> "VectorMatrix":
        """Map what :func:`write_vectors` wrote; its size is checked now, its blocks on first use."""
        count, dimension = shape
        try:
            size, expected = path.stat().st_size, 4 * count * dimension
            if size != expected:
                raise DamagedFileError(f"{path.name} has {size} bytes, not {expected}")
            mapped = np.memmap(path, dtype="<f4", mode="r", shape=shape) if count else np.zeros(shape, "<f4")
        except (OSError, ValueError) as error:
            raise DamagedFileError(f"{path.name}: {error}") from error
        if checksums.size != -(-count // _BLOCK_ROWS):
            raise DamagedFileError(f"{path.name} has {checksums.size} checksums for {count} rows")
        return cls(np.asarray(mapped), checksums)

    @property
    def shape(self) -> tuple[int, int]:
        """``(n, d)``: rows and dimensions."""
        return self._matrix.shape[0], self._matrix.shape[1]

    def take(self, positions: IntArray) -> Floats:
        """These rows."""
        if not self._all_sound:
            blocks = positions // _BLOCK_ROWS
            if not self._sound[blocks].all():
                self._check(np.unique(blocks))
        return self._matrix[positions]

    def blocks(self, size: int) -> Iterator[Floats]:
        """All rows in order, ``size`` at a time."""
        for start in range(0, len(self._matrix), size):
            stop = min(start + size, len(self._matrix))
            if not self._all_sound:
                self._check(np.arange(start // _BLOCK_ROWS, -(-stop // _BLOCK_ROWS)))
            yield self._matrix[start:stop]

    def whole(self) -> Floats:
        """All rows."""
        if not self._all_sound:
            self._check(np.arange(self._sound.size))
            self._all_sound = True
        return self._matrix

    def _check(self, blocks: IntArray) -> None:
        for block in blocks[~self._sound[blocks]].tolist():
            part = self._matrix[block * _BLOCK_ROWS : (block + 1) * _BLOCK_ROWS]
            if zlib.crc32(part.data) != self._checksums[block]:
                raise DamagedFileError(f"block {block} of the vectors does not match its checksum")
            self._sound[block] = True


def write_vectors(path: Path, dimension: int, parts: Iterable[Floats]) -> Checksums:
    """Write vectors from parts of any size; returns the checksums of the blocks."""
    checksums: list[int] = []
    block, rest = 4 * dimension * _BLOCK_ROWS, b""
    with path.open("wb") as stream:
        for vectors in parts:
            data = rest + np.ascontiguousarray(vectors, dtype="<f4").tobytes()
            whole = len(data) - len(data) % block
            view = memoryview(data)
            checksums += [zlib.crc32(view[start : start + block]) for start in range(0, whole, block)]
            stream.write(view[:whole])
            rest = data[whole:]
        if rest:
            checksums.append(zlib.crc32(rest))
            stream.write(rest)
    flush_to_disk(path)
    return np.array(checksums, dtype=np.uint32)


class PackedIds:
    """Ids by position in two arrays, so that a million of them load at once."""

    def __init__(self, ends: npt.NDArray[np.int64], text: bytes) -> None:
        self._ends = ends
        self._text = text

    @classmethod
    def pack(cls, ids: Iterable[str]) -> "PackedIds":
        """Pack these ids by position."""
        encoded = [id.encode() for id in ids]
        ends = np.cumsum(np.fromiter(map(len, encoded), np.int64, len(encoded)), dtype=np.int64)
        return cls(ends, b"".join(encoded))

    def of(self, positions: IntArray) -> list[str]:
        """The ids at these positions."""
        stops = self._ends[positions].tolist()
        starts = np.where(positions > 0, self._ends[positions - 1], 0).tolist()
        return [self._text[start:stop].decode() for start, stop in zip(starts, stops, strict=True)]

    def to_bytes(self) -> bytes:
        """Serialise for :meth:`from_bytes`."""
        return self._ends.astype("<i8").tobytes() + self._text

    @classmethod
    def from_bytes(cls, data: bytes, count: int) -> "PackedIds":
        """Load ``count`` ids that :meth:`to_bytes` wrote."""
        return cls(np.frombuffer(data, "<i8", count), data[8 * count :])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class VectorState:
    """Vectors at one revision. ``rows`` are sorted; ``longest`` is the largest vector length."""

    revision: int
    last_row: int
    rows: Rows
    vectors: VectorMatrix
    longest: float
    index: ApproximateIndex | None = None
    alive: Mask | None = None
    tail_rows: Rows
    tail: Floats
    ids: PackedIds | None = None
    """Ids of the main part, if available."""
    filters: dict[int, tuple[Rows, IntArray]] = field(default_factory=dict)
    """Cache: rows of filters and their positions in the main part."""
    folder: Path | None = None
    """Folder of the main part's derived files, if the store lists it."""

    @property
    def dead(self) -> int:
        """How many rows of the main part are deleted."""
        return 0 if self.alive is None else int(self.alive.size - np.count_nonzero(self.alive))

    @property
    def size(self) -> int:
        """How many vectors a search compares."""
        return int(self.rows.size) - self.dead + len(self.tail_rows)

    @property
    def changes(self) -> int:
        """How many changes are not in the main part."""
        return self.dead + len(self.tail_rows)

    def followed_by(
        self, *, revision: int, last_row: int, gone: Rows, new_rows: Rows, new: Floats, longest: float
    ) -> "VectorState":
        """The state at a later revision."""
        alive = self.alive
        doomed = positions_of(self.rows, gone)
        if doomed.size:
            alive = np.ones(self.rows.size, bool) if alive is None else alive.copy()
            alive[doomed] = False
        kept = ~np.isin(self.tail_rows, gone)
        return replace(
            self,
            revision=revision,
            last_row=last_row,
            alive=alive,
            tail_rows=np.concatenate([self.tail_rows[kept], new_rows]),
            tail=np.concatenate([self.tail[kept], new]),
            longest=max(self.longest, longest),
        )

    def folded(self) -> "VectorState":
        """The same state without a tail, in memory and without an index."""
        main = self.vectors.whole()
        rows = self.rows
        if self.alive is not None:
            main, rows = main[self.alive], rows[self.alive]
        return replace(
            self,
            rows=np.concatenate([rows, self.tail_rows]),
            vectors=VectorMatrix(np.concatenate([main, self.tail])),
            index=None,
            alive=None,
            filters={},
            tail_rows=self.tail_rows[:0],
            tail=self.tail[:0],
            ids=None,
            folder=None,
        )

    def search(
        self, query: FloatArray, k: int, allowed: Rows | None, *, exact: bool, tuning: Tuning
    ) -> tuple[Rows, Floats]:
        """Rows and scores that include the ``k`` best, unsorted.

        Args:
            query: ``(d,)`` float32, in the form that the field compares.
            k: How many are wanted.
            allowed: The rows that may be returned; None for all.
            exact: Compare every row, even if there is an index.
            tuning: Up to how many allowed rows are compared exactly.
        """
        slack = rounding_slack(query.size, query, self.longest)
        main = self._search_main(query, k, allowed, slack, exact, tuning)
        rows, vectors = self.rows[main], self.vectors.take(main)
        if self.tail_rows.size:
            newer = slice(None) if allowed is None else positions_of(self.tail_rows, allowed)
            best = near_the_best(self.tail[newer] @ query, k, slack)
            rows = np.concatenate([rows, self.tail_rows[newer][best]])
            vectors = np.concatenate([vectors, self.tail[newer][best]])
        best = near_the_best(vectors @ query, k, slack)
        return rows[best], precise_scores(vectors[best], query)

    def take(self, rows: Rows) -> Floats:
        """The vectors of existing rows, in the given order."""
        if not self.tail_rows.size:
            return self.vectors.take(_positions_of_all(self.rows, rows))
        newer = rows > (self.rows[-1] if self.rows.size else -1)
        vectors = np.empty((rows.size, self.tail.shape[1]), np.float32)
        vectors[~newer] = self.vectors.take(_positions_of_all(self.rows, rows[~newer]))
        vectors[newer] = self.tail[_positions_of_all(self.tail_rows, rows[newer])]
        return vectors

    def ids_of(self, rows: list[int]) -> dict[int, str]:
        """The known ids of rows."""
        if self.ids is None:
            return {}
        at = positions_of(self.rows, np.array(rows, dtype=np.int64))
        return dict(zip(self.rows[at].tolist(), self.ids.of(at), strict=True))

    def describe(self) -> dict[str, Any]:
        """Kind and state of the index, for statistics."""
        kind: dict[str, Any] = {"kind": "exact"} if self.index is None else self.index.describe()
        return {**kind, "indexed": int(self.rows.size), "newer": len(self.tail_rows), "deleted": self.dead}

    def _search_main(
        self, query: FloatArray, k: int, allowed: Rows | None, slack: float, exact: bool, tuning: Tuning
    ) -> IntArray:
        """Positions in the main part that include its ``k`` best."""
        places = None if allowed is None else self._places(allowed)
        if places is None and self.alive is not None:
            places = np.flatnonzero(self.alive)
        few = allowed is not None and places is not None and places.size <= tuning.compare_up_to
        if self.index is not None and not exact and not few:
            return self._approximate(self.index, query, k, places)
        if places is None:
            return near_the_best(self.vectors.whole() @ query, k, slack)
        if 3 * places.size > self.rows.size:  # one product over all rows is faster than gathering these
            scores = (self.vectors.whole() @ query)[places]
        else:
            scores = self.vectors.take(places) @ query
        return places[near_the_best(scores, k, slack)]

    def _approximate(
        self, index: ApproximateIndex, query: FloatArray, k: int, places: IntArray | None
    ) -> IntArray:
        """Scan more groups until enough are found; with a filter, start with more groups."""
        mask, matching, wider = None, self.rows.size, 1
        if places is not None:
            mask = np.zeros(self.rows.size, bool)
            mask[places] = True
            matching = places.size
            wider = 1 if 10 * matching > 9 * self.rows.size else 2
        while True:
            found = index.search(query, k, mask, wider=wider)
            if found.size >= min(k, matching) or index.looks_everywhere(wider):
                return found
            wider *= 4

    def _places(self, allowed: Rows) -> IntArray:
        """Positions of a filter's rows in the main part; cached for the last few filters.

        The filter cache returns the same array for the same filter, so its ``id()`` is the key.
        """
        known = self.filters.get(id(allowed))
        if known is None or known[0] is not allowed:
            places = positions_of(self.rows, allowed)
            if len(self.filters) >= _FILTERS_KEPT:
                self.filters.clear()
            known = self.filters[id(allowed)] = allowed, places  # the reference keeps the id() unique
        return known[1]


def _positions_of_all(rows: Rows, wanted: Rows) -> IntArray:
    """Positions of all wanted rows in sorted rows; a missing row means damage."""
    at = np.searchsorted(rows, wanted)
    known = at < rows.size
    known[known] = rows[at[known]] == wanted[known]
    if not known.all():
        raise damaged(f"the vector of row {wanted[~known][0]}, which is missing,")
    return at


def positions_of(rows: Rows, wanted: Rows) -> IntArray:
    """Positions of the wanted rows in sorted rows; missing rows are skipped."""
    if not rows.size or not wanted.size:
        return np.zeros(0, np.intp)
    first, last = rows[0], rows[-1]
    if wanted.size > rows.size // 50 and last - first < 8 * rows.size:  # a mask is faster than a lookup
        marks = np.zeros(last - first + 1, bool)
        marks[wanted[(wanted >= first) & (wanted <= last)] - first] = True
        return np.flatnonzero(marks[rows - first])
    at = np.minimum(np.searchsorted(rows, wanted), rows.size - 1)
    found: IntArray = at[rows[at] == wanted]
    return found
