"""Compressed token vectors: 8, 4 or 2 bits per number, and one 16-bit scale per token.

    8 bits:      x ≈ scale · c,  c an integer in [-127, 127]
    4, 2 bits:   R x ≈ scale · level[c],  R a random rotation

A rotation makes the numbers of any unit vector of d dimensions look like samples of N(0, 1/d). The optimal
levels for such samples are known (Lloyd, 1957; Max, 1960), so nothing is trained and no centroids are stored:
seed and dimension are enough. Rotations preserve products, so only the query is rotated for a comparison. The
scale ``|x|² / (R x · level[c])`` makes products unbiased, as in RaBitQ (Gao & Long, 2024).

A token of d numbers takes ``d · bits / 8 + 2`` bytes.
"""

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from dartboard.errors import ConfigError, StoreFormatError

Bits = Literal[8, 4, 2]
Floats = npt.NDArray[np.float32]

_HEADER = struct.Struct("<4sBBHI")  # magic, version, bits, dimension, tokens
_MAGIC, _VERSION = b"dtok", 1

# Half of the symmetric levels for N(0, 1), from Lloyd's iteration at convergence.
_HALF_LEVELS: dict[int, tuple[float, ...]] = {
    4: (0.12840, 0.38805, 0.65676, 0.94234, 1.25623, 1.61805, 2.06902, 2.73259),
    2: (0.45278, 1.51042),
}


class Decoded(NamedTuple):
    """Stacked tokens ``(t, d)`` of several passages, their scales ``(t,)``, and the tokens per passage."""

    codes: Floats
    scales: Floats
    counts: npt.NDArray[np.intp]

    def similarities(self, asked: Floats) -> Floats:
        """``(q, t)``: a query's tokens with all of these tokens."""
        found: Floats = asked @ self.codes.T
        found *= self.scales
        return found

    def max_sims(self, asked: Floats) -> npt.NDArray[np.float64]:
        """``(n,)``: for each passage, the sum over query tokens of the best similarity."""
        starts = np.cumsum(self.counts) - self.counts
        nearest = np.maximum.reduceat(self.similarities(asked), starts, axis=1)
        total: npt.NDArray[np.float64] = nearest.sum(axis=0, dtype=np.float64)
        return total


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenCodec:
    """Encodes token vectors as bytes and back; ``seed`` is that of the rotation."""

    bits: Bits = 4
    seed: int = 0

    def __post_init__(self) -> None:
        if self.bits not in (8, 4, 2):
            raise ConfigError(f"bits must be 8, 4 or 2, got {self.bits!r}")

    def bytes_per_token(self, dimension: int) -> int:
        """Size of a token, including its scale."""
        return dimension * self.bits // 8 + 2

    def encode(self, tokens: Floats) -> bytes:
        """``(t, d)`` float32 as bytes."""
        count, dimension = tokens.shape
        if (dimension * self.bits) % 8:
            raise ConfigError(f"{self.bits} bits need a dimension that fills bytes, got {dimension}")
        codes, scales = self._eight(tokens) if self.bits == 8 else self._few(tokens)
        header = _HEADER.pack(_MAGIC, _VERSION, self.bits, dimension, count)
        return header + scales.astype("<f2").tobytes() + codes.tobytes()

    def asked(self, query: Floats) -> Floats:
        """A query's vectors, ``(t, d)``, rotated for comparison with the codes."""
        if self.bits == 8:
            return query
        turned: Floats = query @ rotation(query.shape[1], self.seed).T
        return turned

    def decode(self, passages: Sequence[bytes]) -> "Decoded":
        """The vectors of several passages, for comparison with :meth:`asked`."""
        sizes = [self._read_header(data) for data in passages]
        if len({dimension for _, dimension in sizes}) > 1:
            raise StoreFormatError("token codes are of several dimensions: index all passages with one model")
        counts, dimension = np.array([count for count, _ in sizes]), sizes[0][1]
        starts = _HEADER.size + 2 * counts
        scales = b"".join(data[_HEADER.size : start] for data, start in zip(passages, starts, strict=True))
        packed = b"".join(data[start:] for data, start in zip(passages, starts, strict=True))
        if self.bits == 8:
            codes = np.frombuffer(packed, np.int8).astype(np.float32)
        else:
            codes = _unpacking(self.bits)[np.frombuffer(packed, np.uint8)].view(np.float32)
        return Decoded(codes.reshape(-1, dimension), np.frombuffer(scales, "<f2").astype(np.float32), counts)

    def vectors(self, data: bytes) -> Floats:
        """The vectors in their original space, ``(t, d)``: for inspection, not for searching."""
        codes, scales, _ = self.decode([data])
        scaled: Floats = codes * scales[:, None]
        return scaled if self.bits == 8 else scaled @ rotation(scaled.shape[1], self.seed)

    def _eight(self, tokens: Floats) -> tuple[npt.NDArray[np.int8], Floats]:
        largest = np.maximum(np.abs(tokens).max(axis=1), 1e-4)
        step = np.nextafter((largest / 127).astype(np.float16), np.float16(np.inf)).astype(np.float32)
        return np.rint(tokens / step[:, None]).astype(np.int8), step

    def _few(self, tokens: Floats) -> tuple[npt.NDArray[np.uint8], Floats]:
        levels = _levels(self.bits)
        turned = tokens @ rotation(tokens.shape[1], self.seed).T
        deviation = np.sqrt(np.mean(turned**2, axis=1, keepdims=True))
        borders = (levels[1:] + levels[:-1]) / 2
        codes = np.searchsorted(borders, turned / np.maximum(deviation, 1e-12)).astype(np.uint8)
        made = levels[codes]
        scales = np.einsum("ij,ij->i", turned, turned) / np.einsum("ij,ij->i", turned, made)
        together = 8 // self.bits
        grouped = codes.reshape(len(tokens), -1, together)
        shifts = (np.arange(together) * self.bits).astype(np.uint8)
        return np.bitwise_or.reduce(grouped << shifts, axis=2), scales

    def _read_header(self, data: bytes) -> tuple[int, int]:
        try:
            magic, version, bits, dimension, count = _HEADER.unpack_from(data)
        except struct.error:
            raise StoreFormatError("token codes are truncated: index the passage again") from None
        if magic != _MAGIC or version != _VERSION:
            raise StoreFormatError("these bytes are not token codes of this version: index the passage again")
        if bits != self.bits:
            raise StoreFormatError(
                f"token codes have {bits} bits where {self.bits} are expected: index again, or use these"
            )
        if not count or len(data) != _HEADER.size + count * self.bytes_per_token(dimension):
            raise StoreFormatError("token codes have the wrong length: index the passage again")
        return count, dimension


@lru_cache(maxsize=8)
def rotation(dimension: int, seed: int) -> Floats:
    """A random orthogonal matrix, ``(d, d)`` float32, with fixed signs, so that it is the same everywhere."""
    drawn = np.random.default_rng([seed, dimension]).standard_normal((dimension, dimension))
    turned, triangle = np.linalg.qr(drawn)
    made: Floats = (turned * np.sign(np.diag(triangle))).astype(np.float32)
    made.flags.writeable = False
    return made


@lru_cache(maxsize=2)
def _levels(bits: int) -> Floats:
    half = np.array(_HALF_LEVELS[bits], dtype=np.float32)
    return np.concatenate([-half[::-1], half])


@lru_cache(maxsize=2)
def _unpacking(bits: int) -> npt.NDArray[Any]:
    """``(256,)``: the two or four levels of each byte, packed into one wide number."""
    together = 8 // bits
    every = np.arange(256)[:, None] >> (np.arange(together) * bits)
    levels: Floats = _levels(bits)[every & (2**bits - 1)]
    return levels.view(np.complex64 if together == 2 else np.complex128)[:, 0]
