"""Vectors in a file, mapped into memory and checked block by block as they are first touched.

The file is nothing but float32 numbers, little endian, row by row. A CRC-32 for each block of rows is kept
elsewhere, under a seal; a search that touches a few rows reads and checks a few blocks only.
"""

import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

import numpy as np
import numpy.typing as npt

from dartboard.stores.ann import Floats
from dartboard.stores.embedded.derived_files import DamagedFileError, flush_to_disk
from dartboard.types import IntArray

ROWS_A_BLOCK = 16

Checksums = npt.NDArray[np.uint32]


class PackedIds:
    """Ids by position in two arrays, so that a million of them are loaded at once."""

    def __init__(self, ends: npt.NDArray[np.int64], text: bytes) -> None:
        self._ends = ends
        self._text = text

    @classmethod
    def pack(cls, ids: Iterable[str]) -> "PackedIds":
        """These ids, by position."""
        encoded = [id.encode() for id in ids]
        ends = np.cumsum(np.fromiter(map(len, encoded), np.int64, len(encoded)), dtype=np.int64)
        return cls(ends, b"".join(encoded))

    def of(self, positions: IntArray) -> list[str]:
        """The ids at these positions."""
        stops = self._ends[positions].tolist()
        starts = np.where(positions > 0, self._ends[positions - 1], 0).tolist()
        return [self._text[start:stop].decode() for start, stop in zip(starts, stops, strict=True)]

    def to_bytes(self) -> bytes:
        """What :meth:`from_bytes` reads."""
        return self._ends.astype("<i8").tobytes() + self._text

    @classmethod
    def from_bytes(cls, data: bytes, count: int) -> "PackedIds":
        """The ids that :meth:`to_bytes` wrote, so many."""
        return cls(np.frombuffer(data, "<i8", count), data[8 * count :])


class MemoryRows:
    """Vectors in memory, ``(n, d)`` float32."""

    def __init__(self, matrix: Floats) -> None:
        self._matrix = matrix

    @property
    def shape(self) -> tuple[int, int]:
        """How many rows, of how many numbers."""
        return self._matrix.shape[0], self._matrix.shape[1]

    def take(self, positions: IntArray) -> Floats:
        """These rows."""
        return self._matrix[positions]

    def blocks(self, size: int) -> Iterator[Floats]:
        """All rows in order, so many at a time."""
        for start in range(0, len(self._matrix), size):
            yield self._matrix[start : start + size]

    def whole(self) -> Floats:
        """All rows."""
        return self._matrix


class FileRows:
    """Vectors in a file that another process may have harmed: every block is checked once."""

    def __init__(self, path: Path, shape: tuple[int, int], checksums: Checksums) -> None:
        count, dimension = shape
        try:
            size, expected = path.stat().st_size, 4 * count * dimension
            if size != expected:
                raise DamagedFileError(f"{path.name} has {size} bytes, not {expected}")
            mapped = np.memmap(path, dtype="<f4", mode="r", shape=shape) if count else np.zeros(shape, "<f4")
            self._matrix: Floats = np.asarray(mapped)
        except (OSError, ValueError) as error:
            raise DamagedFileError(f"{path.name}: {error}") from error
        if checksums.size != -(-count // ROWS_A_BLOCK):
            raise DamagedFileError(f"{path.name} has {checksums.size} checksums for {count} rows")
        self._checksums = checksums
        self._sound = np.zeros(checksums.size, dtype=bool)
        self._all_sound = False

    @property
    def shape(self) -> tuple[int, int]:
        """How many rows, of how many numbers."""
        return self._matrix.shape[0], self._matrix.shape[1]

    def take(self, positions: IntArray) -> Floats:
        """These rows, checked."""
        if not self._all_sound:
            blocks = positions // ROWS_A_BLOCK
            if not self._sound[blocks].all():
                self._check(np.unique(blocks))
        return self._matrix[positions]

    def blocks(self, size: int) -> Iterator[Floats]:
        """All rows in order, so many at a time, checked."""
        for start in range(0, self.shape[0], size):
            stop = min(start + size, self.shape[0])
            self._check(np.arange(start // ROWS_A_BLOCK, -(-stop // ROWS_A_BLOCK)))
            yield self._matrix[start:stop]

    def whole(self) -> Floats:
        """All rows, checked."""
        if not self._all_sound:
            self._check(np.arange(self._sound.size))
            self._all_sound = True
        return self._matrix

    def _check(self, blocks: IntArray) -> None:
        for block in blocks[~self._sound[blocks]].tolist():
            part = self._matrix[block * ROWS_A_BLOCK : (block + 1) * ROWS_A_BLOCK]
            if zlib.crc32(part.data) != self._checksums[block]:
                raise DamagedFileError(f"block {block} of the vectors does not match its checksum")
            self._sound[block] = True


class RowWriter:
    """Writes vectors as they come, whatever the size of the parts, and counts the blocks' checksums."""

    def __init__(self, path: Path, dimension: int) -> None:
        self._path = path
        self._dimension = dimension
        self._stream: BinaryIO = path.open("wb")
        self._checksums: list[int] = []
        self._rest = b""
        self._count = 0

    def add(self, vectors: Floats) -> None:
        """Append rows."""
        data = self._rest + np.ascontiguousarray(vectors, dtype="<f4").tobytes()
        self._count += len(vectors)
        block = 4 * self._dimension * ROWS_A_BLOCK
        whole = len(data) - len(data) % block
        view = memoryview(data)
        self._checksums += [zlib.crc32(view[start : start + block]) for start in range(0, whole, block)]
        self._stream.write(view[:whole])
        self._rest = data[whole:]

    def finish(self) -> FileRows:
        """Write the rest to disk; the rows as they can be read now."""
        if self._rest:
            self._checksums.append(zlib.crc32(self._rest))
            self._stream.write(self._rest)
        self._stream.close()
        flush_to_disk(self._path)
        return FileRows(self._path, (self._count, self._dimension), self.checksums)

    def abandon(self) -> None:
        """Close the file; what is in it is of no use."""
        self._stream.close()

    @property
    def checksums(self) -> Checksums:
        """Of the blocks so far."""
        return np.array(self._checksums, dtype=np.uint32)
