"""One vector for many token vectors, with products that approximate MaxSim (MUVERA, Dhulipala et al., 2024).

Random planes through the origin cut space into ``2 ** planes`` cells. For each cell, a query's encoding is
the *sum* of its tokens there, and a passage's the *mean* of its tokens. Their product, cell by cell, pairs
each query token with the mean of the nearby passage tokens, which approximates the best of them. A cell
without a token of the passage gets the passage token whose cell differs in the fewest planes. Several
partitions (``repetitions``) are averaged, and the result is folded to ``dimension`` numbers with random signs
and places.

All randomness comes from ``seed``: the same settings give the same vectors everywhere.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dartboard.errors import ConfigError

Floats = npt.NDArray[np.float32]
Cells = npt.NDArray[np.intp]


class _Draws(NamedTuple):
    """``planes`` (r · p, d); ``signs`` and ``places`` (r · cells · d,)."""

    planes: Floats
    signs: Floats
    places: Cells


@dataclass(frozen=True, slots=True, kw_only=True)
class FixedDimensional:
    """Settings of the encoding; records and queries must use the same."""

    dimension: int = 2048
    repetitions: int = 8
    planes: int = 2
    seed: int = 0

    def __post_init__(self) -> None:
        for name, most in (("dimension", 65536), ("repetitions", 1000), ("planes", 10)):
            if not 1 <= getattr(self, name) <= most:
                raise ConfigError(f"{name} must be in [1, {most}], got {getattr(self, name)}")

    def query(self, tokens: Floats) -> Floats:
        """``(dimension,)``: the sum of a query's tokens, ``(t, d)``, cell by cell."""
        sums, _ = self._sums(tokens, self._cells(tokens))
        return self._folded(sums, tokens.shape[1])

    def passage(self, tokens: Floats) -> Floats:
        """``(dimension,)``: the mean of a passage's tokens, ``(t, d)``, cell by cell."""
        cells = self._cells(tokens)
        sums, held = self._sums(tokens, cells)
        means = sums / np.maximum(held, 1).astype(np.float32)[:, :, None]
        for repetition, empty in zip(*np.nonzero(held == 0), strict=True):
            apart = _differing(self.planes)[empty, cells[repetition]]
            means[repetition, empty] = tokens[apart.argmin()]
        return self._folded(means, tokens.shape[1])

    def _cells(self, tokens: Floats) -> Cells:
        """``(r, t)``: the cell of each token in each partition."""
        above = tokens @ _drawn(self, tokens.shape[1]).planes.T > 0
        sides = above.reshape(len(tokens), self.repetitions, self.planes)
        cells: Cells = (sides * (1 << np.arange(self.planes))).sum(axis=2).T
        return cells

    def _sums(self, tokens: Floats, cells: Cells) -> tuple[Floats, Cells]:
        """The sum of each cell's tokens, ``(r, cells, d)``, and their number, ``(r, cells)``."""
        inside = cells[:, None, :] == np.arange(2**self.planes)[:, None]
        return inside.astype(np.float32) @ tokens, inside.sum(axis=2)

    def _folded(self, blocks: Floats, dimension: int) -> Floats:
        draws = _drawn(self, dimension)
        flat = blocks.reshape(-1) * draws.signs
        folded = np.bincount(draws.places, weights=flat, minlength=self.dimension)
        made: Floats = (folded / np.sqrt(self.repetitions)).astype(np.float32)
        return made


@lru_cache(maxsize=8)
def _drawn(settings: FixedDimensional, dimension: int) -> _Draws:
    source = np.random.default_rng([settings.seed, dimension])
    planes = source.standard_normal((settings.repetitions * settings.planes, dimension)).astype(np.float32)
    width = settings.repetitions * 2**settings.planes * dimension
    signs = source.choice(np.array([-1, 1], np.float32), width)
    return _Draws(planes=planes, signs=signs, places=source.integers(0, settings.dimension, width))


@lru_cache(maxsize=8)
def _differing(planes: int) -> Cells:
    """``(cells, cells)``: how many planes separate two cells."""
    cells = range(2**planes)
    return np.array([[(a ^ b).bit_count() for b in cells] for a in cells])
