"""Vectors in memory or in a file, and the file's checksums.

The file is nothing but float32 numbers, little endian, row by row, and is mapped into memory. A CRC-32 for
each block of rows is kept elsewhere, under a seal; a search that touches a few rows reads and checks a few
blocks only.
"""

import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt

from dartboard.stores.ann import Floats
from dartboard.stores.embedded.derived_files import DamagedFileError, flush_to_disk
from dartboard.types import IntArray

_BLOCK_ROWS = 16

Checksums = npt.NDArray[np.uint32]


class VectorMatrix:
    """Vectors, ``(n, d)`` float32; with ``checksums``, each block is checked when it is first touched."""

    def __init__(self, matrix: Floats, checksums: Checksums | None = None) -> None:
        self._matrix = matrix
        self._checksums = np.zeros(0, np.uint32) if checksums is None else checksums
        self._sound = np.zeros(self._checksums.size, dtype=bool)
        self._all_sound = checksums is None

    @classmethod
    def from_file(cls, path: Path, shape: tuple[int, int], checksums: Checksums) -> "VectorMatrix":
        """What :func:`write_vectors` wrote; another process may have harmed it since."""
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
        """How many rows, of how many numbers."""
        return self._matrix.shape[0], self._matrix.shape[1]

    def take(self, positions: IntArray) -> Floats:
        """These rows."""
        if not self._all_sound:
            blocks = positions // _BLOCK_ROWS
            if not self._sound[blocks].all():
                self._check(np.unique(blocks))
        return self._matrix[positions]

    def blocks(self, size: int) -> Iterator[Floats]:
        """All rows in order, so many at a time."""
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
    """Write vectors as they come, whatever the size of the parts; the checksums of the blocks."""
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
