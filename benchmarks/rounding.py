"""Measure what float32 gets wrong in a gain, and how many picks exact gains have to decide.

    python benchmarks/rounding.py

The first table checks ``VectorKernel.rounding``: the worst difference between a gain of the float32 screen
and the exact one, as a share of what the row covers alone and of what is allowed for, over pools of 32 to
1,024 dimensions; a third of them has opposite vectors, whose cosines are off most. The second counts the
picks whose lead in float32 is too small to prove them.
"""

from pathlib import Path
from sys import path
from unittest.mock import patch

import numpy as np

path.insert(0, str(Path(__file__).parent.parent))

from dartboard.selection import Dartboard, Limits, from_embeddings, kernel_matrix
from dartboard.selection.greedy import LazyGreedy
from dartboard.selection.kernels import unit_rows
from dartboard.selection.objective import Objective
from tests.selection.pools import topical

SIGMAS = (0.03, 0.05, 0.09, 0.2, 1.0, 5.0)
FLOOR = 1e-25
"""Rows that cover less alone are left out: there the slack is what float32 cannot represent."""


def pool_of(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """A query and vectors: around topics, all close to one direction, or along it and against it."""
    n, dim = int(rng.choice([70, 200, 500])), int(rng.choice([32, 384, 1024]))
    noise = float(rng.choice([0.02, 0.2]))
    query, vectors = topical(n, seed=int(rng.integers(1 << 30)), dim=dim, copies=1, noise=noise)
    kind = rng.integers(3)
    if kind == 0:
        signs = np.sign(rng.standard_normal((len(vectors), 1)))
        vectors = unit_rows(signs * query + 0.1 * vectors)
    elif kind == 1:
        common = unit_rows(rng.standard_normal((1, dim)))
        query, vectors = unit_rows(query[None] + 2.0 * common)[0], unit_rows(vectors + 2.0 * common)
    return query.astype(np.float32), vectors.astype(np.float32)


def worst_error(sigma: float, pools: int, rng: np.random.Generator) -> tuple[float, float]:
    """The largest ``|screen - exact|`` as a share of ``alone`` and of ``slack``, over twenty picks."""
    worst, most = 0.0, 0.0
    for turn in range(pools):
        query, vectors = pool_of(rng)
        pool = from_embeddings(query, vectors, sigma=sigma)
        kept = 4_000_000 if turn % 2 else 0  # every other kernel is worked out row by row
        with patch.object(kernel_matrix, "_KEPT", kept):
            objective = Objective(pool.log_weights, pool.kernel)
        assert pool.kernel.dtype == np.float32
        rows = np.arange(pool.rows)
        alone = np.exp(objective.log_gains(rows))
        seen = rows[alone > FLOOR]
        for pick in [None, *rng.choice(pool.rows, 20, replace=False).tolist()]:
            if pick is not None:
                objective.add(pick)
            some = rng.choice(seen, min(100, len(seen)), replace=False)
            error = np.abs(objective.gains(some) - np.exp(objective.log_gains(some)))
            worst = max(worst, float((error / alone[some]).max()))
            most = max(most, float((error / objective.slack[some]).max()))
    return worst, most


def decided_exactly(n: int, k: int, sigma: float, pools: int) -> int:
    """How many of ``pools * k`` picks the screen could not prove."""
    with patch.object(LazyGreedy, "_exact_best", autospec=True, side_effect=LazyGreedy._exact_best) as exact:
        for seed in range(pools):
            query, vectors = topical(n, seed=seed)
            Dartboard().select(from_embeddings(query, vectors, sigma=sigma), Limits(k=k))
        return exact.call_count


def main() -> None:
    rng = np.random.default_rng(0)
    print("| σ | worst error | of what is allowed for |\n|---|---|---|")
    for sigma in SIGMAS:
        error, share = worst_error(sigma, 24, rng)
        print(f"| {sigma} | {error:.1e} | {share:.2f} |", flush=True)
    print("\nPicks decided by exact gains\n\n| n, k | σ = .05 | σ = .09 | σ = .15 |\n|---|---|---|---|")
    for n, k in ((100, 10), (1000, 10), (1000, 50)):
        cells = [f"{decided_exactly(n, k, sigma, 20)} of {20 * k}" for sigma in (0.05, 0.09, 0.15)]
        print(f"| {n}, {k} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
