"""What the chunks are like, apart from any judgement: vectors and clusters."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Self

import numpy as np

from dartboard.errors import InvalidInputError
from dartboard.selection.kernels import unit_rows
from dartboard.types import Dataset, FloatArray


@dataclass(frozen=True, kw_only=True)
class Content:
    """Vectors ``(n, d)`` with each chunk's row, and the cluster of each chunk that has one."""

    vectors: FloatArray
    row_of: Mapping[str, int]
    clusters: Mapping[str, Hashable] = field(default_factory=dict)

    @classmethod
    def of(cls, dataset: Dataset) -> Self:
        """The content of a data set."""
        labels = ((chunk.id, chunk.metadata.get("cluster")) for chunk in dataset.chunks)
        return cls(
            vectors=np.stack([chunk.embedding for chunk in dataset.chunks]),
            row_of={chunk.id: row for row, chunk in enumerate(dataset.chunks)},
            clusters={chunk_id: label for chunk_id, label in labels if label is not None},
        )

    def unit_vectors(self, chunk_ids: Sequence[str]) -> FloatArray:
        """``(n, d)`` float64 of length 1."""
        try:
            rows = [self.row_of[chunk_id] for chunk_id in chunk_ids]
        except KeyError as error:
            raise InvalidInputError(
                f"the run names chunk {error.args[0]!r}, which the data set lacks"
            ) from None
        return unit_rows(self.vectors[rows], np.float64)
