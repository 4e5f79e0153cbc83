"""A pair scorer that is asked once for what it is asked again: σ changes, the scores do not."""

from collections.abc import Sequence
from typing import Any

from dartboard.embeddings.base import PairScorer
from dartboard.embeddings.vectors import Scores


class Remembering:
    """Scores by another scorer, kept as long as this object is."""

    def __init__(self, scorer: PairScorer) -> None:
        self._scorer = scorer
        self._scores: dict[tuple[str, tuple[str, ...]], Scores] = {}
        self._matrices: dict[tuple[str, ...], Scores] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._scorer, name)

    @property
    def bounds(self) -> tuple[float, float]:
        """Those of the scorer."""
        return self._scorer.bounds

    def score(self, query: str, passages: Sequence[str]) -> Scores:
        """``(n,)``: the query with each passage."""
        asked = (query, tuple(passages))
        if asked not in self._scores:
            self._scores[asked] = self._scorer.score(query, passages)
        return self._scores[asked].copy()

    def score_matrix(self, passages: Sequence[str]) -> Scores:
        """``(n, n)``: each passage with each."""
        asked = tuple(passages)
        if asked not in self._matrices:
            self._matrices[asked] = self._scorer.score_matrix(passages)
        return self._matrices[asked].copy()
