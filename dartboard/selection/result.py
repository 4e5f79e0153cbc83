"""What a selection says about itself."""

from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

from dartboard.selection.bandwidth import Sigma
from dartboard.types import FloatArray, IntArray


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Picks in order, and why.

    Arrays run along the picks. ``gains`` and ``coverage`` are shares of what the whole pool would cover,
    so gains add up to the last coverage, whatever method made the picks; ``log_gains`` also tell gains
    apart that are too small for a plain number. ``bound`` says that no set within the same limits covers
    more than ``coverage[-1] / bound``. ``owners`` runs along the targets: which pick stands for each, or -1.
    """

    indices: IntArray
    gains: FloatArray
    log_gains: FloatArray
    coverage: FloatArray
    similarity: FloatArray
    bound: float
    owners: IntArray
    targets: IntArray | None
    sigma: Sigma
    method: str
    parameters: dict[str, Any] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.indices)

    @property
    def stands_for(self) -> tuple[IntArray, ...]:
        """For each pick, the targets that no earlier pick covers better and that it covers at least by half.

        They are positions of candidates, the pick's own among them, or entries of the vocabulary.
        """
        order = self.owners.argsort(kind="stable")
        edges = self.owners[order].searchsorted(np.arange(len(self) + 1))
        named = order if self.targets is None else self.targets[order]
        return tuple(named[start:end] for start, end in pairwise(edges))
