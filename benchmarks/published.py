"""The published algorithm, arXiv 2407.12101, as its authors run it, and a pool to run it on.

At every step it takes the log-sum-exp of totals over a full matrix of maxima, with scikit-learn's cosines and
SciPy's sum. It is exact where σ is not small.
"""

import numpy as np
from scipy.special import logsumexp
from sklearn.metrics.pairwise import cosine_similarity


def make_pool(n: int, seed: int = 0, dim: int = 384) -> tuple[np.ndarray, np.ndarray]:
    """A query and candidates with topics, as triage returns them: cosines with the query from .2 to .65."""
    rng = np.random.default_rng(seed)

    def unit(vectors: np.ndarray) -> np.ndarray:
        return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)

    common, topics = unit(rng.standard_normal(dim)), unit(rng.standard_normal((max(3, n // 12), dim)))
    own = unit(rng.standard_normal((n, dim)))
    candidates = unit(0.55 * common + 0.6 * topics[rng.integers(0, len(topics), n)] + 0.5 * own)
    query = unit(
        0.6 * common
        + 0.35 * topics[0]
        + 0.3 * topics[1]
        + 0.2 * topics[2]
        + 0.5 * unit(rng.standard_normal(dim))
    )
    return query.astype(np.float32), candidates.astype(np.float32)


def published(query: np.ndarray, candidates: np.ndarray, sigma: float, k: int) -> list[int]:
    """The published greedy: totals in log space, all candidates at every step."""

    def log_normal(distance: np.ndarray) -> np.ndarray:
        return -np.log(sigma) - 0.5 * np.log(2 * np.pi) - distance**2 / (2 * sigma**2)

    def scaled_cosine(left: np.ndarray, right: np.ndarray) -> np.ndarray:
        return np.clip(1 - (cosine_similarity(left, right) + 1) / 2, 0, 1)

    query_probs = log_normal(scaled_cosine(query[None], candidates)[0])
    pair_probs = log_normal(scaled_cosine(candidates, candidates))
    first = int(np.argmax(query_probs))
    picks, maxima = [first], pair_probs[first]
    while len(picks) < k:
        totals = logsumexp(np.maximum(maxima, pair_probs) + query_probs, axis=1)
        totals[picks] = -np.inf
        best = int(np.argmax(totals))
        picks.append(best)
        maxima = np.maximum(maxima, pair_probs[best])
    return picks
