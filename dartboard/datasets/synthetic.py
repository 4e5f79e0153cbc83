"""What synthetic data sets are made of: a configuration, directions to build vectors from, and words."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dartboard.errors import ConfigError
from dartboard.types import Dataset

Directions = npt.NDArray[np.float64]

WITHIN_BAND = 0.1
BETWEEN_BAND = 0.2
"""How far cosines spread: .8 to .9 within a cluster and .2 to .4 between clusters, by default."""

_SYLLABLES = [consonant + vowel for consonant in "bdfgklmnprstvz" for vowel in "aeiou"]


@dataclass(frozen=True, slots=True)
class SyntheticDatasetConfig:
    """How large a synthetic data set is and how its vectors lie.

    ============================  ====================================================================
    ``num_clusters``              clusters; in the query-focused set, queries
    ``docs_per_cluster``          chunks in each
    ``intra_cluster_similarity``  clustered: the highest cosine of two chunks in a cluster; the lowest
                                  is .1 less. Query-focused: the lowest cosine of two near-duplicates
    ``cluster_separation``        clustered: ``1 - cluster_separation`` is the lowest cosine of chunks
                                  in different clusters; the highest is .2 more. Query-focused: the
                                  highest cosine of a query with an irrelevant chunk is .2 more than
                                  ``1 - cluster_separation``
    ``embed_dim``                 numbers in a vector
    ``random_seed``               the same seed gives the same data set
    ============================  ====================================================================

    The defaults give the specification's bands: .8 to .9 within, .2 to .4 between.
    """

    num_clusters: int = 5
    docs_per_cluster: int = 20
    cluster_separation: float = 0.8
    intra_cluster_similarity: float = 0.9
    embed_dim: int = 384
    random_seed: int = 42

    def __post_init__(self) -> None:
        for name in ("num_clusters", "docs_per_cluster", "embed_dim"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name} must be >= 1, got {getattr(self, name)}")
        if not BETWEEN_BAND <= self.cluster_separation <= 1:
            raise ConfigError(
                f"cluster_separation must be in [{BETWEEN_BAND}, 1], got {self.cluster_separation}"
            )
        if not WITHIN_BAND < self.intra_cluster_similarity < 1:
            raise ConfigError(
                f"intra_cluster_similarity must be between {WITHIN_BAND} and 1, "
                f"got {self.intra_cluster_similarity}"
            )
        if self.between[1] >= self.within[0]:
            raise ConfigError(
                f"chunks of different clusters would be as alike as those of one (cosines up to "
                f"{self.between[1]:.2f} between, from {self.within[0]:.2f} within): raise "
                "cluster_separation or intra_cluster_similarity"
            )

    @property
    def within(self) -> tuple[float, float]:
        """Lowest and highest cosine of two chunks in a cluster."""
        return self.intra_cluster_similarity - WITHIN_BAND, self.intra_cluster_similarity

    @property
    def between(self) -> tuple[float, float]:
        """Lowest and highest cosine of two chunks in different clusters."""
        return 1 - self.cluster_separation, 1 - self.cluster_separation + BETWEEN_BAND


def directions(count: int, dim: int, rng: np.random.Generator) -> Directions:
    """Unit vectors, ``(count, dim)``: at right angles where the dimension has room, else random."""
    drawn = rng.standard_normal((count, dim))
    if count <= dim:
        orthogonal: Directions = np.linalg.qr(drawn.T)[0].T
        return orthogonal
    unit: Directions = drawn / np.linalg.norm(drawn, axis=1, keepdims=True)
    return unit


class Words:
    """Invented words, each given out once: texts that share them are about the same."""

    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng
        self._used: set[str] = set()

    def draw(self, count: int) -> list[str]:
        """Words that were not given out before."""
        drawn: list[str] = []
        while len(drawn) < count:
            word = self._word()
            if word not in self._used:
                self._used.add(word)
                drawn.append(word)
        return drawn

    def sentence(self, vocabulary: list[str], length: int) -> str:
        """A sentence of ``length`` words of a vocabulary, which may repeat."""
        chosen = self._rng.choice(vocabulary, length)
        return " ".join(chosen).capitalize() + "."

    def _word(self) -> str:
        return "".join(_SYLLABLES[place] for place in self._rng.integers(len(_SYLLABLES), size=3))


def has_made_up_texts(dataset: Dataset) -> bool:
    """Whether the words of a data set mean nothing: its vectors were made, and not by a model."""
    return dataset.metadata.get("type") == "synthetic" and "model" not in dataset.metadata
