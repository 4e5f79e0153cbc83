"""Significance of the difference between two systems, paired by query so that query difficulty cancels out.

The permutation test computes how often random signs make the mean difference as large; the t-test does so
under a normal model. Holm's correction keeps the probability of any false positive over all systems at the
level of a single test. Intervals are percentile bootstraps over queries.

SciPy would be needed only for the t distribution, which is one incomplete beta function. It is implemented
here (and tested against SciPy), so that reports need no SciPy.
"""

import math
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
    """A system against the reference: positive differences favour the system."""

    difference: float
    low: float
    high: float
    t_p: float
    permutation_p: float
    wins: int
    ties: int
    losses: int


def compare(
    system: FloatArray, reference: FloatArray, *, resamples: int = RESAMPLES, seed: int = 0
) -> Comparison:
    """Compare two systems on the same queries, ``(Q,)`` each."""
    return compare_columns(system[:, None], reference[:, None], resamples=resamples, seed=seed)[0]


def compare_columns(
    systems: FloatArray, references: FloatArray, *, resamples: int = RESAMPLES, seed: int = 0
) -> list[Comparison]:
    """Compare column by column, ``(Q, m)`` each; all columns share resamples and signs."""
    differences = np.where(np.abs(systems - references) <= TIE, 0.0, systems - references)
    low, high = bootstrap(differences, resamples=resamples, seed=seed)
    permuted = permutation_tests(differences, resamples=resamples, seed=seed)
    wins, losses = (differences > 0).sum(axis=0), (differences < 0).sum(axis=0)
    return [
        Comparison(
            difference=float(column.mean()),
            low=float(low[place]),
            high=float(high[place]),
            t_p=paired_t_test(column),
            permutation_p=permuted[place],
            wins=int(wins[place]),
            ties=len(column) - int(wins[place]) - int(losses[place]),
            losses=int(losses[place]),
        )
        for place, column in enumerate(differences.T)
    ]


def permutation_test(differences: FloatArray, *, resamples: int = RESAMPLES, seed: int = 0) -> float:
    """Two-sided p-value of a mean difference of 0 under random signs; exact if few queries differ."""
    return permutation_tests(differences[:, None], resamples=resamples, seed=seed)[0]


def permutation_tests(differences: FloatArray, *, resamples: int = RESAMPLES, seed: int = 0) -> list[float]:
    """The same for each column of ``(Q, m)``."""
    observed = np.abs(differences.sum(axis=0)) * (1 - 1e-12)
    rng = np.random.default_rng(seed)
    beyond = np.zeros(differences.shape[1])
    for count in _blocks(resamples, len(differences)):
        signs = 2.0 * rng.integers(0, 2, (count, len(differences))) - 1.0
        beyond += (np.abs(signs @ differences) >= observed).sum(axis=0)
    p_values = (beyond + 1) / (resamples + 1)
    moved = (differences != 0).sum(axis=0)
    return [
        _exact(differences[:, place]) if moved[place] <= _EXACT_UP_TO else float(p)
        for place, p in enumerate(p_values)
    ]


def _exact(differences: FloatArray) -> float:
    """The share of all sign patterns with a sum at least as large."""
    moved = differences[differences != 0]
    patterns = np.arange(2 ** len(moved))[:, None] >> np.arange(len(moved)) & 1
    sums = np.abs((2.0 * patterns - 1.0) @ moved)
    return float((sums >= abs(moved.sum()) * (1 - 1e-12)).mean())


def paired_t_test(differences: FloatArray) -> float:
    """Two-sided p-value of a mean difference of 0 by Student's t."""
    count = len(differences)
    if count < 2:
        return 1.0
    spread = float(differences.std(ddof=1))
    if spread == 0.0:
        return 1.0 if float(differences.mean()) == 0.0 else 0.0
    t = float(differences.mean()) / (spread / math.sqrt(count))
    return student_t_tails(t, count - 1)


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


def student_t_tails(t: float, freedom: int) -> float:
    """``P(|T| ≥ |t|)`` = I_x(ν/2, ½) with x = ν / (ν + t²)."""
    x = freedom / (freedom + t * t)
    return incomplete_beta(freedom / 2, 0.5, x)


def incomplete_beta(a: float, b: float, x: float) -> float:
    """The regularised incomplete beta function I_x(a, b), by its continued fraction."""
    if x <= 0.0 or x >= 1.0:
        return float(x >= 1.0)
    if x > (a + 1) / (a + b + 2):  # the fraction converges slowly here, its mirror image fast
        return 1.0 - incomplete_beta(b, a, 1.0 - x)
    front = a * math.log(x) + b * math.log1p(-x) + math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
    return math.exp(front) / (a * _beta_fraction(a, b, x))


def _beta_fraction(a: float, b: float, x: float, steps: int = 10_000) -> float:
    """``1 + d1/(1 + d2/(1 + …))`` by Lentz's method."""
    value, c, d = 1.0, 1.0, 0.0
    for step in range(1, steps):
        m = step // 2
        if step % 2:
            term = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        else:
            term = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        d = 1.0 / (1.0 + term * d)
        c = 1.0 + term / c
        value *= c * d
        if abs(c * d - 1.0) < 1e-15:
            break
    return value
