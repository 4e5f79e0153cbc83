"""Dartboard's greedy in 60-digit arithmetic, straight from the definition: slow, and right."""

from collections.abc import Sequence

import mpmath
import numpy as np

TIE, REPEATED = mpmath.mpf("1e-9"), mpmath.mpf("0.99")


def scaled_cosine(query, embeddings):
    with mpmath.workdps(60):
        rows = [[mpmath.mpf(float(x)) for x in row] for row in [query, *embeddings]]
        norms = [mpmath.sqrt(mpmath.fdot(row, row)) for row in rows]

        def distance(i, j):
            if rows[i] == rows[j]:
                return mpmath.mpf(0)
            return (1 - mpmath.fdot(rows[i], rows[j]) / (norms[i] * norms[j])) / 2

        n = len(embeddings)
        to_query = [distance(0, c + 1) for c in range(n)]
        pairwise = [[distance(c + 1, t + 1) for t in range(n)] for c in range(n)]
    return to_query, pairwise


def mixture(to_queries, weights, sigma: float):
    """Σ_j λ_j P(t|q_j) from the distances to each question; each question's probabilities sum to 1."""
    with mpmath.workdps(60):
        spread = 2 * mpmath.mpf(sigma) ** 2
        each = [[mpmath.exp(-(mpmath.mpf(d) ** 2) / spread) for d in row] for row in to_queries]
        each = [[x / mpmath.fsum(row) for x in row] for row in each]
        shares = [mpmath.mpf(w) / mpmath.fsum(weights) for w in weights]
        return [
            mpmath.fsum(w * row[t] for w, row in zip(shares, each, strict=True)) for t in range(len(each[0]))
        ]


def greedy(
    to_query, pairwise, sigma: float, k: int, *, weight=None, seen: Sequence[int] = (), relevance_below=0.0
) -> tuple[list[int], list[mpmath.mpf], mpmath.mpf]:
    """Picks, gains, and what all candidates cover. Ties go to the more probable, then to the earlier.

    ``weight`` are target probabilities from elsewhere; ``seen`` are covered first, and are no picks. Where no
    gain reaches ``relevance_below`` of the total, the most probable that no pick all but repeats is next.
    """
    with mpmath.workdps(60):
        spread = 2 * mpmath.mpf(sigma) ** 2
        n = len(pairwise)
        weight = weight or [mpmath.exp(-(mpmath.mpf(d) ** 2) / spread) for d in to_query]
        kernel = [[mpmath.exp(-(mpmath.mpf(d) ** 2) / spread) for d in row] for row in pairwise]
        covered = [max((kernel[s][t] for s in seen), default=mpmath.mpf(0)) for t in range(n)]
        picks: list[int] = []
        gains: list[mpmath.mpf] = []
        for step in range(min(k, n - len(seen))):
            gain = {
                c: mpmath.fsum(weight[t] * max(0, kernel[c][t] - covered[t]) for t in range(n))
                for c in range(n)
                if c not in picks and c not in seen
            }
            if step == 0 and not seen:
                best = max(gain, key=lambda c: (weight[c], -c))
            else:
                top = max(gain.values())
                level = [c for c in gain if gain[c] >= top * (1 - TIE)]
                if 0 < top < relevance_below * mpmath.fsum(weight):
                    level = [c for c in gain if gain[c] > 0 and covered[c] <= REPEATED] or level
                best = max(level, key=lambda c: (weight[c], -c))
            picks.append(best)
            gains.append(gain[best])
            covered = [max(m, x) for m, x in zip(covered, kernel[best], strict=True)]
        return picks, gains, mpmath.fsum(weight)


def objective(weights: Sequence[float], kernel: np.ndarray, chosen: Sequence[int]) -> float:
    return float(np.asarray(weights) @ kernel[list(chosen)].max(axis=0))
