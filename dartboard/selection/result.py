"""What a selection says about itself."""

from dataclasses import dataclass, field
from typing import Any

from dartboard.selection.bandwidth import Sigma
from dartboard.types import FloatArray, IntArray


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Picks in order, and why.

    All arrays run along the picks. ``gains`` and ``coverage`` are shares of what the whole pool would
    cover, so gains add up to the last coverage, whatever method made the picks. ``stands_for`` are the
    targets for which a pick is the best stand-in and at least half as good as the target itself: for a
    pool of candidates their positions, the pick's own among them. ``bound`` says that no set allowed by
    the same limits can cover more than ``coverage[-1] / bound``.
    """

    indices: IntArray
    gains: FloatArray
    log_gains: FloatArray
    coverage: FloatArray
    similarity: FloatArray
    stands_for: tuple[IntArray, ...]
    bound: float
    sigma: Sigma
    method: str
    parameters: dict[str, Any] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.indices)
