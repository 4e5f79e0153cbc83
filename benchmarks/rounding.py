"""Measure what float32 gets wrong, and how often a walk in float32 has to be repeated in float64.

    python benchmarks/rounding.py

The first table is the evidence for ``rounding_32``: the worst error of a gain over pools of 32 to 1,024
dimensions, as a share of what the candidate covers alone, times σ². The second counts repeats.
"""

from pathlib import Path
from sys import path

import numpy as np

path.insert(0, str(Path(__file__).parent.parent))

from dartboard.selection import Limits, from_embeddings
from dartboard.selection.coverage import rounding_32
from dartboard.selection.dartboard import best_trail
from dartboard.selection.greedy import State, Uncertain
from dartboard.selection.pool import Pool
from dartboard.selection.referee import Referee
from tests.selection.pools import topical

SIGMAS = (0.03, 0.05, 0.09, 0.2, 1.0, 5.0)


def all_gains(state: State, pool: Pool) -> np.ndarray:
    rows = np.arange(len(pool.log_weights))
    blocks = [state.gains(rows[start : start + 64]) for start in range(0, len(rows), 64)]
    return state.shares(np.concatenate(blocks))[pool.row_of]


def worst_error(sigma: float, pools: int, rng: np.random.Generator) -> float:
    """The largest ``|float32 - float64| / alone`` over random picks, where the gain is within range."""
    worst = 0.0
    for _ in range(pools):
        n, dim = int(rng.choice([70, 200, 500])), int(rng.choice([32, 384, 1024]))
        query, vectors = topical(
            n, seed=int(rng.integers(1 << 30)), dim=dim, copies=1, noise=rng.choice([0.02, 0.2])
        )
        fast = from_embeddings(query, vectors, sigma=sigma)
        exact = fast.refine()
        states = [pool.states()[0]() for pool in (fast, exact)]
        alone = states[1].shares(states[1].alone())[exact.row_of]
        for pick in rng.choice(len(vectors), 20, replace=False):
            gains = [all_gains(state, pool) for state, pool in zip(states, (fast, exact), strict=True)]
            worst = max(worst, float((np.abs(gains[0] - gains[1]) / alone)[alone > 1e-25].max()))
            for state, pool in zip(states, (fast, exact), strict=True):
                state.absorb(int(pool.row_of[pick]))
    return worst


def repeats(n: int, k: int, sigma: float, pools: int) -> int:
    count = 0
    for seed in range(pools):
        query, vectors = topical(n, seed=seed)
        pool = from_embeddings(query, vectors, sigma=sigma)
        referee = Referee(pool)
        try:
            best_trail(pool, Limits(k=k), pool.states(referee)[0](), referee)
        except Uncertain:
            count += 1
    return count


def main() -> None:
    rng = np.random.default_rng(0)
    print("| σ | worst error | times σ² | allowed for |\n|---|---|---|---|")
    for sigma in SIGMAS:
        error = worst_error(sigma, 16, rng)
        print(f"| {sigma} | {error:.1e} | {error * sigma**2:.1e} | {rounding_32(sigma):.1e} |")
    print("\n| n, k | σ = .05 | σ = .09 | σ = .15 |\n|---|---|---|---|")
    for n, k in ((100, 10), (1000, 10), (1000, 50)):
        cells = [f"{repeats(n, k, sigma, 40)} of 40" for sigma in (0.05, 0.09, 0.15)]
        print(f"| {n}, {k} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
