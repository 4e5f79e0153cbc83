"""What a pair scorer is: two texts read together, or token by token, give one number."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

Scores = npt.NDArray[np.float64]

PAPER_BOUNDS = (-11.6, 11.4)
"""Logits of the paper's cross-encoder at "nothing in common" and "as close as can be"."""


class PairScorer(Protocol):
    """Scores pairs of texts; higher is closer.

    ``bounds`` are the scores that stand for "nothing in common" and "as close as can be", so that a
    caller can rescale the scores of any scorer to a distance without knowing which one it is.
    """

    @property
    def bounds(self) -> tuple[float, float]:
        """Lowest and highest score to expect; single scores may lie a little outside."""

    def score(self, query: str, passages: Sequence[str]) -> Scores:
        """``(n,)``: the query with each passage."""

    def score_matrix(self, passages: Sequence[str]) -> Scores:
        """``(n, n)``, symmetric: each passage with each, itself included."""
