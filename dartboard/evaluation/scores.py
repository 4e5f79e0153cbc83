"""What an evaluation gives: one number a query and measure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from dartboard.errors import InvalidInputError
from dartboard.types import FloatArray


@dataclass(frozen=True, slots=True, kw_only=True)
class Scores:
    """``values[measure]`` is ``(Q,)`` along ``query_ids``."""

    query_ids: Sequence[str]
    values: Mapping[str, FloatArray]

    @property
    def means(self) -> dict[str, float]:
        """The mean of each measure over the queries; 0 where there are none."""
        return {name: float(column.mean()) if len(column) else 0.0 for name, column in self.values.items()}

    def of(self, query_id: str) -> dict[str, float]:
        """All measures of one query."""
        place = list(self.query_ids).index(query_id)
        return {name: float(column[place]) for name, column in self.values.items()}

    @classmethod
    def mean_of(cls, several: Sequence[Self]) -> Self:
        """Query by query the mean of several runs, such as the seeds of a random one."""
        first = several[0]
        if any(list(one.query_ids) != list(first.query_ids) for one in several):
            raise InvalidInputError("scores of different queries cannot be averaged")
        return cls(
            query_ids=first.query_ids,
            values={name: np.mean([one.values[name] for one in several], axis=0) for name in first.values},
        )
