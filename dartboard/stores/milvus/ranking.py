"""The best k, equal scores by id, from a server that cuts among equals as it likes.

The server is asked for a few more than k. Where the first score that it would have cut is as good as the
k-th, it is asked for more, until the equals are all there.
"""

from collections.abc import Callable

import numpy as np

from dartboard.types import FloatArray, Hit

MOST_HITS = 16_384
_SPARE = 8


def best_hits(search: Callable[[int], list[Hit]], k: int, *, slack: float = 0.0) -> list[Hit]:
    """The server's hits down to the k-th score less ``slack``, sorted; k or more where there are so many."""
    limit = min(k + _SPARE, MOST_HITS)
    while True:
        hits = sorted(search(limit), key=order)
        if len(hits) <= k:
            return hits
        floor = hits[k - 1].score - slack
        if hits[-1].score < floor or len(hits) < limit or limit == MOST_HITS:
            return [hit for hit in hits if hit.score >= floor]
        limit = min(2 * limit, MOST_HITS)


def order(hit: Hit) -> tuple[float, str]:
    """Best first, equal scores by id."""
    return -hit.score, hit.id


class Exact:
    """Scores in float64, rounded to float32, so that equal vectors get equal scores; keeps the k best."""

    def __init__(self, query: FloatArray, k: int, *, cosine: bool) -> None:
        self._query = query.astype(np.float64)
        self._k = k
        self._cosine = cosine
        self.hits: list[Hit] = []

    def add(self, ids: list[str], vectors: FloatArray) -> None:
        """Compare these vectors, ``(n, d)``, too."""
        rows = vectors.astype(np.float64)
        scores = np.einsum("ij,j->i", rows, self._query)
        if self._cosine:
            scores /= np.sqrt(np.einsum("ij,ij->i", rows, rows))
        rounded = scores.astype(np.float32)
        self.hits += [Hit(id, float(score)) for id, score in zip(ids, rounded, strict=True)]
        self.hits = sorted(self.hits, key=order)[: self._k]
