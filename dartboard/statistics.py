"""Differences between systems on the same queries: sign-flip permutation, Holm's correction, bootstrap.

Queries are paired, so how hard a query is cancels out. The permutation test is how often random signs of the
differences make their mean at least as large, in either direction; with few differing queries all sign
patterns are tried, so p is exact. SciPy is the oracle of the tests.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from dartboard.types import FloatArray

RESAMPLES = 10_000
TIE = 1e-9
"""Smaller differences are ties: two orders of summation may differ by rounding."""

_EXACT_UP_TO = 12
"""Up to this many differing queries, all sign patterns (4,096) are tried."""

_BLOCK = 4_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """A system against the reference: positive differences favour the system; a 95 % interval."""

    difference: float
    low: float
    high: float
    p: float
    wins: int
    ties: int
    losses: int


def compare(
    systems: FloatArray, references: FloatArray, *, resamples: int = RESAMPLES, seed: int = 0
) -> list[Comparison]:
    """Compare column by column, ``(Q, m)`` each; all columns share resamples and signs."""
    differences = np.where(np.abs(systems - references) <= TIE, 0.0, systems - references)
    low, high = bootstrap(differences, resamples=resamples, seed=seed)
    p_values = permutation_tests(differences, resamples=resamples, seed=seed)
    wins, losses = (differences > 0).sum(axis=0), (differences < 0).sum(axis=0)
    return [
        Comparison(
            difference=float(column.mean()),
            low=float(low[place]),
            high=float(high[place]),
            p=p_values[place],
            wins=int(wins[place]),
            ties=len(column) - int(wins[place]) - int(losses[place]),
            losses=int(losses[place]),
        )
        for place, column in enumerate(differences.T)
    ]


def permutation_tests(differences: FloatArray, *, resamples: int = RESAMPLES, seed: int = 0) -> list[float]:
    """Two-sided p-values of a mean difference of 0, for each column of ``(Q, m)``.

    >>> permutation_tests(np.array([[1.0], [1.0], [1.0]]))
    [0.25]
    """
    observed = np.abs(differences.sum(axis=0)) * (1 - 1e-12)
    rng = np.random.default_rng(seed)
    beyond = np.zeros(differences.shape[1])
    for count in _blocks(resamples, len(differences)):
        signs = 2.0 * rng.integers(0, 2, (count, len(differences))) - 1.0
        beyond += (np.abs(signs @ differences) >= observed).sum(axis=0)
    moved = (np.abs(differences) > TIE).sum(axis=0)
    return [
        _exact(column) if moved[place] <= _EXACT_UP_TO else float((beyond[place] + 1) / (resamples + 1))
        for place, column in enumerate(differences.T)
    ]


def _exact(differences: FloatArray) -> float:
    """The share of all sign patterns with a sum at least as large."""
    moved = differences[np.abs(differences) > TIE]
    patterns = np.arange(2 ** len(moved))[:, None] >> np.arange(len(moved)) & 1
    sums = np.abs((2.0 * patterns - 1.0) @ moved)
    return float((sums >= abs(moved.sum()) * (1 - 1e-12)).mean())


def holm(p_values: Mapping[str, float]) -> dict[str, float]:
    """Adjusted p-values (Holm, 1979): compare them with the level of a single test."""
    adjusted: dict[str, float] = {}
    largest = 0.0
    ordered = sorted(p_values.items(), key=lambda item: (item[1], item[0]))
    for place, (name, p) in enumerate(ordered):
        largest = max(largest, min(1.0, (len(ordered) - place) * p))
        adjusted[name] = largest
    return {name: adjusted[name] for name in p_values}


def bootstrap(
    columns: FloatArray, *, resamples: int = RESAMPLES, seed: int = 0, level: float = 0.95
) -> tuple[FloatArray, FloatArray]:
    """Lower and upper ends, ``(m,)`` each, of the mean of each column of ``(Q, m)``; shared resamples."""
    count = len(columns)
    if not count:
        return np.zeros(columns.shape[1]), np.zeros(columns.shape[1])
    rng = np.random.default_rng(seed)
    means = []
    for size in _blocks(resamples, count):
        drawn = rng.multinomial(count, np.full(count, 1 / count), size=size)
        means.append(drawn.astype(np.float64) @ columns / count)
    tail = (1 - level) / 2
    low, high = np.quantile(np.concatenate(means), [tail, 1 - tail], axis=0)
    return low, high


def _blocks(total: int, width: int) -> Iterator[int]:
    """How many rows are drawn at a time, so that a block fits into memory."""
    step = max(1, _BLOCK // max(1, width))
    for start in range(0, total, step):
        yield min(step, total - start)
